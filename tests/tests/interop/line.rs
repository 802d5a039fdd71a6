//! A line of several clients: each of them waits behind the one before it, and nobody overtakes.

use anyhow::{Context, Result};
use wok_tests::admin::{Admin, Znode};
use wok_tests::patience::eventually;
use wok_tests::zookeeper;

use crate::party::{Contest, Party};

/// A directory and the clients that stand in its line.
pub(crate) struct Line {
    contest: Contest,
    path: String,
    admin: Admin,
}

impl Line {
    pub(crate) async fn new(contest: Contest) -> Result<Line> {
        let admin = Admin::connect(zookeeper::shared().await.address()).await?;
        Ok(Line { contest, path: zookeeper::unique_path(), admin })
    }

    /// The same with children that are no contenders'.
    async fn littered(contest: Contest) -> Result<Line> {
        let line = Line::new(contest).await?;
        litter(&line.admin, &line.path, &[contest.infix]).await?;
        Ok(line)
    }

    /// All of them in this order, each behind the one before it.
    async fn play(&self, parties: &mut [&mut Party]) -> Result<()> {
        for (ahead, party) in parties.iter_mut().enumerate() {
            self.join(party, ahead).await?;
        }
        self.take_turns(parties).await
    }

    /// Has `party` go to the end of the line, in which `ahead` stand before it, and waits until it
    /// stands there.
    pub(crate) async fn join(&self, party: &mut Party, ahead: usize) -> Result<()> {
        party.ask(self.contest, &self.path).await?;
        self.ends_behind(ahead).await.with_context(|| format!("{party:?}"))
    }

    /// Waits until the last in line has `ahead` before it and, by the server's own word, watches
    /// the one right before.
    pub(crate) async fn ends_behind(&self, ahead: usize) -> Result<()> {
        let what = format!("a line that ends with one who waits behind {ahead}");
        eventually(&what, async || {
            let contenders = self.contenders().await?;
            let [.., before, last] = contenders.as_slice() else {
                return Ok((contenders.len() == 1 && ahead == 0).then_some(()));
            };
            let watch = zookeeper::shared().await.watchers(&before.path).await?;
            let waits = watch.contains(&last.stat.ephemeral_owner);
            Ok((waits && contenders.len() == ahead + 1).then_some(()))
        })
        .await
    }

    /// One after another has it, and gives it back.
    pub(crate) async fn take_turns(&self, parties: &mut [&mut Party]) -> Result<()> {
        for turn in 0..parties.len() {
            parties[turn].has_it().await.with_context(|| format!("turn {turn}"))?;
            for (place, waiting) in parties.iter().enumerate().skip(turn + 1) {
                assert!(!waiting.has_answered(), "{place} beside {turn}: {parties:?}");
            }
            parties[turn].give_back(self.contest).await?;
        }
        assert_eq!(self.contenders().await?, Vec::new());
        Ok(())
    }

    /// Those who stand in line, in the order in which they came.
    async fn contenders(&self) -> Result<Vec<Znode>> {
        let mut below = self.admin.tree(&self.path).await?;
        below.retain(|znode| znode.path != self.path && znode.stat.ephemeral_owner != 0);
        // A leader's announcement has no counter.
        below.retain(|znode| znode.path.ends_with(|last: char| last.is_ascii_digit()));
        below.sort_by_key(|znode| znode.stat.czxid);
        Ok(below)
    }
}

/// All of them in this order, each behind the one before it.
pub(crate) async fn check(contest: Contest, parties: &mut [&mut Party]) -> Result<()> {
    Line::new(contest).await?.play(parties).await
}

/// The same where there are children that are no contenders' as well.
pub(crate) async fn check_littered(contest: Contest, parties: &mut [&mut Party]) -> Result<()> {
    Line::littered(contest).await?.play(parties).await
}

/// Makes children that are no contenders': one of another name, and for each infix two that have no counter
/// behind it, as ZooKeeper writes one.
///
/// kazoo looks for names that end with an infix and ten digits, and passes over all others. Curator sorts
/// all children by what stands behind the infix, or by the whole name, and takes who is first there for the
/// holder: a child that comes before the digits, such as `-note`, would have its clients wait for ever.
/// These come behind them.
pub(crate) async fn litter(admin: &Admin, directory: &str, infixes: &[&str]) -> Result<()> {
    let mut names = vec!["a note".to_owned()];
    for infix in infixes {
        names.extend([format!("note{infix}99"), format!("note{infix}ten")]);
    }
    for name in names {
        admin.create(&format!("{directory}/{name}"), b"of somebody else").await?;
    }
    Ok(())
}
