//! Apps over TCP, with TLS and without.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::patience::{PATIENCE, eventually};
use wok_tests::process::{Program, Signal};
use wok_tests::scratch;
use wok_tests::zookeeper::{self, Certificates};

use super::holding;
use super::ways::{TOKEN, over_tcp};

const JOIN: &str = "/v1/recipes/orders/join";

/// A curl that shows that token, and prints the head of the answer as well.
fn curl(token: &str, url: &str) -> Program {
    let token = format!("Authorization: Bearer {token}");
    let args = ["--silent", "--include", "--no-buffer", "--noproxy", "*", "-H", &token, url];
    Program::new("curl").args(args)
}

/// The status and the body of the answer.
async fn answer(curl: Program) -> Result<(String, String)> {
    let ended = curl.run().await?;
    anyhow::ensure!(ended.code() == Some(0), "{ended:?}");
    let (head, body) = ended.stdout.split_once("\n\n").with_context(|| ended.stdout.clone())?;
    let status = head.split(' ').nth(1).with_context(|| head.to_owned())?;
    Ok((status.to_owned(), body.trim().to_owned()))
}

/// Holds the lock by a curl until it is killed, and looks whether its claim ends with it. `between` is
/// played while it holds.
async fn hold_and_be_killed(
    curl: Program,
    between: impl AsyncFnOnce(&Value) -> Result<()>,
) -> Result<()> {
    let app = curl.args(["--json", &json!({ "call": "acquire" }).to_string()]).start()?;
    app.wait_for_text("HTTP/1.1 200").await?;
    let held: Value = serde_json::from_str(&app.wait_for_text("\"event\":\"held\"").await?.text)?;
    assert!(held["fence"].as_u64() > Some(0), "{held}");
    between(&held).await?;
    app.signal(Signal::KILL)?;
    let admin = Admin::connect(zookeeper::shared().await.address()).await?;
    admin.wait_gone(held["path"].as_str().context("a path")?).await
}

#[tokio::test]
async fn an_app_with_the_token_takes_part_over_tcp_and_all_who_have_it_are_one_user() -> Result<()>
{
    let (serving, address, _directory) = over_tcp("").await?;
    let at = |path: &str| curl(TOKEN, &format!("http://{address}{path}"));
    // `allow` names nobody: the token is enough.
    hold_and_be_killed(at(JOIN), async |held| {
        let id = held["participant"].as_str().context("an id")?;
        // Of a caller from elsewhere neither user nor process is known.
        let seen = serving.client().get(&format!("/v1/participants/{id}")).await?.body;
        assert_eq!((&seen["uid"], &seen["pid"]), (&Value::Null, &Value::Null), "{seen}");
        let app = seen["app"].as_str().context("an app")?;
        assert!(app.starts_with("remote connection "), "{app}");
        // A second one stands in line, is seen by all who have the token, and can be ended by them.
        let second = at(JOIN).args(["--json", "{\"call\":\"acquire\"}"]).start()?;
        let joined = second.wait_for_text("\"event\":\"joined\"").await?.text;
        let joined: Value = serde_json::from_str(&joined)?;
        let second_id = joined["participant"].as_str().context("an id")?;
        let (status, list) = answer(at("/v1/participants")).await?;
        assert!(status == "200" && list.contains(id) && list.contains(second_id), "{list}");
        let end = at(&format!("/v1/participants/{second_id}")).args(["-X", "DELETE"]);
        let ended = answer(end).await?;
        assert_eq!(ended.0, "204", "{ended:?}");
        second.wait_for_text("\"event\":\"ended\"").await?;
        Ok(())
    })
    .await?;
    // Local apps are other users', and the log is for this machine.
    let local = holding(&serving.client()).await?;
    let (status, list) = answer(at("/v1/participants")).await?;
    assert_eq!((status.as_str(), list.as_str()), ("200", "{\"participants\":[]}"));
    let log = answer(at("/v1/logs")).await?;
    assert_eq!(log.0, "403", "{log:?}");
    drop(local);
    Ok(())
}

