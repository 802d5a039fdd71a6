//! A host that has lost its network: every attempt to connect fails at once.

use anyhow::{Context, Result};
use wok_tests::network::{Network, Site};
use wok_tests::process::{Program, Running};
use wok_tests::scratch;
use wok_tests::zookeeper::{Certificates, Options, Server};

/// Exit code of a lost claim, or of a session that was lost before there was one.
const LOST: i32 = 76;

fn serve(site: &Site) -> Result<Running> {
    let listen = format!("{}:2181", site.address());
    site.program(Program::wok()?.args(["zookeeper", "--listen", &listen])).start()
}

fn lock(site: &Site, connect: &[&str]) -> Result<Running> {
    let lock = ["lock", "--session-timeout", "4s"];
    site.program(Program::wok()?.args(lock).args(connect).args(["/lock", "--", "cat"])).start()
}

/// A holder and a waiter at the first site, and the end of both.
async fn check_unplugged(network: &Network, connect: &[&str]) -> Result<()> {
    let [host, ..] = network.sites() else { panic!("no site") };
    let holder = lock(host, connect)?;
    holder.wait_for_text("holding").await?;
    let waiter = lock(host, connect)?;
    waiter.wait_for_text("standing in line").await?;
    network.unplug(0)?;
    // It does not wait for the crate to find the session too old, which the waiter does.
    assert_eq!(holder.exit().await.context("the holder")?.code(), Some(LOST));
    assert!(waiter.status().is_none(), "who holds nothing keeps its place for longer");
    // An attempt to connect that never has to wait must not keep it from seeing the time.
    assert_eq!(waiter.exit().await.context("the waiter")?.code(), Some(LOST));
    Ok(())
}

#[tokio::test]
async fn who_has_lost_the_network_gives_up_what_it_holds_then_its_place_and_ends() -> Result<()> {
    let network = Network::new(2)?;
    let [_, far] = network.sites() else { panic!("two sites") };
    let server = serve(far)?;
    server.wait_for_text("serving ZooKeeper").await?;
    check_unplugged(&network, &["--connect", &format!("{}:2181", far.address())]).await
}

#[tokio::test]
async fn so_does_who_speaks_tls_to_an_address() -> Result<()> {
    let network = Network::new(2)?;
    let [_, far] = network.sites() else { panic!("two sites") };
    let certificates = Certificates::of(far.address())?;
    let directory = scratch::dir()?;
    let files = certificates.write(directory.path())?;
    let server = Server::start(Options::default().at(far).tls(&certificates)).await?;
    let address = server.secure_address().context("a port for TLS")?;
    let [ca, certificate, key] = [&files.authority, &files.client, &files.client_key]
        .map(|path| path.to_str().expect("a path of UTF-8"));
    let tls = ["--tls-ca-file", ca, "--tls-cert-file", certificate, "--tls-key-file", key];
    check_unplugged(&network, &[&["--connect", &address][..], &tls].concat()).await
}
