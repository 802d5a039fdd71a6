//! A daemon of two recipes, of which one is hostile: the other holds its lock and runs its command
//! as if it were alone.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use wok_tests::admin::{self, Admin};
use wok_tests::guests::guest_file;
use wok_tests::patience::eventually;
use wok_tests::process::{OrderFile, Program, Running, Signal, is_there};
use wok_tests::proxy::Proxy;
use wok_tests::zookeeper::{self, Server};
use zookeeper_client::{Acls, CreateMode};

/// How much larger the daemon may become under an attack.
const MEMORY: u64 = 64 << 20;

/// How many persistent znodes the hostile recipe may leave behind.
const LEFT: usize = 100;

/// A slow link, in bytes a second.
const SLOW: u64 = 10_000_000;

/// A daemon whose neighbour holds; the hostile recipe waits until it is told.
struct Daemon {
    _directory: tempfile::TempDir,
    running: Running,
    proxy: Proxy,
    admin: Admin,
    order: OrderFile,
    /// What the hostile recipe sees as `/`.
    mount: String,
    /// Where the neighbour's znode is.
    line: String,
    timeout: Duration,
}

impl Daemon {
    async fn start(server: &Server, attack: &str, timeout: Duration) -> Result<Self> {
        let proxy = Proxy::start(server.address())?;
        let admin = Admin::connect(server.address()).await?;
        let (root, order) = (zookeeper::unique_path(), OrderFile::new()?);
        let (mount, line) = (format!("{root}/hostile"), format!("{root}/neighbour"));
        admin.create(&mount, b"").await?;
        let (directory, module) = guest_file("hostile")?;
        let config = directory.path().join("wok.toml");
        let script = format!("{}; while :; do sleep 0.05; done", order.append("begins $$"));
        let text = format!(
            r#"
[zookeeper]
connect = "{}"
session-timeout = "{}s"
root = "{root}"

[recipes.hostile]
module = {}
mount = "/hostile"
limits = {{ persistent-znodes = {LEFT} }}
run = {{ call = "attack-when-told", arguments = {{ attack = "{attack}" }} }}

[recipes.neighbour]
module = "lock"
mount = "/neighbour"
run = {{ call = "acquire" }}
while-held = {{ exec = ["sh", "-c", {}], stop-timeout = "500ms" }}
"#,
            proxy.address(),
            timeout.as_secs(),
            serde_json::to_string(&module)?,
            serde_json::to_string(&script)?,
        );
        fs::write(&config, text)?;
        let running = Program::wok()?.args([Path::new("run"), &config]).start()?;
        let daemon =
            Daemon { _directory: directory, running, proxy, admin, order, mount, line, timeout };
        daemon.begins(1).await?;
        Ok(daemon)
    }

    /// Waits until the neighbour's command has begun so often; answers its process.
    async fn begins(&self, times: usize) -> Result<u32> {
        self.order.wait_for_pid("begins", times).await.with_context(|| self.said())
    }

    /// Has the neighbour lose its claim; its command begins for so many times within two timeouts.
    async fn holds_again(&self, times: usize, what: &str) -> Result<u32> {
        let start = Instant::now();
        for contender in self.admin.children(&self.line).await? {
            self.admin.delete(&format!("{}/{contender}", self.line)).await?;
        }
        let command = self.begins(times).await?;
        let took = start.elapsed();
        ensure!(took <= 2 * self.timeout, "{what}: {took:?} until it held again\n{}", self.said());
        Ok(command)
    }

    async fn tell(&self) -> Result<()> {
        self.admin.create(&format!("{}/go", self.mount), b"").await.map(drop)
    }

    /// Lets the attack go on for that long; the command is the one that it was.
    async fn endure(&self, what: &str, command: u32, time: Duration) -> Result<()> {
        let before = self.order.labels()?.len();
        // tidy: the time for which the attack goes on, of a promise of time.
        tokio::time::sleep(time).await;
        ensure!(is_there(command), "{what}: the command was killed\n{}", self.said());
        let labels = self.order.labels()?;
        ensure!(labels.len() == before, "{what}: {labels:?}\n{}", self.said());
        Ok(())
    }

