//! What is refused, at every path, and how.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use wok_tests::api::{Serving, serve};
use wok_tests::patience::eventually;
use wok_tests::process::Program;
use wok_tests::{scratch, zookeeper};

use super::{LOCK, idle};

/// Every path and method. What stands for a recipe and an operation is there; the participant is not.
const PATHS: &[(&str, &str)] = &[
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/v1/host"),
    ("GET", "/v1/openapi.json"),
    ("GET", "/v1/events"),
    ("GET", "/v1/logs"),
    ("GET", "/v1/recipes"),
    ("GET", "/v1/recipes/orders"),
    ("POST", "/v1/recipes/orders/join"),
    ("POST", "/v1/recipes/orders/call/contenders"),
    ("GET", "/v1/participants"),
    ("GET", "/v1/participants/0"),
    ("DELETE", "/v1/participants/0"),
    ("GET", "/v1/participants/0/events"),
    ("PUT", "/v1/participants/0/lease"),
    ("DELETE", "/v1/participants/0/operation"),
    ("POST", "/v1/participants/0/release"),
];

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A daemon that is served over TCP as well, and where.
async fn over_tcp(more: &str) -> Result<(Serving, String, tempfile::TempDir)> {
    let server = zookeeper::shared().await;
    let directory = scratch::dir()?;
    let token = directory.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n"))?;
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600))?;
    let api = format!("http = \"127.0.0.1:0\"\ntoken-file = \"{}\"", token.display());
    let serving = serve(server.address(), &format!("{api}\n{more}"), LOCK).await?;
    let line = serving.daemon.wait_for_text("served over TCP").await?.text;
    let address = line.split("127.0.0.1:").nth(1).context("the address")?;
    let port: String = address.chars().take_while(char::is_ascii_digit).collect();
    Ok((serving, format!("127.0.0.1:{port}"), directory))
}

/// Sends a request's bytes, and reads the status and the error of the answer.
fn ask(stream: &mut (impl Read + Write), request: &str) -> Result<(u16, String)> {
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
    let body = values.next().context("a body")??;
    let error = body["error"].as_str().with_context(|| body.to_string())?;
    assert!(body["message"].as_str().is_some_and(|it| !it.is_empty()), "{body}");
    Ok((status.parse()?, error.to_owned()))
}

