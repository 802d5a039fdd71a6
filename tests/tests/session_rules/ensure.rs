//! Znodes that a recipe needs are created once, and looked for ever after.

use anyhow::{Result, ensure};
use wok::session::{CreateMode, Failure};
use wok_tests::frames::Opcode;
use wok_tests::proxy::{Action, Cut, Match};

use crate::room::{LONG_TIMEOUT, Room};

#[tokio::test]
async fn what_is_missing_is_created_with_its_parents_and_repeating_it_only_looks() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    let paths = ["a", "a/b", "deep/er/c", "d"].map(|path| format!("{}/{path}", room.path));
    seat.ensure(paths.to_vec(), CreateMode::Persistent).await?;
    for path in &paths {
        ensure!(room.admin.stat(path).await?.is_some(), "{path}");
    }
    room.proxy.clear_log();
    seat.ensure(paths.to_vec(), CreateMode::Persistent).await?;
    let seen = room.proxy.requests(&Match::any().under(&room.path));
    let opcodes: Vec<_> = seen.iter().map(|seen| seen.opcode).collect();
    assert_eq!(opcodes, [Opcode::Exists; 4]);
    // One that is gone again is created alone.
    room.admin.delete(&paths[3]).await?;
    room.proxy.clear_log();
    seat.ensure(paths.to_vec(), CreateMode::Container).await?;
    assert_eq!(room.proxy.requests(&Match::creates().under(&room.path)).len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_lost_reply_is_no_hindrance() -> Result<()> {
    for loss in [Action::DropReplyAndCut(Cut::Fin), Action::CutBefore(Cut::Reset)] {
        for nth in 1..=12 {
            let room = Room::open(LONG_TIMEOUT).await?;
            let seat = room.seat();
            let paths = ["a", "a/b", "c/d"].map(|path| format!("{}/{path}", room.path));
            room.proxy.inject(Match::any().under(&room.path).nth(nth), loss);
            seat.ensure(paths.to_vec(), CreateMode::Persistent).await?;
            for path in &paths {
                ensure!(room.admin.stat(path).await?.is_some(), "{loss:?} at {nth}: {path}");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn only_znodes_that_outlive_the_participant_are_ensured() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    for mode in
        [CreateMode::Ephemeral, CreateMode::EphemeralSequential, CreateMode::PersistentSequential]
    {
        let refused = seat.ensure(vec![room.path.clone()], mode).await;
        ensure!(matches!(refused, Err(Failure::Invalid(_))), "{mode:?}: {refused:?}");
    }
    assert!(room.admin.stat(&room.path).await?.is_none());
    Ok(())
}
