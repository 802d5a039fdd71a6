//! In simulation: the coordinator and each site killed at each of their requests, alone and in pairs, and
//! clocks that are wrong.

use std::fmt::Write as _;
use std::fs;

use anyhow::Result;
use wok_tests::process::Program;
use wok_tests::scratch;

/// A coordinator, two sites, and one who asks for the outcome: each on a host of its own.
const PLAY: &str = r#"
seed = 7
hosts = 4

[[applications]]
host = 0
steps = [
    { call = { operation = "begin", arguments = { sites = ["a", "b"], payload = "x", within-ms = 15000 }, bind = "tx" } },
    { call = { operation = "outcome", arguments = { transaction = "$tx" } } },
]
"#;

/// A site, which begins when the transaction is there.
fn site(host: usize, name: &str, notify: &str) -> String {
    let about = format!("transaction = \"$asked.0.path\", site = \"{name}\"");
    format!(
        r#"
[[applications]]
host = {host}
config = {{ notify = "{notify}" }}
steps = [
    {{ rest = {{ ms = 300 }} }},
    {{ call = {{ operation = "transactions", arguments = {{ site = "{name}" }}, bind = "asked" }} }},
    {{ call = {{ operation = "register", arguments = {{ {about} }} }} }},
    {{ call = {{ operation = "vote", arguments = {{ {about}, choice = "commit" }} }} }},
    {{ call = {{ operation = "outcome", arguments = {{ transaction = "$asked.0.path" }} }} }},
]
"#
    )
}

/// One who looks what b is asked, before b votes, and waits for the outcome.
const WITNESS: &str = r#"
[[applications]]
host = 3
steps = [
    { rest = { ms = 250 } },
    { call = { operation = "transactions", arguments = { site = "b" }, bind = "asked" } },
    { call = { operation = "outcome", arguments = { transaction = "$asked.0.path" } } },
]
"#;

fn kill(host: usize, nth: usize) -> String {
    format!(
        "\n[[faults]]\nfault = \"host-kill\"\nwhen = {{ request = {{ nth = {nth} }} }}\nhost = {host}\nms = 20000\n"
    )
}

fn jump(host: usize, ms: u64) -> String {
    format!(
        "\n[[faults]]\nfault = \"clock-jump\"\nwhen = {{ at = {{ ms = 1 }} }}\nhost = {host}\nms = {ms}\n"
    )
}

async fn check(notify: &str, faults: &str) -> Result<()> {
    let directory = scratch::dir()?;
    let file = directory.path().join("kills.toml");
    let mut play = PLAY.to_owned();
    write!(play, "{}{}{WITNESS}{faults}", site(1, "a", notify), site(2, "b", notify))?;
    fs::write(&file, &play)?;
    let file = file.to_string_lossy();
    let ended =
        Program::wok()?.args(["test", "two-phase-commit", "--scenario", &file]).run().await?;
    assert_eq!(ended.code(), Some(0), "{play}\n{ended:?}");
    Ok(())
}

/// Beyond the last request of any of them: 2 for the mount, `begin` and what it watches; or three
/// operations of a site.
const REQUESTS: usize = 24;

#[tokio::test]
async fn whoever_is_killed_at_whichever_request_the_others_decide() -> Result<()> {
    for notify in ["all-sites", "coordinator"] {
        for host in 0..3 {
            for nth in 1..=REQUESTS {
                check(notify, &kill(host, nth)).await?;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn whichever_two_are_killed_the_third_and_who_asks_decide() -> Result<()> {
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        for nth in (1..=REQUESTS).step_by(2) {
            for and in (1..=REQUESTS).step_by(2) {
                check("coordinator", &[kill(one, nth), kill(other, and)].concat()).await?;
            }
        }
    }
    Ok(())
}

/// The simulation's clocks jump by an hour and what is said; even ones forth, odd ones back.
#[tokio::test]
async fn clocks_that_are_wrong_disagree_about_nothing() -> Result<()> {
    for host in 0..4 {
        for ms in [0, 60_000, 1, 59_999] {
            check("all-sites", &jump(host, ms)).await?;
            check("coordinator", &[jump(host, ms), kill((host + 1) % 3, 8)].concat()).await?;
        }
    }
    Ok(())
}