#[track_caller]
fn check_tcp(address: &str, request: &str, status: u16, error: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let answer = ask(&mut stream, request).unwrap();
    assert_eq!(answer, (status, error.to_owned()), "{request}");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tcp_nothing_passes_without_the_token_the_host_and_the_absence_of_a_page() -> Result<()>
{
    let (_serving, address, _directory) = over_tcp("").await?;
    for (method, path) in PATHS {
        let head = |host: &str, more: &str| {
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n")
        };
        check_tcp(&address, &head(&address, ""), 401, "unauthorized");
        let wrong = "Authorization: Bearer 0123456789abcdef0123456789abcdee\r\n";
        check_tcp(&address, &head(&address, wrong), 401, "unauthorized");
        let right = format!("Authorization: Bearer {TOKEN}\r\n");
        check_tcp(&address, &head("evil.example", &right), 403, "forbidden");
        let page = format!("{right}Origin: http://evil.example\r\n");
        check_tcp(&address, &head(&address, &page), 403, "forbidden");
    }
    // With all of them, it passes.
    let request = format!(
        "GET /v1/recipes/nothing HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Authorization: Bearer {TOKEN}\r\n\r\n"
    );
    check_tcp(&address, &request, 404, "not-found");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_a_browser_is_refused_on_the_socket_as_well() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    for (method, path) in PATHS {
        let mut stream = UnixStream::connect(serving.socket())?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: wok\r\nConnection: close\r\nOrigin: null\r\n\r\n"
        );
        assert_eq!(ask(&mut stream, &request)?, (403, "forbidden".to_owned()), "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_long_broken_or_never_come_are_refused() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let with_body = ["/v1/recipes/orders/join", "/v1/recipes/orders/call/contenders"];
    let check = |path: &str, body: &str, length: usize, status: u16, error: &str| {
        let mut stream = UnixStream::connect(serving.socket()).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: wok\r\nConnection: close\r\n");
        let request = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        let answer = ask(&mut stream, &request).unwrap();
        assert_eq!(answer, (status, error.to_owned()), "{path} {body:.80}");
    };
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    for path in with_body {
        check(path, &long, long.len(), 413, "too-large");
        for body in ["{", "[1,", "nonsense", "{\"call\":}"] {
            check(path, body, body.len(), 400, "bad-request");
        }
        // Half of it comes, and the connection stays open: the host does not wait for ever.
        check(path, "{\"ca", 100, 408, "too-slow");
    }
    for body in [
        "{\"cal\": \"acquire\"}",
        "{\"call\": 7}",
        "[\"acquire\"]",
        "{\"call\": {\"acquire\": {}, \"release\": {}}}",
        "{\"call\": {\"acquire\": {\"speed\": 1}}}",
        "{\"call\": \"acquire\", \"call\": \"release\"}",
        "{\"call\": {\"acquire\": {\"speed\": 1, \"speed\": 1}}}",
        "{\"timeout\": \"1s\"}",
        "{\"detached\": true}",
        "{\"lease\": \"soon\"}",
        "{\"lease\": \"0s\"}",
        "{\"app\": \"two\\nlines\"}",
    ] {
        check(with_body[0], body, body.len(), 400, "bad-request");
    }
    check(with_body[0], "{\"call\": \"steal\"}", 17, 404, "not-found");
    check("/v1/recipes/nothing/join", "", 0, 404, "not-found");
    check("/v1/nothing", "", 0, 404, "not-found");
    check("/v1/recipes", "", 0, 405, "method-not-allowed");
    check("/v1/recipes/%ff/join", "", 0, 400, "bad-request");
    check("/v1/recipes/orders/join?alive=1ms", "", 0, 400, "bad-request");
    check("/v1/recipes/orders/join?speed=1", "", 0, 400, "bad-request");
    for (method, part) in [
        ("DELETE", "events"),
        ("GET", "lease"),
        ("PATCH", "lease"),
        ("PUT", "operation"),
        ("PUT", "dependent"),
        ("GET", "release"),
    ] {
        let mut stream = UnixStream::connect(serving.socket())?;
        let head = format!("{method} /v1/participants/0/{part} HTTP/1.1\r\nHost: wok\r\n");
        let answer = ask(&mut stream, &format!("{head}Connection: close\r\n\r\n"))?;
        assert_eq!(answer, (405, "method-not-allowed".to_owned()), "{method} {part}");
    }
    Ok(())
}

/// RFC 9110, section 10.2.1.
#[tokio::test(flavor = "multi_thread")]
async fn the_methods_that_are_told_are_those_that_there_are() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let (_app, id) = idle(&serving.client()).await?;
    for (method, part, allow) in [
        ("POST", "events", "GET, HEAD"),
        ("DELETE", "events", "GET, HEAD"),
        ("PATCH", "lease", "PUT"),
        ("GET", "operation", "DELETE"),
        ("PUT", "dependent", "DELETE"),
        ("GET", "release", "POST"),
    ] {
        let (mut stream, mut answer) = (UnixStream::connect(serving.socket())?, String::new());
        let head = format!("{method} /v1/participants/{id}/{part} HTTP/1.1\r\nHost: wok\r\n");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
        stream.read_to_string(&mut answer)?;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{method} {part}: {answer}");
        assert!(answer.contains(&format!("allow: {allow}\r\n")), "{method} {part}: {answer}");
    }
    Ok(())
}

/// What the page and the OpenAPI document say of them: hyper answers before there is a request.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_and_a_head_that_is_too_large_are_refused_without_a_body() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let long = format!("GET /healthz HTTP/1.1\r\nHost: wok\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let many = format!("GET /healthz HTTP/1.1\r\nHost: wok\r\n{}\r\n", "X: x\r\n".repeat(200));
    for (request, status) in
        [("{\"call\":\"acquire\"}\r\n\r\n", "400"), (&long, "431"), (&many, "431")]
    {
        let (mut stream, mut answer) = (UnixStream::connect(serving.socket())?, Vec::new());
        // The rest of a head that is too large is not read, so sending or reading may break off.
        let sent = stream.write_all(request.as_bytes());
        let read = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context(format!("{sent:?} {read:?}"))?;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert_eq!(body, "", "{head}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_refused_when_all_of_it_has_been_sent() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    for path in
        ["/v1/recipes/nothing/join", "/v1/recipes/nothing/call/put", "/v1/participants/0/put"]
    {
        // Head and body apart, as Python's http.client sends them: a connection that is closed between
        // the two would break the second write, and with it the client.
        let mut stream = UnixStream::connect(serving.socket())?;
        let head = format!("POST {path} HTTP/1.1\r\nHost: wok\r\nConnection: close\r\n");
        write!(stream, "{head}Content-Length: 2\r\n\r\n")?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        let early = stream.read(&mut [0]);
        let is_patient =
            early.as_ref().is_err_and(|it| it.kind() == std::io::ErrorKind::WouldBlock);
        assert!(is_patient, "{path} was answered before its body: {early:?}");
        stream.set_read_timeout(Some(wok_tests::patience::PATIENCE))?;
        assert_eq!(ask(&mut stream, "{}")?, (404, "not-found".to_owned()), "{path}");
    }
    Ok(())
}

/// As long as one that is refused may take to be told.
const A_SECOND: Duration = Duration::from_secs(1);

/// Silent connections until one is told that there is no place; answers the silent ones. They come with a
/// time after which nothing was said.
async fn take_all_places<S: Read>(connect: impl Fn() -> Result<S>) -> Result<Vec<S>> {
    let mut silent = Vec::new();
    eventually("the places to be taken", async || {
        let (mut next, mut answer) = (connect()?, String::new());
        match next.read_to_string(&mut answer) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => silent.push(next),
            read => assert!(answer.starts_with("HTTP/1.1 503"), "{read:?} {answer}"),
        }
        Ok((!answer.is_empty()).then_some(()))
    })
    .await?;
    Ok(silent)
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_head_and_an_idle_connection_are_closed() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "connections = 3", LOCK).await?;
    let connect = || -> Result<UnixStream> {
        let stream = UnixStream::connect(serving.socket())?;
        stream.set_read_timeout(Some(wok_tests::patience::PATIENCE))?;
        Ok(stream)
    };
    let mut half = connect()?;
    half.write_all(b"POST /v1/recipes/orders/join HTTP/1.1\r\nHost")?;
    let mut idle = connect()?;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: wok\r\n\r\n")?;
    let mut silent = take_all_places(|| {
        let next = connect()?;
        next.set_read_timeout(Some(A_SECOND))?;
        Ok(next)
    })
    .await?;
    assert!(silent.len() <= 3, "{silent:?}");
    // In the end each is closed, and there is place again.
    for stream in [&mut half, &mut idle].into_iter().chain(&mut silent) {
        stream.set_read_timeout(Some(wok_tests::patience::PATIENCE))?;
        stream.read_to_end(&mut Vec::new())?;
    }
    assert_eq!(serving.client().get("/healthz").await?.status, 200);
    Ok(())
}

