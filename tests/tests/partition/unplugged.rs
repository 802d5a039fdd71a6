//! A host that has lost its network: every attempt to connect fails at once. And an app of another host that
//! has lost its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use wok_tests::api::Client;
use wok_tests::network::{Network, Site};
use wok_tests::patience::eventually;
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

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A daemon at the site that serves a queue over TLS, the socket for apps of its own machine, and the
/// certificate that remote ones trust.
fn serve_apps(site: &Site, directory: PathBuf) -> Result<(Running, PathBuf, PathBuf)> {
    let certificates = Certificates::of(site.address())?;
    let file = |name: &str| directory.join(name);
    fs::write(file("api.pem"), &certificates.server)?;
    for (name, secret) in [("api.key", &*certificates.server_key), ("token", TOKEN)] {
        fs::write(file(name), secret)?;
        fs::set_permissions(file(name), Permissions::from_mode(0o600))?;
    }
    let text = format!(
        "[zookeeper]\nconnect = \"embedded\"\n\n[api]\nsocket = \"wok.sock\"\nhttp = \"{}:7070\"\n\
         token-file = \"token\"\ntls = {{ cert-file = \"api.pem\", key-file = \"api.key\" }}\n\n\
         [recipes.jobs]\nmodule = \"queue\"\nmount = \"/jobs\"\n",
        site.address()
    );
    fs::write(file("wok.toml"), text)?;
    let daemon = site.program(Program::wok()?.arg("run").arg(file("wok.toml"))).start()?;
    Ok((daemon, file("wok.sock"), certificates.write(&directory)?.authority))
}

/// Nothing is sent to the app that would tell that it has gone, since its operation waits.
#[tokio::test]
async fn an_app_that_has_lost_the_network_is_given_up_though_its_operation_waits() -> Result<()> {
    let network = Network::new(2)?;
    let [near, far] = network.sites() else { panic!("two sites") };
    let directory = scratch::dir()?;
    let (daemon, socket, trusted) = serve_apps(far, directory.path().to_owned())?;
    daemon.wait_for_text("connected session").await?;
    let url = format!("https://{}:7070/v1/recipes/jobs/call/take", far.address());
    let token = format!("Authorization: Bearer {TOKEN}");
    let call = ["--silent", "--noproxy", "*", "-X", "POST", "-H", &token, "--cacert"];
    let _app = near.program(Program::new("curl").args(call).arg(trusted).arg(url)).start()?;
    let client = Client::new(&socket);
    let participants = async |count: usize| {
        eventually(&format!("{count} participants"), async || {
            let list = client.get("/v1/participants").await?.body["participants"].clone();
            Ok((list.as_array().context("a list")?.len() == count).then_some(()))
        })
        .await
    };
    participants(1).await?;
    network.unplug(0)?;
    participants(0).await
}
