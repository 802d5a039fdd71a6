//! Who may touch what a session made.

use std::time::Duration;

use anyhow::{Result, ensure};
use wok::session::{
    Acl, ConnectOptions, Credential, Failure, Refusal, SeatLimits, Secret, Session, open,
};
use wok_tests::admin::Admin;
use wok_tests::patience::within;
use wok_tests::proxy::Match;
use wok_tests::zookeeper::{self, Options, Server};
use zookeeper_client as zk;

use crate::room::{LONG_TIMEOUT, Room, contender, delete, ever_created, hold, set};

fn as_identity(secret: &str, hosts: &str) -> ConnectOptions {
    let secret = Secret::new(secret);
    ConnectOptions {
        auth: vec![Credential { scheme: "digest".into(), secret }],
        acl: Acl::Creator,
        ..ConnectOptions::new(hosts, LONG_TIMEOUT)
    }
}

async fn log_in(secret: &str) -> Result<Session> {
    Ok(open(&as_identity(secret, zookeeper::shared().await.address())).await?)
}

#[tokio::test]
async fn another_identity_can_neither_delete_a_claim_nor_its_container() -> Result<()> {
    let session = log_in("ada:secret").await?;
    let mount = zookeeper::unique_path();
    let directory = format!("{mount}/locks");
    let seat = session.join(&mount, SeatLimits::default())?;
    let path = hold(&seat, &directory).await?;

    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    for target in [&path, &directory, &mount] {
        let refused = admin.client().delete(target, None).await;
        let allowed = matches!(
            refused,
            Err(zookeeper_client::Error::NoAuth | zookeeper_client::Error::NotEmpty)
        );
        ensure!(allowed, "{target}: {refused:?}");
    }
    let refused = admin.client().delete(&path, None).await;
    ensure!(matches!(refused, Err(zookeeper_client::Error::NoAuth)), "{refused:?}");
    ensure!(admin.get(&path).await.is_err(), "its data is nobody else's business");

    // The own identity can, on a session of its own: it is the identity that counts.
    let again = log_in("ada:secret").await?;
    let other = again.join(&mount, SeatLimits::default())?;
    other.submit(delete(&path)).await?;
    assert_eq!(within("the loss", seat.until_claim_lost()).await?, path);
    Ok(())
}

#[tokio::test]
async fn a_line_that_may_be_joined_and_not_seen_is_not_joined() -> Result<()> {
    let room = Room::open(LONG_TIMEOUT).await?;
    let blind =
        [zk::Acl::new(zk::Permission::CREATE | zk::Permission::DELETE, zk::AuthId::anyone())];
    let options = zk::CreateMode::Persistent.with_acls(zk::Acls::new(&blind));
    room.admin.client().create(&room.path, b"", &options).await?;
    let seat = room.seat();
    let refused = seat.contend_and_list(&room.path, contender(), Vec::new()).await;
    assert_eq!(refused.map(drop), Err(Refusal::NoAuth.into()));
    // It was created, and it was gone before the answer.
    assert_eq!(ever_created(&room.admin, &room.path).await?, 1);
    assert_eq!(room.admin.stat(&room.path).await?.map(|it| it.num_children), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_wrong_digest_password_is_told_as_no_auth() -> Result<()> {
    let owner = log_in("ada:secret").await?;
    let mount = zookeeper::unique_path();
    let seat = owner.join(&mount, SeatLimits::default())?;
    hold(&seat, &mount).await?;
    // ZooKeeper takes any password: a wrong one only makes another identity.
    let stranger = log_in("ada:wrong").await?;
    let stranger_seat = stranger.join(&mount, SeatLimits::default())?;
    for outcome in [
        stranger_seat.contend(&mount, contender(), Vec::new()).await.map(drop),
        stranger_seat.submit(set(&mount, b"")).await.map(drop),
    ] {
        let failure = outcome.expect_err("it is another identity");
        assert_eq!(failure, Failure::from(Refusal::NoAuth));
        assert_eq!(failure.to_string(), "the ACL does not allow it");
    }
    within("the seat to retire", stranger_seat.retire()).await?;
    Ok(())
}

#[tokio::test]
async fn identities_survive_a_reconnect() -> Result<()> {
    let proxy = wok_tests::proxy::Proxy::start(zookeeper::shared().await.address())?;
    let session = open(&as_identity("ada:secret", proxy.address())).await?;
    let mount = zookeeper::unique_path();
    let seat = session.join(&mount, SeatLimits::default())?;
    let path = hold(&seat, &mount).await?;
    proxy.cut_all(wok_tests::proxy::Cut::Reset);
    seat.release(&path).await?;
    ensure!(proxy.requests(&Match::opcode(wok_tests::frames::Opcode::Auth)).len() >= 2);
    session.close().await;
    Ok(())
}

#[tokio::test]
async fn missing_parents_are_containers_that_go_when_they_are_empty() -> Result<()> {
    let sweep = Duration::from_millis(100).as_millis().to_string();
    let options = Options::default().property("znode.container.checkIntervalMs", &sweep);
    let server = Server::start(options).await?;
    let session = open(&ConnectOptions::new(server.address(), LONG_TIMEOUT)).await?;
    let admin = Admin::connect(server.address()).await?;
    let seat = session.join("/a", SeatLimits::default())?;
    // Between the create of the parents and their use the server may remove them again.
    for _ in 0..20 {
        let path = hold(&seat, "/a/b/c").await?;
        ensure!(admin.stat(&path).await?.is_some());
        seat.release(&path).await?;
    }
    admin.wait_gone("/a").await?;
    session.close().await;
    Ok(())
}
