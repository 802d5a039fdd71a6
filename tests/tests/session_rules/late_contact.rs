//! Rule 4: what is claimed is looked at again where contact was waited for. A heartbeat of the session's own
//! may come in between and be contact enough; then the test tries once more.

use std::pin::pin;

use anyhow::{Result, bail};
use wok::session::{CreateMode, Failure, Refusal, Write};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Match};

use crate::room::{LONG_TIMEOUT, Room, contender, list};

/// How often a test tries.
const TRIES: usize = 20;

#[tokio::test]
async fn a_znode_that_was_listed_before_contact_was_lost_is_looked_at() -> Result<()> {
    let (room, clock) = Room::by_a_clock(LONG_TIMEOUT).await?;
    let heartbeat = room.session.timing().heartbeat();
    for _ in 0..TRIES {
        let seat = room.seat();
        let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
        // The list is newer than the last contact by so much.
        clock.by(heartbeat * 6 / 10);
        list(&seat, &room.path).await?;
        let stalled = room.proxy.inject(Match::opcode(Opcode::Multi), Action::StallRequests);
        clock.by(heartbeat * 5 / 10);
        let mut claim = pin!(seat.claim(&path));
        tokio::select! {
            biased;
            claimed = &mut claim => drop(claimed?),
            struck = stalled.struck() => {
                struck?;
                room.admin.delete(&path).await?;
                clock.by(heartbeat);
                room.proxy.heal();
                let claimed = within("the claim", claim).await?;
                assert_eq!(claimed, Err(Refusal::NoNode.into()));
                assert!(!seat.has_claim());
                return Ok(());
            }
        }
        room.proxy.heal();
        seat.release(&path).await?;
    }
    bail!("the session never asked for contact")
}

#[tokio::test]
async fn a_znode_that_goes_behind_its_multi_while_contact_is_asked_for_is_no_claim() -> Result<()> {
    let (room, clock) = Room::by_a_clock(LONG_TIMEOUT).await?;
    let heartbeat = room.session.timing().heartbeat();
    room.admin.create(&room.path, b"").await?;
    for number in 0..TRIES {
        let seat = room.seat();
        let path = format!("{}/{number}", room.path);
        let create =
            Write::Create { path: path.clone(), data: Vec::new(), mode: CreateMode::Ephemeral };
        let claim = [path.clone()];
        let multi = Match::opcode(Opcode::Multi).under(&room.path);
        room.proxy.inject(multi, Action::StallReplies);
        let confirming = Match::opcode(Opcode::GetData).under(&path);
        let mut taken = pin!(seat.multi(vec![create], &claim));
        let late = async {
            eventually("the read behind it", async || {
                Ok((room.proxy.requests(&confirming).len() == 1).then_some(()))
            })
            .await?;
            let stalled = room.proxy.inject(Match::opcode(Opcode::Multi), Action::StallRequests);
            clock.by(heartbeat * 11 / 10);
            let is_held_up = !stalled.has_struck();
            room.proxy.release();
            stalled.struck().await?;
            anyhow::Ok(is_held_up)
        };
        let taken = tokio::select! {
            biased;
            taken = &mut taken => taken,
            is_held_up = late => {
                // What is gone is not waited for until there is contact.
                match is_held_up? {
                    true => room.admin.delete(&path).await?,
                    false => room.proxy.heal(),
                }
                within("the multi", taken).await?
            }
        };
        room.proxy.heal();
        if room.admin.stat(&path).await?.is_none() {
            let refused = Failure::Refused { refusal: Refusal::NoNode, index: Some(0) };
            assert_eq!(taken, Err(refused));
            return Ok(());
        }
        taken?;
        seat.release(&path).await?;
    }
    bail!("the session never asked for contact")
}

#[tokio::test]
async fn a_znode_that_is_gone_when_it_is_read_behind_its_multi_waits_for_no_contact() -> Result<()>
{
    let (room, clock) = Room::by_a_clock(LONG_TIMEOUT).await?;
    let heartbeat = room.session.timing().heartbeat();
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let path = format!("{}/claim", room.path);
    let create =
        Write::Create { path: path.clone(), data: Vec::new(), mode: CreateMode::Ephemeral };
    let claim = [path.clone()];
    let reading = Match::opcode(Opcode::GetData).under(&path);
    let reading = room.proxy.inject(reading, Action::StallRequests);
    let taken = pin!(seat.multi(vec![create], &claim));
    let late = async {
        reading.struck().await?;
        eventually("the znode", async || Ok(room.admin.stat(&path).await?)).await?;
        room.admin.delete(&path).await?;
        // No contact from here on: neither on this connection nor on another one.
        room.proxy.inject(Match::opcode(Opcode::Multi), Action::StallRequests);
        room.proxy.refuse();
        clock.by(heartbeat * 11 / 10);
        room.proxy.release();
        anyhow::Ok(())
    };
    let (taken, late) = within("the multi", futures_util::future::join(taken, late)).await?;
    late?;
    let refused = Failure::Refused { refusal: Refusal::NoNode, index: Some(0) };
    assert_eq!(taken, Err(refused));
    room.proxy.heal();
    Ok(())
}
