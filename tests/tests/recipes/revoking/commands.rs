//! What becomes of a command when somebody asks for the lock that it runs under.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;
use wok_tests::admin::Admin;
use wok_tests::patience::eventually;
use wok_tests::process::{Ended, OrderFile, Program, Running, Signal, Stream};
use wok_tests::{scratch, zookeeper};

/// `wok hold` of the lock, with a shell script as its command.
pub(super) async fn hold(path: &str, settings: &[&str], script: &str) -> Result<Running> {
    let address = zookeeper::shared().await.address();
    let settings = settings.iter().flat_map(|setting| ["--config", setting]);
    Program::wok()?
        .args(["hold", "lock", "--mount", path, "--connect", address])
        .args(settings)
        .args(["acquire", "--", "sh", "-c", script])
        .start()
}

async fn call(path: &str, settings: &[&str], operation: &[&str]) -> Result<Ended> {
    let address = zookeeper::shared().await.address();
    let settings = settings.iter().flat_map(|setting| ["--config", setting]);
    Program::wok()?
        .args(["call", "lock", "--mount", path, "--connect", address, "--output", "json"])
        .args(settings)
        .args(operation)
        .run()
        .await
}

/// Asks the first in line; answers what came of it.
pub(super) async fn revoke(path: &str, settings: &[&str]) -> Result<String> {
    let line = call(path, &[], &["contenders"]).await?;
    let told: Value = serde_json::from_str(&line.stdout).with_context(|| format!("{line:?}"))?;
    let first = told[0]["path"].as_str().with_context(|| told.to_string())?;
    let asked = call(path, settings, &["revoke", &format!("path={first}")]).await?;
    assert_eq!(asked.code(), Some(0), "{asked:?}");
    Ok(asked.stdout.trim().trim_matches('"').to_owned())
}

/// A command that says when it begins and, after it was asked to stop, when it has saved its work.
fn saves_its_work(order: &OrderFile, name: &str) -> String {
    let save = order.append(&format!("{name} has saved")).replace('\'', "'\\''");
    let begin = order.append(&format!("{name} begins"));
    format!("trap '{save}; exit 0' TERM; {begin}; while :; do sleep 0.05; done")
}

#[tokio::test]
async fn a_batch_job_saves_its_work_before_the_urgent_one_that_asked_begins() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let batch = hold(&path, &["revocable=true"], &saves_its_work(&order, "batch")).await?;
    order.wait_for("batch begins").await?;
    let urgent = hold(&path, &[], &order.append("urgent begins")).await?;
    urgent.wait_for_text("standing in line").await?;
    assert_eq!(revoke(&path, &[]).await?, "asked");
    assert_eq!(urgent.ended().await?.code(), Some(0));
    let ended = batch.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert!(ended.stderr.contains("revoke-requested"), "{ended:?}");
    assert!(ended.stderr.contains("wok: lost: the module gave the claim up"), "{ended:?}");
    assert_eq!(order.labels()?, ["batch begins", "batch has saved", "urgent begins"]);
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    assert_eq!(admin.children(&path).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_daemons_batch_job_is_run_again_behind_the_urgent_one() -> Result<()> {
    let server = zookeeper::shared().await;
    let (order, root, directory) = (OrderFile::new()?, zookeeper::unique_path(), scratch::dir()?);
    let script = serde_json::to_string(&saves_its_work(&order, "batch"))?;
    let address = server.address();
    let config = directory.path().join("wok.toml");
    let text = format!(
        r#"
[zookeeper]
connect = "{address}"
root = "{root}"

[recipes.disk]
module = "lock"
mount = "/disk"
config = {{ revocable = true }}
run = {{ call = "acquire" }}
while-held = {{ exec = ["sh", "-c", {script}], restart = "never", stop-timeout = "1s" }}
"#
    );
    fs::write(&config, text)?;
    let daemon = Program::wok()?.args(["run".as_ref(), config.as_os_str()]).start()?;
    order.wait_for("batch begins").await?;
    let path = format!("{root}/disk");
    let script = format!("{}; read line", order.append("urgent begins"));
    let mut urgent = hold(&path, &[], &script).await?;
    urgent.wait_for_text("standing in line").await?;
    assert_eq!(revoke(&path, &[]).await?, "asked");
    order.wait_for("urgent begins").await?;
    // It stands in line again before the urgent one has finished.
    let admin = Admin::connect(address).await?;
    eventually("the batch job to stand in line again", async || {
        Ok((admin.children(&path).await?.len() == 2).then_some(()))
    })
    .await?;
    urgent.write("\n")?;
    assert_eq!(urgent.ended().await?.code(), Some(0));
    eventually("the batch job to begin again", async || {
        Ok((order.labels()?.iter().filter(|label| *label == "batch begins").count() == 2)
            .then_some(()))
    })
    .await?;
    daemon.signal(Signal::TERM)?;
    assert_eq!(daemon.ended().await?.code(), Some(0));
    let labels = order.labels()?;
    let expected = ["batch begins", "batch has saved", "urgent begins", "batch begins"];
    assert_eq!(labels[..4], expected, "{labels:?}");
    Ok(())
}

#[tokio::test]
async fn a_command_under_consent_by_release_goes_on_and_the_request_is_printed() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let settings = ["revocable=true", "consent=by-release"];
    let batch = hold(&path, &settings, &saves_its_work(&order, "batch")).await?;
    order.wait_for("batch begins").await?;
    assert_eq!(revoke(&path, &[]).await?, "asked");
    batch.wait_for_text("revoke-requested").await?;
    // It is still there to be asked, and is told to stop by nobody but its user.
    assert_eq!(revoke(&path, &[]).await?, "asked");
    assert_eq!(batch.status(), None);
    batch.signal(Signal::TERM)?;
    assert_eq!(batch.ended().await?.code(), Some(0));
    assert_eq!(order.labels()?, ["batch begins", "batch has saved"]);
    Ok(())
}

