//! A host that has lost its network: every attempt to connect fails at once.

use anyhow::{Context, Result};
use wok_tests::network::{Network, Site};
use wok_tests::process::{Program, Running};

/// Exit code of a lost claim, or of a session that was lost before there was one.
const LOST: i32 = 76;

fn serve(site: &Site) -> Result<Running> {
    let listen = format!("{}:2181", site.address());
    site.program(Program::wok()?.args(["zookeeper", "--listen", &listen])).start()
}

fn lock(site: &Site, server: &Site) -> Result<Running> {
    let connect = format!("{}:2181", server.address());
    let lock = ["lock", "--session-timeout", "4s", "--connect", &connect, "/lock", "--", "cat"];
    site.program(Program::wok()?.args(lock)).start()
}

#[tokio::test]
async fn who_has_lost_the_network_gives_up_what_it_holds_then_its_place_and_ends() -> Result<()> {
    let network = Network::new(2)?;
    let [host, far] = network.sites() else { panic!("two sites") };
    let server = serve(far)?;
    server.wait_for_text("serving ZooKeeper").await?;
    let holder = lock(host, far)?;
    holder.wait_for_text("holding").await?;
    let waiter = lock(host, far)?;
    waiter.wait_for_text("standing in line").await?;
    network.unplug(0)?;
    // It does not wait for the crate to find the session too old, which the waiter does.
    assert_eq!(holder.exit().await.context("the holder")?.code(), Some(LOST));
    assert!(waiter.status().is_none(), "who holds nothing keeps its place for longer");
    // An attempt to connect that never has to wait must not keep it from seeing the time.
    assert_eq!(waiter.exit().await.context("the waiter")?.code(), Some(LOST));
    Ok(())
}
