//! A write that changes a znode of the own ledger is never of unknown outcome: the host looks.

use anyhow::{Context, Result, ensure};
use wok::session::{CreateMode, Failure, Refusal, Reply, Request, Seat, Watching, Write, Written};
use wok_tests::frames::Opcode;
use wok_tests::proxy::{Action, Cut, Match};

use crate::room::{LONG_TIMEOUT, Room, contender, create_named, round_trip};

/// The reply is lost, or the request.
const LOSSES: [Action; 3] = [
    Action::DropReplyAndCut(Cut::Reset),
    Action::DropReplyAndCut(Cut::Fin),
    Action::CutBefore(Cut::Reset),
];

fn create_one(path: &str, mode: CreateMode) -> Write {
    Write::Create { path: path.into(), data: b"new".to_vec(), mode }
}

fn delete_one(path: &str) -> Write {
    Write::Delete { path: path.into(), version: None }
}

fn set_one(path: &str, data: &[u8], version: i32) -> Write {
    Write::SetData { path: path.into(), data: data.into(), version: Some(version) }
}

/// How a write is sent.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Alone,
    InMulti,
    InPipeline,
    InMultiOfPipeline,
}

const WAYS: [Sent; 4] = [Sent::Alone, Sent::InMulti, Sent::InPipeline, Sent::InMultiOfPipeline];

