//! Rule 7: nothing that one participant sends breaks the session for the others.

use std::pin::pin;

use anyhow::{Result, ensure};
use futures_util::FutureExt;
use futures_util::future::join_all;
use wok::session::{
    CreateMode, Failure, Refusal, Reply, Request, SeatLimits, Watching, Write, Written,
};
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::proxy::{Action, Cut, Direction, Match};

use crate::room::{
    LONG_TIMEOUT, Room, contender, create, create_named, ever_created, list, round_trip, set,
};

const TOO_MUCH: usize = 2 << 20;

#[tokio::test]
async fn an_oversized_request_is_refused_here_and_harms_nobody() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let (seat, neighbour) = (room.seat(), room.seat());
    let write = |name: &str, data: usize| Write::Create {
        path: format!("{}/{name}", room.path),
        data: vec![0; data],
        mode: CreateMode::Ephemeral,
    };
    room.proxy.clear_log();
    let big = Request::Write(write("a", TOO_MUCH));
    // Half of it in each part.
    let multi = Request::Multi(vec![write("a", TOO_MUCH / 4), write("b", TOO_MUCH / 4)]);
    let outcomes = async {
        [
            seat.submit(big.clone()).await.map(drop),
            seat.submit(set(&room.path, &vec![0; TOO_MUCH])).await.map(drop),
            seat.submit(multi).await.map(drop),
            seat.pipeline(vec![set(&room.path, b"sent"), big]).await.map(drop),
            seat.contend(&room.path, contender(), vec![0; TOO_MUCH]).await.map(drop),
        ]
    };
    for outcome in within("the refusals", outcomes).await? {
        let Err(Failure::Invalid(text)) = outcome else { panic!("{outcome:?}") };
        ensure!(text.contains("921600"), "it does not name the limit: {text}");
        round_trip(&neighbour).await?;
    }
    let about = room.proxy.requests(&Match::any().under(&room.path));
    ensure!(about.is_empty(), "{about:?}");
    ensure!(room.proxy.log().iter().all(|seen| seen.connection == 1), "the connection broke");
    // Neither is anything of it left in the books.
    neighbour.submit(Request::Write(write("a", 1))).await?;
    Ok(())
}

#[tokio::test]
async fn the_largest_request_that_is_let_through_is_one_that_the_server_takes() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let largest = 900 * 1024 - 100 - room.path.len();
    seat.submit(set(&room.path, &vec![7; largest])).await?;
    let refused = seat.submit(set(&room.path, &vec![7; largest + 1])).await;
    ensure!(matches!(refused, Err(Failure::Invalid(_))), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn a_pipeline_is_sent_and_answered_in_order() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let path = room.path.clone();
    room.proxy.clear_log();
    let answers = seat
        .pipeline(vec![
            set(&path, b"1"),
            Request::GetData(path.clone(), Watching::No),
            set(&format!("{path}/absent"), b""),
            create(&format!("{path}/a"), CreateMode::Ephemeral),
            Request::GetChildren(path.clone(), Watching::No),
            set(&path, b"2"),
            Request::Exists(path.clone(), Watching::No),
        ])
        .await?;
    let [
        Ok(Reply::Written(Written::DataSet(_))),
        Ok(Reply::Data(data, ..)),
        Err(Failure::Refused { refusal: Refusal::NoNode, .. }),
        Ok(Reply::Written(Written::Created(..))),
        Ok(Reply::Children(names, ..)),
        Ok(Reply::Written(Written::DataSet(_))),
        Ok(Reply::Exists(Some(stat), _)),
    ] = &answers[..]
    else {
        panic!("{answers:?}")
    };
    assert_eq!(
        (data.as_slice(), names.as_slice(), stat.version),
        (&b"1"[..], &["a".into()][..], 2)
    );
    let seen = room.proxy.requests(&Match::any().under(&path));
    let opcodes: Vec<_> = seen.iter().map(|seen| seen.opcode).collect();
    use Opcode::{Create2, Exists, GetChildren2, GetData, SetData};
    assert_eq!(opcodes, [SetData, GetData, SetData, Create2, GetChildren2, SetData, Exists]);
    let xids: Vec<_> = seen.iter().map(|it| it.xid - seen[0].xid).collect();
    assert_eq!(xids, [0, 1, 2, 3, 4, 5, 6], "something came between");
    Ok(())
}

