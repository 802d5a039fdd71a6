//! What good files become.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::*;
use crate::guardian::{Attendance, GuardedCommand};
use crate::modules::ModuleSource;
use crate::session::{Acl, ContactRule};

#[test]
fn a_full_file_becomes_its_values() {
    let directory = Directory::new();
    let digest = "ab".repeat(32);
    let loaded = directory
        .parse(&format!(
            "[zookeeper]
connect = \"zk1:2181,zk2\"
sessions = 3
session-timeout = \"20s\"
contact = \"leader\"
root = \"/wok\"
auth = [{{ scheme = \"digest\", credentials-file = \"credentials\" }}]
tls = {{ ca-file = \"ca.pem\", cert-file = \"cert.pem\", key-file = \"key.pem\" }}

[engine]
participants = 2_000

[recipes.scheduler]
module = \"leader-election\"
mount = \"/election/scheduler\"
run = {{ call = \"volunteer\", arguments = {{ weight = 0x10, tags = [\"a\"] }} }}
[recipes.scheduler.while-held]
exec = [\"job\", \"--active\"]
stop-signal = \"SIGINT\"
stop-timeout = \"2s\"
restart = \"on-failure\"
env = {{ LEVEL = \"info\" }}

[recipes.orders]
module = \"lock\"
sha256 = \"{digest}\"
mount = \"/locks/orders\"
config = {{ revocable = true, ratio = 0.5, nested.key = -1 }}
limits = {{ memory = \"1MiB\", cpu-per-call = \"5ms\", watches = 1, watched-paths = \"8KiB\", znodes = 2, calls-per-second = 3, persistent-znodes = 4, written-per-second = \"2MiB\" }}
"
        ))
        .unwrap();
    assert_eq!(loaded.warnings, []);
    let Config { zookeeper, engine, api, recipes } = loaded.config;
    assert_eq!(api, None);
    let options = zookeeper.connect_options();
    assert_eq!(options.hosts, "zk1:2181,zk2:2181");
    assert_eq!(zookeeper.sessions, 3);
    assert_eq!(options.session_timeout, Duration::from_secs(20));
    assert_eq!(options.acl, Acl::Creator);
    assert_eq!(options.contact, ContactRule::Leader);
    assert_eq!(options.auth[0].scheme, "digest");
    assert_eq!(
        options.tls.unwrap().identity.unwrap().key.expose(),
        "-----BEGIN EC PRIVATE KEY-----\n"
    );
    assert_eq!(engine.participants, 2_000);

    let [scheduler, orders] = &recipes[..] else { panic!("the order of the file: {recipes:?}") };
    assert_eq!(scheduler.mount.to_string(), "/wok/election/scheduler");
    let run = scheduler.run.as_ref().unwrap();
    assert_eq!(
        (run.call.as_str(), &run.arguments),
        ("volunteer", &json!({"weight": 16, "tags": ["a"]}))
    );
    let held = run.while_held.as_ref().unwrap();
    let command = GuardedCommand {
        words: vec!["job".into(), "--active".into()],
        env: vec![("LEVEL".into(), "info".into())],
        stop_signal: Signal::INT,
        stop_timeout: Duration::from_secs(2),
        attendance: Attendance::Unattended,
    };
    assert_eq!(*held, WhileHeld { command, restart: Restart::OnFailure });

    check_orders(orders, &digest);
}

fn check_orders(orders: &Recipe, digest: &str) {
    assert_eq!(orders.name.as_str(), "orders");
    assert_eq!(orders.module, ModuleSource::Stock("lock".to_owned()));
    assert_eq!(orders.sha256.unwrap().to_string(), digest);
    assert_eq!(orders.config, json!({"revocable": true, "ratio": 0.5, "nested": {"key": -1}}));
    let limits = Limits {
        memory: 1 << 20,
        cpu_per_call: Duration::from_millis(5),
        watches: 1,
        watched_paths: 8 << 10,
        znodes: 2,
        persistent_znodes: 4,
        written_per_second: 2 << 20,
        calls_per_second: 3,
    };
    assert_eq!(orders.limits, limits);
    assert_eq!(orders.run, None);
}

/// Its module says which numbers it takes, and in which key.
#[test]
fn a_number_that_is_too_large_is_left_to_the_module() {
    let loaded = Directory::new()
        .parse(
            "zookeeper.connect = \"zk1\"
[recipes.r]\nmodule = \"semaphore\"\nmount = \"/r\"
config = { a = 9223372036854775808, b = 100000000000000000000, c = -9223372036854775809 }\n",
        )
        .unwrap();
    let [recipe] = &loaded.config.recipes[..] else { panic!("one recipe") };
    let config = json!({ "a": 1_u64 << 63, "b": 1e20, "c": -9_223_372_036_854_775_808.0 });
    assert_eq!(recipe.config, config);
}

#[test]
fn what_is_left_out_gets_its_default() {
    let loaded = Directory::new()
        .parse(
            "zookeeper = { connect = \"zk1\", acl = \"open\", session-timeout = \"1s\" }
[recipes.r]\nmodule = \"lock\"\nmount = \"/r\"\nrun.call = \"volunteer\"\nwhile-held.exec = [\"job\"]\n",
        )
        .unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.engine.participants, 10_000);
    assert_eq!(loaded.config.zookeeper.sessions, 16);
    let [recipe] = &loaded.config.recipes[..] else { panic!("one recipe") };
    let limits = Limits {
        memory: 16 << 20,
        cpu_per_call: Duration::from_millis(100),
        watches: 64,
        watched_paths: 0,
        znodes: 1_000,
        persistent_znodes: 10_000,
        written_per_second: 1 << 20,
        calls_per_second: 5_000,
    };
    assert_eq!(recipe.limits, limits);
    assert_eq!(recipe.config, json!({}));
    let run = recipe.run.as_ref().unwrap();
    assert_eq!(run.arguments, json!({}));
    let held = run.while_held.as_ref().unwrap();
    assert_eq!(held.command.stop_signal, Signal::TERM);
    assert_eq!(held.command.stop_timeout, Duration::from_millis(100));
    assert_eq!(held.restart, Restart::Always);
    assert_eq!(SessionTimeout::default().get(), Duration::from_secs(10));
}

#[test]
fn open_znodes_are_a_warning_unless_they_are_asked_for() {
    let directory = Directory::new();
    let warnings = |lines: &str| {
        let text = format!(
            "# wok\n[zookeeper]\nconnect = \"a\"\n{lines}\n[recipes.r]\nmodule = \"lock\"\nmount = \"/r\"\n"
        );
        let loaded = directory.parse(&text).unwrap();
        let warnings = loaded.warnings.iter().map(|w| (w.line, w.column, w.message.clone()));
        (warnings.collect::<Vec<_>>(), loaded.config.zookeeper.acl)
    };
    let open = "the znodes of this host are open: all who reach the ensemble can delete a claim";
    let warned = (vec![(2, 1, open.to_owned())], Acl::Open);
    let certificate =
        "tls = { ca-file = \"ca.pem\", cert-file = \"cert.pem\", key-file = \"key.pem\" }";
    let login = "sasl = { credentials-file = \"credentials\" }";
    assert_eq!(warnings(""), warned);
    assert_eq!(warnings("auth = []"), warned);
    assert_eq!(warnings(certificate), warned);
    assert_eq!(warnings("acl = \"open\""), (vec![], Acl::Open));
    assert_eq!(warnings(login), (vec![], Acl::Creator));
    assert_eq!(warnings(&format!("{login}\nacl = \"open\"")), (vec![], Acl::Open));
    assert_eq!(warnings(&format!("{certificate}\nacl = \"creator\"")), (vec![], Acl::Creator));
}

#[test]
fn who_has_a_certificate_is_told_that_znodes_may_belong_to_it() {
    let directory = Directory::new();
    let remedy = |tls: &str| {
        let text = format!(
            "[zookeeper]\nconnect = \"a\"\ntls = {tls}\n\
             [recipes.r]\nmodule = \"lock\"\nmount = \"/r\"\n"
        );
        let loaded = directory.parse(&text).unwrap();
        let [warning] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
        warning.remedy.clone()
    };
    let certificate = "{ ca-file = \"ca.pem\", cert-file = \"cert.pem\", key-file = \"key.pem\" }";
    assert!(remedy(certificate).starts_with("write `acl = \"creator\"` if the servers take"));
    assert!(remedy("{ ca-file = \"ca.pem\" }").starts_with("give `auth`, or write"));
}

#[test]
fn a_file_without_recipes_is_a_warning() {
    for text in ["", "[recipes]\n"] {
        let text = format!("{text}[zookeeper]\nconnect = \"a\"\nacl = \"open\"\n");
        let loaded = Directory::new().parse(&text).unwrap();
        let [warning] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
        assert_eq!(warning.message, "no recipe is configured: nothing will run");
        assert_eq!((warning.line, warning.column), (1, 1));
    }
}

#[test]
fn a_mount_may_be_the_root_where_that_is_not_the_ensembles() {
    let text = "zookeeper = { connect = \"a\", root = \"/wok\" }\n[recipes.r]\nmodule = \"lock\"\nmount = \"/\"\n";
    let loaded = Directory::new().parse(text).unwrap();
    assert_eq!(loaded.config.recipes[0].mount.path().as_str(), "/wok");
}

#[test]
fn an_embedded_server_is_no_cause_for_warnings() {
    let text = "[zookeeper]\nconnect = \"embedded\"\n\
                [recipes.r]\nmodule = \"lock\"\nmount = \"/r\"\n";
    let loaded = Directory::new().parse(text).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.zookeeper.connect, Connect::Embedded);
}
