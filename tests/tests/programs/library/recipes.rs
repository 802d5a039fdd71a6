//! Every stock recipe through the library, on a real server: what the guide's table says, and what
//! participants of one host are to each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use wok::host::Error;
use wok::modules::stock_names;
use wok::participant::{Follower, Notice};
use wok::{Call, Held, Host, Recipe};
use wok_tests::patience::within;
use wok_tests::zookeeper;

const PAGE: &str = "../docs/in-a-rust-program.md";

/// In an answer any value, in an argument what `begin` has answered.
const ANY: &str = "…";

/// A line of the table.
#[derive(Debug)]
struct Row {
    recipe: String,
    config: Option<Value>,
    method: String,
    operation: String,
    arguments: Value,
    answer: Value,
}

/// What stands in backquotes in a cell, one after another.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// A name, and the JSON that may follow it.
fn named(text: &str) -> Result<(String, Option<Value>)> {
    Ok(match text.split_once(' ') {
        Some((name, json)) => (name.to_owned(), Some(serde_json::from_str(json)?)),
        None => (text.to_owned(), None),
    })
}

fn row(line: &str) -> Result<Row> {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
    let [recipe, call, answer] = cells[..] else { bail!("not three cells") };
    let (recipe, config) = named(quoted(recipe).next().context("a recipe")?)?;
    let mut call = quoted(call);
    let method = call.next().context("a method")?.to_owned();
    let (operation, arguments) = named(call.next().context("an operation")?)?;
    let answer = serde_json::from_str(quoted(answer).next().context("an answer")?)?;
    Ok(Row { recipe, config, method, operation, arguments: arguments.unwrap_or_default(), answer })
}

fn rows() -> Result<Vec<Row>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = std::fs::read_to_string(page)?;
    let section = page.lines().skip_while(|line| *line != "## Every stock recipe");
    let table = section.skip_while(|line| !line.starts_with("|---")).skip(1);
    let lines = table.take_while(|line| line.starts_with('|'));
    lines.map(|line| row(line).with_context(|| line.to_owned())).collect()
}

/// Whether an answer is as shown.
fn is_like(shown: &Value, answer: &Value) -> bool {
    match (shown, answer) {
        (Value::String(any), _) if any == ANY => true,
        (Value::Array(shown), Value::Array(answer)) => {
            shown.len() == answer.len() && shown.iter().zip(answer).all(|(a, b)| is_like(a, b))
        }
        (Value::Object(shown), Value::Object(answer)) => {
            shown.len() == answer.len()
                && shown.iter().all(|(key, a)| answer.get(key).is_some_and(|b| is_like(a, b)))
        }
        _ => shown == answer,
    }
}

/// Calls what the line says, and answers what it answered.
async fn play(
    row: &Row,
    host: &Host,
    held: &mut BTreeMap<String, Held>,
    begun: &Value,
) -> Result<Value> {
    let mut arguments = row.arguments.clone();
    if let Some(transaction) = arguments.get_mut("transaction") {
        *transaction = begun.clone();
    }
    let call = Call::new(&row.operation).arguments(arguments);
    Ok(match row.method.as_str() {
        "host.call" => within("an answer", host.call(&row.recipe, call)).await??,
        "host.acquire" => {
            let claim = within("the claim", host.acquire(&row.recipe, call)).await??;
            ensure!(claim.is_held(), "it is not held");
            let answer = claim.answer().clone();
            if let Some(fence) = answer.get("fence") {
                ensure!(fence.as_u64() == Some(claim.fence()), "the claim's is {}", claim.fence());
            }
            held.insert(row.recipe.clone(), claim);
            answer
        }
        "held.finish" => {
            let claim = held.remove(&row.recipe).context("nothing is held")?;
            within("the end", claim.finish(call)).await??
        }
        other => bail!("what is {other}?"),
    })
}

#[tokio::test]
async fn every_stock_recipe_answers_as_the_guides_table_says() -> Result<()> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let rows = rows()?;
    let played: BTreeSet<&str> = rows.iter().map(|row| row.recipe.as_str()).collect();
    assert_eq!(played, stock_names().collect::<BTreeSet<_>>());
    let mut builder = Host::builder(server.address()).participants(16);
    for name in played {
        let mut recipe = Recipe::new(name, format!("{path}/{name}"));
        let mut of_recipe = rows.iter().filter(|row| row.recipe == name);
        if let Some(config) = of_recipe.find_map(|row| row.config.clone()) {
            recipe = recipe.config(config);
        }
        builder = builder.recipe(name, recipe);
    }
    let host = builder.open().await?;
    let (mut held, mut begun) = (BTreeMap::new(), Value::Null);
    for row in &rows {
        let answer = play(row, &host, &mut held, &begun).await;
        let answer = answer.with_context(|| format!("{row:?}"))?;
        assert!(is_like(&row.answer, &answer), "{row:?} answers {answer}");
        if row.operation == "begin" {
            begun = answer;
        }
    }
    assert!(held.is_empty(), "the table leaves {held:?}");
    host.shut_down().await;
    Ok(())
}

