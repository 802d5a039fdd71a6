//! The harness proves itself first: every tool that other tests rely on does what it says.

use std::io::ErrorKind;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wok_tests::admin::{self, Admin, wait_state};
use wok_tests::frames::Opcode;
use wok_tests::patience::{PATIENCE, within};
use wok_tests::process::{OrderFile, Program, Signal, Stream};
use wok_tests::proxy::{Action, Cut, Direction, Match, Proxy};
use wok_tests::zookeeper::{self, Certificates, Ensemble, Options, Server};
use zookeeper_client::{
    Acls, Client, Connector, CreateMode, CreateOptions, Error, SessionState, TlsOptions,
};

static EPHEMERAL: LazyLock<CreateOptions<'static>> =
    LazyLock::new(|| CreateMode::Ephemeral.with_acls(Acls::anyone_all()));
static PERSISTENT: LazyLock<CreateOptions<'static>> =
    LazyLock::new(|| CreateMode::Persistent.with_acls(Acls::anyone_all()));

const TIMEOUT: Duration = Duration::from_secs(4);

async fn connect(address: &str) -> Result<Client> {
    Ok(Client::connector().with_session_timeout(TIMEOUT).connect(address).await?)
}

/// A fresh path on the shared server, someone to look at it, and a client behind a proxy.
struct Bench {
    path: String,
    admin: Admin,
    proxy: Proxy,
    client: Client,
}

/// The client notices a silent server within seconds.
async fn bench() -> Result<Bench> {
    bench_with(Client::connector().with_session_timeout(TIMEOUT)).await
}

/// The client waits for a silent server longer than any test is silent.
async fn patient_bench() -> Result<Bench> {
    let connector = Client::connector().with_session_timeout(Duration::from_secs(10));
    bench_with(connector.with_connection_timeout(PATIENCE)).await
}

async fn bench_with(connector: Connector) -> Result<Bench> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let proxy = Proxy::start(server.address())?;
    let client = connector.connect(proxy.address()).await?;
    Ok(Bench { path: zookeeper::unique_path(), admin, proxy, client })
}

