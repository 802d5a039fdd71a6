//! What a participant that fails leaves behind: nothing.

use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wok::guest::Limits;
use wok::holding::{Acquire, Attempt, acquire};
use wok::participant::{CallError, Ending, Loss, Notice};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Match};

use crate::scene::{Room, Scene};

/// How long the caller of an operation that never ends waits. The operation has long begun to wait by then, on
/// a slow machine, too.
const SOON: Option<Duration> = Some(Duration::from_secs(2));

/// What a server answers where an access list is in the way.
const NO_AUTH: i32 = -102;

#[tokio::test]
async fn a_claim_whose_holder_faults_is_lost_once_and_goes_to_the_next_in_line() -> Result<()> {
    let scene = Scene::new().await?;
    for (operation, told) in [("trap", "trap trapped"), ("spin", "limits.cpu-per-call")] {
        let mut holder = scene.hostile()?;
        let held = holder.answer("hold", json!({})).await.unwrap();
        let mut next = scene.next_in_line()?;
        let acquiring = async {
            let granted = next.call("acquire", json!({})).await??;
            anyhow::Ok(granted.value.unwrap())
        };
        let attacking = async {
            // Once it stands in line: then there are two.
            scene.admin.wait_children(&scene.mount, "two contenders", |it| it.len() == 2).await?;
            holder.call(operation, json!({})).await
        };
        let (outcome, _) = scene.beside(async { tokio::try_join!(acquiring, attacking) }).await?;
        let (granted, answer) = outcome;
        assert_eq!(answer, Err(CallError::Ended));
        let fence = |it: &Value| it["fence"].as_u64();
        assert!(fence(&granted) > fence(&held), "{granted} after {held}");
        let notices = holder.notices().await?;
        let losses: Vec<_> = notices
            .iter()
            .filter_map(|notice| match notice {
                Notice::Lost(Loss::Fault(fault)) => Some(fault.to_string()),
                _ => None,
            })
            .collect();
        let [loss] = losses.as_slice() else { panic!("one loss in {notices:?}") };
        assert!(loss.contains(told), "{loss}");
        let last = notices.last().context("a last notice")?;
        assert!(matches!(last, Notice::Ended(Ending::Lost(Loss::Fault(_)))), "{last:?}");
        next.told(|notice| matches!(notice, Notice::Held { .. })).await?;
        next.leave().await?;
        assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    }
    Ok(())
}

#[tokio::test]
async fn an_operation_that_faults_right_after_its_claim_loses_it() -> Result<()> {
    let scene = Scene::new().await?;
    for operation in ["trap-while-holding", "spin-while-holding"] {
        let mut guest = scene.hostile()?;
        let attacking = async {
            let (answer, notices) = guest.call_to_the_end(operation).await?;
            assert_eq!(answer, Err(CallError::Ended));
            Ok(notices)
        };
        let (notices, _) = scene.beside(attacking).await?;
        let kinds: Vec<_> = notices
            .iter()
            .map(|notice| match notice {
                Notice::Waiting { .. } => "waiting",
                Notice::Held { .. } => "held",
                Notice::Lost(Loss::Fault(_)) => "lost",
                Notice::Ended(Ending::Lost(Loss::Fault(_))) => "ended",
                _ => "another",
            })
            .collect();
        assert_eq!(kinds, ["waiting", "held", "lost", "ended"], "{notices:?}");
        assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    }
    Ok(())
}

#[tokio::test]
async fn an_operation_that_ignores_its_cancellation_is_dropped_after_the_grace() -> Result<()> {
    let scene = Scene::new().await?;
    // So slow a loop uses little processor time, which would end it otherwise.
    let limits = Limits { calls_per_second: 200, ..Limits::default() };
    for operation in ["never-return-on-cancel", "yield-loop"] {
        let mut guest = scene.hostile_in(Room { limits: limits.clone(), ..Room::default() })?;
        let attacking = async {
            let start = Instant::now();
            let answer = guest.call_for(operation, json!({}), SOON).await?;
            assert_eq!(answer, Err(CallError::Cancelled), "{operation}");
            // The caller's two seconds and the grace of one.
            assert!(start.elapsed() >= Duration::from_secs(3), "{:?}", start.elapsed());
            guest.ending().await
        };
        let (ending, holds) = scene.beside(attacking).await?;
        let Ending::Failed(fault) = ending else { panic!("{ending:?}") };
        assert_eq!(fault.kind(), "grace-spent", "{fault}");
        assert!(holds >= 3, "{holds} holds of the neighbour in more than three seconds");
        assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    }
    Ok(())
}