#[test]
fn an_answer_that_is_not_as_shown_is_found() {
    let shown = json!({ "path": ANY, "items": [1, { "fence": ANY }] });
    assert!(is_like(&shown, &json!({ "path": "/a", "items": [1, { "fence": 7 }] })));
    for other in [
        json!({ "path": "/a", "items": [2, { "fence": 7 }] }),
        json!({ "path": "/a", "items": [1] }),
        json!({ "path": "/a", "items": [1, { "fence": 7 }], "more": 1 }),
        json!({ "path": "/a", "items": [1, { "mode": 7 }] }),
        json!(null),
    ] {
        assert!(!is_like(&shown, &other), "{other}");
    }
}

/// A host with one recipe, `it`.
async fn host_of(recipe: &str, config: Value) -> Result<Host> {
    let (server, path) = (zookeeper::shared().await, zookeeper::unique_path());
    let mut recipe = Recipe::new(recipe, path);
    if !config.is_null() {
        recipe = recipe.config(config);
    }
    let builder = Host::builder(server.address()).participants(4).recipe("it", recipe);
    Ok(builder.open().await?)
}

fn call(operation: &str, arguments: Value) -> Call {
    Call::new(operation).arguments(arguments)
}

/// Waits until the participant has said that its znode stands.
async fn waits(told: &mut Follower) -> Result<()> {
    let notice = within("a word", told.next()).await?;
    ensure!(matches!(notice, Some(Notice::Waiting { .. })), "{notice:?}");
    Ok(())
}

