//! The session's rules on three servers: what one server cannot show.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use tokio::sync::OwnedMutexGuard;
use wok::session::{
    ConnectOptions, ContenderName, Reply, Request, Seat, SeatLimits, Session, UuidForm, open,
};
use wok_tests::admin::Admin;
use wok_tests::frames::Opcode;
use wok_tests::patience::{eventually, within};
use wok_tests::process::{OrderFile, Program, Running};
use wok_tests::proxy::{Action, Cut, Match, Proxy};
use wok_tests::wire::At;
use wok_tests::zookeeper::{self, Ensemble};
use zookeeper_client::CreateMode;

/// Longer than any election on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The three servers, a proxy before the leader and one before a follower, and an eye that looks
/// by way of the leader.
struct Scene {
    ensemble: OwnedMutexGuard<Ensemble>,
    follower: usize,
    to_leader: Proxy,
    to_follower: Proxy,
    admin: Admin,
    path: String,
}

impl Scene {
    async fn set() -> Result<Scene> {
        let mut ensemble = crate::ensemble(crate::Silence::Borne).await?;
        ensemble.mend().await?;
        let leader = ensemble.leader().await?;
        let follower = At::Follower.among_three(leader);
        let address = |server: usize| ensemble.servers()[server].address();
        let to_leader = Proxy::start(address(leader))?;
        let to_follower = Proxy::start(address(follower))?;
        let admin = Admin::connect(address(leader)).await?;
        let path = zookeeper::unique_path();
        admin.create(&path, b"").await?;
        Ok(Scene { ensemble, follower, to_leader, to_follower, admin, path })
    }

    /// The addresses by which a client may reach the leader and the follower.
    fn addresses(&self) -> String {
        format!("{},{}", self.to_leader.address(), self.to_follower.address())
    }

    /// A session at one of the two.
    async fn session_at(&self, here: &Proxy, elsewhere: &Proxy) -> Result<Session> {
        elsewhere.refuse();
        let session = open(&ConnectOptions::new(self.addresses(), TIMEOUT)).await?;
        assert_eq!((here.connections(), elsewhere.connections()), (1, 0));
        elsewhere.welcome();
        Ok(session)
    }

    fn seat(&self, session: &Session) -> Result<Seat> {
        Ok(session.join(&self.path, SeatLimits::default())?)
    }
}

fn contender() -> ContenderName {
    ContenderName { before: "_c_".into(), uuid: UuidForm::Hyphenated, after: "-lock-".into() }
}

#[tokio::test]
async fn a_lost_create_is_looked_for_behind_a_transaction_on_the_follower_it_moved_to() -> Result<()>
{
    let scene = Scene::set().await?;
    let session = scene.session_at(&scene.to_leader, &scene.to_follower).await?;
    let seat = scene.seat(&session)?;
    scene.ensemble.hold(scene.follower);
    let lost = Action::DropReplyAndCut(Cut::Reset);
    let fault = scene.to_leader.inject(Match::creates().under(&scene.path), lost);
    scene.to_leader.refuse();
    let move_on = async {
        fault.struck().await?;
        // It is there, and the follower does not know of it.
        scene.admin.wait_children(&scene.path, "the contender", |names| names.len() == 1).await?;
        eventually("the session at the follower", async || {
            Ok((scene.to_follower.connections() == 1).then_some(()))
        })
        .await?;
        scene.ensemble.let_go(scene.follower);
        anyhow::Ok(())
    };
    let contending = within("a contender", seat.contend(&scene.path, contender(), Vec::new()));
    let (contended, moved) = tokio::join!(contending, move_on);
    moved?;
    let (path, stat) = contended??;
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    assert_eq!(scene.admin.children(&scene.path).await?, [name]);
    let directory = scene.admin.stat(&scene.path).await?.context("the directory")?;
    assert_eq!(directory.cversion, 1, "one was created, ever");
    assert_eq!(stat.ephemeral_owner, session.id());
    let asked = scene.to_follower.requests(&Match::any());
    let asked: Vec<Opcode> = asked.iter().map(|seen| seen.opcode).collect();
    let list = asked.iter().position(|opcode| *opcode == Opcode::GetChildren2).context("a list")?;
    let (before, look) = asked.split_at(list);
    assert!(before.contains(&Opcode::Multi), "{asked:?}");
    assert!(look.starts_with(&[Opcode::GetChildren2, Opcode::Exists]), "{asked:?}");
    session.close().await;
    Ok(())
}