#[tokio::test]
async fn a_caller_that_is_gone_has_withdrawn() -> Result<()> {
    let scene = Scene::new().await?;
    let (holder, waiter) = (scene.next_in_line()?, scene.next_in_line()?);
    holder.answer("acquire", json!({})).await.unwrap();
    tokio::select! {
        answer = waiter.call("acquire", json!({})) => panic!("{answer:?} beside a holder"),
        seen = scene.admin.wait_children(&scene.mount, "two contenders", |it| it.len() == 2) => {
            seen?;
        }
    }
    // The call is dropped by now, and its participant lives on.
    scene.admin.wait_children(&scene.mount, "the holder alone", |it| it.len() == 1).await?;
    assert!(holder.participant.holds());
    Ok(())
}

#[tokio::test]
async fn a_caller_that_is_gone_takes_nothing_along_that_was_held_before() -> Result<()> {
    let scene = Scene::new().await?;
    let holder = scene.hostile()?;
    let held = holder.answer("hold", json!({})).await.unwrap();
    let standing = || holder.participant.presence().standing();
    tokio::select! {
        answer = holder.call("wait-for-ever", json!({})) => panic!("{answer:?}"),
        begun = eventually("the call", async || Ok(standing().operation.map(drop))) => begun?,
    }
    let is_over = async || Ok(standing().operation.is_none().then_some(()));
    eventually("the call's end", is_over).await?;
    holder.answer("woken", json!({})).await.unwrap();
    let fence = holder.participant.presence().held().map(|held| held.fence);
    assert_eq!(fence, held["fence"].as_u64());
    Ok(())
}