#[tokio::test]
async fn who_is_not_revocable_is_not_disturbed_until_it_is_forced() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let batch = hold(&path, &[], &saves_its_work(&order, "batch")).await?;
    order.wait_for("batch begins").await?;
    assert_eq!(revoke(&path, &[]).await?, "asked");
    assert_eq!(revoke(&path, &["force-after-ms=200"]).await?, "forced");
    let ended = batch.ended().await?;
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert!(ended.stderr.contains("was deleted by another client"), "{ended:?}");
    assert!(!batch.text(Stream::Stderr).contains("revoke-requested"));
    // Somebody else may hold the lock by then, so it was killed and saved nothing.
    assert_eq!(order.labels()?, ["batch begins"]);
    Ok(())
}

#[tokio::test]
async fn who_is_forced_while_its_command_saves_its_work_has_the_command_killed() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let address = zookeeper::shared().await.address();
    let asked = order.append("asked").replace('\'', "'\\''");
    let begin = order.append("batch begins");
    let script = format!("trap '{asked}' TERM; {begin}; while :; do sleep 0.05; done");
    let batch = Program::wok()?
        .args(["hold", "lock", "--mount", &path, "--connect", address])
        .args(["--config", "revocable=true", "--stop-timeout", "4s"])
        .args(["acquire", "--", "sh", "-c", &script])
        .start()?;
    order.wait_for("batch begins").await?;
    assert_eq!(revoke(&path, &[]).await?, "asked");
    order.wait_for("asked").await?;
    assert_eq!(revoke(&path, &["force-after-ms=300"]).await?, "forced");
    let ended = batch.ended().await?;
    // It was asked first, and did not stop. Without force it is told that the claim was given up.
    assert_eq!(order.labels()?, ["batch begins", "asked"]);
    assert_eq!(ended.code(), Some(76), "{ended:?}");
    assert!(ended.stderr.contains("was deleted by another client"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn who_forces_somebody_says_so_in_its_log() -> Result<()> {
    let path = zookeeper::unique_path();
    let holder = hold(&path, &[], "sleep 3600").await?;
    holder.wait_for_text("holding").await?;
    let line = call(&path, &[], &["contenders"]).await?;
    let told: Value = serde_json::from_str(&line.stdout)?;
    let (first, owner) = (told[0]["path"].as_str().unwrap(), told[0]["owner"].as_str().unwrap());
    let path_is = format!("path={first}");
    let forced = call(&path, &["force-after-ms=100"], &["revoke", &path_is]).await?;
    assert_eq!(forced.stdout.trim(), "\"forced\"");
    let says = format!("deletes {first} of {owner}, which was asked 100 ms ago to give way");
    assert!(forced.stderr.contains(&says), "{forced:?}");
    assert_eq!(holder.ended().await?.code(), Some(76));
    Ok(())
}
