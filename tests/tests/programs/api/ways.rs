//! The ways to a daemon, what can be asked of it, and how it answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use wok_tests::api::{Serving, serve};
use wok_tests::patience::PATIENCE;
use wok_tests::process::{Program, wok_binary};
use wok_tests::{scratch, zookeeper};

use super::LOCK;

/// What a caller over TCP shows.
pub(super) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A daemon with a lock that is served over TCP as well, and where. The directory has the token.
pub(super) async fn over_tcp(more: &str) -> Result<(Serving, String, tempfile::TempDir)> {
    serve_over_tcp(zookeeper::shared().await.address(), more, LOCK).await
}

/// The same with other recipes, on that server.
pub(super) async fn serve_over_tcp(
    connect: &str,
    more: &str,
    recipes: &str,
) -> Result<(Serving, String, tempfile::TempDir)> {
    let directory = scratch::dir()?;
    let token = directory.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n"))?;
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600))?;
    let api = format!("http = \"127.0.0.1:0\"\ntoken-file = \"{}\"", token.display());
    let serving = serve(connect, &format!("{api}\n{more}"), recipes).await?;
    let line = serving.daemon.wait_for_text("served over TCP").await?.text;
    let address = line.split("127.0.0.1:").nth(1).context("the address")?;
    let port: String = address.chars().take_while(char::is_ascii_digit).collect();
    Ok((serving, format!("127.0.0.1:{port}"), directory))
}

/// What an endpoint does with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Read,
    Ignored,
}

/// Every endpoint: of a recipe, an operation and a participant that are there.
pub(super) fn endpoints(id: &str) -> Vec<(&'static str, String, Body)> {
    let participant = format!("/v1/participants/{id}");
    [
        ("GET", "/healthz", Body::Ignored),
        ("GET", "/readyz", Body::Ignored),
        ("GET", "/v1/host", Body::Ignored),
        ("GET", "/v1/openapi.json", Body::Ignored),
        ("GET", "/v1/events", Body::Ignored),
        ("GET", "/v1/logs", Body::Ignored),
        ("GET", "/v1/recipes", Body::Ignored),
        ("GET", "/v1/recipes/orders", Body::Ignored),
        ("POST", "/v1/recipes/orders/join", Body::Read),
        ("POST", "/v1/recipes/orders/call/contenders", Body::Read),
        ("GET", "/v1/participants", Body::Ignored),
        ("GET", &participant, Body::Ignored),
        ("DELETE", &participant, Body::Ignored),
        ("GET", &format!("{participant}/events"), Body::Ignored),
        ("PUT", &format!("{participant}/lease"), Body::Read),
        ("DELETE", &format!("{participant}/operation"), Body::Ignored),
        ("DELETE", &format!("{participant}/dependent"), Body::Ignored),
        ("POST", &format!("{participant}/release"), Body::Read),
    ]
    .map(|(method, path, body)| (method, path.to_owned(), body))
    .into()
}

/// A connection of either kind.
pub(super) trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// How one gets to the daemon.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way<'a> {
    Socket(&'a Path),
    Tcp(&'a str),
}

impl Way<'_> {
    pub(super) fn connect(&self) -> Result<Box<dyn Connection>> {
        let connection: Box<dyn Connection> = match self {
            Way::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
            Way::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
        };
        Ok(connection)
    }

    /// The lines that every request needs.
    pub(super) fn head(&self) -> String {
        match self {
            Way::Socket(_) => "Host: wok\r\n".to_owned(),
            Way::Tcp(address) => {
                format!("Host: {address}\r\nAuthorization: Bearer {TOKEN}\r\n")
            }
        }
    }
}

/// Sends a request's bytes, and reads the status and the body of the answer, which is an object.
pub(super) fn exchange(stream: &mut (impl Read + Write), request: &str) -> Result<(u16, Value)> {
    let mut answer = Vec::new();
    // A server that refuses may close before all is sent; what it said is there to be read.
    let sent = stream.write_all(request.as_bytes());
    let read = sent.and_then(|()| stream.read_to_end(&mut answer));
    let read = read.or_else(|_| stream.read_to_end(&mut answer));
    let answer = String::from_utf8(answer)?;
    let status = answer.split(' ').nth(1).with_context(|| format!("{read:?}: {answer:?}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    // RFC 9110, sections 15.5.2 and 15.5.6.
    for (with, header) in [("401", "www-authenticate: Bearer"), ("405", "allow: ")] {
        assert!(status != with || head.contains(header), "{head}");
    }
    let start = body.find('{').with_context(|| answer.clone())?;
    let mut values = serde_json::Deserializer::from_str(&body[start..]).into_iter::<Value>();
    Ok((status.parse()?, values.next().context("a body")??))
}

/// Sends what is refused; answers the status and the error.
pub(super) fn ask(stream: &mut (impl Read + Write), request: &str) -> Result<(u16, String)> {
    let (status, body) = exchange(stream, request)?;
    let error = body["error"].as_str().with_context(|| body.to_string())?;
    assert!(body["message"].as_str().is_some_and(|it| !it.is_empty()), "{body}");
    Ok((status, error.to_owned()))
}

#[tokio::test]
async fn others_come_to_the_socket_whatever_the_daemons_umask_takes() -> Result<()> {
    let directory = scratch::dir()?;
    let (config, run) = (directory.path().join("wok.toml"), directory.path().join("run"));
    let socket = run.join("wok/wok.sock");
    let text = format!(
        "[zookeeper]\nconnect = \"{}\"\nroot = \"{}\"\n\n[api]\nsocket = \"{}\"\n\
         socket-mode = \"0666\"\n\n{LOCK}\n",
        zookeeper::shared().await.address(),
        zookeeper::unique_path(),
        socket.display()
    );
    std::fs::write(&config, text)?;
    let daemon = Program::new("sh")
        .args(["-c", "umask 077; exec \"$WOK\" run \"$CONFIG\""])
        .env("WOK", wok_binary()?)
        .env("CONFIG", &config)
        .start()?;
    daemon.wait_for_text("the API is served").await?;
    for (made, mode) in [(&run, 0o755), (&run.join("wok"), 0o755), (&socket, 0o666)] {
        let found = std::fs::metadata(made)?.permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", made.display());
    }
    Ok(())
}
