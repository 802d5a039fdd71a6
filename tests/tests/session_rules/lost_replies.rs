//! Rules 1 and 2, under every fault at every request: a contender is created once and known, and
//! whatever was created goes.

use anyhow::{Context, Result, bail, ensure};
use futures_util::stream::{self, StreamExt};
use wok::session::{Failure, SessionState};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Cut, Fault, Match, Seen};
use wok_tests::zookeeper;

use crate::room::{Joining, Room, TIMEOUT, ever_created, join_line};

/// How many runs are under way at a time: most of them wait for a timeout.
const AT_A_TIME: usize = 12;

/// How often a run may lose its session to a machine that is too busy to keep it.
const RUNS: usize = 4;

/// Everything that can happen to one request.
const FAULTS: [Action; 10] = [
    Action::CutBefore(Cut::Fin),
    Action::CutBefore(Cut::Reset),
    Action::CutAfter(Cut::Fin),
    Action::CutAfter(Cut::Reset),
    Action::DropReplyAndCut(Cut::Fin),
    Action::DropReplyAndCut(Cut::Reset),
    Action::DropReply,
    Action::StallRequests,
    Action::StallReplies,
    Action::HalfOpen,
];

/// What is done to which request of a participant's cycle, counted from 1.
type Strikes = Vec<(usize, Action)>;

/// A cycle that ended well.
struct Run {
    /// What the proxy saw.
    seen: Vec<Opcode>,
    /// Whether it came to every request that was to be struck. How much there is to settle after a
    /// first fault may differ: a reply that was on its way arrived, or did not.
    is_struck: bool,
}

/// Everything that a participant asks from joining to leaving, and the judgement of an independent
/// eye after each step. Answers the requests that the proxy saw.
async fn cycle(room: &Room, joining: Joining) -> Result<Vec<Seen>> {
    let directory = format!("{}/locks", room.path);
    let seat = room.seat();
    let (path, stat, listed) = join_line(&seat, &directory, joining).await?;
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let there = room.admin.children(&directory).await?;
    ensure!(there == [name.clone()], "after the create of {name}: {there:?}");
    let created = ever_created(&room.admin, &directory).await?;
    ensure!(created == 1, "{created} znodes were created for one contender");
    ensure!(listed == there, "the participant sees something else: {listed:?}");
    let fence = seat.claim(&path).await?;
    let seen = room.admin.stat(&path).await?.context("the claim's znode is not there")?;
    ensure!((seen.czxid, seen.ephemeral_owner) == (stat.czxid, room.session.id()), "{seen:?}");
    ensure!(fence == seen.czxid.unsigned_abs(), "fence {fence:#x}, {seen:?}");
    let reads = Match::opcode(Opcode::GetData).under(&path);
    let watched = eventually("the claim to be watched", async || {
        Ok((!room.proxy.requests(&reads).is_empty()).then_some(()))
    });
    let mut state = room.session.state();
    let is_lost = |state: &SessionState| matches!(state, SessionState::Lost(_));
    // Followed, as a participant does it.
    tokio::select! {
        lost = seat.until_claim_lost() => bail!("the claim of {lost} is lost"),
        _ = state.wait_for(is_lost) => return Err(Failure::SessionLost.into()),
        watched = watched => watched?,
    }

    seat.release(&path).await?;
    nothing_is_left(room, &directory).await?;
    seat.retire().await;
    drop(seat);
    nothing_is_left(room, &directory).await?;
    Ok(room.proxy.requests(&Match::any().under(&room.path)))
}

async fn nothing_is_left(room: &Room, directory: &str) -> Result<()> {
    let left = room.admin.children(directory).await?;
    ensure!(left.is_empty(), "left behind: {left:?}");
    // The server removes an empty container at any time.
    if room.admin.stat(directory).await?.is_some() {
        let created = ever_created(&room.admin, directory).await?;
        ensure!(created == 1, "{created} znodes were created for one contender");
    }
    Ok(())
}

