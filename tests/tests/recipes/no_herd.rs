//! No herd: what one release costs does not depend on how many wait. Counted by a proxy that all
//! sessions of a line go through.

#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use wok::base::{self, Base, BaseOptions, Sessions};
use wok::guest::{Limits, Module, Mount};
use wok::modules::ModuleSource;
use wok::participant::{Call, Follower, Join, Notice, Participant};
use wok::session::{ConnectOptions, SeatLimits, Session};
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Match, Proxy};
use wok_tests::zookeeper;

/// Few and many that wait when the first release comes; two of the few when the last one does, so that
/// somebody comes to the head of the line each time.
const LENGTHS: [usize; 2] = [1 + RELEASES, 100];

/// How many sessions the participants of a line share.
const SESSIONS: usize = 10;

/// How often the claim goes to the next while requests are counted: what the first release wakes has
/// asked by the second.
const RELEASES: usize = 2;

/// How many requests are told of where a claim was awaited in vain.
const TOLD: usize = 20;

/// A recipe in whose line participants stand.
struct Recipe {
    name: &'static str,
    config: Value,
    hold: &'static str,
    release: &'static str,
    /// What it takes until one stands in line and watches.
    joining: usize,
}

/// Participants in a line, the first of which holds. A machine that is busy may let one overtake another on
/// its way into the line.
struct Line {
    recipe: Recipe,
    proxy: Proxy,
    path: String,
    members: Vec<(Arc<Participant>, Follower)>,
    module: Module,
    /// Each answers whose it was.
    calls: JoinSet<Result<usize>>,
    /// Whose calls have been answered.
    answered: BTreeSet<usize>,
    host: Base,
}

impl Line {
    /// Has a holder and so many others stand in line and watch.
    async fn stand(recipe: Recipe, waiters: usize) -> Result<Line> {
        let (mut line, sessions) = Line::open(recipe, waiters).await?;
        line.join(&sessions[0])?;
        line.call(0, line.recipe.hold, &Value::Null)?;
        line.until_another_holds(None).await?;
        line.wait_behind(&sessions, line.recipe.hold, waiters).await?;
        Ok(line)
    }

    /// Nobody in it yet, and the sessions for one and so many others.
    async fn open(recipe: Recipe, waiters: usize) -> Result<(Line, Vec<Arc<Session>>)> {
        let server = zookeeper::shared().await;
        let (proxy, path) = (Proxy::start(server.address())?, zookeeper::unique_path());
        let host = Base::new(BaseOptions {
            participants: u32::try_from(waiters + 1)?,
            memory: Limits::default().memory,
            cache: base::user_cache(),
            connect: ConnectOptions::new(proxy.address(), Duration::from_secs(30)),
            sessions: Sessions::at_most(1),
        })?;
        let module = host.load(&ModuleSource::Stock(recipe.name.to_owned()), None)?;
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            sessions.push(host.open_session().await?);
        }
        let (members, calls, answered) = (Vec::new(), JoinSet::new(), BTreeSet::new());
        Ok((Line { recipe, proxy, path, members, module, calls, answered, host }, sessions))
    }

    /// Has so many others call an operation, one behind another, until all of them watch.
    async fn wait_behind(
        &mut self,
        sessions: &[Arc<Session>],
        operation: &str,
        waiters: usize,
    ) -> Result<()> {
        for waiter in 1..=waiters {
            let before = self.requests();
            self.join(&sessions[waiter % SESSIONS])?;
            self.call(waiter, operation, &Value::Null)?;
            let enough = before + self.recipe.joining;
            let in_line = eventually("a place in line", async || {
                self.note_answers()?;
                Ok((self.requests() >= enough).then_some(()))
            });
            in_line.await.with_context(|| format!("{} of {enough} requests", self.requests()))?;
        }
        Ok(())
    }

    fn join(&mut self, session: &Arc<Session>) -> Result<()> {
        let config = self.module.configuration(Some(&self.recipe.config));
        let join = Join {
            recipe: self.recipe.name.to_owned(),
            module: self.module.clone(),
            mount: Mount::new(&self.path)?,
            config: config.map_err(|errors| anyhow!("{errors}"))?,
            limits: Limits::default(),
            seat: SeatLimits::default(),
            owner: String::new(),
            witness: None,
        };
        let (participant, follower) = Participant::join(self.host.tasks(), session, join)?;
        self.members.push((Arc::new(participant), follower));
        Ok(())
    }

    /// Begins an operation of a member.
    fn call(&mut self, member: usize, operation: &str, arguments: &Value) -> Result<()> {
        let arguments = self.module.arguments(operation, arguments)?;
        let participant = Arc::clone(&self.members[member].0);
        self.answered.remove(&member);
        self.calls.spawn(async move {
            let call = Call { arguments, deadline: None, withdrawn: None };
            let answer = participant.call(call).await?;
            answer.value.map(|_| member).map_err(|error| anyhow!("{error}"))
        });
        Ok(())
    }

    /// Notes whose calls have been answered by now. Fails with the call that does, and where a participant has
    /// ended: with its session, say, on a machine that stands still for too long.
    fn note_answers(&mut self) -> Result<()> {
        while let Some(ended) = self.calls.try_join_next() {
            self.answered.insert(ended??);
        }
        for (member, follower) in &mut self.members {
            while let Some(Some(notice)) = follower.next().now_or_never() {
                if let Notice::Ended(ending) = notice {
                    bail!("{} has ended: {ending:?}", member.id());
                }
            }
        }
        Ok(())
    }

    /// Waits until one that did not hold last does, and has nothing under way. Answers which one.
    async fn until_another_holds(&mut self, last: Option<usize>) -> Result<usize> {
        let held = eventually("a claim", async || {
            self.note_answers()?;
            let mut others = self.answered.iter().filter(|it| Some(**it) != last);
            Ok(others.find(|it| self.members[**it].0.holds()).copied())
        })
        .await;
        held.with_context(|| {
            let log = self.proxy.requests(&Match::any().under(&self.path));
            let newest = log.iter().rev().take(TOLD).rev().collect::<Vec<_>>();
            format!("{last:?} held last; the last requests: {newest:#?}")
        })
    }

    fn requests(&self) -> usize {
        self.proxy.requests(&Match::any().under(&self.path)).len()
    }

    /// How many requests it takes that the claim goes to the next, and again.
    async fn cost_of_releases(mut self) -> Result<usize> {
        let (before, mut holder) = (self.requests(), 0);
        for _ in 0..RELEASES {
            self.call(holder, self.recipe.release, &Value::Null)?;
            holder = self.until_another_holds(Some(holder)).await?;
        }
        self.until_answered().await?;
        Ok(self.requests() - before)
    }

    /// Waits until what each session has sent so far is answered, and what it was told until then has come.
    async fn until_answered(&self) -> Result<()> {
        for (participant, _) in &self.members {
            let look = wok::session::Request::Sync("/".to_owned());
            let seat = participant.session().join("/", SeatLimits::default())?;
            within("a round trip", seat.submit(look)).await??;
        }
        Ok(())
    }
}

