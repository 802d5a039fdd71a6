//! `read-write-lock` beside Curator's `InterProcessReadWriteLock` and kazoo's `ReadLock` and
//! `WriteLock`.

use anyhow::{Context, Result};
use serde_json::json;
use wok_tests::admin::Admin;
use wok_tests::patience::eventually;
use wok_tests::stock::Stock;
use wok_tests::zookeeper;

use crate::line::litter;
use crate::party::{Contest, Party};

/// To read, as each client calls it; and to write.
#[derive(Clone, Copy)]
struct Modes {
    read: Contest,
    write: Contest,
}

impl Modes {
    const fn of(format: &'static str, [reads, writes]: [&'static str; 2]) -> Self {
        let give_back = "read-write-lock release";
        let read = Contest {
            wok: ["read-write-lock", "acquire-read"],
            format,
            infix: reads,
            ask: "read-write-lock acquire-read {path}",
            give_back,
        };
        let write = Contest {
            wok: ["read-write-lock", "acquire-write"],
            infix: writes,
            ask: "read-write-lock acquire-write {path}",
            ..read
        };
        Modes { read, write }
    }
}

const CURATOR: Modes = Modes::of("curator", ["__READ__", "__WRIT__"]);
const KAZOO: Modes = Modes::of("kazoo", ["__rlock__", "__lock__"]);

async fn peer(modes: Modes) -> Result<Party> {
    match modes.read.format {
        "curator" => Party::curator().await,
        _ => Party::kazoo().await,
    }
}

/// A directory, and who stands in its line.
struct Line {
    path: String,
    admin: Admin,
}

impl Line {
    async fn new() -> Result<Self> {
        let admin = Admin::connect(zookeeper::shared().await.address()).await?;
        Ok(Line { path: zookeeper::unique_path(), admin })
    }

    /// The same with children that are no contenders'.
    async fn littered(modes: Modes) -> Result<Self> {
        let line = Line::new().await?;
        litter(&line.admin, &line.path, &[modes.read.infix, modes.write.infix]).await?;
        Ok(line)
    }

    /// Goes to the end of the line and is admitted at once.
    async fn enters(&self, party: &mut Party, contest: Contest) -> Result<()> {
        party.ask(contest, &self.path).await?;
        party.has_it().await.with_context(|| format!("{party:?} is to be admitted"))
    }

    /// Goes to the end of the line and waits there: by the server's own word it watches the one that
    /// stands so many places from the front.
    async fn waits(&self, party: &mut Party, contest: Contest, behind: usize) -> Result<()> {
        let before = self.names().await?.len();
        party.ask(contest, &self.path).await?;
        self.last_of(before + 1).await?;
        self.watches(before, behind).await?;
        assert!(!party.has_answered(), "{party:?} waits");
        Ok(())
    }

    async fn last_of(&self, count: usize) -> Result<()> {
        eventually("one more in line", async || {
            Ok((self.names().await?.len() == count).then_some(()))
        })
        .await
    }

    /// Waits until the one in that place watches the one in the other.
    async fn watches(&self, place: usize, watched: usize) -> Result<()> {
        eventually("a contender to watch another", async || {
            let names = self.names().await?;
            let (Some(own), Some(other)) = (names.get(place), names.get(watched)) else {
                return Ok(None);
            };
            let path = |name: &str| format!("{}/{name}", self.path);
            let Some(stat) = self.admin.stat(&path(own)).await? else { return Ok(None) };
            let watching = zookeeper::shared().await.watchers(&path(other)).await?;
            Ok(watching.contains(&stat.ephemeral_owner).then_some(()))
        })
        .await
    }

    /// The contenders by their counters, the first in line first. What has no counter is no contender's.
    async fn names(&self) -> Result<Vec<String>> {
        let counter = |name: &String| name[name.len().saturating_sub(10)..].to_owned();
        let mut names = match self.admin.stat(&self.path).await? {
            Some(_) => self.admin.children(&self.path).await?,
            None => Vec::new(),
        };
        names.retain(|name| counter(name).bytes().all(|byte| byte.is_ascii_digit()));
        names.sort_by_key(counter);
        Ok(names)
    }
}

/// Readers of both kinds together, a writer behind them, a reader behind that.
async fn check(modes: Modes, parties: [&mut Party; 4]) -> Result<()> {
    check_in(&Line::new().await?, modes, parties).await
}