#[tokio::test]
async fn a_server_stops_and_restarts_with_its_data() -> Result<()> {
    let mut server = Server::start(Options::default()).await?;
    let admin = Admin::connect(server.address()).await?;
    admin.create("/a/b", b"kept").await?;
    assert_eq!(server.counter("zk_znode_count").await?, 7.0);
    server.stop().await?;
    assert!(server.four_letter("ruok").await.is_err());
    server.restart().await?;
    assert_eq!(server.four_letter("ruok").await?, "imok");
    let (data, _) = admin.get("/a/b").await?.expect("it was created");
    assert_eq!(data, b"kept");
    server.kill();
    server.restart().await?;
    assert!(admin.stat("/a/b").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_paused_server_lets_a_client_wait_until_it_is_resumed() -> Result<()> {
    let server = Server::start(Options::default()).await?;
    let client = connect(server.address()).await?;
    server.pause().await?;
    wait_state(&client, SessionState::Disconnected).await?;
    server.resume()?;
    wait_state(&client, SessionState::SyncConnected).await?;
    Ok(())
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why() -> Result<()> {
    let options = Options::default().setting("tickTime", "soon");
    let error = Server::start(options).await.expect_err("that is no number");
    let text = format!("{error:#}");
    assert!(text.contains("its log ends"), "{text}");
    assert!(text.contains("soon"), "{text}");
    Ok(())
}

#[tokio::test]
async fn an_ensemble_survives_its_leader() -> Result<()> {
    let mut ensemble = Ensemble::start(3).await?;
    let admin = Admin::connect(&ensemble.connect_string()).await?;
    admin.create("/a", b"").await?;
    let leader = ensemble.leader().await?;
    assert_ne!(ensemble.follower().await?, leader);
    ensemble.servers_mut()[leader].kill();
    assert_ne!(ensemble.leader().await?, leader);
    let survivor = Admin::connect(&ensemble.connect_string()).await?;
    assert!(survivor.stat("/a").await?.is_some());
    ensemble.servers_mut()[leader].restart().await?;
    let address = ensemble.servers()[leader].address();
    let returned = Admin::connect(address).await?;
    returned.client().sync("/").await?;
    assert!(returned.stat("/a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn tls_lets_in_who_shares_the_authority() -> Result<()> {
    let certificates = Certificates::generate()?;
    let server = Server::start(Options::default().tls(&certificates)).await?;
    let address = server.secure_address().expect("the options ask for it");
    let tls = |certificates: &Certificates| -> Result<TlsOptions> {
        let ca = TlsOptions::default().with_pem_ca(&certificates.authority)?;
        Ok(ca.with_pem_identity(&certificates.client, &certificates.client_key)?)
    };
    let connector = || Client::connector().with_session_timeout(TIMEOUT).with_fail_eagerly();
    let client = connector().with_tls(tls(&certificates)?).secure_connect(&address).await?;
    client.create("/tls", b"", &PERSISTENT).await?;

    let strangers = Certificates::generate()?;
    let refused = connector().with_tls(tls(&strangers)?).secure_connect(&address).await;
    assert!(refused.is_err(), "{refused:?}");
    let plain = connect(server.address()).await?;
    assert!(plain.check_stat("/tls").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn sasl_lets_in_who_has_the_password() -> Result<()> {
    use zookeeper_client::SaslOptions;
    let server = Server::start(Options::default().sasl_user("ada", "secret")).await?;
    let login = |password: &'static str| {
        let options = SaslOptions::digest_md5("ada", password);
        Client::connector().with_sasl(options).with_fail_eagerly().connect(server.address())
    };
    let client = login("secret").await?;
    let users = client.list_auth_users().await?;
    assert!(users.iter().any(|user| user.scheme() == "sasl" && user.user() == "ada"), "{users:?}");
    assert!(login("wrong").await.is_err());
    Ok(())
}

#[tokio::test]
async fn the_eye_sees_a_tree_and_clears_it() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    admin.create(&format!("{path}/b/c"), b"deep").await?;
    let sequential = format!("{path}/a-");
    let (a, _) = admin.create_as(CreateMode::PersistentSequential, &sequential, b"").await?;
    let tree = admin.tree(&path).await?;
    let paths: Vec<_> = tree.iter().map(|znode| znode.path.as_str()).collect();
    assert_eq!(paths, [&*path, &*a, &*format!("{path}/b"), &*format!("{path}/b/c")]);
    assert_eq!(a, format!("{path}/a-0000000001"));
    assert_eq!(tree[3].data, b"deep");
    admin.delete_tree(&path).await?;
    assert_eq!(admin.tree(&path).await?, []);
    assert_eq!(admin.children(&path).await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn waiting_for_children_sees_those_that_come_later() -> Result<()> {
    let server = zookeeper::shared().await;
    let admin = Admin::connect(server.address()).await?;
    let path = zookeeper::unique_path();
    let (seen, created) =
        tokio::join!(admin.wait_children(&path, "two children", |names| names.len() == 2), async {
            admin.create(&format!("{path}/a"), b"").await?;
            admin.create(&format!("{path}/b"), b"").await
        });
    created?;
    assert_eq!(seen?, ["a", "b"]);
    admin.delete(&format!("{path}/a")).await?;
    admin.wait_gone(&format!("{path}/a")).await?;
    admin.wait_there(&format!("{path}/b")).await?;
    Ok(())
}

#[tokio::test]
async fn an_expired_session_is_gone_for_everyone() -> Result<()> {
    let Bench { path, admin, proxy, client } = bench().await?;
    client.create(&path, b"", &EPHEMERAL).await?;
    let [session] = &proxy.sessions()[..] else { panic!("one session: {:?}", proxy.sessions()) };
    let server = zookeeper::shared().await;
    admin::expire(server.address(), session).await?;
    admin.wait_gone(&path).await?;
    wait_state(&client, SessionState::Expired).await?;
    let again = admin::take_over(server.address(), session).await.expect_err("it is gone");
    assert!(again.to_string().contains("does not know session"), "{again}");
    let again = admin::expire(server.address(), session).await.expect_err("it is gone");
    assert!(again.to_string().contains("does not know session"), "{again}");
    Ok(())
}

#[tokio::test]
async fn a_lost_create_reply_leaves_a_znode_and_an_error() -> Result<()> {
    for cut in [Cut::Fin, Cut::Reset] {
        let Bench { path, admin, proxy, client } = bench().await?;
        let fault = proxy.inject(Match::creates().under(&path), Action::DropReplyAndCut(cut));
        let outcome = client.create(&path, b"", &EPHEMERAL).await;
        match cut {
            Cut::Fin => assert!(matches!(outcome, Err(Error::ConnectionLoss)), "{outcome:?}"),
            // The client crate passes the raw error on.
            Cut::Reset => assert!(matches!(outcome, Err(Error::Custom(_))), "{outcome:?}"),
        }
        let struck = fault.struck().await?;
        assert_eq!((struck.opcode, struck.path.as_ref()), (Opcode::Create2, Some(&path)));
        let stat = admin.stat(&path).await?.expect("the server carried it out");
        assert_eq!(stat.ephemeral_owner, client.session_id().0);
        // The fault strikes once: the same session goes on.
        client.delete(&path, None).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_cut_before_the_request_leaves_nothing() -> Result<()> {
    let Bench { path, admin, proxy, client } = patient_bench().await?;
    proxy.inject(Match::creates().under(&path), Action::CutBefore(Cut::Fin));
    assert!(client.create(&path, b"", &EPHEMERAL).await.is_err());
    client.sync("/").await?;
    assert!(admin.stat(&path).await?.is_none());
    let creates = proxy.requests(&Match::creates().under(&path));
    assert_eq!(creates.len(), 1);
    assert_eq!(creates[0].answer, None);
    Ok(())
}

#[tokio::test]
async fn a_cut_after_the_request_lets_it_be_carried_out() -> Result<()> {
    for cut in [Cut::Fin, Cut::Reset] {
        let Bench { path, admin, proxy, client } = bench().await?;
        proxy.inject(Match::creates().under(&path), Action::CutAfter(cut));
        // Coming back in time would make the server close the old connection unread.
        proxy.refuse();
        assert!(client.create(&path, b"", &PERSISTENT).await.is_err());
        admin.wait_there(&path).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_dropped_reply_alone_leaves_the_connection_up() -> Result<()> {
    let Bench { path, admin, proxy, client } = patient_bench().await?;
    let fault = proxy.inject(Match::creates().under(&path), Action::DropReply);
    let unanswered = client.create(&path, b"", &EPHEMERAL);
    fault.struck().await?;
    admin.wait_there(&path).await?;
    assert!(client.check_stat(&path).await?.is_some());
    assert_eq!(proxy.log().iter().filter(|seen| seen.connection != 1).count(), 0);
    drop(unanswered);
    Ok(())
}

#[tokio::test]
async fn the_nth_request_is_struck_and_not_another() -> Result<()> {
    let Bench { path, admin, proxy, client } = patient_bench().await?;
    client.create(&path, b"", &PERSISTENT).await?;
    let third = Match::opcode(Opcode::SetData).under(&path).nth(3);
    let fault = proxy.inject(third, Action::CutBefore(Cut::Reset));
    client.set_data(&path, b"1", None).await?;
    client.get_data(&path).await?;
    client.set_data(&path, b"2", None).await?;
    assert!(!fault.has_struck());
    assert!(client.set_data(&path, b"3", None).await.is_err());
    assert!(fault.has_struck());
    let (data, stat) = admin.get(&path).await?.expect("created above");
    assert_eq!((data.as_slice(), stat.version), (&b"2"[..], 2));
    Ok(())
}

#[tokio::test]
async fn the_log_counts_requests_and_knows_their_answers() -> Result<()> {
    let Bench { path, proxy, client, .. } = patient_bench().await?;
    proxy.clear_log();
    let (stat, _) = client.create(&path, b"", &PERSISTENT).await?;
    client.create(&path, b"", &PERSISTENT).await.expect_err("it exists");
    let mut multi = client.new_multi_writer();
    multi.add_set_data(&path, b"x", None)?;
    multi.add_delete(&path, None)?;
    multi.commit().await?;
    let seen = proxy.requests(&Match::any().under(&path));
    let opcodes: Vec<_> = seen.iter().map(|seen| seen.opcode).collect();
    assert_eq!(opcodes, [Opcode::Create2, Opcode::Create2, Opcode::Multi]);
    let errors: Vec<_> = seen.iter().map(|seen| seen.answer.map(|answer| answer.error)).collect();
    assert_eq!(errors, [Some(0), Some(-110), Some(0)]);
    assert_eq!(seen[0].answer.map(|answer| answer.zxid), Some(stat.czxid));
    assert!(proxy.requests(&Match::any().under(&path[..path.len() - 1])).is_empty());
    Ok(())
}

#[tokio::test]
async fn a_stalled_reply_comes_when_it_is_let_go() -> Result<()> {
    let Bench { path, admin, proxy, client } = patient_bench().await?;
    proxy.inject(Match::creates().under(&path), Action::StallReplies);
    let create = client.create(&path, b"", &EPHEMERAL);
    admin.wait_there(&path).await?;
    proxy.heal();
    create.await?;
    Ok(())
}

#[tokio::test]
async fn a_stall_of_all_replies_is_noticed_and_heals() -> Result<()> {
    let Bench { proxy, client, .. } = bench().await?;
    proxy.stall(Direction::Replies);
    wait_state(&client, SessionState::Disconnected).await?;
    proxy.heal();
    wait_state(&client, SessionState::SyncConnected).await?;
    Ok(())
}

#[tokio::test]
async fn a_stalled_request_is_carried_out_when_it_is_let_go() -> Result<()> {
    let Bench { path, admin, proxy, client } = patient_bench().await?;
    let fault = proxy.inject(Match::creates().under(&path), Action::StallRequests);
    let create = client.create(&path, b"", &PERSISTENT);
    fault.struck().await?;
    assert!(admin.stat(&path).await?.is_none());
    proxy.release();
    create.await?;
    assert!(admin.stat(&path).await?.is_some());

    proxy.stall(Direction::Requests);
    let delete = client.delete(&path, None);
    admin.set(&path, b"still there").await?;
    proxy.release();
    delete.await?;
    Ok(())
}

#[tokio::test]
async fn a_half_open_connection_outlives_its_session() -> Result<()> {
    let Bench { path, admin, proxy, client } = bench().await?;
    client.create(&path, b"", &EPHEMERAL).await?;
    proxy.inject(Match::opcode(Opcode::Exists), Action::HalfOpen);
    let look = client.check_stat(&path);
    proxy.refuse();
    admin.wait_gone(&path).await?;
    assert!(look.await.is_err());
    assert_eq!(proxy.connections(), 1);
    wait_state(&client, SessionState::Expired).await?;
    Ok(())
}

#[tokio::test]
async fn all_connections_are_cut_and_none_gets_in_while_refused() -> Result<()> {
    let Bench { proxy, client, .. } = bench().await?;
    proxy.refuse();
    proxy.cut_all(Cut::Reset);
    wait_state(&client, SessionState::Disconnected).await?;
    let eager = Client::connector().with_fail_eagerly();
    let before = proxy.refused();
    assert!(eager.connect(proxy.address()).await.is_err());
    assert!(proxy.refused() > before);
    assert_eq!(proxy.connections(), 0);
    proxy.heal();
    wait_state(&client, SessionState::SyncConnected).await?;
    Ok(())
}

#[tokio::test]
async fn a_delayed_request_is_late_by_that_time() -> Result<()> {
    let Bench { path, proxy, client, .. } = patient_bench().await?;
    let late = Duration::from_millis(300);
    proxy.inject(Match::creates().under(&path), Action::Delay(late));
    let start = Instant::now();
    client.create(&path, b"", &PERSISTENT).await?;
    assert!(start.elapsed() >= late);
    Ok(())
}

#[tokio::test]
async fn a_limited_link_takes_its_time_each_way() -> Result<()> {
    let Bench { path, proxy, client, .. } = patient_bench().await?;
    client.create(&path, b"", &PERSISTENT).await?;
    proxy.limit(1_000_000);
    let start = Instant::now();
    client.set_data(&path, &vec![0; 300_000], None).await?;
    let written = start.elapsed();
    client.get_data(&path).await?;
    let read = start.elapsed() - written;
    assert!(written >= Duration::from_millis(300), "{written:?}");
    assert!(read >= Duration::from_millis(300), "{read:?}");
    Ok(())
}

#[tokio::test]
async fn a_way_that_is_silenced_holds_back_ends_and_the_other_way_stays() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let proxy = Proxy::start_unread(&listener.local_addr()?.to_string())?;
    for is_silenced in [false, true] {
        let mut client = TcpStream::connect(proxy.address()).await?;
        let (mut server, _) = within("the proxy's connection", listener.accept()).await??;
        match is_silenced {
            true => proxy.silence(Direction::Requests),
            false => proxy.stall(Direction::Requests),
        }
        client.shutdown().await?;
        server.write_all(b"x").await?;
        assert_eq!(within("the other way", client.read_u8()).await??, b'x');
        if is_silenced {
            // Long for a machine that talks to itself; what is held back does not come.
            let end = tokio::time::timeout(Duration::from_millis(500), server.read_u8()).await;
            assert!(end.is_err(), "{end:?}");
            proxy.release();
        }
        let end = within("the end", server.read_u8()).await?;
        assert_eq!(end.map_err(|error| error.kind()), Err(ErrorKind::UnexpectedEof));
        proxy.release();
    }
    Ok(())
}

#[tokio::test]
async fn other_protocols_pass_through_unread() -> Result<()> {
    let server = zookeeper::shared().await;
    let proxy = Proxy::start(server.address())?;
    let mut stream = TcpStream::connect(proxy.address()).await?;
    stream.write_all(b"ruok").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    assert_eq!(answer, "imok");
    assert!(proxy.log().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_program_is_watched_signalled_and_judged() -> Result<()> {
    let script = "trap 'echo asked >&2; exit 7' TERM; echo ready; while :; do read -r _; done";
    let running = Program::shell(script).start()?;
    let line = running.wait_for_line("a start", |line| line.text == "ready").await?;
    assert_eq!(line.stream, Stream::Stdout);
    running.pause().await?;
    running.signal(Signal::CONT)?;
    running.signal(Signal::TERM)?;
    // The trap runs when `read` returns.
    let mut running = running;
    running.close_input();
    let ended = running.ended().await?;
    assert_eq!(ended.code(), Some(7));
    assert_eq!(ended.stdout, "ready\n");
    assert_eq!(ended.stderr, "asked\n");
    assert!(running.signal(Signal::TERM).is_err());
    let silent = Program::new("true").start()?;
    let error = silent.wait_for_text("ready").await.expect_err("it says nothing");
    assert!(error.to_string().contains("true ended without"), "{error}");
    Ok(())
}

#[tokio::test]
async fn the_wok_binary_is_built_on_demand() -> Result<()> {
    let help = Program::wok()?.arg("--help").run().await?;
    assert!(help.status.success(), "{help:?}");
    assert!(help.stdout.contains("Usage"), "{help:?}");
    Ok(())
}

#[tokio::test]
async fn a_dropped_program_takes_its_whole_tree_along() -> Result<()> {
    let file = OrderFile::new()?;
    // The grandchild leaves the process group and outlives its parent.
    let script = format!(
        "setsid sh -c 'trap \"\" TERM HUP; {}; exec tail -f /dev/null' & exit 3",
        file.append("grandchild $$").replace('\'', "'\\''"),
    );
    let running = Program::shell(&script).start()?;
    assert_eq!(running.exit().await?.code(), Some(3));
    let tree = wok_tests::patience::eventually("the grandchild", async || {
        let started = !file.entries()?.is_empty();
        Ok(Some(running.tree()).filter(|tree| started && !tree.is_empty()))
    });
    let tree = tree.await?;
    drop(running);
    for pid in tree {
        // A zombie may stay where nobody collects it, but it has no program any more.
        assert!(!std::path::Path::new(&format!("/proc/{pid}/exe")).exists());
    }
    Ok(())
}

#[tokio::test]
async fn the_order_of_appends_is_kept() -> Result<()> {
    let file = OrderFile::new()?;
    let script = format!("{}; TOKEN=8; {}", file.append("first"), file.append("second $TOKEN"));
    assert!(Program::shell(&script).run().await?.status.success());
    assert_eq!(file.labels()?, ["first", "second 8"]);
    let first = file.wait_for("first").await?;
    assert!(first.at <= file.wait_for("second 8").await?.at);
    Ok(())
}

/// Started by the next test, as a process of its own.
#[tokio::test]
async fn a_test_that_is_killed() -> Result<()> {
    let Ok(file) = std::env::var("WOK_TESTS_TELL") else { return Ok(()) };
    let server = Server::start(Options::default()).await?;
    let program = Program::shell("exec tail -f /dev/null").start()?;
    std::fs::write(file, format!("{} {}", server.pid()?, program.pid()))?;
    std::future::pending().await
}

#[tokio::test]
async fn a_killed_test_leaves_no_server() -> Result<()> {
    let directory = wok_tests::scratch::dir()?;
    let file = directory.path().join("pids");
    let victim = Program::new(std::env::current_exe()?)
        .args(["a_test_that_is_killed", "--exact"])
        .env("WOK_TESTS_TELL", &file)
        .start()?;
    let pids = wok_tests::patience::eventually("a server and a program", async || {
        Ok(Some(std::fs::read_to_string(&file).unwrap_or_default())
            .filter(|pids| pids.contains(' ')))
    });
    let pids = pids.await?;
    victim.signal(Signal::KILL)?;
    for pid in pids.split(' ') {
        let program = format!("/proc/{pid}/exe");
        wok_tests::patience::eventually("the end of what a killed test started", async || {
            Ok((!std::fs::exists(&program)?).then_some(()))
        })
        .await?;
    }
    Ok(())
}
