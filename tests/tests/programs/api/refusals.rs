//! What is refused, at every path, and how.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use wok_tests::api::{Client, Setting, serve, serve_by_way_of};
use wok_tests::patience::{PATIENCE, eventually};
use wok_tests::process::{Program, Stream};
use wok_tests::zookeeper;

use super::ways::{Body, TOKEN, Way, ask, endpoints, exchange, over_tcp};
use super::{LOCK, idle};

/// A participant that holds, and that nobody who is refused changes.
struct Bystander {
    id: String,
    held: Value,
}

impl Bystander {
    /// One that has joined over TCP, so that callers of either way may manage it.
    fn over_tcp(address: &str) -> Result<Bystander> {
        let body = "{\"call\":\"acquire\",\"detached\":true,\"lease\":\"1h\"}";
        let length = body.len();
        let request = format!(
            "POST /v1/recipes/orders/join HTTP/1.1\r\n{}Connection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}",
            Way::Tcp(address).head()
        );
        let (status, joined) = exchange(&mut TcpStream::connect(address)?, &request)?;
        anyhow::ensure!(status == 201, "{status} {joined}");
        let id = joined["participant"].as_str().context("an id")?.to_owned();
        Ok(Bystander { id, held: joined["held"].clone() })
    }

    async fn must_be_unchanged(&self, client: &Client) -> Result<()> {
        let seen = client.get(&format!("/v1/participants/{}", self.id)).await?.body;
        assert_eq!((&seen["state"], &seen["operation"]), (&json!("held"), &Value::Null), "{seen}");
        assert_eq!(seen["held"]["fence"], self.held["fence"], "{seen}");
        Ok(())
    }
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
    let (serving, address, _directory) = over_tcp("").await?;
    let bystander = Bystander::over_tcp(&address)?;
    for (method, path, _) in endpoints(&bystander.id) {
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
    bystander.must_be_unchanged(&serving.client()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_a_browser_is_refused_on_the_socket_as_well() -> Result<()> {
    let (serving, address, _directory) = over_tcp("").await?;
    let bystander = Bystander::over_tcp(&address)?;
    for (method, path, _) in endpoints(&bystander.id) {
        let mut stream = UnixStream::connect(serving.socket())?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: wok\r\nConnection: close\r\nOrigin: null\r\n\r\n"
        );
        assert_eq!(ask(&mut stream, &request)?, (403, "forbidden".to_owned()), "{method} {path}");
    }
    bystander.must_be_unchanged(&serving.client()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_reads_a_body_refuses_one_that_is_too_long_broken_or_never_comes() -> Result<()> {
    let (serving, address, _directory) = over_tcp("").await?;
    let bystander = Bystander::over_tcp(&address)?;
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    let endpoints = endpoints(&bystander.id);
    let mut halves = Vec::new();
    for way in [Way::Socket(serving.socket()), Way::Tcp(&address)] {
        for (method, path, _) in endpoints.iter().filter(|(_, _, body)| *body == Body::Read) {
            let request = |body: &str, length: usize| {
                let head = way.head();
                format!(
                    "{method} {path} HTTP/1.1\r\n{head}Connection: close\r\n\
                     Content-Length: {length}\r\n\r\n{body}"
                )
            };
            for (body, status, error) in
                [(long.as_str(), 413, "too-large"), ("{", 400, "bad-request")]
            {
                let told = ask(&mut way.connect()?, &request(body, body.len()))?;
                assert_eq!(told, (status, error.to_owned()), "{way:?} {method} {path} {body:.80}");
            }
            // The other half never comes, and the connection stays open.
            let mut half = way.connect()?;
            half.write_all(request("{\"ca", 100).as_bytes())?;
            halves.push((format!("{way:?} {method} {path}"), half));
        }
    }
    assert_eq!(halves.len(), 8);
    for (which, mut half) in halves {
        assert_eq!(ask(&mut half, "")?, (408, "too-slow".to_owned()), "{which}");
    }
    bystander.must_be_unchanged(&serving.client()).await
}

/// What `docs/api.md` says of a request that takes no body.
#[tokio::test]
async fn a_body_that_is_not_asked_for_is_not_looked_at_but_at_a_renewal() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let client = serving.client();
    let (_app, id) = idle(&client).await?;
    let participant = format!("/v1/participants/{id}");
    let body = json!({ "why": "because" });
    for (method, path, status) in [
        ("GET", participant.clone(), 200),
        ("DELETE", format!("{participant}/operation"), 204),
        ("DELETE", format!("{participant}/dependent"), 204),
    ] {
        let answer = client.ask(method, &path, &body).await?;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
    }
    for (body, told) in [(body, "takes no body"), (Value::Null, "has no lease")] {
        let renewal = client.ask("PUT", &format!("{participant}/lease"), &body).await?;
        let message = renewal.body["message"].as_str().context("a message")?;
        assert!(renewal.status == 400 && message.contains(told), "{renewal:?}");
    }
    let ended = client.ask("DELETE", &participant, &json!({ "why": "because" })).await?;
    assert_eq!(ended.status, 204, "{ended:?}");
    Ok(())
}

/// Nobody can be told which request was wrong of which only a part has come.
#[tokio::test(flavor = "multi_thread")]
async fn half_a_head_is_closed_without_an_answer_whatever_it_asks_for() -> Result<()> {
    let (serving, address, _directory) = over_tcp("").await?;
    let bystander = Bystander::over_tcp(&address)?;
    let mut halves = Vec::new();
    for way in [Way::Socket(serving.socket()), Way::Tcp(&address)] {
        for (method, path, _) in endpoints(&bystander.id) {
            let mut half = way.connect()?;
            half.write_all(format!("{method} {path} HTTP/1.1\r\n{}", way.head()).as_bytes())?;
            halves.push((format!("{way:?} {method} {path}"), half));
        }
    }
    for (which, mut half) in halves {
        let mut told = String::new();
        half.read_to_string(&mut told).with_context(|| which.clone())?;
        assert_eq!(told, "", "{which}");
    }
    bystander.must_be_unchanged(&serving.client()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_request_says_that_is_wrong_is_refused() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", LOCK).await?;
    let join = "/v1/recipes/orders/join";
    let check = |path: &str, body: &str, length: usize, status: u16, error: &str| {
        let mut stream = UnixStream::connect(serving.socket()).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: wok\r\nConnection: close\r\n");
        let request = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        let answer = ask(&mut stream, &request).unwrap();
        assert_eq!(answer, (status, error.to_owned()), "{path} {body:.80}");
    };
    for path in [join, "/v1/recipes/orders/call/contenders"] {
        for body in ["[1,", "nonsense", "{\"call\":}"] {
            check(path, body, body.len(), 400, "bad-request");
        }
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
        check(join, body, body.len(), 400, "bad-request");
    }
    check(join, "{\"call\": \"steal\"}", 17, 404, "no-operation");
    check("/v1/recipes/orders/call/steal", "", 0, 404, "no-operation");
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
        stream.set_read_timeout(Some(PATIENCE))?;
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
        stream.set_read_timeout(Some(PATIENCE))?;
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
        stream.set_read_timeout(Some(PATIENCE))?;
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

/// A request of that user, whose status is printed on a line of its own.
fn curl_as_nobody(socket: &str, method: &str, path: &str) -> Program {
    let args = ["--silent", "--no-buffer", "--unix-socket", socket, "-X", method];
    let curl = Program::new("curl").args(args).arg(format!("http://wok{path}"));
    let curl = curl.args(["--write-out", "\n%{http_code}", "--data", ""]);
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    curl.by_way_of("setpriv", [user, group, "--clear-groups".to_owned()])
}

/// A lock that some others may use.
fn recipe(name: &str, allow: &str) -> String {
    format!(
        "[recipes.{name}]\nmodule = \"lock\"\nmount = \"/locks/{name}\"\n\
         allow = {{ {allow} }}\n\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_uses_what_is_allowed_and_sees_nothing_else() -> Result<()> {
    anyhow::ensure!(
        rustix::process::geteuid().is_root(),
        "only root can be another user: run as root"
    );
    let server = zookeeper::shared().await;
    let shared = recipe("shared", &format!("uids = [{NOBODY}]"));
    let grouped = recipe("grouped", &format!("gids = [{NOBODY}]"));
    let foreign = recipe("foreign", "uids = [1], gids = [1]");
    let recipes = format!("{LOCK}\n{shared}{grouped}{foreign}");
    let serving = serve(server.address(), "socket-mode = \"0666\"", &recipes).await?;
    let passable = std::fs::Permissions::from_mode(0o755);
    let mut directory = serving.directory();
    while directory.starts_with(std::env::temp_dir()) && directory != std::env::temp_dir() {
        std::fs::set_permissions(directory, passable.clone())?;
        directory = directory.parent().context("a parent")?;
    }
    let socket = serving.socket().display().to_string();
    let curl = |method: &str, path: &str| curl_as_nobody(&socket, method, path);
    let status = async |method: &str, path: &str| -> Result<(String, String)> {
        let ended = curl(method, path).run().await?;
        let text = ended.stdout;
        let (body, status) = text.trim_end().rsplit_once('\n').with_context(|| text.clone())?;
        Ok((status.to_owned(), body.to_owned()))
    };
    let client = serving.client();
    let (mut ours, id) = idle(&client).await?;
    for (method, path, _) in endpoints(&id) {
        let expected = match path.as_str() {
            // It is followed below.
            "/v1/events" => continue,
            "/healthz" | "/readyz" | "/v1/host" | "/v1/openapi.json" => "200",
            "/v1/recipes" | "/v1/participants" => "200",
            path if path.contains(&id) => "404",
            _ => "403",
        };
        let (status, body) = status(method, &path).await?;
        assert_eq!(status, expected, "{method} {path}: {body}");
    }
    for (recipe, expected) in [("shared", "200"), ("grouped", "200"), ("foreign", "403")] {
        let path = format!("/v1/recipes/{recipe}/call/contenders");
        let (status, body) = status("POST", &path).await?;
        assert_eq!(status, expected, "{path}: {body}");
    }
    let (_, list) = status("GET", "/v1/participants").await?;
    assert_eq!(list.trim(), "{\"participants\":[]}");
    for path in ["/v1/recipes", "/v1/openapi.json"] {
        let (_, told) = status("GET", path).await?;
        let is_told = |recipe: &str| told.contains(&format!("/locks/{recipe}"));
        assert!(is_told("shared") && is_told("grouped"), "{path}: {told}");
        assert!(!is_told("orders") && !is_told("foreign"), "{path}: {told}");
    }
    // Who follows everybody is told of its own alone, though ours was told first.
    let theirs = curl("GET", "/v1/events?alive=100ms").start()?;
    theirs.wait_for_text("\"event\":\"alive\"").await?;
    let acquired = client.post(&format!("/v1/participants/{id}/acquire"), &json!({})).await?;
    assert_eq!(acquired.status, 200, "{acquired:?}");
    ours.until("held").await?;
    assert_eq!(status("POST", "/v1/recipes/shared/call/contenders").await?.0, "200");
    theirs.wait_for_text("\"recipe\":\"shared\"").await?;
    let told = theirs.text(Stream::Stdout);
    assert!(!told.contains("orders") && !told.contains(&id), "{told}");
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

/// A connection takes several files, so the number of connections alone does not say how far to raise the limit.
#[tokio::test]
async fn a_limit_of_open_files_that_is_too_low_is_told_with_the_one_that_is_wanted() -> Result<()> {
    let server = zookeeper::shared().await;
    let setting = Setting { connect: server.address(), root: None, api: "connections = 1000" };
    let limited = ["-c", "ulimit -n 2000; exec \"$0\" \"$@\""];
    let serving = serve_by_way_of(setting, LOCK, |wok| wok.by_way_of("sh", limited)).await?;
    let told = serving.daemon.wait_for_text("raise the limit of open files").await?.text;
    assert!(told.contains("open_files=2000"), "{told}");
    assert!(told.contains("wanted=3000"), "{told}");
    Ok(())
}