#[tokio::test]
async fn a_claim_that_a_follower_confirms_from_the_past_is_lost_when_it_catches_up() -> Result<()> {
    let scene = Scene::set().await?;
    let session = scene.session_at(&scene.to_follower, &scene.to_leader).await?;
    let seat = scene.seat(&session)?;
    let (path, stat) = seat.contend(&scene.path, contender(), Vec::new()).await?;
    scene.ensemble.hold(scene.follower);
    scene.admin.delete(&path).await?;
    let fence = within("a claim", seat.claim(&path)).await??;
    assert_eq!(fence, stat.czxid.unsigned_abs());
    let mut lost = pin!(seat.until_claim_lost());
    assert_eq!(lost.as_mut().now_or_never(), None);
    // The next in line is behind the same txn: a contender that sees the deletion has a higher
    // fence.
    let (_, next) = scene
        .admin
        .create_as(CreateMode::EphemeralSequential, &format!("{}/next-", scene.path), b"")
        .await?;
    assert!(next.czxid.unsigned_abs() > fence);
    scene.ensemble.let_go(scene.follower);
    assert_eq!(within("the claim to be lost", lost).await?, path);
    assert!(!seat.has_claim());
    session.close().await;
    Ok(())
}

#[tokio::test]
async fn a_look_behind_a_sync_is_not_from_the_past() -> Result<()> {
    let scene = Scene::set().await?;
    let session = scene.session_at(&scene.to_follower, &scene.to_leader).await?;
    let seat = scene.seat(&session)?;
    let child = format!("{}/new", scene.path);
    seat.submit(Request::Sync(scene.path.clone())).await?;
    scene.ensemble.hold(scene.follower);
    scene.admin.create(&child, b"").await?;
    let look = || seat.submit(Request::Exists(child.clone(), wok::session::Watching::No));
    assert!(matches!(look().await?, Reply::Exists(None, _)), "the follower is held");
    let mut synced = pin!(seat.submit(Request::Sync(scene.path.clone())));
    assert!(synced.as_mut().now_or_never().is_none());
    scene.ensemble.let_go(scene.follower);
    synced.await?;
    assert!(matches!(look().await?, Reply::Exists(Some(_), _)));
    session.close().await;
    Ok(())
}

/// `wok lock` whose command says its fence, and stays until its input ends.
fn lock(addresses: &str, path: &str, order: &OrderFile, name: &str) -> Result<Running> {
    let script = format!(
        "{}; read line; {}",
        order.append(&format!("{name} enters $WOK_FENCE")),
        order.append(&format!("{name} leaves"))
    );
    Program::wok()?
        .args(["lock", "--connect", addresses, "--session-timeout", "30s", path])
        .args(["--", "sh", "-c", &script])
        .start()
}

async fn fence(order: &OrderFile, name: &str) -> Result<i64> {
    let prefix = format!("{name} enters ");
    eventually("to enter", async || {
        let labels = order.labels()?;
        Ok(labels.iter().find_map(|label| label.strip_prefix(&prefix)?.parse().ok()))
    })
    .await
}

/// The holder ends in order, and the waiter is the next, with a higher fence.
async fn hand_over(order: &OrderFile, mut holder: Running, mut waiter: Running) -> Result<()> {
    let first = fence(order, "holder").await?;
    holder.close_input();
    let ended = holder.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    waiter.wait_for_text("holding").await?;
    assert!(fence(order, "waiter").await? > first);
    waiter.close_input();
    let ended = waiter.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let labels = order.labels()?;
    let begin = ["holder enters ", "holder leaves", "waiter enters ", "waiter leaves"];
    let is_so = labels.iter().zip(begin).all(|(label, begin)| label.starts_with(begin));
    assert!(is_so && labels.len() == begin.len(), "{labels:?}");
    Ok(())
}

#[tokio::test]
async fn a_lock_and_those_in_line_for_it_outlive_the_leader() -> Result<()> {
    let mut scene = Scene::set().await?;
    let addresses = scene.ensemble.connect_string();
    let order = OrderFile::new()?;
    let holder = lock(&addresses, &scene.path, &order, "holder")?;
    holder.wait_for_text("holding").await?;
    let waiter = lock(&addresses, &scene.path, &order, "waiter")?;
    waiter.wait_for_text("standing in line").await?;
    scene.ensemble.change_leader().await?;
    assert_eq!((holder.status(), waiter.status()), (None, None));
    let labels = order.labels()?;
    assert_eq!(labels.len(), 1, "{labels:?}");
    hand_over(&order, holder, waiter).await
}

#[tokio::test]
async fn a_lock_is_handed_over_while_a_follower_is_stopped() -> Result<()> {
    let scene = Scene::set().await?;
    let order = OrderFile::new()?;
    let holder = lock(scene.to_leader.address(), &scene.path, &order, "holder")?;
    holder.wait_for_text("holding").await?;
    let waiter = lock(scene.to_follower.address(), &scene.path, &order, "waiter")?;
    waiter.wait_for_text("standing in line").await?;
    let leader = scene.ensemble.leader().await?;
    scene.ensemble.servers()[At::OtherFollower.among_three(leader)].pause().await?;
    hand_over(&order, holder, waiter).await
}