#[tokio::test]
async fn a_pipeline_has_a_limit_and_its_writes_are_not_repeated() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    room.proxy.clear_log();
    let refused = seat.pipeline(vec![set(&room.path, b""); 129]).await;
    ensure!(matches!(refused, Err(Failure::OverLimit(_))), "{refused:?}");
    round_trip(&seat).await?;
    let about = Match::any().under(&room.path);
    ensure!(room.proxy.requests(&about).is_empty());

    room.proxy.inject(about.clone().nth(64), Action::CutBefore(Cut::Fin));
    let paths: Vec<_> = (0..128).map(|number| format!("{}/{number:03}", room.path)).collect();
    let creates = paths.iter().map(|path| create(path, CreateMode::Persistent));
    let answers = seat.pipeline(creates.collect()).await?;
    ensure!(answers.len() == 128);
    let unknown = |answer: &Result<Reply, Failure>| matches!(answer, Err(Failure::OutcomeUnknown));
    ensure!(unknown(&answers[63]), "the 64th cannot be known: {:?}", answers[63]);
    round_trip(&seat).await?;
    // What had not left when the connection was lost may go on the next one. Nothing goes on both.
    let seen = room.proxy.requests(&about);
    let mut sent: Vec<_> = seen.iter().filter_map(|seen| seen.path.as_deref()).collect();
    sent.sort_unstable();
    ensure!(sent.is_sorted_by(|one, next| one < next), "some were sent again: {sent:?}");
    for (path, answer) in paths.iter().zip(&answers) {
        let is_there = room.admin.stat(path).await?.is_some();
        ensure!(unknown(answer) || answer.is_ok() == is_there, "{path}: {answer:?}, {is_there}");
    }
    Ok(())
}

#[tokio::test]
async fn a_session_has_no_more_than_its_limit_in_flight() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let read = || seat.submit(Request::GetData(room.path.clone(), Watching::No));
    // Known to be small, so that it is their number that counts.
    read().await?;
    room.proxy.clear_log();
    room.proxy.stall(Direction::Replies);
    let about = Match::any().under(&room.path);
    let mut reads = pin!(join_all((0..700).map(|_| read())));
    let heartbeat_seen = eventually("a heartbeat after them", async || {
        // Heartbeats pass all bounds, so one that comes last shows that nothing else will.
        let log = room.proxy.log();
        let full = log.iter().filter(|it| it.opcode == Opcode::GetData).count() >= 500;
        let last_is_heartbeat = log.last().is_some_and(|it| it.opcode != Opcode::GetData);
        Ok((full && last_is_heartbeat).then_some(()))
    });
    tokio::select! {
        seen = heartbeat_seen => seen?,
        _ = &mut reads => panic!("the replies were not held back"),
    }
    assert_eq!(room.proxy.requests(&about).len(), 500);
    room.proxy.heal();
    ensure!(reads.await.iter().all(Result::is_ok), "some were not answered");
    Ok(())
}

#[tokio::test]
async fn reads_of_which_nothing_is_known_are_sent_a_few_at_a_time() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, &vec![7; 900_000]).await?;
    let seat = room.seat();
    room.proxy.clear_log();
    room.proxy.stall(Direction::Replies);
    let about = Match::any().under(&room.path);
    let read = Request::GetData(room.path.clone(), Watching::No);
    let mut pipeline = pin!(seat.pipeline(vec![read; 8]));
    let heartbeat_seen = eventually("a heartbeat after them", async || {
        // Heartbeats pass all bounds, so one that comes last shows that nothing else will.
        let log = room.proxy.log();
        let some = log.iter().any(|it| it.opcode == Opcode::GetData);
        let last_is_heartbeat = log.last().is_some_and(|it| it.opcode != Opcode::GetData);
        Ok((some && last_is_heartbeat).then_some(()))
    });
    tokio::select! {
        seen = heartbeat_seen => seen?,
        _ = &mut pipeline => panic!("the replies were not held back"),
    }
    assert_eq!(room.proxy.requests(&about).len(), 4);
    room.proxy.heal();
    let answers = pipeline.await?;
    ensure!(answers.len() == 8 && answers.iter().all(Result::is_ok), "{}", answers.len());
    Ok(())
}