    /// Waits until the hostile recipe has failed so often; answers how many znodes it has left behind by then.
    async fn left_after_failures(&self, times: usize) -> Result<usize> {
        eventually(&format!("the recipe to fail {times} times"), async || {
            Ok((self.failures() >= times).then_some(()))
        })
        .await?;
        Ok(self.left().await?.len())
    }

    fn failures(&self) -> usize {
        let lines = self.running.lines();
        lines.iter().filter(|line| line.text.contains("a module failed")).count()
    }

    async fn left(&self) -> Result<Vec<String>> {
        let mut names = self.admin.children(&self.mount).await?;
        names.retain(|name| name.starts_with("left-"));
        Ok(names.into_iter().map(|name| format!("{}/{name}", self.mount)).collect())
    }

    /// For so long that a command whose deadline is not extended is killed.
    fn beyond_the_deadline(&self) -> Duration {
        self.timeout + self.timeout / 2
    }

    fn said(&self) -> String {
        let lines = self.running.lines();
        let last = lines.iter().rev().take(40).rev().map(|line| {
            let text: String = line.text.chars().take(300).collect();
            format!("  {text}\n")
        });
        last.collect()
    }

    /// The most memory that it has had since it was last told to forget.
    fn most_memory(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.running.pid()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB")).context("VmHWM")?;
        Ok(kib.trim().parse::<u64>()? << 10)
    }

    fn forget_most_memory(&self) -> Result<()> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.running.pid()), "5")?)
    }

    async fn stop(self) -> Result<()> {
        self.running.signal(Signal::TERM)?;
        let ended = self.running.ended().await?;
        ensure!(ended.code() == Some(0), "{ended:?}");
        Ok(())
    }
}

/// The neighbour holds on, the daemon stays small, and after the loss of its claim, or of their
/// session, the neighbour's command runs again within two timeouts.
async fn withstands(attack: &str) -> Result<()> {
    withstands_for(attack, None).await
}

/// The same of an attack that goes on for that long, where it is said.
async fn withstands_for(attack: &str, time: Option<Duration>) -> Result<()> {
    let server = zookeeper::shared().await;
    let daemon = Daemon::start(server, attack, Duration::from_secs(4)).await?;
    prepare(&daemon, attack).await?;
    let command = daemon.begins(1).await?;
    daemon.forget_most_memory()?;
    let before = daemon.most_memory()?;
    daemon.tell().await?;
    daemon.endure(attack, command, time.unwrap_or(daemon.beyond_the_deadline())).await?;
    let grown = daemon.most_memory()?.saturating_sub(before);
    ensure!(grown <= MEMORY, "{attack}: the daemon grew by {} MiB", grown >> 20);

    daemon.holds_again(2, attack).await?;
    let sessions = daemon.proxy.sessions();
    let start = Instant::now();
    admin::expire(server.address(), sessions.last().context("a session")?).await?;
    daemon.begins(3).await?;
    let took = start.elapsed();
    ensure!(took <= 2 * daemon.timeout, "{attack}: {took:?} until the command ran again");
    daemon.stop().await
}

