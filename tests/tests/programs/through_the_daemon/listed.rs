//! Who takes part, as `wok ps` and `wok events` show it.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::api;
use wok_tests::patience::eventually;
use wok_tests::process::{Line, Program, Stream};

use super::{Daemon, claim_in};

#[tokio::test]
async fn who_takes_part_is_listed_and_told() -> Result<()> {
    let daemon = Daemon::start().await?;
    let nobody = daemon.wok(["ps"])?.run().await?;
    assert_eq!((nobody.code(), nobody.stdout.as_str()), (Some(0), ""), "{nobody:?}");
    assert!(nobody.stderr.contains("nobody takes part"), "{nobody:?}");
    let nobody = daemon.wok(["ps", "--output", "json"])?.run().await?;
    assert_eq!(nobody.stdout.trim(), r#"{"participants":[]}"#);

    let events = daemon.follow_all().await?;
    let mut holder = daemon
        .wok(["hold", "orders", "acquire", "--owner", "the \u{202e}nightly job"])?
        .args(["--", "sh", "-c", "read line"])
        .start()?;
    let claim = claim_in(&holder.wait_for_text("holding").await?)?;
    let is_told =
        |line: &Line| line.text.contains(r#""event":"held""#) && line.text.contains(&claim);
    let told = events.wait_for_line("the claim", is_told).await?;
    assert_eq!(told.stream, Stream::Stdout);
    let told: Value = serde_json::from_str(&told.text)?;
    let waiter = daemon.hold("true")?.start()?;
    waiter.wait_for_text("standing in line").await?;

    // The host sees whom a participant waits behind when the recipe looks, which may be later.
    let listed = eventually("the one in line to be listed behind another", async || {
        let listed = daemon.wok(["ps", "--output", "json"])?.run().await?;
        let listed: Value = serde_json::from_str(&listed.stdout)?;
        let list = listed["participants"].as_array().context("a list")?;
        let is_behind = list.iter().any(|it| it["waiting"]["behind"].is_object());
        Ok(is_behind.then_some(listed))
    })
    .await?;
    let [one, two] = listed["participants"].as_array().context("a list")?.as_slice() else {
        panic!("{listed}");
    };
    let (holding, waiting) = if one["state"] == "held" { (one, two) } else { (two, one) };
    assert_eq!(holding["participant"], told["participant"], "{listed}");
    assert_eq!(waiting["waiting"]["behind"]["owner"], "the \u{202e}nightly job", "{listed}");
    let id = told["participant"].as_str().context("an id")?;
    let table = daemon.wok(["ps"])?.run().await?;
    assert_eq!(table.stdout.lines().count(), 3, "{}", table.stdout);
    assert!(table.stdout.contains(&id[..8]) && !table.stdout.contains(id), "{}", table.stdout);
    assert!(table.stdout.contains("the \\u{202e}nightly job"), "{}", table.stdout);

    let one = daemon.wok(["events", &id[..12]])?.start()?;
    one.wait_for_text("holding").await?;
    holder.write("go\n")?;
    let ended = one.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("ended"), "{ended:?}");
    assert_eq!(waiter.ended().await?.code(), Some(0));
    Ok(())
}

/// This process twice, and another one.
#[tokio::test]
async fn the_participants_of_one_app_are_seen_as_one_app_and_those_of_two_are_not() -> Result<()> {
    let daemon = Daemon::start().await?;
    let (client, join) = (api::Client::new(&daemon.socket), "/v1/recipes/orders/join");
    let mut ours =
        [client.stream(join, &Value::Null).await?, client.stream(join, &Value::Null).await?];
    let other = Program::new("curl").args(["--silent", "--no-buffer", "--unix-socket"]);
    let other = other.arg(&daemon.socket).args(["--request", "POST"]);
    let other = other.arg(format!("http://wok{join}")).start()?;
    let mut ids = Vec::new();
    for app in &mut ours {
        ids.push(app.until("joined").await?["participant"].clone());
    }
    let joined = other.wait_for_text(r#""event":"joined""#).await?;
    ids.push(serde_json::from_str::<Value>(&joined.text)?["participant"].clone());
    let (own, others) = (std::process::id(), other.pid());

    let listed = client.get("/v1/participants").await?.body;
    let shown = daemon.wok(["ps", "--output", "json"])?.run().await?;
    for list in [listed, serde_json::from_str(&shown.stdout)?] {
        let all = list["participants"].as_array().context("a list")?;
        let identity = |id: &Value| {
            let one = all.iter().find(|it| it["participant"] == *id).unwrap();
            (one["app"].clone(), one["uid"].clone(), one["pid"].clone())
        };
        let [first, second, third] = [&ids[0], &ids[1], &ids[2]].map(identity);
        assert_eq!(first, second, "{list}");
        assert_eq!((&first.0, &first.2), (&json!(format!("pid {own}")), &json!(own)), "{list}");
        assert_eq!((&third.0, &third.2), (&json!(format!("pid {others}")), &json!(others)));
    }
    let table = daemon.wok(["ps"])?.run().await?.stdout;
    let of = |pid: u32| {
        let app = format!(" pid {pid}");
        table.lines().filter(|line| line.trim_end().ends_with(&app)).count()
    };
    assert_eq!((of(own), of(others)), (2, 1), "{table}");
    Ok(())
}
