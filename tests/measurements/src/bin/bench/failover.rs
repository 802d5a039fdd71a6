//! A hundred who wait in line, and how long it takes that the next one holds: of a lock and of an
//! election, with a session for each and with one for all.
//!
//! With a session for each it is the holder's session that ends, as that of a program that ends. On
//! one session the holder gives back what it holds. The time begins when the holder begins to end, and
//! ends when the next one hears that it holds. Both lines stand at the same time, and the two take
//! turns. The requests are counted in another line, by a proxy, which leaves heartbeats out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures_util::future::try_join;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use wok::base::Base;
use wok::guest::Arguments;
use wok::participant::{Call, Follower, Notice, Participant};
use wok::session::Session;
use wok_tests::patience::within;
use wok_tests::proxy::{Match, Proxy};

use crate::ground::{self, Ground};
use crate::native;
use crate::report::{Bound, Row};
use crate::stock::{self, Recipe};

/// How many wait at least.
const WAITING: u32 = 100;

/// How often a line goes on: the first time of each is left out.
const HAND_OVERS: u32 = 41;

/// How often a line goes on whose requests are counted.
const COUNTED: u32 = 10;

/// How long each holds: longer than wok waits until it watches what is held.
const HOLD: Duration = Duration::from_millis(20);

/// Who has which session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sessions {
    Own,
    One,
}

/// A recipe in whose line candidates stand.
#[derive(Clone, Copy)]
struct Kind {
    recipe: &'static str,
    hold: &'static str,
    give_back: &'static str,
}

const KINDS: [Kind; 2] = [
    Kind { recipe: "lock", hold: "acquire", give_back: "release" },
    Kind { recipe: "leader-election", hold: "volunteer", give_back: "resign" },
];

/// The rows of this benchmark.
pub(crate) fn bench(ground: &Ground) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for kind in KINDS {
        for (sessions, requests) in [(Sessions::Own, 3.0), (Sessions::One, 4.0)] {
            let (wok, native) = times(ground, kind, sessions)?;
            let named = match sessions {
                Sessions::Own => format!("{}, a session each", kind.recipe),
                Sessions::One => format!("{}, one session", kind.recipe),
            };
            let row =
                |what: &str, unit, samples| Row::new(format!("{named}: {what}"), unit, samples);
            rows.extend([
                Row::ratio(format!("{named}: wok to native"), &wok, &native)
                    .bound(Bound::AtMost(1.05)),
                row("wok", "us", wok),
                row("native", "us", native),
                row("requests, wok", "", vec![requests_of_wok(ground, kind, sessions)?])
                    .bound(Bound::AtMost(requests)),
                row("requests, native", "", vec![requests_of_native(ground, kind, sessions)?]),
            ]);
        }
    }
    Ok(rows)
}

/// Microseconds of each hand-over, wok's and the native ones.
fn times(ground: &Ground, kind: Kind, sessions: Sessions) -> Result<(Vec<f64>, Vec<f64>)> {
    let (address, count) = (ground.server.address(), WAITING + HAND_OVERS);
    let mut of_wok = wok_line(ground, address, kind, sessions, count, "times")?;
    let mut of_native = native_line(ground, address, kind, sessions, count, "times")?;
    let (mut wok, mut native) = (Vec::new(), Vec::new());
    for round in 0..HAND_OVERS {
        // Each goes first in every other round.
        for turn in 0..2 {
            match (round + turn) % 2 {
                0 => wok.push(ground.wok.block_on(of_wok.hand_over())?),
                _ => native.push(ground.native.block_on(of_native.hand_over())?),
            }
        }
    }
    of_wok.end(&ground.wok)?;
    of_native.end(&ground.native)?;
    Ok((wok.split_off(1), native.split_off(1)))
}

fn requests_of_wok(ground: &Ground, kind: Kind, sessions: Sessions) -> Result<f64> {
    let proxy = ground.native.block_on(async { Proxy::start(ground.server.address()) })?;
    let count = WAITING + COUNTED;
    let line = wok_line(ground, proxy.address(), kind, sessions, count, "requests")?;
    requests(&ground.wok, &proxy, line, sessions)
}

