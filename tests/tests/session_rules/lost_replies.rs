//! Rules 1 and 2, under every fault at every request: a contender is created once and known, and
//! whatever was created goes.

use anyhow::{Context, Result, bail, ensure};
use futures_util::stream::{self, StreamExt};
use wok::session::{Failure, SessionState};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::patience::within;
use wok_tests::proxy::{Action, Cut, Fault, Match, Seen};
use wok_tests::zookeeper;

use crate::room::{Room, TIMEOUT, contender, ever_created, list};

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

/// Everything that a participant asks from joining to leaving, and the judgement of an independent
/// eye after each step. Answers the requests that the proxy saw.
async fn cycle(room: &Room) -> Result<Vec<Seen>> {
    let directory = format!("{}/locks", room.path);
    let seat = room.seat();
    let (path, stat) = seat.contend(&directory, contender(), b"me".to_vec()).await?;
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let there = room.admin.children(&directory).await?;
    ensure!(there == [name.clone()], "after the create of {name}: {there:?}");
    let created = ever_created(&room.admin, &directory).await?;
    ensure!(created == 1, "{created} znodes were created for one contender");

    ensure!(list(&seat, &directory).await? == there, "the participant sees something else");
    let fence = seat.claim(&path).await?;
    let seen = room.admin.stat(&path).await?.context("the claim's znode is not there")?;
    ensure!((seen.czxid, seen.ephemeral_owner) == (stat.czxid, room.session.id()), "{seen:?}");
    ensure!(fence == seen.czxid.unsigned_abs(), "fence {fence:#x}, {seen:?}");

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
async fn struck_cycle(admin: &Admin, strikes: &Strikes) -> Result<Vec<Seen>> {
    for _ in 0..RUNS {
        let room = Room::beside(admin, TIMEOUT).await?;
        let at = |nth| Match::any().under(&room.path).nth(nth);
        let faults: Vec<Fault> =
            strikes.iter().map(|(nth, action)| room.proxy.inject(at(*nth), *action)).collect();
        let outcome = within("a cycle to end", cycle(&room)).await.and_then(|inner| inner);
        let is_lost = matches!(*room.session.state().borrow(), SessionState::Lost(_));
        room.session.close().await;
        let directory = format!("{}/locks", room.path);
        admin.wait_children(&directory, "nothing to be left", <[_]>::is_empty).await?;
        match outcome {
            Err(error) if is_lost && error.downcast_ref() == Some(&Failure::SessionLost) => {}
            Err(error) => return Err(error),
            Ok(_) if !faults.iter().all(Fault::has_struck) => bail!("not every fault struck"),
            Ok(seen) => return Ok(seen),
        }
    }
    bail!("the session was lost {RUNS} times, though its host had time to reconnect")
}

async fn sweep(admin: &Admin, plan: Vec<(Opcode, Strikes)>) -> Result<()> {
    let outcomes = stream::iter(&plan).map(async |(opcode, strikes)| {
        let outcome = struck_cycle(admin, strikes).await;
        outcome.err().map(|error| format!("{opcode:?}, {strikes:?}: {error:#}"))
    });
    let failed: Vec<String> =
        outcomes.buffer_unordered(AT_A_TIME).filter_map(async |failed| failed).collect().await;
    ensure!(failed.is_empty(), "{} of {}:\n{}", failed.len(), plan.len(), failed.join("\n"));
    Ok(())
}

fn opcodes(seen: &[Seen]) -> Vec<Opcode> {
    seen.iter().map(|seen| seen.opcode).collect()
}

#[tokio::test]
async fn one_fault_at_any_request_of_an_acquire_or_a_release_is_survived() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let clean = opcodes(&struck_cycle(&admin, &Vec::new()).await?);
    use Opcode::{Create2, CreateContainer, Delete, GetChildren2, GetData};
    let parents = [CreateContainer, CreateContainer, CreateContainer];
    let all = [&[Create2][..], &parents, &[Create2, GetChildren2, GetData, Delete]].concat();
    // If this changes, so do the places that a fault can strike: the sweep follows by itself.
    assert_eq!(clean, all);
    let places = clean.iter().enumerate();
    let plan = places
        .flat_map(|(at, opcode)| FAULTS.map(|action| (*opcode, vec![(at + 1, action)])))
        .collect();
    sweep(&admin, plan).await
}

#[tokio::test]
async fn a_second_fault_while_the_first_is_settled_is_survived() -> Result<()> {
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    let clean = opcodes(&struck_cycle(&admin, &Vec::new()).await?);
    let last = |wanted| clean.iter().rposition(|it| *it == wanted).map(|at| at + 1);
    let create = last(Opcode::Create2).context("no create")?;
    let delete = last(Opcode::Delete).context("no delete")?;
    let firsts = [
        (create, Action::DropReplyAndCut(Cut::Reset)),
        (create, Action::CutBefore(Cut::Fin)),
        (delete, Action::DropReplyAndCut(Cut::Fin)),
        (delete, Action::CutBefore(Cut::Reset)),
    ];
    let seconds = [Action::CutBefore(Cut::Reset), Action::DropReplyAndCut(Cut::Fin)];
    let mut plan = Vec::new();
    for first in firsts {
        let settled = opcodes(&struck_cycle(&admin, &vec![first]).await?);
        let more = settled.len() - clean.len();
        assert!(more >= 2, "nothing was looked at after {first:?}: {settled:?}");
        for (at, opcode) in settled.iter().enumerate().skip(first.0).take(more) {
            plan.extend(seconds.map(|second| (*opcode, vec![first, (at + 1, second)])));
        }
    }
    sweep(&admin, plan).await
}
