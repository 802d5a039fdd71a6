//! A directory whose counter has come to its end.

use anyhow::{Context, Result};
use wok::session::{ConnectOptions, Failure, Seat, SeatLimits, open};
use wok_tests::admin::Admin;
use wok_tests::zookeeper::{Options, Server};

use crate::room::{LONG_TIMEOUT, contender};

/// How it ended to stand in line there, with a list of the others or without.
async fn contend(seat: &Seat, directory: &str, listing: bool) -> Result<String, Failure> {
    match listing {
        true => {
            let listed = seat.contend_and_list(directory, contender(), Vec::new()).await;
            listed.map(|((path, _), _)| path)
        }
        false => seat.contend(directory, contender(), Vec::new()).await.map(|(path, _)| path),
    }
}

#[tokio::test]
async fn nobody_stands_in_a_line_whose_counter_is_used_up() -> Result<()> {
    let mut server = Server::start(Options::default()).await?;
    let admin = Admin::connect(server.address()).await?;
    admin.create("/line", b"").await?;
    admin.create("/line/first", b"").await?;
    server.kill();
    server.count_to("/line/first", i32::MAX - 2)?;
    server.restart().await?;

    let admin = Admin::connect(server.address()).await?;
    let session = open(&ConnectOptions::new(server.address(), LONG_TIMEOUT)).await?;
    let seat = session.join("/", SeatLimits::default())?;
    let mut in_line = Vec::new();
    for counter in ["2147483645", "2147483646"] {
        let path = contend(&seat, "/line", counter.ends_with('6')).await?;
        assert!(path.ends_with(counter), "{path}");
        in_line.push(path);
    }
    // From here on the server gives one number to all.
    for at in 0..4 {
        let refused = contend(&seat, "/line", at % 2 == 0).await;
        let Err(Failure::OverLimit(told)) = refused else { panic!("{refused:?}") };
        assert!(told.contains("counter") && told.contains("delete the directory"), "{told}");
    }
    let stat = admin.stat("/line").await?.context("the line")?;
    // Six creations after the first: ZooKeeper has counted two, and shows them twice, less the children.
    assert_eq!((stat.cversion, stat.num_children), (i32::MAX.wrapping_mul(2) - 3, 3));
    for path in &in_line {
        seat.claim(path).await?;
        seat.release(path).await?;
    }

    // Deleted and made again, it counts from the beginning.
    admin.delete("/line/first").await?;
    admin.delete("/line").await?;
    let path = contend(&seat, "/line", true).await?;
    assert!(path.ends_with("0000000000"), "{path}");
    session.close().await;
    Ok(())
}