#[tokio::test]
async fn a_caller_that_goes_before_it_looks_at_its_answer_leaves_nothing_held() -> Result<()> {
    let scene = Scene::new().await?;
    let mut holder = scene.hostile()?;
    {
        let mut call = pin!(holder.call("hold", json!({})));
        assert!(call.as_mut().now_or_never().is_none());
        // The claim is told first, then the call is answered, and then nothing is under way any more.
        let is_answered = async || {
            let now = holder.participant.presence().standing();
            Ok((now.held.is_some() && now.operation.is_none()).then_some(()))
        };
        eventually("the answer", is_answered).await?;
    }
    let ending = holder.ending().await?;
    assert!(matches!(ending, Ending::Left), "{ending:?}");
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_claim_that_is_lost_before_anybody_looks_at_the_answer_is_lost_and_not_held() -> Result<()>
{
    let scene = Scene::new().await?;
    let mut guest = scene.hostile()?;
    let presence = guest.participant.presence();
    let mut eye = presence.follow();
    let arguments = guest.arguments("hold", &json!({}))?;
    let attempt = Acquire { arguments, deadline: None, withdrawn: CancellationToken::new() };
    let acquiring = acquire(&guest.participant, &mut guest.follower, attempt, |_| {});
    let mut acquiring = pin!(acquiring);
    assert!(acquiring.as_mut().now_or_never().is_none());
    let is_answered = async || {
        let now = presence.standing();
        Ok(now.held.filter(|_| now.operation.is_none()))
    };
    let held = eventually("the answer", is_answered).await?;
    // As a command would, by which the participant does not end at once.
    let _dependent = guest.participant.depend(&held).context("it is held")?;
    scene.admin.delete(&held.path).await?;
    let lost = async {
        while let Some(notice) = eye.next().await {
            if matches!(notice, Notice::Lost(_)) {
                return Ok(());
            }
        }
        bail!("the participant ended and told no loss")
    };
    within("the loss", lost).await??;
    let attempt = within("the attempt's end", acquiring).await?;
    let is_lost = matches!(attempt, Attempt::Ended(Ending::Lost(Loss::Znode { .. })));
    assert!(is_lost, "{attempt:?}");
    Ok(())
}

#[tokio::test]
async fn a_caller_that_is_told_that_its_call_was_cancelled_holds_nothing_of_it() -> Result<()> {
    let scene = Scene::new().await?;
    let mut guest = scene.hostile()?;
    let answer = guest.call_for("hold-on-cancel", json!({}), SOON).await?;
    assert_eq!(answer, Err(CallError::Cancelled));
    let ending = guest.ending().await?;
    assert!(matches!(ending, Ending::Left), "{ending:?}");
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_release_that_is_withdrawn_while_something_depends_on_the_claim_is_nobodys_fault()
-> Result<()> {
    let scene = Scene::new().await?;
    let holder = scene.next_in_line()?;
    holder.answer("acquire", json!({})).await.unwrap();
    let held = holder.participant.presence().held().context("a claim")?;
    let dependent = holder.participant.depend(&held).context("it is held")?;
    let answer = holder.call_for("release", json!({}), SOON).await?;
    let told = answer.map(|answer| answer.value);
    assert_eq!(told, Err(CallError::Cancelled), "its znode is still there");
    assert_eq!(scene.left_behind().await?.len(), 1, "it went before what depends on it");
    assert!(holder.participant.depend(&held).is_none(), "it is about to be given up");
    drop(dependent);
    scene.admin.wait_children(&scene.mount, "nobody in line", |it| it.is_empty()).await?;
    // The participant lives, and can take the next claim.
    holder.answer("acquire", json!({})).await.unwrap();
    holder.leave().await
}

#[tokio::test]
async fn what_the_server_does_not_let_go_is_told_as_held_again() -> Result<()> {
    let scene = Scene::new().await?;
    let mut holder = scene.next_in_line()?;
    holder.answer("acquire", json!({})).await.unwrap();
    let deletes = Match::opcode(Opcode::Delete).under(&scene.mount);
    let refusal = scene.proxy.inject(deletes, Action::Refuse(NO_AUTH));
    let refused = holder.answer("release", json!({})).await;
    refusal.struck().await?;
    assert_eq!(refused, Err(json!("no-auth")));
    holder.told(|notice| matches!(notice, Notice::Released { .. })).await?;
    holder.told(|notice| matches!(notice, Notice::Held(_))).await?;
    assert!(holder.participant.holds());
    // Its end is not refused.
    holder.leave().await?;
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_component_that_never_ends_its_configuration_keeps_nothing() -> Result<()> {
    let scene = Scene::new().await?;
    let waits = || Room { config: Some(json!({ "waits": true })), ..Room::default() };
    scene.hostile_in(waits())?.leave().await?;
    let mut guest = scene.hostile_in(waits())?;
    scene.close_session().await;
    let ending = guest.ending().await?;
    assert!(matches!(ending, Ending::Lost(Loss::Session(_))), "{ending:?}");
    Ok(())
}

#[tokio::test]
async fn an_operation_that_spins_when_cancelled_is_ended() -> Result<()> {
    let scene = Scene::new().await?;
    let mut guest = scene.hostile()?;
    let attacking = async {
        guest.call_for("spin-on-cancel", json!({}), SOON).await?.unwrap_err();
        guest.ending().await
    };
    let (ending, _) = scene.beside(attacking).await?;
    let Ending::Failed(fault) = ending else { panic!("{ending:?}") };
    // Which of the two comes first depends on the machine: such a call gives way to all others.
    assert!(["cpu-spent", "grace-spent"].contains(&fault.kind()), "{fault}");
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn what_a_cancelled_operation_does_not_clean_up_goes_when_its_participant_leaves()
-> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    let cancelled = async { guest.call_for("leave-on-cancel", json!({}), SOON).await };
    let (answer, _) = scene.beside(cancelled).await?;
    assert_eq!(answer, Err(CallError::Cancelled));
    // The participant goes on, and so does what it created.
    assert_eq!(scene.left_behind().await?.len(), 1);
    assert_eq!(guest.answer("woken", json!({})).await, Ok(json!([0, 0])));
    scene.beside(guest.leave()).await?;
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn all_contenders_of_a_participant_go_when_it_leaves() -> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    let contending =
        async { Ok(guest.answer("contend-and-leave", json!({"count": 50})).await.unwrap()) };
    let (paths, _) = scene.beside(contending).await?;
    assert_eq!(paths.as_array().map(Vec::len), Some(50));
    assert_eq!(scene.left_behind().await?.len(), 50);
    scene.beside(guest.leave()).await?;
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn dropping_a_participant_ends_it() -> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    guest.answer("contend-and-leave", json!({"count": 3})).await.unwrap();
    let crate::scene::Guest { participant, mut follower, .. } = guest;
    drop(participant);
    let ending = async {
        while let Some(notice) = follower.next().await {
            if let Notice::Ended(ending) = notice {
                return Ok(ending);
            }
        }
        anyhow::bail!("no end was told")
    };
    let (ending, _) = scene.beside(ending).await?;
    assert!(matches!(ending, Ending::Left), "{ending:?}");
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}