/// What the attack needs that takes it too long to make.
async fn prepare(daemon: &Daemon, attack: &str) -> Result<()> {
    if attack != "lists" {
        return Ok(());
    }
    let client = daemon.admin.client();
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    // A list of 4.7 MB takes half a second of the link. A session of 4 s may be without contact for
    // 2.5 s, of which that leaves a busy machine too little: its lists are half as long.
    let hundreds = if daemon.timeout < Duration::from_secs(10) { 100 } else { 200 };
    for hundred in 0..hundreds {
        let mut multi = client.new_multi_writer();
        for number in 0..100 {
            let name = format!("{}-{hundred}-{number}", "x".repeat(228));
            multi.add_create(&format!("{}/{name}", daemon.mount), b"", &options)?;
        }
        multi.commit().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_neighbour_withstands_events_of_thousands_of_empty_pairs() -> Result<()> {
    withstands("empty-pairs").await
}

/// What a daemon keeps of each attempt adds up. The two that go on by themselves for ever do so for a
/// minute, both at one time.
#[tokio::test]
async fn a_neighbour_withstands_a_minute_of_names_of_98_kilobytes_and_of_events_from_wake()
-> Result<()> {
    let minute = Some(Duration::from_secs(60));
    let attacks = ["long-names", "empty-pairs-in-wake"];
    try_join_all(attacks.map(|attack| withstands_for(attack, minute))).await.map(drop)
}

#[tokio::test]
async fn a_neighbour_withstands_lists_of_thousands_of_long_names() -> Result<()> {
    withstands("lists").await
}

#[tokio::test]
async fn a_neighbour_withstands_reads_of_900_kilobytes() -> Result<()> {
    withstands("reads").await
}

#[tokio::test]
async fn a_neighbour_withstands_a_loop_without_an_end() -> Result<()> {
    withstands("spin").await
}

#[tokio::test]
async fn a_neighbour_withstands_one_that_joins_again_and_again() -> Result<()> {
    withstands("trap").await
}

/// As the guide says: no limit of wok's makes the list of a large directory shorter.
#[tokio::test]
async fn a_list_that_takes_longer_than_the_deadline_ends_a_neighbours_command() -> Result<()> {
    let server = zookeeper::shared().await;
    let daemon = Daemon::start(server, "lists", Duration::from_secs(4)).await?;
    prepare(&daemon, "lists").await?;
    let command = daemon.begins(1).await?;
    // Each list of 2.4 MB takes almost five seconds then.
    daemon.proxy.limit(SLOW / 20);
    daemon.tell().await?;
    eventually("the command to be ended", async || Ok((!is_there(command)).then_some(())))
        .await
        .with_context(|| daemon.said())?;
    daemon.proxy.limit(0);
    daemon.begins(2).await.with_context(|| daemon.said())?;
    daemon.stop().await
}

/// The daemon joins it again whenever it has failed, and each time it could leave as many behind.
#[tokio::test]
async fn a_recipe_that_fails_again_and_again_leaves_no_more_behind_than_one_participant_may()
-> Result<()> {
    let server = zookeeper::shared().await;
    let daemon = Daemon::start(server, "persist-then-trap", Duration::from_secs(4)).await?;
    daemon.tell().await?;
    ensure!(daemon.left_after_failures(3).await? == LEFT, "{}", daemon.said());
    for path in daemon.left().await?.iter().take(7) {
        daemon.admin.delete(path).await?;
    }
    // One may have looked before they were deleted; the next has not.
    let failures = daemon.failures();
    ensure!(daemon.left_after_failures(failures + 2).await? == LEFT, "{}", daemon.said());
    daemon.stop().await
}

/// The same over a slow link, with sessions as short as servers grant them and of the default.
async fn withstands_over_a_slow_link(timeout: Duration) -> Result<()> {
    // One of its own: what is written here would be in the way of others.
    let server = Server::start(zookeeper::Options::default()).await?;
    let attacks = ["reads", "lists", "writes"].map(|attack| {
        let server = &server;
        async move {
            let daemon = Daemon::start(server, attack, timeout).await?;
            prepare(&daemon, attack).await?;
            let command = daemon.begins(1).await?;
            daemon.proxy.limit(SLOW);
            daemon.tell().await?;
            daemon.endure(attack, command, daemon.beyond_the_deadline()).await?;
            // The neighbour joins, stands in line and claims beside the attack, and holds on.
            let command = daemon.holds_again(2, attack).await?;
            daemon.endure(attack, command, daemon.beyond_the_deadline()).await?;
            daemon.proxy.limit(0);
            daemon.stop().await
        }
    });
    try_join_all(attacks).await?;
    ensure!(server.four_letter("ruok").await? == "imok", "the server");
    Ok(())
}

#[tokio::test]
async fn a_neighbour_holds_over_a_slow_link_with_a_short_session() -> Result<()> {
    withstands_over_a_slow_link(Duration::from_secs(4)).await
}

#[tokio::test]
async fn a_neighbour_holds_over_a_slow_link_with_a_usual_session() -> Result<()> {
    withstands_over_a_slow_link(Duration::from_secs(10)).await
}