fn requests_of_native(ground: &Ground, kind: Kind, sessions: Sessions) -> Result<f64> {
    let proxy = ground.native.block_on(async { Proxy::start(ground.server.address()) })?;
    let count = WAITING + COUNTED;
    let line = native_line(ground, proxy.address(), kind, sessions, count, "requests")?;
    requests(&ground.native, &proxy, line, sessions)
}

/// How many requests a hand-over takes: those below the line's directory, and the session's end.
fn requests(runtime: &Runtime, proxy: &Proxy, mut line: Line, sessions: Sessions) -> Result<f64> {
    let of_line = Match::any().under(&line.directory);
    runtime.block_on(hold());
    let before = proxy.requests(&of_line).len();
    for _ in 0..COUNTED {
        runtime.block_on(line.hand_over())?;
    }
    runtime.block_on(hold());
    let sent = u32::try_from(proxy.requests(&of_line).len() - before)?;
    line.end(runtime)?;
    let ends = match sessions {
        Sessions::Own => 1.0,
        Sessions::One => 0.0,
    };
    Ok(f64::from(sent) / f64::from(COUNTED) + ends)
}

async fn hold() {
    // tidy: how long each holds, which is part of what is measured.
    tokio::time::sleep(HOLD).await;
}

/// A line of wok's participants, the first of whom holds.
fn wok_line(
    ground: &Ground,
    address: &str,
    kind: Kind,
    sessions: Sessions,
    count: u32,
    purpose: &str,
) -> Result<Line> {
    let host = ground::host(&ground.wok, address, ground.cache(), count)?;
    let directory = directory("wok", kind, sessions, purpose);
    let recipe = {
        let _on_this_runtime = ground.wok.enter();
        Recipe::load(&host, kind.recipe, &directory, json!({}))?
    };
    let (hold, give_back) = (recipe.operation(kind.hold)?, recipe.operation(kind.give_back)?);
    ground.wok.block_on(async {
        let mut line = Line::new(directory);
        let shared = match sessions {
            Sessions::Own => None,
            Sessions::One => Some(host.open_session().await?),
        };
        for _ in 0..count {
            let session = match &shared {
                Some(session) => Arc::clone(session),
                None => host.open_session().await?,
            };
            let (participant, follower) = recipe.join(&host, &session)?;
            let (hold, give_back) = (hold.clone(), give_back.clone());
            let own = shared.is_none().then_some(session);
            line.join(OnWok { participant, follower, hold, give_back, own }).await?;
        }
        line.keeps = Some((host, shared));
        Ok(line)
    })
}

/// The same against the client crate alone.
fn native_line(
    ground: &Ground,
    address: &str,
    kind: Kind,
    sessions: Sessions,
    count: u32,
    purpose: &str,
) -> Result<Line> {
    let directory = directory("native", kind, sessions, purpose);
    ground.native.block_on(async {
        let mut line = Line::new(directory.clone());
        let shared = match sessions {
            Sessions::Own => None,
            Sessions::One => Some(native::connect(address).await?),
        };
        for _ in 0..count {
            let client = match &shared {
                Some(client) => client.clone(),
                None => native::connect(address).await?,
            };
            let lock = native::Lock::new(client, &directory).await?;
            line.join(Native { lock, held: None, sessions }).await?;
        }
        Ok(line)
    })
}

fn directory(who: &str, kind: Kind, sessions: Sessions, purpose: &str) -> String {
    let sessions = match sessions {
        Sessions::Own => "own",
        Sessions::One => "one",
    };
    format!("/failover-{who}-{}-{sessions}-{purpose}", kind.recipe)
}

/// One who stands in line, and then holds.
trait Stand: Send + 'static {
    /// Drops what it is given when it stands in line, or holds at once; answers when it heard that it holds.
    fn hold(
        &mut self,
        standing: oneshot::Sender<()>,
    ) -> impl Future<Output = Result<Instant>> + Send;

    /// Ends what it holds.
    fn end(self) -> impl Future<Output = Result<()>> + Send;
}

struct OnWok {
    participant: Participant,
    follower: Follower,
    hold: Arguments,
    give_back: Arguments,
    /// Where nobody else has it.
    own: Option<Arc<Session>>,
}