/// A cycle in a room of its own, with its requests struck.
async fn struck_cycle(admin: &Admin, joining: Joining, strikes: &Strikes) -> Result<Run> {
    for _ in 0..RUNS {
        let room = Room::beside(admin, TIMEOUT).await?;
        let at = |nth| Match::any().under(&room.path).nth(nth);
        let faults: Vec<Fault> =
            strikes.iter().map(|(nth, action)| room.proxy.inject(at(*nth), *action)).collect();
        let outcome = within("a cycle to end", cycle(&room, joining)).await.and_then(|inner| inner);
        let is_lost = matches!(*room.session.state().borrow(), SessionState::Lost(_));
        room.session.close().await;
        let directory = format!("{}/locks", room.path);
        admin.wait_children(&directory, "nothing to be left", <[_]>::is_empty).await?;
        match outcome {
            Err(error) if is_lost && error.downcast_ref() == Some(&Failure::SessionLost) => {}
            Err(error) => return Err(error),
            Ok(seen) => {
                let is_struck = faults.iter().all(Fault::has_struck);
                let is_short = strikes.iter().any(|(nth, _)| *nth > seen.len());
                ensure!(is_struck || is_short, "a fault did not strike in {seen:?}");
                return Ok(Run { seen: opcodes(&seen), is_struck });
            }
        }
    }
    bail!("the session was lost {RUNS} times, though its host had time to reconnect")
}

/// Answers the strikes of the plan that were not all come to.
async fn sweep(
    admin: &Admin,
    joining: Joining,
    plan: &[(Opcode, Strikes)],
) -> Result<Vec<Strikes>> {
    let outcomes = stream::iter(plan).map(async |(opcode, strikes)| {
        let outcome = struck_cycle(admin, joining, strikes).await;
        let failed = |error| format!("{opcode:?}, {strikes:?}: {error:#}");
        outcome.map(|run| (!run.is_struck).then(|| strikes.clone())).map_err(failed)
    });
    let outcomes: Vec<_> = outcomes.buffer_unordered(AT_A_TIME).collect().await;
    let (mut not_struck, mut failed) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(strikes) => not_struck.extend(strikes),
            Err(error) => failed.push(error),
        }
    }
    ensure!(failed.is_empty(), "{} of {}:\n{}", failed.len(), plan.len(), failed.join("\n"));
    Ok(not_struck)
}

fn opcodes(seen: &[Seen]) -> Vec<Opcode> {
    seen.iter().map(|seen| seen.opcode).collect()
}

/// The requests of a cycle with these strikes, as far as the proxy saw them.
async fn seen(admin: &Admin, joining: Joining, strikes: &Strikes) -> Result<Vec<Opcode>> {
    Ok(struck_cycle(admin, joining, strikes).await?.seen)
}

/// Every fault at each request of the cycle that `picks` picks.
async fn sweep_single(
    admin: &Admin,
    joining: Joining,
    clean: &[Opcode],
    picks: impl Fn(Opcode) -> bool,
) -> Result<()> {
    let places = clean.iter().enumerate().filter(|(_, opcode)| picks(**opcode));
    let plan: Vec<_> = places
        .flat_map(|(at, opcode)| FAULTS.map(|action| (*opcode, vec![(at + 1, action)])))
        .collect();
    let not_struck = sweep(admin, joining, &plan).await?;
    ensure!(not_struck.is_empty(), "not every fault struck: {not_struck:?}");
    Ok(())
}