/// Without a token one gets no further than the door, and keeps nobody out who needs none.
#[tokio::test(flavor = "multi_thread")]
async fn who_takes_all_places_over_tcp_takes_none_of_the_socket() -> Result<()> {
    let (serving, address, _directory) = over_tcp("connections = 2").await?;
    let silent = take_all_places(|| {
        let next = TcpStream::connect(&address)?;
        next.set_read_timeout(Some(A_SECOND))?;
        Ok(next)
    })
    .await?;
    assert_eq!(silent.len(), 2);
    assert_eq!(serving.client().get("/healthz").await?.status, 200);
    Ok(())
}

/// Another user of the machine; any but root's will do.
const NOBODY: u32 = 65_534;

#[tokio::test(flavor = "multi_thread")]
async fn another_user_uses_what_is_allowed_and_sees_nothing_else() -> Result<()> {
    anyhow::ensure!(
        rustix::process::geteuid().is_root(),
        "only root can be another user: run as root"
    );
    let server = zookeeper::shared().await;
    let recipes = format!(
        "{LOCK}\n[recipes.shared]\nmodule = \"lock\"\nmount = \"/locks/shared\"\n\
         allow = {{ uids = [{NOBODY}] }}\n"
    );
    let serving = serve(server.address(), "socket-mode = \"0666\"", &recipes).await?;
    let passable = std::fs::Permissions::from_mode(0o755);
    let mut directory = serving.directory();
    while directory.starts_with(std::env::temp_dir()) && directory != std::env::temp_dir() {
        std::fs::set_permissions(directory, passable.clone())?;
        directory = directory.parent().context("a parent")?;
    }
    let socket = serving.socket().display().to_string();
    let curl = |method: &str, path: &str, body: &str| {
        let args = ["--silent", "--max-time", "20", "--unix-socket", &socket, "-X", method];
        let curl = Program::new("curl").args(args).arg(format!("http://wok{path}"));
        let curl = curl.args(["--write-out", "\n%{http_code}", "--data", body]);
        curl.by_way_of("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups"])
    };
    let status = async |method: &str, path: &str, body: &str| -> Result<(String, String)> {
        let ended = curl(method, path, body).run().await?;
        let text = ended.stdout;
        let (body, status) = text.trim_end().rsplit_once('\n').with_context(|| text.clone())?;
        Ok((status.to_owned(), body.to_owned()))
    };
    let client = serving.client();
    let mut ours = client.stream("/v1/recipes/orders/join", &Value::Null).await?;
    let id = ours.until("joined").await?["participant"].as_str().unwrap().to_owned();
    for (method, path, expected) in [
        ("GET", "/v1/recipes/orders".to_owned(), "403"),
        ("POST", "/v1/recipes/orders/join".to_owned(), "403"),
        ("POST", "/v1/recipes/orders/call/contenders".to_owned(), "403"),
        ("GET", "/v1/logs".to_owned(), "403"),
        ("GET", format!("/v1/participants/{id}"), "404"),
        ("GET", format!("/v1/participants/{id}/events"), "404"),
        ("DELETE", format!("/v1/participants/{id}"), "404"),
        ("POST", format!("/v1/participants/{id}/acquire"), "404"),
        ("PUT", format!("/v1/participants/{id}/lease"), "404"),
        ("DELETE", format!("/v1/participants/{id}/operation"), "404"),
        ("POST", "/v1/recipes/shared/call/contenders".to_owned(), "200"),
    ] {
        let (status, body) = status(method, &path, "").await?;
        assert_eq!(status, expected, "{method} {path}: {body}");
    }
    let (_, list) = status("GET", "/v1/participants", "").await?;
    assert_eq!(list.trim(), "{\"participants\":[]}");
    let (_, recipes) = status("GET", "/v1/recipes", "").await?;
    assert!(recipes.contains("shared") && !recipes.contains("orders"), "{recipes}");
    Ok(())
}

/// Head and body apart, as Python's `http.client` sends them: a connection that is closed in between is a
/// broken pipe, or a reset that takes the answer along.
#[tokio::test]
async fn a_request_that_is_refused_by_its_head_is_answered_all_the_same() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let socket = serving.socket().to_owned();
    let refused = tokio::task::spawn_blocking(move || {
        for round in 0..100 {
            for (target, status) in [
                ("/v1/recipes/orders/join?dependent=perhaps", "400"),
                ("/v1/recipe/orders/join", "404"),
            ] {
                let mut stream = UnixStream::connect(&socket)?;
                let head = format!(
                    "POST {target} HTTP/1.1\r\nHost: wok\r\nConnection: close\r\n\
                     Content-Length: 2\r\n\r\n"
                );
                stream.write_all(head.as_bytes())?;
                std::thread::yield_now();
                stream.write_all(b"{}").with_context(|| format!("{target}, round {round}"))?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer)?;
                anyhow::ensure!(answer.contains(status), "{target}: {answer}");
            }
        }
        Ok(())
    });
    refused.await?
}