impl Stand for OnWok {
    async fn hold(&mut self, standing: oneshot::Sender<()>) -> Result<Instant> {
        let OnWok { participant, follower, hold, .. } = self;
        let call = Call { arguments: hold.clone(), deadline: None, withdrawn: None };
        let asked = async {
            let answer = participant.call(call).await?;
            ensure!(answer.value.is_ok(), "it answered {:?}", answer.value);
            anyhow::Ok(())
        };
        let ((), held) = try_join(asked, until_held(follower, standing)).await?;
        Ok(held)
    }

    async fn end(self) -> Result<()> {
        match self.own {
            Some(session) => {
                session.close().await;
                Ok(())
            }
            None => stock::give_back(&self.participant, &self.give_back).await,
        }
    }
}

async fn until_held(follower: &mut Follower, standing: oneshot::Sender<()>) -> Result<Instant> {
    let mut standing = Some(standing);
    while let Some(notice) = follower.next().await {
        match notice {
            Notice::Waiting { .. } => drop(standing.take()),
            Notice::Held(_) => return Ok(Instant::now()),
            _ => {}
        }
    }
    bail!("a participant ended before it held")
}

struct Native {
    lock: native::Lock,
    held: Option<native::Held>,
    sessions: Sessions,
}

impl Stand for Native {
    async fn hold(&mut self, standing: oneshot::Sender<()>) -> Result<Instant> {
        self.held = Some(self.lock.acquire_and_tell(standing).await?);
        Ok(Instant::now())
    }

    async fn end(self) -> Result<()> {
        match self.sessions {
            // The client closes its session with the last clone.
            Sessions::Own => Ok(()),
            Sessions::One => self.lock.release(self.held.context("it does not hold")?).await,
        }
    }
}

/// A line in its order. The first holds.
struct Line {
    directory: String,
    candidates: VecDeque<Candidate>,
    held: mpsc::UnboundedReceiver<Instant>,
    tell: mpsc::UnboundedSender<Instant>,
    /// What goes on for as long as the line.
    keeps: Option<(Base, Option<Arc<Session>>)>,
}

struct Candidate {
    end: oneshot::Sender<()>,
    /// When it began to end.
    ended: JoinHandle<Result<Instant>>,
}

impl Line {
    fn new(directory: String) -> Self {
        let (tell, held) = mpsc::unbounded_channel();
        Line { directory, candidates: VecDeque::new(), held, tell, keeps: None }
    }

    /// Has one more stand in line, behind the others.
    async fn join(&mut self, mut one: impl Stand) -> Result<()> {
        let ((standing, stands), (end, ending)) = (oneshot::channel(), oneshot::channel());
        let tell = self.tell.clone();
        let ended = tokio::runtime::Handle::current().spawn(async move {
            tell.send(one.hold(standing).await?).context("nobody listens")?;
            // A line that has served its purpose is dropped, and all in it with it.
            let is_asked = ending.await.is_ok();
            let began = Instant::now();
            if is_asked {
                one.end().await?;
            }
            Ok(began)
        });
        self.candidates.push_back(Candidate { end, ended });
        // Dropped, and not used, when it stands there.
        let told = within("a place in line", stands).await?;
        ensure!(told.is_err(), "nobody sends anything");
        if self.candidates.len() == 1 {
            self.next().await?;
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Instant> {
        within("the next one to hold", self.held.recv()).await?.context("nobody is in line")
    }

    /// Ends the holder, and answers after how many microseconds the next one heard that it holds.
    async fn hand_over(&mut self) -> Result<f64> {
        hold().await;
        let Candidate { end, ended } = self.candidates.pop_front().context("nobody holds")?;
        end.send(()).ok().context("the holder has ended")?;
        let held = self.next().await?;
        let began = within("the end of the holder", ended).await???;
        Ok(held.duration_since(began).as_secs_f64() * 1e6)
    }

    /// Ends all who are left, and the session that they share.
    fn end(self, runtime: &Runtime) -> Result<()> {
        let Line { candidates, keeps, .. } = self;
        runtime.block_on(async {
            // From the end, so that nobody's turn comes.
            for Candidate { end, ended } in candidates.into_iter().rev() {
                ended.abort();
                let left = ended.await;
                drop(end);
                ensure!(left.is_err_and(|error| error.is_cancelled()), "a waiter held or failed");
            }
            if let Some((_, Some(session))) = &keeps {
                session.close().await;
            }
            anyhow::Ok(())
        })?;
        let _on_this_runtime = runtime.enter();
        drop(keeps);
        Ok(())
    }
}
