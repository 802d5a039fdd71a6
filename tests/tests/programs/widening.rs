//! A session that is full is no reason to refuse: the host opens another one.
//!
//! Mounts are so long here, or participants reserve so much, that a session is full soon. A proxy
//! tells how many sessions there are and on how many connections.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

mod daemon;
mod host;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::FutureExt;
use futures_util::future::{join_all, try_join_all};
use wok::base::Sessions;
use wok::epochs::JoinError;
use wok::participant::{Ending, Loss, Notice};
use wok::session::{SessionLoss, SessionState};
use wok_tests::admin::{self, Admin};
use wok_tests::patience::{eventually, within};
use wok_tests::zookeeper::{self, Options, Server};

use host::{Crowd, PER_SESSION, Waiter};

/// Who holds, of those who wait or hold; the others wait on.
async fn holder(waiters: &mut Vec<Waiter>) -> Result<Waiter> {
    let place = eventually("somebody to hold the lock", async || {
        let holding: Vec<_> = waiters.iter().map(Waiter::holds).collect();
        ensure!(holding.iter().filter(|holds| **holds).count() <= 1, "two hold the lock");
        Ok(holding.iter().position(|holds| *holds))
    })
    .await?;
    Ok(waiters.swap_remove(place))
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_find_no_room_stand_in_the_same_line_from_another_session() -> Result<()> {
    let crowd = Crowd::new(zookeeper::shared().await, Sessions::at_most(3)).await?;
    let joining = (0..3 * PER_SESSION).map(|_| crowd.wait_in_line());
    let mut waiters = try_join_all(joining).await?;
    // Three and not one for each who found no room.
    assert_eq!(crowd.proxy.sessions().len(), 3);
    let mut on: BTreeMap<i64, usize> = BTreeMap::new();
    for waiter in &waiters {
        *on.entry(waiter.session()).or_default() += 1;
    }
    assert_eq!(on.into_values().collect::<Vec<_>>(), [PER_SESSION; 3]);

    let refused = crowd.epochs.join("lock").await.map(drop).unwrap_err();
    assert!(matches!(refused, JoinError::Full { open: 3, .. }), "{refused:?}");
    let told = refused.to_string();
    for part in ["all 3 sessions", "`sessions` in [zookeeper]", "shorter mounts", "a second wok"] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }

    // One line, in the order of their znodes: whose session it is does not matter.
    let (mut last, mut hand_overs) = (0, 0);
    while !waiters.is_empty() {
        let mut holder = holder(&mut waiters).await?;
        let fence = within("its fence", holder.fence()).await??;
        ensure!(fence > last, "the fence went from {last} to {fence}");
        last = fence;
        hand_overs += 1;
        holder.leave().await?;
    }
    assert_eq!(hand_overs, 3 * PER_SESSION);
    crowd.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_is_seated_beside_those_at_its_mount_and_else_on_the_oldest_session()
-> Result<()> {
    let crowd = Crowd::new(zookeeper::shared().await, Sessions::at_most(2)).await?;
    let mut waiters = try_join_all((0..PER_SESSION).map(|_| crowd.wait_in_line())).await?;
    let other = crowd.join("other").await?;
    assert_ne!(waiters[0].session(), other.session());
    waiters.pop().context("twenty have joined")?.leave().await?;
    // There is room on both.
    waiters[0].until_there_are(PER_SESSION - 1).await?;
    assert_eq!(crowd.join("other").await?.session(), other.session());
    assert_eq!(crowd.join("third").await?.session(), waiters[0].session());
    crowd.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_lost_takes_its_own_participants_along_and_no_other() -> Result<()> {
    let crowd = Crowd::new(zookeeper::shared().await, Sessions::at_most(2)).await?;
    let waiters = try_join_all((0..2 * PER_SESSION).map(|_| crowd.wait_in_line())).await?;
    let sessions = crowd.proxy.sessions();
    let [stays, goes] = sessions.as_slice() else { panic!("two sessions in {sessions:?}") };
    admin::expire(zookeeper::shared().await.address(), goes).await?;

    let (mut lost, mut others): (Vec<_>, Vec<_>) =
        waiters.into_iter().partition(|waiter| waiter.session() == goes.id);
    assert_eq!((lost.len(), others.len()), (PER_SESSION, PER_SESSION));
    for ending in join_all(lost.iter_mut().map(Waiter::ended)).await {
        let ending = ending?;
        // A server that ends a session tells of its znodes first, and then hangs up.
        let is_loss = matches!(
            ending,
            Ending::Lost(Loss::Session(SessionLoss::Expired) | Loss::Znode { .. })
        );
        assert!(is_loss, "{ending:?}");
    }
    for waiter in &mut others {
        let told: Vec<_> = std::iter::from_fn(|| waiter.follower.next().now_or_never()).collect();
        let is_calm = |notice: &Option<Notice>| {
            matches!(notice, Some(Notice::Waiting { .. } | Notice::Held(_)))
        };
        assert!(told.iter().all(is_calm), "{told:?}");
        assert_eq!(*waiter.joined_session().state().borrow(), SessionState::Connected);
        assert_eq!(waiter.session(), stays.id);
    }
    drop(lost);

    // All that is open is full, so the next one is given a session again, and waits behind the rest.
    let newcomer = crowd.wait_in_line().await?;
    assert!(![stays.id, goes.id].contains(&newcomer.session()));
    others.push(newcomer);
    while !others.is_empty() {
        holder(&mut others).await?.leave().await?;
    }
    crowd.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_more_connections_is_told_of_and_disturbs_nobody() -> Result<()> {
    let options = Options::default().setting("maxClientCnxns", "1");
    let server = Server::start(options).await?;
    // No proxy: the server counts connections by address.
    let crowd = Crowd::direct(&server, Sessions::at_most(5)).await?;
    let mut waiters = try_join_all((0..PER_SESSION).map(|_| crowd.wait_in_line())).await?;
    let attempts = join_all((0..100).map(|_| crowd.epochs.join("lock")));
    for refused in within("a hundred refusals", attempts).await? {
        let refused = refused.map(drop).unwrap_err();
        assert!(matches!(refused, JoinError::NotWidened { open: 1, .. }), "{refused:?}");
        let told = refused.to_string();
        for part in [server.address(), "maxClientCnxns", "another cannot be opened"] {
            assert!(told.contains(part), "{part:?} is not in {told}");
        }
    }
    let mut first = holder(&mut waiters).await?;
    let fence = within("its fence", first.fence()).await??;
    assert_eq!(*first.joined_session().state().borrow(), SessionState::Connected);
    // A participant that leaves makes room.
    first.leave().await?;
    waiters[0].until_there_are(PER_SESSION - 1).await?;
    waiters.push(crowd.wait_in_line().await?);
    let mut next = holder(&mut waiters).await?;
    assert!(within("its fence", next.fence()).await?? > fence);
    drop((next, waiters));
    crowd.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_nobody_uses_is_closed_unless_it_is_the_last() -> Result<()> {
    let sessions = Sessions { most: 3, idle: Duration::from_millis(50) };
    let crowd = Crowd::new(zookeeper::shared().await, sessions).await?;
    let waiters = try_join_all((0..3 * PER_SESSION).map(|_| crowd.wait_in_line())).await?;
    assert_eq!(crowd.proxy.connections(), 3);
    let mut leaving = waiters;
    // One stays where it is, on whatever session that is.
    let stays = leaving.pop().context("sixty have joined")?;
    try_join_all(leaving.into_iter().map(Waiter::leave)).await?;
    eventually("two sessions to be closed", async || {
        Ok((crowd.proxy.connections() == 1).then_some(()))
    })
    .await?;
    assert_eq!(*stays.joined_session().state().borrow(), SessionState::Connected);
    let session = stays.session();
    stays.leave().await?;
    // The last one stays for who comes.
    let newcomer = crowd.wait_in_line().await?;
    assert_eq!(newcomer.session(), session);
    assert_eq!(crowd.proxy.sessions().len(), 3);
    newcomer.leave().await?;
    crowd.close().await
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_all_sessions_and_leaves_nothing_behind() -> Result<()> {
    let crowd = Crowd::new(zookeeper::shared().await, Sessions::at_most(2)).await?;
    let waiters = try_join_all((0..PER_SESSION + 1).map(|_| crowd.wait_in_line())).await?;
    assert_eq!(crowd.proxy.connections(), 2);
    try_join_all(waiters.into_iter().map(Waiter::leave)).await?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    assert_eq!(admin.children(&crowd.mount("lock")).await?, Vec::<String>::new());
    let refused = {
        within("the sessions to close", crowd.epochs.close()).await?;
        crowd.epochs.join("lock").await.map(drop).unwrap_err()
    };
    assert!(matches!(refused, JoinError::NoSession), "{refused:?}");
    eventually(
        "the connections to end",
        async || Ok((crowd.proxy.connections() == 0).then_some(())),
    )
    .await
}