/// Waits until a participant has told of that revision, or of a later one, by events of that name; answers
/// what the last of them says.
async fn told_of(
    told: &mut Follower,
    name: &str,
    revision: &Value,
) -> Result<BTreeMap<String, String>> {
    let revision = revision.as_u64().context("a revision")?;
    loop {
        match within("an event", told.next()).await?.context("it tells no more")? {
            Notice::Emitted { event, detail } if event == name => {
                let detail: BTreeMap<_, _> = detail.into_iter().collect();
                if detail.get("revision").context("a revision")?.parse::<u64>()? >= revision {
                    return Ok(detail);
                }
            }
            Notice::Ended(end) => bail!("it has ended: {end:?}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn who_finds_no_permit_waits_until_one_is_given_back() -> Result<()> {
    let host = host_of("semaphore", json!({ "permits": 2 })).await?;
    let both = host.acquire("it", call("acquire", json!({ "permits": 2 }))).await?;
    let next = host.join("it").await?;
    let mut told = next.follow();
    let mut acquiring = Box::pin(next.acquire("acquire"));
    tokio::select! {
        early = &mut acquiring => bail!("there is no permit: {early:?}"),
        waiting = waits(&mut told) => waiting?,
    }
    let fence = both.fence();
    both.release().await;
    let one = within("a permit", acquiring).await??;
    ensure!(one.fence() > fence, "{} after {fence}", one.fence());
    let available = host.call("it", "available").await?;
    assert_eq!(available, json!({ "permits": 2, "available": 1 }));
    Ok(())
}

#[tokio::test]
async fn who_waits_at_a_barrier_or_a_latch_goes_on_when_it_opens() -> Result<()> {
    let count = |id: &str| call("count-down", json!({ "id": id }));
    let one_more = json!({ "count": 2 });
    for (recipe, config, shut, open) in [
        ("barrier", Value::Null, Call::new("raise"), Call::new("lower")),
        ("count-down-latch", one_more, count("web-1"), count("web-2")),
    ] {
        let host = host_of(recipe, config).await?;
        host.call("it", shut).await?;
        let impatient = Call::new("wait").timeout(Duration::from_millis(300));
        let late = within("the timeout", host.call("it", impatient)).await?;
        assert!(matches!(late, Err(Error::TimedOut)), "{recipe}: {late:?}");
        let both = async { tokio::join!(host.call("it", "wait"), host.call("it", open)) };
        let (waited, opened) = within("its opening", both).await?;
        opened?;
        assert_eq!(waited?, Value::Null, "{recipe}");
    }
    Ok(())
}

#[tokio::test]
async fn two_enter_together_and_nobody_leaves_before_the_other() -> Result<()> {
    let host = host_of("double-barrier", json!({ "size": 2 })).await?;
    let impatient = Call::new("enter").timeout(Duration::from_millis(300));
    let alone = within("the timeout", host.acquire("it", impatient)).await?;
    assert!(matches!(alone, Err(Error::TimedOut)), "{alone:?}");
    let entering = async { tokio::join!(host.acquire("it", "enter"), host.acquire("it", "enter")) };
    let (one, two) = within("the round", entering).await?;
    let (one, two) = (one?, two?);
    let mut leaving = Box::pin(one.finish("leave"));
    tokio::select! {
        early = &mut leaving => bail!("the other is inside: {early:?}"),
        alone = host.acquire("it", Call::new("enter").timeout(Duration::from_millis(300))) => {
            assert!(matches!(alone, Err(Error::TimedOut)), "{alone:?}");
        }
    }
    let left = async { tokio::join!(leaving, two.finish("leave")) };
    let (one, two) = within("the end of the round", left).await?;
    assert_eq!((one?, two?), (Value::Null, Value::Null));
    Ok(())
}

#[tokio::test]
async fn who_follows_a_group_or_a_name_is_told_and_finds_nobody_when_the_claim_is_given_back()
-> Result<()> {
    let name = json!({ "name": "web" });
    let join = call("join", json!({ "name": "web", "data": "rack 7" }));
    let register = json!({ "name": "web", "address": "10.0.0.1:80", "metadata": [] });
    let register = call("register", register);
    for (recipe, enter, changed, observe, look, list) in [
        ("group-membership", join, "members-changed", Value::Null, Call::new("members"), "members"),
        ("name-service", register, "changed", name.clone(), call("resolve", name), "instances"),
    ] {
        let host = host_of(recipe, Value::Null).await?;
        let observer = host.join("it").await?;
        let mut told = observer.follow();
        observer.call(call("observe", observe)).await?;
        let held = within("a place", host.acquire("it", enter)).await??;
        let found = host.call("it", look.clone()).await?;
        assert_eq!(found[list][0]["fence"], held.fence(), "{recipe}: {found}");
        told_of(&mut told, changed, &found["revision"]).await?;
        held.release().await;
        let found = host.call("it", look).await?;
        assert_eq!(found[list], json!([]), "{recipe}");
        told_of(&mut told, changed, &found["revision"]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn who_expects_an_older_version_is_refused_and_who_observes_is_told_the_key() -> Result<()> {
    let host = host_of("configuration", Value::Null).await?;
    let set = |data: &str, expected: Value| {
        call("set", json!({ "key": "limit", "data": data, "expected": expected }))
    };
    assert_eq!(host.call("it", set("low", json!("absent"))).await?["version"], 0);
    let observer = host.join("it").await?;
    let mut told = observer.follow();
    observer.call("observe").await?;
    let written = host.call("it", set("high", json!({ "version": 0 }))).await?;
    assert_eq!(written["version"], 1);
    let changed = told_of(&mut told, "changed", &written["revision"]).await?;
    assert_eq!(changed.get("key").map(String::as_str), Some("limit"));
    let refused = host.call("it", set("none", json!({ "version": 0 }))).await.unwrap_err();
    assert!(matches!(&refused, Error::Refused(error) if error == "bad-version"), "{refused}");
    assert!(!refused.is_outcome_unknown());
    Ok(())
}

#[tokio::test]
async fn a_transaction_aborts_at_all_sites_when_one_votes_so() -> Result<()> {
    let host = host_of("two-phase-commit", Value::Null).await?;
    let begin = json!({ "sites": ["bank", "shop"], "payload": "pay", "within-ms": 600_000 });
    let transaction = host.call("it", call("begin", begin)).await?;
    let of_it = json!({ "transaction": transaction });
    let vote = |site: &str, choice: &str| {
        let vote = json!({ "transaction": transaction, "site": site, "choice": choice });
        call("vote", vote)
    };
    let votes = async {
        host.call("it", vote("bank", "commit")).await?;
        host.call("it", vote("shop", "abort")).await
    };
    let both = async { tokio::join!(host.call("it", call("outcome", of_it)), votes) };
    let (decided, voted) = within("the outcome", both).await?;
    voted?;
    let decided = decided?;
    assert_eq!(decided, json!({ "decision": "abort", "reason": "shop voted to abort" }));
    let late = host.call("it", vote("shop", "commit")).await.unwrap_err();
    assert!(matches!(late, Error::Refused(_)) && !late.is_outcome_unknown(), "{late}");
    Ok(())
}