async fn send(seat: &Seat, write: Write, sent: Sent) -> Result<Written, Failure> {
    let request = match sent {
        Sent::Alone | Sent::InPipeline => Request::Write(write),
        Sent::InMulti | Sent::InMultiOfPipeline => Request::Multi(vec![write]),
    };
    let reply = match sent {
        Sent::Alone | Sent::InMulti => seat.submit(request).await?,
        Sent::InPipeline | Sent::InMultiOfPipeline => {
            seat.pipeline(vec![request]).await?.pop().expect("one answer")?
        }
    };
    match reply {
        Reply::Written(written) => Ok(written),
        Reply::Multi(mut written) => Ok(written.pop().expect("one part")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_create_a_change_and_a_deletion_of_an_own_znode_are_each_settled() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    for (sent, loss) in WAYS.iter().flat_map(|sent| LOSSES.map(|loss| (*sent, loss))) {
        let case = format!("{sent:?}, {loss:?}");
        let path = format!("{}/named", room.path);
        let lose = || room.proxy.inject(Match::any().under(&path), loss);

        let fault = lose();
        let created = send(&seat, create_one(&path, CreateMode::Ephemeral), sent).await;
        let Ok(Written::Created(told, stat)) = created else { panic!("{case}: {created:?}") };
        ensure!(fault.has_struck(), "{case}");
        let there = room.admin.stat(&path).await?.context("the znode")?;
        assert_eq!((told, stat.czxid), (path.clone(), there.czxid), "{case}");

        let fault = lose();
        let set = send(&seat, set_one(&path, b"changed", 0), sent).await;
        let Ok(Written::DataSet(stat)) = set else { panic!("{case}: {set:?}") };
        ensure!(fault.has_struck() && stat.version == 1, "{case}: {stat:?}");
        let (data, there) = room.admin.get(&path).await?.context("the znode")?;
        assert_eq!((data.as_slice(), there.version), (&b"changed"[..], 1), "{case}");

        let fault = lose();
        let deleted = send(&seat, delete_one(&path), sent).await;
        assert_eq!(deleted, Ok(Written::Deleted), "{case}");
        ensure!(fault.has_struck() && room.admin.stat(&path).await?.is_none(), "{case}");
        // The ledger knows it, too: the name is free.
        create_named(&seat, &path).await?;
        seat.release(&path).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_did_not_happen_and_cannot_is_refused_as_if_no_reply_had_been_lost() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let (path, _) = seat.contend(&room.path, contender(), Vec::new()).await?;
    let taken = format!("{}/taken", room.path);
    room.admin.create(&taken, b"another's").await?;
    for loss in LOSSES {
        room.proxy.inject(Match::any().under(&path), loss);
        let refused = seat.submit(Request::Write(set_one(&path, b"", 5))).await.map(drop);
        assert_eq!(refused, Err(Refusal::BadVersion.into()), "{loss:?}");
        room.proxy.inject(Match::any().under(&taken), loss);
        let create = create_one(&taken, CreateMode::Ephemeral);
        let refused = seat.submit(Request::Write(create)).await.map(drop);
        assert_eq!(refused, Err(Refusal::NodeExists.into()), "{loss:?}");
        room.proxy.inject(Match::any().under(&path), loss);
        let parts = vec![set_one(&path, b"", 0), delete_one(&format!("{}/none", room.path))];
        let refused = seat.submit(Request::Multi(parts)).await.map(drop);
        let expected = Failure::Refused { refusal: Refusal::NoNode, index: Some(1) };
        assert_eq!(refused, Err(expected), "{loss:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_producers_marker_settles_its_puts() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let items = format!("{}/items", room.path);
    room.admin.create(&room.path, b"").await?;
    room.admin.create(&items, b"").await?;
    let seat = room.seat();
    let marker = format!("{}/marker", room.path);
    create_named(&seat, &marker).await?;
    let mut put = 0;
    for sent in [Sent::InMulti, Sent::InMultiOfPipeline] {
        for loss in LOSSES {
            room.proxy.inject(Match::any().under(&marker), loss);
            let number = put.to_string();
            let item = Write::Create {
                path: format!("{items}/qn-{number}-"),
                data: number.clone().into_bytes(),
                mode: CreateMode::PersistentSequential,
            };
            let request = Request::Multi(vec![set_one(&marker, number.as_bytes(), put), item]);
            let reply = match sent {
                Sent::InMulti => seat.submit(request).await?,
                _ => seat.pipeline(vec![request]).await?.pop().context("an answer")??,
            };
            put += 1;
            let Reply::Multi(written) = reply else { panic!("{reply:?}") };
            let [Written::DataSet(stat), Written::Created(path, _)] = &*written else {
                panic!("{written:?}")
            };
            assert_eq!(stat.version, put, "{loss:?}");
            let (data, _) = room.admin.get(path).await?.with_context(|| path.clone())?;
            assert_eq!(data, number.into_bytes(), "{loss:?}");
            let there = room.admin.children(&items).await?;
            assert_eq!(i32::try_from(there.len())?, put, "{loss:?}: {there:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn several_puts_of_one_pipeline_are_settled_one_by_one() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let marker = format!("{}/marker", room.path);
    create_named(&seat, &marker).await?;
    let sets = |from: i32| -> Vec<Request> {
        let set = |at: i32| Request::Write(set_one(&marker, at.to_string().as_bytes(), at));
        (from..from + 8).map(set).collect()
    };
    let mut version = 0;
    for loss in LOSSES {
        // On a machine that is busy the last of them may leave on the next connection. Then those before
        // it are told not to be done, as is true, and the test tries once more.
        for tries in 1.. {
            ensure!(tries <= 20, "{loss:?}: they never leave together");
            room.proxy.inject(Match::any().under(&marker).nth(4), loss);
            let answers = seat.pipeline(sets(version)).await?;
            room.proxy.heal();
            let done = answers.iter().take_while(|answer| answer.is_ok()).count();
            let is_refused = |answer: &Result<_, _>| matches!(answer, Err(Failure::Refused { .. }));
            ensure!(answers[done..].iter().all(is_refused), "{loss:?}: {answers:?}");
            version += i32::try_from(done)?;
            let (data, stat) = room.admin.get(&marker).await?.context("the marker")?;
            assert_eq!(stat.version, version, "{loss:?}: {answers:?}");
            assert_eq!(data, (version - 1).to_string().into_bytes(), "{loss:?}: {answers:?}");
            if done == 8 {
                break;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_marker_that_others_write_to_tells_nothing() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    let marker = format!("{}/marker", room.path);
    create_named(&seat, &marker).await?;
    let loss = Action::DropReplyAndCut(Cut::Reset);
    let struck = room.proxy.inject(Match::any().under(&marker), loss);
    let meddling = async {
        struck.struck().await?;
        room.proxy.refuse();
        for _ in 0..2 {
            room.admin.set(&marker, b"another's").await?;
        }
        room.proxy.heal();
        anyhow::Ok(())
    };
    let set = seat.submit(Request::Write(set_one(&marker, b"mine", 0)));
    let (outcome, meddled) = tokio::join!(set, meddling);
    meddled?;
    assert_eq!(outcome.map(drop), Err(Failure::OutcomeUnknown));
    round_trip(&seat).await?;
    Ok(())
}

#[tokio::test]
async fn a_write_to_anothers_znode_stays_of_unknown_outcome_and_is_not_repeated() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    for loss in LOSSES {
        room.proxy.clear_log();
        room.proxy.inject(Match::any().under(&room.path), loss);
        let version = room.admin.stat(&room.path).await?.context("the znode")?.version;
        let set = set_one(&room.path, b"", version);
        let outcome = seat.submit(Request::Write(set)).await.map(drop);
        assert_eq!(outcome, Err(Failure::OutcomeUnknown), "{loss:?}");
        round_trip(&seat).await?;
        assert_eq!(room.proxy.requests(&Match::any().under(&room.path)).len(), 1, "{loss:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_pipeline_is_answered_in_order_though_its_first_write_is_lost() -> Result<()> {
    // What goes out on the next connection before it is a matter of moments.
    for _ in 0..4 {
        lose_the_first_write_of_a_pipeline().await?;
    }
    Ok(())
}

async fn lose_the_first_write_of_a_pipeline() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let seat = room.seat();
    room.admin.create(&room.path, b"").await?;
    let others: Vec<String> = (0..60).map(|it| format!("{}/{it}", room.path)).collect();
    let first = format!("{}/first", room.path);
    let cut = Action::CutBefore(Cut::Fin);
    room.proxy.inject(Match::opcode(Opcode::Create2).under(&first), cut);
    let mut requests = vec![Request::Write(create_one(&first, CreateMode::Ephemeral))];
    requests
        .extend(others.iter().map(|path| Request::Write(create_one(path, CreateMode::Persistent))));
    requests.extend(others.iter().map(|_| Request::Exists(first.clone(), Watching::No)));
    let answers = seat.pipeline(requests).await?;
    let there = room.admin.stat(&first).await?;
    let told = match &answers[0] {
        Ok(Reply::Written(Written::Created(_, stat))) => Some(stat.czxid),
        Err(Failure::Refused { .. }) => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(told, there.map(|stat| stat.czxid));
    for answer in &answers[1..] {
        match answer {
            Ok(Reply::Written(Written::Created(path, stat))) => {
                assert!(told.is_none_or(|told| told < stat.czxid), "{path} came before");
            }
            Err(Failure::OutcomeUnknown) => {}
            other => panic!("a read behind a lost write is not answered: {other:?}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_a_pipeline_creates_and_deletes_is_not_created_a_second_time() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    room.admin.create(&room.path, b"").await?;
    let seat = room.seat();
    for (number, cut) in [Cut::Reset, Cut::Fin].into_iter().enumerate() {
        let path = format!("{}/{number}", room.path);
        room.proxy.clear_log();
        // Both are done, and neither reply comes.
        let of = |opcode| Match::opcode(opcode).under(&path);
        room.proxy.inject(of(Opcode::Create2), Action::DropReply);
        room.proxy.inject(of(Opcode::Delete), Action::DropReplyAndCut(cut));
        let create = Request::Write(create_one(&path, CreateMode::Ephemeral));
        let answers = seat.pipeline(vec![create, Request::Write(delete_one(&path))]).await?;
        ensure!(matches!(answers.first(), Some(Err(Failure::OutcomeUnknown))), "{answers:?}");
        let creates = room.proxy.requests(&Match::opcode(Opcode::Create2).under(&path));
        assert_eq!(creates.len(), 1, "{cut:?}");
    }
    seat.retire().await;
    assert_eq!(room.admin.children(&room.path).await?, Vec::<String>::new());
    Ok(())
}