/// The keys of `[api]` for TLS with that certificate.
fn tls(certificates: &Certificates, directory: &Path) -> Result<String> {
    let (certificate, key) = (directory.join("api.pem"), directory.join("api.key"));
    std::fs::write(&certificate, &certificates.server)?;
    std::fs::write(&key, &certificates.server_key)?;
    let (certificate, key) = (certificate.display(), key.display());
    Ok(format!("tls = {{ cert-file = \"{certificate}\", key-file = \"{key}\" }}"))
}

#[tokio::test]
async fn over_tls_a_client_that_checks_the_certificate_takes_part() -> Result<()> {
    let directory = scratch::dir()?;
    let (certificates, others) = (Certificates::generate()?, Certificates::generate()?);
    let (_serving, address, _token) = over_tcp(&tls(&certificates, directory.path())?).await?;
    let trusted = certificates.write(directory.path())?.authority;
    let url = |path: &str| format!("https://{}{path}", address.replace("127.0.0.1", "localhost"));
    let at = |token: &str, path: &str| curl(token, &url(path)).arg("--cacert").arg(&trusted);
    hold_and_be_killed(at(TOKEN, JOIN), async |_| Ok(())).await?;
    let refused = answer(at("0123456789abcdef0123456789abcdee", JOIN).args(["-X", "POST"])).await?;
    assert!(refused.0 == "401" && refused.1.contains("\"unauthorized\""), "{refused:?}");
    // That the client does check: 60 is curl's word for a certificate that it does not trust, and 35 for
    // one whose authority has the name of one that it does.
    let elsewhere = scratch::dir()?;
    let other = others.write(elsewhere.path())?.authority;
    let wary = curl(TOKEN, &url("/healthz")).arg("--cacert").arg(other).run().await?;
    assert!(matches!(wary.code(), Some(35 | 60)), "{wary:?}");
    // What is not TLS is not served.
    let mut plain = TcpStream::connect(&address)?;
    plain.set_read_timeout(Some(PATIENCE))?;
    // At once: the daemon may hang up when it has read a part of it.
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    );
    plain.write_all(request.as_bytes())?;
    let mut said = Vec::new();
    let read = plain.read_to_end(&mut said);
    let is_over = read.as_ref().map_or_else(|it| it.kind() == ErrorKind::ConnectionReset, |_| true);
    assert!(is_over && !said.starts_with(b"HTTP"), "{read:?} {}", String::from_utf8_lossy(&said));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_who_finds_no_place_is_hung_up_on_and_a_handshake_is_not_waited_for() -> Result<()>
{
    let directory = scratch::dir()?;
    let certificates = Certificates::generate()?;
    let keys = format!("connections = 1\n{}", tls(&certificates, directory.path())?);
    let (_serving, address, _token) = over_tcp(&keys).await?;
    let connect = || -> Result<TcpStream> {
        let stream = TcpStream::connect(&address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    };
    // The host lets callers in one after another, so this one has the place.
    let mut silent = connect()?;
    let mut beyond = connect()?;
    // Without a word, which only a handshake could carry.
    assert_eq!(beyond.read_to_end(&mut Vec::new())?, 0);
    silent.set_read_timeout(Some(Duration::from_millis(1)))?;
    let early = silent.read(&mut [0]);
    let is_open = early.as_ref().is_err_and(|it| it.kind() == ErrorKind::WouldBlock);
    assert!(is_open, "the one that has the place is closed as well: {early:?}");
    // In the end it loses the place, which is another's to take.
    silent.set_read_timeout(Some(PATIENCE))?;
    assert_eq!(silent.read_to_end(&mut Vec::new())?, 0);
    let trusted = certificates.write(directory.path())?.authority;
    eventually("the place to be free", async || {
        let curl = curl(TOKEN, &format!("https://{address}/healthz"));
        let ended = curl.arg("--cacert").arg(&trusted).run().await?;
        Ok(ended.stdout.starts_with("HTTP/1.1 200").then_some(()))
    })
    .await
}