#[tokio::test]
async fn what_is_left_of_a_pipeline_after_a_lost_connection_is_not_sent() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let read = Request::GetData(room.path.clone(), Watching::No);
    let about = Match::opcode(Opcode::GetData).under(&room.path);
    room.proxy.inject(about.clone().nth(4), Action::CutBefore(Cut::Fin));
    let mut requests = vec![read; 8];
    requests.push(set(&room.path, b"late"));
    let answers = seat.pipeline(requests).await?;
    ensure!(answers.len() == 9, "{answers:?}");
    ensure!(matches!(answers.last(), Some(Err(Failure::OutcomeUnknown))), "{answers:?}");
    round_trip(&seat).await?;
    ensure!(room.proxy.requests(&about).len() == 4, "{:?}", room.proxy.requests(&about));
    ensure!(room.admin.stat(&room.path).await?.is_some_and(|stat| stat.version == 0));
    Ok(())
}

#[tokio::test]
async fn a_write_given_up_while_disconnected_is_not_sent_later() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let late = format!("{}/late", room.path);
    room.disconnect().await?;
    {
        let persistent = create(&late, CreateMode::Persistent);
        let mut write = pin!(seat.submit(persistent.clone()));
        let mut pipeline = pin!(seat.pipeline(vec![persistent]));
        assert!(write.as_mut().now_or_never().is_none());
        assert!(pipeline.as_mut().now_or_never().is_none());
    }
    // One that is not given up goes as soon as it can.
    let kept = format!("{}/kept", room.path);
    let mut write = pin!(seat.submit(create(&kept, CreateMode::Persistent)));
    assert!(write.as_mut().now_or_never().is_none());
    room.proxy.heal();
    write.await?;
    assert_eq!(room.admin.children(&room.path).await?, ["kept"]);
    assert_eq!(ever_created(&room.admin, &room.path).await?, 1);
    Ok(())
}

#[tokio::test]
async fn an_ephemeral_sequential_znode_comes_from_contend_only() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let bare = create(&format!("{}/n-", room.path), CreateMode::EphemeralSequential);
    let Request::Write(write) = bare.clone() else { unreachable!() };
    for outcome in [
        seat.submit(bare.clone()).await.map(drop),
        seat.submit(Request::Multi(vec![write])).await.map(drop),
        seat.pipeline(vec![bare]).await.map(drop),
    ] {
        let Err(Failure::Invalid(text)) = outcome else { panic!("{outcome:?}") };
        ensure!(text.contains("contend"), "{text}");
    }
    assert_eq!(list(&seat, &room.path).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_participant_has_no_more_ephemeral_znodes_than_its_limit() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.session.join(&room.path, SeatLimits { znodes: 2, ..SeatLimits::default() })?;
    let (first, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    create_named(&seat, &format!("{}/second", room.path)).await?;
    let third = format!("{}/third", room.path);
    for outcome in [
        seat.contend(&room.path, contender(), Vec::new()).await.map(drop),
        seat.submit(create(&third, CreateMode::Ephemeral)).await.map(drop),
        seat.pipeline(vec![create(&third, CreateMode::Ephemeral)]).await.map(drop),
    ] {
        ensure!(matches!(outcome, Err(Failure::OverLimit(_))), "{outcome:?}");
    }
    assert_eq!(room.admin.children(&room.path).await?.len(), 2);
    seat.release(&first).await?;
    seat.submit(create(&third, CreateMode::Ephemeral)).await?;
    Ok(())
}