async fn check_in(line: &Line, modes: Modes, parties: [&mut Party; 4]) -> Result<()> {
    let [first, second, writer, last] = parties;
    line.enters(first, modes.read).await?;
    line.enters(second, modes.read).await?;
    line.waits(writer, modes.write, 1).await?;
    line.waits(last, modes.read, 2).await?;
    // The one that the writer watches goes first: the other reader still has the lock.
    second.give_back(modes.read).await?;
    line.watches(1, 0).await?;
    assert!(!writer.has_answered(), "{writer:?} beside a reader");
    first.give_back(modes.read).await?;
    writer.has_it().await?;
    assert!(!last.has_answered(), "{last:?} beside a writer");
    writer.give_back(modes.write).await?;
    last.has_it().await?;
    last.give_back(modes.read).await?;
    assert_eq!(line.names().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn readers_of_wok_and_curator_hold_together_and_writers_of_both_wait() -> Result<()> {
    let [mut one, mut other] = [peer(CURATOR).await?, peer(CURATOR).await?];
    let [mut wok, mut woks_other] = [Party::wok(), Party::wok()];
    check(CURATOR, [&mut wok, &mut one, &mut woks_other, &mut other]).await?;
    check(CURATOR, [&mut one, &mut wok, &mut other, &mut woks_other]).await
}

#[tokio::test]
async fn readers_of_wok_and_kazoo_hold_together_and_writers_of_both_wait() -> Result<()> {
    let [mut one, mut other] = [peer(KAZOO).await?, peer(KAZOO).await?];
    let [mut wok, mut woks_other] = [Party::wok(), Party::wok()];
    check(KAZOO, [&mut wok, &mut one, &mut woks_other, &mut other]).await?;
    check(KAZOO, [&mut one, &mut wok, &mut other, &mut woks_other]).await
}

#[tokio::test]
async fn children_that_are_no_contenders_keep_neither_readers_nor_writers_out() -> Result<()> {
    for modes in [CURATOR, KAZOO] {
        let [mut one, mut other] = [peer(modes).await?, peer(modes).await?];
        let [mut wok, mut woks_other] = [Party::wok(), Party::wok()];
        let line = Line::littered(modes).await?;
        check_in(&line, modes, [&mut wok, &mut one, &mut woks_other, &mut other]).await?;
        let line = Line::littered(modes).await?;
        check_in(&line, modes, [&mut one, &mut wok, &mut other, &mut woks_other]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_downgrade_of_wok_admits_readers_of_its_peers_and_keeps_their_writers_out() -> Result<()>
{
    for modes in [CURATOR, KAZOO] {
        let (mut reader, mut writer) = (peer(modes).await?, peer(modes).await?);
        let line = Line::new().await?;
        let address = zookeeper::shared().await.address();
        let stock = Stock::open(address, "read-write-lock", &line.path).await?;
        let stock = stock.configured(json!({ "format": modes.read.format }));
        let (wok, _follower) = stock.join()?;
        stock.call(&wok, "acquire-write").await?.claim.context("the lock")?;
        line.waits(&mut writer, modes.write, 0).await?;

        let reading = stock.call(&wok, "downgrade").await?.claim.context("the lock")?;
        // It has looked again, and waits for the reader in the writer's place.
        line.watches(1, 0).await?;
        assert!(reading.path.ends_with(&line.names().await?[0]), "{reading:?}");
        assert!(!writer.has_answered(), "{writer:?} beside {reading:?}");
        stock.call(&wok, "release").await?.value.unwrap();
        writer.has_it().await?;
        writer.give_back(modes.write).await?;

        stock.call(&wok, "acquire-write").await?.claim.context("the lock")?;
        line.waits(&mut reader, modes.read, 0).await?;
        line.waits(&mut writer, modes.write, 1).await?;
        stock.call(&wok, "downgrade").await?.claim.context("the lock")?;
        reader.has_it().await?;
        assert!(!writer.has_answered(), "{writer:?} beside readers");
        stock.call(&wok, "release").await?.value.unwrap();
        reader.give_back(modes.read).await?;
        writer.has_it().await?;
        writer.give_back(modes.write).await?;
    }
    Ok(())
}