async fn check(recipe: impl Fn() -> Recipe) -> Result<()> {
    let mut costs = Vec::new();
    for length in LENGTHS {
        costs.push(Line::stand(recipe(), length).await?.cost_of_releases().await?);
    }
    let [of_few, of_many] = costs.as_slice() else { panic!("{costs:?}") };
    let name = recipe().name;
    assert!(
        of_few.abs_diff(*of_many) <= RELEASES,
        "{name}: {of_few} with few, {of_many} with many"
    );
    Ok(())
}

#[tokio::test]
async fn a_release_of_a_lock_costs_the_same_however_many_wait() -> Result<()> {
    let (config, hold, release) = (json!({}), "acquire", "release");
    check(|| Recipe { name: "lock", config: config.clone(), hold, release, joining: 3 }).await
}

#[tokio::test]
async fn the_end_of_a_writer_costs_the_same_however_many_writers_wait() -> Result<()> {
    let (config, hold, release) = (json!({}), "acquire-write", "release");
    let name = "read-write-lock";
    check(|| Recipe { name, config: config.clone(), hold, release, joining: 3 }).await
}

#[tokio::test]
async fn a_resignation_costs_the_same_however_many_candidates_there_are() -> Result<()> {
    let (config, hold, release) = (json!({}), "volunteer", "resign");
    let name = "leader-election";
    check(|| Recipe { name, config: config.clone(), hold, release, joining: 3 }).await
}

#[tokio::test]
async fn a_permit_that_is_given_back_costs_the_same_however_many_wait() -> Result<()> {
    let (config, hold, release) = (json!({ "permits": 1 }), "acquire", "release");
    let name = "semaphore";
    check(|| Recipe { name, config: config.clone(), hold, release, joining: 3 }).await
}

/// How many requests it takes to count one id while so many wait for the latch, which stays closed. Then it
/// opens for all of them.
async fn cost_of_a_count(waiters: usize) -> Result<usize> {
    // A wait looks at the latch, behind a transaction, and watches the gate.
    let config = json!({ "count": 3 });
    let recipe = Recipe {
        name: "count-down-latch",
        config,
        hold: "wait",
        release: "count-down",
        joining: 3,
    };
    let (mut line, sessions) = Line::open(recipe, waiters).await?;
    line.join(&sessions[0])?;
    let count = |line: &mut Line, id: &str| line.call(0, "count-down", &json!({ "id": id }));
    let answered = async |line: &mut Line| -> Result<()> {
        within("an answer", line.calls.join_next()).await?.context("a call")??.map(drop)
    };
    count(&mut line, "first")?;
    answered(&mut line).await?;
    line.wait_behind(&sessions, "wait", waiters).await?;
    line.until_answered().await?;
    let before = line.requests();
    count(&mut line, "second")?;
    answered(&mut line).await?;
    line.until_answered().await?;
    let cost = line.requests() - before;
    // Nobody was missed: all who wait watch.
    count(&mut line, "third")?;
    for _ in 0..=waiters {
        answered(&mut line).await?;
    }
    Ok(cost)
}

#[tokio::test]
async fn a_count_of_a_latch_costs_the_same_however_many_wait() -> Result<()> {
    let (of_few, of_many) = (cost_of_a_count(2).await?, cost_of_a_count(100).await?);
    assert!(of_few.abs_diff(of_many) <= 1, "{of_few} with few, {of_many} with many");
    Ok(())
}