/// A second fault at each of the requests by which the host settles one of the first.
async fn sweep_second(
    admin: &Admin,
    joining: Joining,
    clean: usize,
    firsts: &[(usize, Action)],
) -> Result<()> {
    let seconds = [Action::CutBefore(Cut::Reset), Action::DropReplyAndCut(Cut::Fin)];
    let (mut plan, mut always) = (Vec::new(), Vec::new());
    for first in firsts {
        let settled = seen(admin, joining, &vec![*first]).await?;
        let more = settled.len().saturating_sub(clean);
        assert!(more >= 1, "nothing was asked after {first:?}: {settled:?}");
        // And one further: a list behind the struck create was seen, too, and is asked for again.
        for (at, opcode) in settled.iter().enumerate().skip(first.0).take(more + 1) {
            plan.extend(seconds.map(|second| (*opcode, vec![*first, (at + 1, second)])));
        }
        // However little there is to settle, the cycle goes on.
        always.extend(seconds.map(|second| vec![*first, (first.0 + 1, second)]));
    }
    let not_struck = sweep(admin, joining, &plan).await?;
    let never = always.iter().find(|strikes| not_struck.contains(strikes));
    ensure!(never.is_none(), "no second fault struck: {never:?}");
    Ok(())
}

const CLEAN: [Opcode; 8] = {
    use Opcode::{Create2, CreateContainer, Delete, GetChildren2, GetData};
    let parent = CreateContainer;
    [Create2, parent, parent, parent, Create2, GetChildren2, GetData, Delete]
};

/// The list goes along with each create.
const CLEAN_AT_ONCE: [Opcode; 9] = {
    use Opcode::{Create2, CreateContainer, Delete, GetChildren2, GetData};
    let parent = CreateContainer;
    [Create2, GetChildren2, parent, parent, parent, Create2, GetChildren2, GetData, Delete]
};

fn last(of: &[Opcode], wanted: Opcode) -> Result<usize> {
    of.iter().rposition(|it| *it == wanted).map(|at| at + 1).context("no such request")
}

#[tokio::test]
async fn one_fault_at_any_request_of_an_acquire_or_a_release_is_survived() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let clean = seen(&admin, Joining::InTwoSteps, &Vec::new()).await?;
    // If this changes, so do the places that a fault can strike: the sweep follows by itself.
    assert_eq!(clean, CLEAN);
    sweep_single(&admin, Joining::InTwoSteps, &clean, |_| true).await
}

#[tokio::test]
async fn one_fault_at_a_create_or_at_the_list_behind_it_is_survived() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let clean = seen(&admin, Joining::AtOnce, &Vec::new()).await?;
    assert_eq!(clean, CLEAN_AT_ONCE);
    // What comes between and after is the same as in two steps.
    let picks = |opcode| matches!(opcode, Opcode::Create2 | Opcode::GetChildren2);
    sweep_single(&admin, Joining::AtOnce, &clean, picks).await
}

#[tokio::test]
async fn a_second_fault_while_the_first_is_settled_is_survived() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let (create, delete) = (last(&CLEAN, Opcode::Create2)?, last(&CLEAN, Opcode::Delete)?);
    let firsts = [
        (create, Action::DropReplyAndCut(Cut::Reset)),
        (create, Action::CutBefore(Cut::Fin)),
        (delete, Action::DropReplyAndCut(Cut::Fin)),
        (delete, Action::CutBefore(Cut::Reset)),
    ];
    sweep_second(&admin, Joining::InTwoSteps, CLEAN.len(), &firsts).await
}

#[tokio::test]
async fn a_second_fault_while_a_create_or_the_list_behind_it_is_settled_is_survived() -> Result<()>
{
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let create = last(&CLEAN_AT_ONCE, Opcode::Create2)?;
    let list = last(&CLEAN_AT_ONCE, Opcode::GetChildren2)?;
    let firsts = [
        (create, Action::DropReplyAndCut(Cut::Reset)),
        (create, Action::CutBefore(Cut::Fin)),
        (list, Action::DropReplyAndCut(Cut::Fin)),
        (list, Action::CutBefore(Cut::Reset)),
    ];
    sweep_second(&admin, Joining::AtOnce, CLEAN_AT_ONCE.len(), &firsts).await
}
