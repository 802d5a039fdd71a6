//! Rule 2: whatever ends a participant or one of its requests, its ephemeral znodes go, and nobody
//! else's do.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wok::participant::{Answer, Call, CallError, Follower, Notice, Participant};
use wok::session::{CreateMode, Failure, Refusal, Seat, SessionState};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Cut, Match};
use wok_tests::scene::Scene;

use crate::room::{
    Joining, LONG_TIMEOUT, Room, TIMEOUT, contender, create, create_named, ever_created, hold,
    join_line, round_trip,
};

/// Longer than a component may take to return once it is cancelled.
const BEYOND_THE_GRACE: Duration = Duration::from_millis(1_200);

#[tokio::test]
async fn a_contend_dropped_before_it_is_sent_creates_nothing() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    room.disconnect().await?;
    {
        let mut contend = pin!(seat.contend(&room.path, contender(), Vec::new()));
        assert!(contend.as_mut().now_or_never().is_none());
    }
    room.proxy.heal();
    round_trip(&seat).await?;
    seat.retire().await;
    assert_eq!(ever_created(&room.admin, &room.path).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_contend_dropped_after_any_of_its_requests_leaves_nothing() -> Result<()> {
    // Create, three for the parents, create again: as the sweep of lost replies asserts.
    for nth in 1..=5 {
        check_dropped(Joining::InTwoSteps, nth, nth >= 5).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_contend_with_a_list_dropped_after_any_of_its_requests_leaves_nothing() -> Result<()> {
    // A list along with each create.
    for nth in 1..=7 {
        check_dropped(Joining::AtOnce, nth, nth >= 6).await?;
    }
    Ok(())
}

/// Joins a line and thinks better of it while the reply to the nth request is on its way.
async fn check_dropped(joining: Joining, nth: usize, is_created: bool) -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let directory = format!("{}/locks", room.path);
    let seat = room.seat();
    let when = Match::any().under(&room.path).nth(nth);
    let stalled = room.proxy.inject(when, Action::StallReplies);
    tokio::select! {
        outcome = join_line(&seat, &directory, joining) => {
            panic!("request {nth} was answered: {outcome:?}")
        }
        struck = stalled.struck() => drop(struck?),
    }
    if is_created {
        // So that it is really there when the participant thinks better of it.
        room.admin.wait_children(&directory, "the contender", |names| names.len() == 1).await?;
    }
    room.proxy.heal();
    // What the participant was creating is cleaned up when it has retired.
    seat.retire().await;
    assert_eq!(room.admin.children(&directory).await?, Vec::<String>::new());
    // The seat is none the worse for it.
    let path = hold(&seat, &directory).await?;
    seat.release(&path).await?;
    Ok(())
}

#[tokio::test]
async fn a_delete_that_the_server_has_no_time_for_is_asked_for_again() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    for code in [-127, -7, -122] {
        let path = hold(&seat, &room.path).await?;
        let deletes = Match::opcode(Opcode::Delete).under(&path);
        let refusals =
            [1, 2].map(|nth| room.proxy.inject(deletes.clone().nth(nth), Action::Refuse(code)));
        seat.release(&path).await?;
        for refusal in refusals {
            refusal.struck().await?;
        }
        assert!(room.admin.stat(&path).await?.is_none(), "after {code}");
        // What the janitor does, too.
        let path = hold(&seat, &room.path).await?;
        let deletes = Match::opcode(Opcode::Delete).under(&path);
        let refusal = room.proxy.inject(deletes, Action::Refuse(code));
        drop(pin!(seat.release(&path)).as_mut().now_or_never());
        refusal.struck().await?;
        room.admin.wait_gone(&path).await?;
        round_trip(&seat).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_release_in_a_hurry_leaves_the_rest_to_the_janitor() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let path = hold(&seat, &room.path).await?;
    room.disconnect().await?;
    // Nobody is there to delete it, and nobody waits for that.
    seat.release_until(&path, std::future::ready(())).await?;
    assert!(!seat.has_claim());
    room.proxy.heal();
    room.admin.wait_gone(&path).await?;
    round_trip(&seat).await?;
    Ok(())
}

#[tokio::test]
async fn a_release_in_a_hurry_leaves_what_is_not_known_yet_to_the_janitor() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let path = format!("{}/named", room.path);
    abandon_create(&room, &seat, &path).await?;
    assert!(room.admin.stat(&path).await?.is_some());
    room.disconnect().await?;
    // Nobody can look whether it is there, and nobody waits for that.
    seat.release_until(&path, std::future::ready(())).await?;
    room.proxy.heal();
    room.admin.wait_gone(&path).await?;
    let again = seat.release(&path).await;
    assert!(matches!(again, Err(Failure::Invalid(_))), "{again:?}");
    Ok(())
}

#[tokio::test]
async fn who_withdraws_from_a_line_while_no_server_answers_hears_so_and_its_participant_lives()
-> Result<()> {
    withdraws_while_no_server_answers("lock", &Value::Null, &Value::Null).await
}

#[tokio::test]
async fn who_withdraws_from_many_lines_while_no_server_answers_hears_so_and_its_participant_lives()
-> Result<()> {
    // There is a deletion for each of the lines, and one grace for all of them.
    let free = (0..20).map(|number| format!("free-{number:02}"));
    let names: Vec<_> = free.chain(["taken".to_owned()]).collect();
    let (taken, wanted) = (json!({ "names": ["taken"] }), json!({ "names": names }));
    withdraws_while_no_server_answers("multi-lock", &taken, &wanted).await
}

/// A participant waits behind another one when the connection is lost, and none comes back until its
/// caller has withdrawn, twice.
async fn withdraws_while_no_server_answers(
    recipe: &str,
    taken: &Value,
    wanted: &Value,
) -> Result<()> {
    let scene = Scene::open(recipe).await?;
    let (holder, _followed) = scene.stock.join()?;
    let (waiter, mut follower) = scene.stock.join()?;
    scene.value(&holder, "acquire", taken.clone()).await?;
    let arguments = scene.stock.arguments("acquire", wanted)?;
    let withdrawn = CancellationToken::new();
    let call =
        Call { arguments: arguments.clone(), deadline: None, withdrawn: Some(withdrawn.clone()) };
    let withdrawing = async {
        let is_waiting = async || Ok(waiter.presence().ahead().map(drop));
        eventually("it to wait behind the holder", is_waiting).await?;
        scene.proxy.refuse();
        scene.proxy.cut_all(Cut::Reset);
        let mut state = waiter.session().state();
        within("doubt", state.wait_for(|it| *it == SessionState::Suspended)).await??;
        let standing = contenders(&scene).await?;
        withdrawn.cancel();
        anyhow::Ok(standing)
    };
    let (answer, standing) = tokio::try_join!(answer_of(&waiter, call), withdrawing)?;
    assert_eq!(answer, Err(CallError::Cancelled));

    // One that had ended would answer `Ended`, and at once.
    let deadline = Some(Instant::now() + BEYOND_THE_GRACE);
    let call = Call { arguments: arguments.clone(), deadline, withdrawn: None };
    assert_eq!(answer_of(&waiter, call).await?, Err(CallError::Cancelled));
    // No server has been there meanwhile, so what it stood with first still stands.
    assert_eq!(scene.proxy.connections(), 0);
    assert_eq!(contenders(&scene).await?, standing);

    scene.proxy.heal();
    let call = Call { arguments, deadline: None, withdrawn: None };
    let handing_over = async {
        let held = holder.presence().held().context("the holder's claim")?.path;
        let stands_anew = async || {
            let now = contenders(&scene).await?;
            let is_left = now.intersection(&standing).any(|path| *path != held);
            Ok((now.len() == standing.len() && !is_left).then_some(()))
        };
        eventually("it to stand in line with new znodes only", stands_anew).await?;
        scene.value(&holder, "release", Value::Null).await
    };
    let (answer, _) = tokio::try_join!(answer_of(&waiter, call), handing_over)?;
    assert!(answer?.claim.is_some());
    within("the claim to be told", told_of_no_end(&mut follower)).await?
}

async fn answer_of(participant: &Participant, call: Call) -> Result<Result<Answer, CallError>> {
    within("an answer", participant.call(call)).await
}

/// The ephemeral znodes of the recipe.
async fn contenders(scene: &Scene) -> Result<BTreeSet<String>> {
    let tree = scene.admin.tree(&scene.path).await?;
    let ephemeral = tree.into_iter().filter(|znode| znode.stat.ephemeral_owner != 0);
    Ok(ephemeral.map(|znode| znode.path).collect())
}

/// What a participant is told until it holds is of no loss and no end.
async fn told_of_no_end(follower: &mut Follower) -> Result<()> {
    loop {
        match follower.next().await.context("nothing more is told")? {
            Notice::Held { .. } => return Ok(()),
            Notice::Lost(loss) => bail!("it was told that it lost: {loss}"),
            Notice::Ended(ending) => bail!("it was told that it ended: {ending}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_release_dropped_midway_still_deletes() -> Result<()> {
    for fault in [Action::HalfOpen, Action::StallReplies, Action::DropReplyAndCut(Cut::Reset)] {
        let room = Room::open(TIMEOUT).await?;
        let seat = room.seat();
        let path = hold(&seat, &room.path).await?;
        let struck = room.proxy.inject(Match::opcode(Opcode::Delete), fault);
        tokio::select! {
            biased;
            seen = struck.struck() => drop(seen?),
            outcome = seat.release(&path) => panic!("{fault:?}: {outcome:?}"),
        }
        // Nothing is healed: the janitor finds another connection by itself.
        room.admin.wait_gone(&path).await?;
        let again = seat.release(&path).await;
        assert!(matches!(again, Err(Failure::Invalid(_))), "{fault:?}: {again:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_dropped_seat_takes_everything_along() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    hold(&seat, &room.path).await?;
    create_named(&seat, &format!("{}/named", room.path)).await?;
    abandon_create(&room, &seat, &format!("{}/lost", room.path)).await?;
    let there = room.admin.children(&room.path).await?;
    assert!(there.len() == 3 && there.contains(&"lost".to_owned()), "{there:?}");
    drop(seat);
    room.admin.wait_children(&room.path, "nothing", <[_]>::is_empty).await?;
    Ok(())
}

#[tokio::test]
async fn retiring_is_done_when_everything_is_gone() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    hold(&seat, &room.path).await?;
    for name in ["a", "b"] {
        create_named(&seat, &format!("{}/{name}", room.path)).await?;
    }
    let lost = format!("{}/lost", room.path);
    abandon_create(&room, &seat, &lost).await?;
    // The clean-up is struck, too.
    room.proxy.inject(Match::opcode(Opcode::Delete).nth(2), Action::DropReplyAndCut(Cut::Fin));
    seat.retire().await;
    assert_eq!(room.admin.children(&room.path).await?, Vec::<String>::new());
    assert_eq!(ever_created(&room.admin, &room.path).await?, 4);
    Ok(())
}

#[tokio::test]
async fn another_clients_znode_of_the_same_name_is_left_alone() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let (first, second) = (format!("{}/first", room.path), format!("{}/second", room.path));
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    for named in [&first, &second] {
        create_named(&seat, named).await?;
        room.admin.delete(named).await?;
        room.admin.create(named, b"another's").await?;
    }
    seat.release(&first).await?;
    drop(seat);
    let sentinel = room.seat();
    round_trip(&sentinel).await?;
    // Closing ends the session's own ephemerals, these are not.
    room.session.close().await;
    assert!(room.admin.stat(&first).await?.is_some());
    assert!(room.admin.stat(&second).await?.is_some());
    assert!(room.proxy.requests(&Match::opcode(Opcode::Delete)).is_empty());
    Ok(())
}

#[tokio::test]
async fn a_delete_of_unknown_outcome_is_not_repeated_on_another_clients_znode() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let named = format!("{}/named", room.path);
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    create_named(&seat, &named).await?;
    let deletes = Match::opcode(Opcode::Delete).under(&named);
    let struck = room.proxy.inject(deletes.clone(), Action::DropReplyAndCut(Cut::Reset));
    let replaced = async {
        struck.struck().await?;
        room.proxy.refuse();
        room.admin.wait_gone(&named).await?;
        let stat = room.admin.create(&named, b"another's").await?;
        room.proxy.heal();
        anyhow::Ok(stat)
    };
    let (released, stat) = tokio::join!(seat.release(&named), replaced);
    released?;
    let there = room.admin.stat(&named).await?;
    assert_eq!(there.map(|it| it.czxid), Some(stat?.czxid));
    assert_eq!(room.proxy.requests(&deletes).len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_named_create_that_was_not_waited_for_can_be_claimed_released_and_repeated() -> Result<()>
{
    let room = Room::open(LONG_TIMEOUT).await?;
    let named = format!("{}/named", room.path);
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    abandon_create(&room, &seat, &named).await?;
    let stat = room.admin.stat(&named).await?.expect("the server carried it out");
    assert_eq!(seat.claim(&named).await?, stat.czxid.unsigned_abs());
    seat.release(&named).await?;
    assert!(room.admin.stat(&named).await?.is_none());

    room.disconnect().await?;
    assert!(pin!(create_named(&seat, &named)).as_mut().now_or_never().is_none());
    room.proxy.heal();
    assert!(matches!(seat.claim(&named).await, Err(Failure::Invalid(_))), "there is none");

    abandon_create(&room, &seat, &named).await?;
    let again = seat.submit(create(&named, CreateMode::Ephemeral)).await.map(drop);
    assert_eq!(again, Err(Refusal::NodeExists.into()));
    seat.release(&named).await?;
    create_named(&seat, &named).await?;
    Ok(())
}

/// Begins to create a znode, and thinks better of it while the reply is on its way.
async fn abandon_create(room: &Room, seat: &Seat, path: &str) -> Result<()> {
    let stalled = room.proxy.inject(Match::creates().under(path), Action::StallReplies);
    tokio::select! {
        struck = stalled.struck() => drop(struck?),
        created = create_named(seat, path) => panic!("answered without a reply: {created:?}"),
    }
    room.admin.wait_there(path).await?;
    room.proxy.heal();
    Ok(())
}
