//! All plays, and how they are played at once under one fault.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::asking::{Asking, ITS_PATH};
use super::claiming::{Holding, Waiting, plain};
use super::gathering;
use super::ground::{Fault, Ground, Places};
use super::party::{Operation, Recipe, Side};
use super::stage::{Act, Company, Stage};
use super::transacting;
use crate::patience::within;

/// Of those who are struck: short, so that a session that is lost is lost soon.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Of the others: longer than any election on a busy machine.
const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// More than all plays have on one host.
const PARTICIPANTS: u32 = 200;

type Run = Box<dyn FnOnce(Stage) -> LocalBoxFuture<'static, Result<()>>>;

/// A play and its name.
struct Play {
    name: String,
    run: Run,
}

impl Play {
    fn new<F>(name: String, run: impl FnOnce(Stage) -> F + 'static) -> Play
    where
        F: Future<Output = Result<()>> + 'static,
    {
        Play { name, run: Box::new(|stage| run(stage).boxed_local()) }
    }

    fn holding(
        recipe: &Recipe,
        hold: Operation,
        meanwhile: Option<Operation>,
        next: Operation,
    ) -> Play {
        let during = meanwhile.as_ref().map_or("", |(name, _)| *name);
        let name = format!("{}: {} is held, {during}", recipe.name, hold.0);
        let it = Holding { recipe: recipe.clone(), hold, meanwhile, next };
        Play::new(name, |stage| it.play(stage))
    }

    fn waiting(recipe: &Recipe, hold: Operation, next: Operation) -> Play {
        let name = format!("{}: {} waits for {}", recipe.name, next.0, hold.0);
        let it = Waiting { recipe: recipe.clone(), hold, next };
        Play::new(name, |stage| it.play(stage))
    }

    fn asking(
        recipe: &Recipe,
        before: Vec<Operation>,
        asks: Operation,
        after: Vec<Operation>,
    ) -> Play {
        let name = format!("{}: {}", recipe.name, asks.0);
        let it = Asking { recipe: recipe.clone(), before, asks, after };
        Play::new(name, |stage| it.play(stage))
    }
}

/// Each operation of each recipe.
fn plays() -> Vec<Play> {
    let mut plays = Vec::new();
    of_locks(&mut plays);
    of_several_locks(&mut plays);
    of_the_semaphore(&mut plays);
    of_the_queue(&mut plays);
    of_the_election(&mut plays);
    of_those_who_gather(&mut plays);
    of_the_configuration(&mut plays);
    of_transactions(&mut plays);
    of_those_who_are_there(&mut plays);
    plays
}

fn of_locks(plays: &mut Vec<Play>) {
    let revocable = json!({ "revocable": true, "consent": "by-release" });
    let revoke = || ("revoke", json!({ "path": ITS_PATH }));
    let lock = Recipe { name: "lock", config: revocable.clone() };
    let acquire = || plain("acquire");
    plays.push(Play::holding(&lock, acquire(), None, acquire()));
    for meanwhile in ["release", "contenders"] {
        plays.push(Play::holding(&lock, acquire(), Some(plain(meanwhile)), acquire()));
    }
    plays.push(Play::waiting(&lock, acquire(), acquire()));
    plays.push(Play::asking(&lock, vec![], acquire(), vec![acquire()]));
    for asks in [plain("try-acquire"), revoke()] {
        plays.push(Play::asking(&lock, vec![acquire()], asks, vec![acquire()]));
    }
    let lock = Recipe { name: "read-write-lock", config: revocable };
    let (read, write) = (|| plain("acquire-read"), || plain("acquire-write"));
    for (one, other) in [(read(), write()), (write(), read()), (write(), write())] {
        plays.push(Play::holding(&lock, one.clone(), None, other.clone()));
        plays.push(Play::waiting(&lock, one, other));
    }
    for meanwhile in ["downgrade", "release"] {
        plays.push(Play::holding(&lock, write(), Some(plain(meanwhile)), write()));
    }
    for asks in [plain("try-acquire-read"), plain("try-acquire-write"), revoke()] {
        plays.push(Play::asking(&lock, vec![write()], asks, vec![write(), read()]));
    }
}

fn of_several_locks(plays: &mut Vec<Play>) {
    let locks = Recipe { name: "multi-lock", config: json!({}) };
    let both = || ("acquire", json!({ "names": ["a", "b"] }));
    let other_way = || ("acquire", json!({ "names": ["b", "a"] }));
    let contenders = || ("contenders", json!({ "name": "a" }));
    for meanwhile in [None, Some(plain("release")), Some(contenders())] {
        plays.push(Play::holding(&locks, both(), meanwhile, other_way()));
    }
    // The other one holds but the second: the place in the first line is taken meanwhile.
    let second = ("acquire", json!({ "names": ["b"] }));
    plays.push(Play::waiting(&locks, second, both()));
    let at_once = ("try-acquire", json!({ "names": ["a", "b"] }));
    for asks in [both(), at_once] {
        plays.push(Play::asking(&locks, vec![contenders()], asks, vec![other_way()]));
    }
}

fn of_the_semaphore(plays: &mut Vec<Play>) {
    let semaphore = Recipe { name: "semaphore", config: json!({ "permits": 1 }) };
    let acquire = || plain("acquire");
    for meanwhile in [None, Some(plain("release")), Some(plain("available"))] {
        plays.push(Play::holding(&semaphore, acquire(), meanwhile, acquire()));
    }
    plays.push(Play::waiting(&semaphore, acquire(), acquire()));
    plays.push(Play::asking(&semaphore, vec![], acquire(), vec![acquire()]));
    // Without the number in their settings: it changes.
    let resized = Recipe { name: "semaphore", config: json!({}) };
    let resize = || ("resize", json!({ "permits": 2 }));
    let first = vec![("resize", json!({ "permits": 1 }))];
    plays.push(Play::asking(&resized, first, resize(), vec![resize(), acquire()]));
}

fn of_the_queue(plays: &mut Vec<Play>) {
    let queue = Recipe { name: "queue", config: json!({}) };
    let put = || ("put", json!({ "data": "an item" }));
    let both = || ("put-all", json!({ "items": ["an item", "another"] }));
    plays.push(Play::asking(&queue, vec![], put(), vec![put(), plain("take")]));
    plays.push(Play::asking(&queue, vec![put()], both(), vec![plain("take")]));
    for asks in [plain("take"), plain("take-many"), plain("length"), plain("peek")] {
        plays.push(Play::asking(&queue, vec![put()], asks, vec![plain("take")]));
    }
    let once = Recipe { name: "queue", config: json!({ "delivery": "at-most-once" }) };
    for asks in [plain("take"), plain("take-many")] {
        plays.push(Play::asking(&once, vec![both()], asks, vec![put(), plain("take")]));
    }
    let urgent = Recipe { name: "priority-queue", config: json!({}) };
    let hurry = || ("put", json!({ "data": "an item", "priority": -1 }));
    plays.push(Play::asking(&urgent, vec![put()], hurry(), vec![hurry(), plain("take")]));
    plays.push(Play::asking(&urgent, vec![put()], plain("take"), vec![plain("take")]));
}

fn of_the_election(plays: &mut Vec<Play>) {
    let election = Recipe { name: "leader-election", config: json!({}) };
    let volunteer = || plain("volunteer");
    let announce = || ("announce", json!({ "data": "here" }));
    for meanwhile in [None, Some(plain("resign")), Some(announce()), Some(plain("leader"))] {
        plays.push(Play::holding(&election, volunteer(), meanwhile, volunteer()));
    }
    plays.push(Play::waiting(&election, volunteer(), volunteer()));
    for asks in [plain("observe"), volunteer()] {
        plays.push(Play::asking(&election, vec![volunteer()], asks, vec![volunteer()]));
    }
}

fn of_those_who_gather(plays: &mut Vec<Play>) {
    let name = |name: &str| name.to_owned();
    plays.push(Play::new(name("barrier: wait"), gathering::barrier));
    let barrier = Recipe { name: "barrier", config: Value::Object(serde_json::Map::new()) };
    let all = || vec![plain("raise"), plain("lower"), plain("wait")];
    plays.push(Play::asking(&barrier, vec![], plain("raise"), all()));
    plays.push(Play::asking(&barrier, vec![plain("raise")], plain("lower"), all()));
    plays.push(Play::new(name("count-down-latch: wait"), gathering::latch));
    plays.push(Play::new(name("count-down-latch: count-down"), gathering::counting_down));
    plays.push(Play::new(name("double-barrier: enter"), gathering::entering));
    plays.push(Play::new(name("double-barrier: leave"), gathering::leaving));
    plays.push(Play::new(name("counter: add"), gathering::adding));
    let counter = Recipe { name: "counter", config: json!({}) };
    let swap = || ("compare-and-set", json!({ "expected": 0, "value": 1 }));
    plays.push(Play::asking(&counter, vec![plain("get")], swap(), vec![swap(), plain("get")]));
}

fn of_the_configuration(plays: &mut Vec<Play>) {
    let settings = Recipe { name: "configuration", config: json!({}) };
    let any = |name| (name, json!({ "key": "a", "data": "one", "expected": "any" }));
    let (set, get) = (|| any("set"), || ("get", json!({ "key": "a" })));
    let remove = || ("remove", json!({ "key": "a", "expected": "any" }));
    let wait = |after| ("wait", json!({ "after": after }));
    let all = || vec![set(), get(), plain("snapshot"), plain("observe"), wait(0), remove()];
    for asks in [set(), get(), remove(), plain("snapshot"), plain("observe"), wait(0)] {
        plays.push(Play::asking(&settings, vec![set()], asks, all()));
    }
}

fn of_transactions(plays: &mut Vec<Play>) {
    let name = |operation: &str| format!("two-phase-commit: {operation}");
    plays.push(Play::new(name("vote"), transacting::voting));
    plays.push(Play::new(name("outcome"), transacting::awaiting));
    for operation in ["begin", "transactions", "register", "status", "forget"] {
        let play = move |stage| transacting::asking(stage, operation);
        plays.push(Play::new(name(operation), play));
    }
}

fn of_those_who_are_there(plays: &mut Vec<Play>) {
    let group = Recipe { name: "group-membership", config: json!({}) };
    let join = |name: &str| ("join", json!({ "name": name, "data": "here" }));
    let wait = || ("wait", json!({ "after": 0 }));
    for asks in [join("b"), wait(), plain("observe"), plain("members")] {
        let after = vec![join("a"), join("b"), plain("members")];
        plays.push(Play::asking(&group, vec![join("a")], asks, after));
    }
    let names = Recipe { name: "name-service", config: json!({}) };
    let web = || json!({ "name": "web" });
    let register = || {
        ("register", json!({ "name": "web", "address": "here:80", "metadata": [["zone", "b"]] }))
    };
    let wait = || ("wait", json!({ "name": "web", "after": 0 }));
    for asks in [register(), wait(), ("observe", web()), ("resolve", web()), plain("list")] {
        let after = vec![register(), ("resolve", web()), plain("list")];
        plays.push(Play::asking(&names, vec![register()], asks, after));
    }
}

/// Plays all under one fault, at the same time. Answers how many plays there were.
///
/// # Errors
/// If something that is exclusive was not, somebody waited for ever, or something is left; the error
/// names all plays that failed.
///
/// # Cancellation
/// The servers stay as they are: use another ground.
pub async fn play(ground: &mut Ground, fault: Fault) -> Result<usize> {
    let places = ground.places(fault).await?;
    let company = Arc::new(Company {
        fault,
        struck: Side::new(places.of_the_struck(), TIMEOUT, PARTICIPANTS)?,
        others: Side::new(places.of_the_others(), LONG_TIMEOUT, PARTICIPANTS)?,
        eye: places.of_the_others(),
    });
    let (direct, act) = watch::channel(Act::Opening);
    let (ready, are_ready) = mpsc::unbounded_channel();
    let mut running = FuturesUnordered::new();
    for Play { name, run } in plays() {
        let stage = Stage::new(Arc::clone(&company), act.clone(), ready.clone());
        running.push(async move { (name, run(stage).await) });
    }
    let count = running.len();
    let playing = async {
        let mut failed = Vec::new();
        while let Some((name, outcome)) = running.next().await {
            failed.extend(outcome.err().map(|error| format!("{name}: {error:#}")));
        }
        failed
    };
    let directing = break_and_mend(ground, fault, &places, direct, Cues { are_ready, count });
    let (directed, failed) = tokio::join!(directing, playing);
    if !failed.is_empty() {
        bail!("{fault:?}: {} of {count} plays failed\n{}", failed.len(), failed.join("\n"));
    }
    directed.map(|()| count)
}

/// What the plays say.
struct Cues {
    are_ready: mpsc::UnboundedReceiver<()>,
    count: usize,
}

impl Cues {
    async fn all_are_ready(&mut self) -> Result<()> {
        for _ in 0..self.count {
            within("all to be ready", self.are_ready.recv()).await?.context("a play")?;
        }
        Ok(())
    }
}

/// Goes from act to act. If that fails, the plays end, too: `direct` is gone.
async fn break_and_mend(
    ground: &mut Ground,
    fault: Fault,
    places: &Places,
    direct: watch::Sender<Act>,
    mut cues: Cues,
) -> Result<()> {
    cues.all_are_ready().await?;
    direct.send(Act::Broken)?;
    ground.strike(fault, places)?;
    cues.all_are_ready().await?;
    ground.mend(places).await?;
    direct.send(Act::Mended)?;
    Ok(())
}
