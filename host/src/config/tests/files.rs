//! Files that the configuration names, and the file itself.

use super::*;
use crate::config::credentials::OTHER_KEY;
use crate::modules::ModuleSource;
use crate::session::Acl;

/// The findings about one line of `[zookeeper]`, without the directory's own name.
fn findings(directory: &Directory, line: &str) -> Vec<(usize, usize, String, String)> {
    let text = format!("[zookeeper]\nconnect = \"a\"\nacl = \"open\"\n{line}\n[recipes]\n");
    let here = format!("{}/", directory.0.path().display());
    directory
        .errors(&text)
        .into_iter()
        .map(|e| (e.line, e.column, e.message.replace(&here, ""), e.remedy.replace(&here, "")))
        .collect()
}

#[track_caller]
fn check_file(directory: &Directory, line: &str, message: &str, remedy: &str) {
    let (line, places) = unmarked(line);
    let [(_, column)] = places[..] else { panic!("one mark") };
    let expected = vec![(4, column, message.to_owned(), remedy.to_owned())];
    assert_eq!(findings(directory, &line), expected);
}

#[test]
fn credentials_files() {
    let directory = Directory::new();
    for (name, content, fault) in [
        ("empty", "", "the file is empty"),
        ("only-a-break", "\n", "the file is empty"),
        ("two-lines", "a:b\nc:d\n", "the file has more than one line"),
        ("two-breaks", "a:b\n\n", "the file has more than one line"),
        ("no-colon", "geheim\n", "the file has no colon between user and password"),
        ("no-user", ":geheim\n", "the file names no user"),
        ("no-password", "wok:\n", "the file has no password"),
    ] {
        directory.write(name, content, 0o600);
        check_file(
            &directory,
            &format!("sasl = {{ credentials-file = »\"{name}\" }}"),
            &format!("`zookeeper.sasl.credentials-file`: {fault}"),
            "make it one line, `user:password`",
        );
        check_file(
            &directory,
            &format!("auth = [{{ scheme = \"digest\", credentials-file = »\"{name}\" }}]"),
            &format!("`zookeeper.auth.0.credentials-file`: {fault}"),
            "make it one line, `user:password`",
        );
    }
}

#[test]
fn files_that_cannot_be_read() {
    let directory = Directory::new();
    directory.write("latin1", b"wok:g\xe9heim", 0o600);
    directory.write("huge", vec![b'a'; 1024 * 1024 + 1], 0o600);
    for (name, fault) in [
        ("none", "cannot read none: No such file or directory (os error 2)"),
        (".", "cannot read .: it is a directory"),
        ("latin1", "cannot read latin1: it is not UTF-8 text"),
        ("huge", "cannot read huge: it is larger than 1 MiB"),
        ("", "the file's name is empty"),
    ] {
        check_file(
            &directory,
            &format!("sasl = {{ credentials-file = »\"{name}\" }}"),
            &format!("`zookeeper.sasl.credentials-file`: {fault}"),
            "name a file that this user can read",
        );
        check_file(
            &directory,
            &format!("tls = {{ ca-file = »\"{name}\" }}"),
            &format!("`zookeeper.tls.ca-file`: {fault}"),
            "name a file that this user can read",
        );
    }
}

#[test]
fn auth_without_a_file_or_with_another_scheme() {
    let directory = Directory::new();
    check_file(
        &directory,
        "auth = [»{ scheme = \"digest\" }]",
        "`credentials-file` is missing in `[zookeeper.auth.0]`",
        "write it as `credentials-file = \"/etc/wok/zookeeper-credentials\"`",
    );
    check_file(
        &directory,
        "sasl = »{}",
        "`credentials-file` is missing in `[zookeeper.sasl]`",
        "write it as `credentials-file = \"/etc/wok/zookeeper-credentials\"`",
    );
    for (scheme, remedy) in [
        ("sasl", "give the login as `sasl = { credentials-file = \"…\" }` instead"),
        ("x509", "give the certificate in `tls` instead"),
        ("ip", "write `scheme = \"digest\"`"),
    ] {
        check_file(
            &directory,
            &format!("auth = [{{ scheme = »\"{scheme}\", credentials-file = \"credentials\" }}]"),
            &format!("`zookeeper.auth.0.scheme`: {scheme:?} is not a scheme that sessions add"),
            remedy,
        );
    }
    let many = "{ scheme = \"digest\", credentials-file = \"credentials\" },".repeat(17);
    check_file(
        &directory,
        &format!("auth = »[{many}]"),
        "`zookeeper.auth`: 17 identities are listed",
        "list at most 16",
    );
}

#[test]
fn certificates_and_keys() {
    let directory = Directory::new();
    let both = "give both, or neither if servers ask for no certificate";
    check_file(
        &directory,
        "tls = »{ ca-file = \"ca.pem\", cert-file = \"cert.pem\" }",
        "`cert-file` is given without `key-file`",
        both,
    );
    check_file(
        &directory,
        "tls = »{ ca-file = \"ca.pem\", key-file = \"key.pem\" }",
        "`key-file` is given without `cert-file`",
        both,
    );
    check_file(
        &directory,
        "tls = »{ cert-file = \"cert.pem\", key-file = \"key.pem\" }",
        "`ca-file` is missing in `[zookeeper.tls]`",
        "write it as `ca-file = \"/etc/wok/ca.pem\"`",
    );
    check_file(
        &directory,
        "tls = { ca-file = »\"key.pem\" }",
        "`zookeeper.tls.ca-file`: the file has no PEM block of kind `CERTIFICATE`",
        "name a PEM file; `openssl` converts other formats",
    );
    check_file(
        &directory,
        "tls = { ca-file = \"ca.pem\", cert-file = \"cert.pem\", key-file = »\"cert.pem\" }",
        "`zookeeper.tls.key-file`: the file has no PEM block of kind `PRIVATE KEY`",
        "name a PEM file; `openssl` converts other formats",
    );
}

/// A certificate and its key, and the key of another, as `openssl req -x509 -newkey ec` makes them.
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIUd+5+7Ff+nrQFzUjwxe6iEjdptdkwCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDd29rMCAXDTI2MTEyNzA5MTk0NVoYDzIxMjYxMTAzMDkxOTQ1
WjAOMQwwCgYDVQQDDAN3b2swWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQwjOWs
nEU8DlJy4ESIkvvwbsRn7MjAfbSyIp7pb+IvLKpbF0TVfs37TnyRKan4mFWQmjHY
zc5WtXtYtKDVW4dao1MwUTAdBgNVHQ4EFgQUVno19l/yc2kaF3hS031S36CvyJQw
HwYDVR0jBBgwFoAUVno19l/yc2kaF3hS031S36CvyJQwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiBBLUH5zOCdFpUUWAx7WfeL84ZlA1tBjKNwRG4a
0ChvDgIhAMV9Zobmf+zl/ce0Spyt9LRYFDKM67AxmKoXN+ZZcB/p
-----END CERTIFICATE-----
";
const ITS_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgMBNbgOkyOpOsOgfb
Ye1PHFAZU/GQfwhxJc56f43bOIqhRANCAAQwjOWsnEU8DlJy4ESIkvvwbsRn7MjA
fbSyIp7pb+IvLKpbF0TVfs37TnyRKan4mFWQmjHYzc5WtXtYtKDVW4da
-----END PRIVATE KEY-----
";
const ANOTHERS_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg6RfLiRZb0csvUB9E
5XZH+TznTFQrfoWGpXcFdc/aQiyhRANCAARCDO29DtnxdcQZCCvzhRfMpneiItCY
7XvZxHe4MzC3zWdf/T/hXrwCmeebWk7mVFobUt1eY1iGZDRN1BTm3/Vm
-----END PRIVATE KEY-----
";

#[test]
fn a_key_that_is_not_its_certificates_is_refused() {
    let directory = Directory::new();
    directory.write("wok.pem", CERTIFICATE, 0o644);
    directory.write("wok.key", ITS_KEY, 0o600);
    directory.write("other.key", ANOTHERS_KEY, 0o600);
    check_file(
        &directory,
        "tls = { ca-file = \"ca.pem\", cert-file = \"wok.pem\", key-file = »\"other.key\" }",
        "`zookeeper.tls.key-file`: the key in other.key is not that of the certificate in \
         `cert-file` wok.pem",
        OTHER_KEY,
    );
    let api = |key: &str| {
        format!(
            "zookeeper.connect = \"embedded\"\nrecipes = {{}}\n[api]\nhttp = \"127.0.0.1:7070\"\n\
             token-file = \"token\"\ntls = {{ cert-file = \"wok.pem\", key-file = {key:?} }}\n"
        )
    };
    directory.write("token", "0123456789abcdef".repeat(2), 0o600);
    directory.parse(&api("wok.key")).unwrap();
    let [error] = directory.errors(&api("other.key")).try_into().unwrap();
    assert!(error.message.starts_with("`api.tls.key-file`: the key in "), "{}", error.message);
    let tls = "tls = { ca-file = \"ca.pem\", cert-file = \"wok.pem\", key-file = \"wok.key\" }";
    directory.parse(&format!("[zookeeper]\nconnect = \"a\"\n{tls}\n[recipes]\n")).unwrap();
}

/// A config that runs a program.
fn while_held(program: &str) -> String {
    format!(
        "[zookeeper]\nconnect = \"a\"\n[recipes.r]\nmodule = \"lock\"\nmount = \"/r\"\n\
         run = {{ call = \"x\" }}\nwhile-held = {{ exec = [\"{program}\", \"-x\"] }}\n"
    )
}

#[test]
fn a_program_with_a_slash_is_looked_for_beside_the_file() {
    let directory = Directory::new();
    let loaded = directory.parse(&while_held("./scheduler")).unwrap();
    let held = loaded.config.recipes[0].run.clone().unwrap().while_held.unwrap();
    let program = directory.path("./scheduler").into_os_string();
    assert_eq!(held.command.words, [program, "-x".into()]);
    let [error] = directory.errors(&while_held("./missing")).try_into().unwrap();
    assert_eq!((error.line, error.column), (7, 23));
    assert_eq!(error.remedy, "name a file; relative paths begin where this file is");
}

#[test]
fn a_program_that_nobody_may_execute_is_refused_with_what_mends_it() {
    let directory = Directory::new();
    directory.write("job", "#!/bin/sh\n", 0o644);
    let text = while_held("./job");
    let path = directory.path("./job");
    let [error] = directory.errors(&text).try_into().unwrap();
    assert_eq!((error.line, error.column), (7, 23));
    assert!(error.message.contains("nobody may execute"), "{}", error.message);
    assert_eq!(error.remedy, format!("chmod +x {}", path.display()));
    // Who validates need not be the user that the daemon runs as.
    directory.write("job", "#!/bin/sh\n", 0o610);
    directory.parse(&text).unwrap();
}

#[test]
fn a_secret_that_everybody_can_read_is_a_warning() {
    let directory = Directory::new();
    directory.write("credentials", "wok:geheim\r\n", 0o604);
    directory.write("key.pem", "-----BEGIN PRIVATE KEY-----", 0o644);
    let (text, places) = unmarked(
        "[zookeeper]
connect = \"a\"
auth = [{ scheme = \"digest\", credentials-file = »\"credentials\" }]
tls = { ca-file = \"ca.pem\", cert-file = \"cert.pem\", key-file = »\"key.pem\" }
[recipes.r]
module = \"lock\"
mount = \"/r\"
",
    );
    let loaded = directory.parse(&text).unwrap();
    let warnings: Vec<_> = loaded
        .warnings
        .iter()
        .map(|w| ((w.line, w.column), w.severity, w.remedy.clone()))
        .collect();
    let chmod = |name| format!("chmod 600 {}", directory.path(name).display());
    let expected = [chmod("credentials"), chmod("key.pem")];
    let expected = places.into_iter().zip(expected);
    let expected = expected.map(|(place, remedy)| (place, Severity::Warning, remedy));
    assert_eq!(warnings, expected.collect::<Vec<_>>());
    assert_eq!(loaded.config.zookeeper.auth[0].secret.expose(), "wok:geheim");
    assert_eq!(loaded.config.zookeeper.acl, Acl::Creator);
}

#[test]
fn a_secret_is_in_no_text_that_people_see() {
    let directory = Directory::new();
    let loaded = directory
        .parse(
            "[zookeeper]\nconnect = \"a\"\nsasl = { credentials-file = \"credentials\" }\n\
             auth = [{ scheme = \"digest\", credentials-file = \"credentials\" }]\n[recipes]\n",
        )
        .unwrap();
    let debug = format!("{loaded:?}");
    assert!(debug.contains("<secret>") && !debug.contains("geheim"), "{debug}");
    // Written into the file by mistake, in every way that was thought of.
    for line in [
        "auth = [{ scheme = \"digest\", password = \"geheim\" }]",
        "auth = [{ scheme = \"digest\", credentials-file = \"wok:geheim\" }]",
        "auth = \"digest:wok:geheim\"",
        "auth = [\"wok:geheim\"]",
        "sasl = \"wok:geheim\"",
        "sasl = { credentials = \"geheim\" }",
        "password = \"geheim\"",
        "credentials = \"geheim\"",
        "password = geheim",
        "zk-passwd = 'geheim",
    ] {
        let text = format!("[zookeeper]\nconnect = \"a\"\n{line}\n[recipes]\n");
        let errors = directory.parse(&text).map(|_| ()).unwrap_err();
        for told in [errors.to_string(), serde_json::to_string(&errors).unwrap()] {
            assert!(!told.contains("geheim"), "{told}");
        }
    }
}

#[test]
fn the_file_itself_may_be_unreadable() {
    let directory = Directory::new();
    directory.write("latin1.toml", b"a = 1\nb = \"\xe9\"\n", 0o600);
    directory.write("huge.toml", vec![b'#'; 1024 * 1024 + 1], 0o600);
    for (name, message) in [
        ("none.toml", "cannot read the configuration: No such file or directory (os error 2)"),
        (".", "cannot read the configuration: Is a directory (os error 21)"),
        ("latin1.toml", "this is not UTF-8"),
        ("huge.toml", "the configuration is larger than 1024 KiB"),
    ] {
        let errors = Config::load(&directory.path(name)).map(|_| ()).unwrap_err().errors;
        let [error] = errors.findings() else { panic!("{errors}") };
        assert_eq!(error.message, message);
        assert_eq!(error.file, directory.path(name).display().to_string());
        // Where a part of the file is wrong, that is the place; else it is the file's beginning.
        let place = if name == "latin1.toml" { (2, 6) } else { (1, 1) };
        assert_eq!((error.line, error.column), place);
    }
}

#[test]
fn paths_are_relative_to_the_files_directory() {
    let directory = Directory::new();
    directory.write(
        "wok.toml",
        "\u{feff}[zookeeper]\nconnect = \"a\"\nsasl.credentials-file = \"credentials\"\n\
         [recipes.r]\nmodule = \"./mine.wasm\"\nmount = \"/r\"\n",
        0o644,
    );
    let loaded = Config::load(&directory.path("wok.toml")).unwrap();
    let login = loaded.config.zookeeper.sasl.clone().unwrap();
    assert_eq!((login.user.as_str(), login.password.expose()), ("wok", "geheim"));
    assert_eq!(loaded.config.recipes[0].module, ModuleSource::File(directory.path("./mine.wasm")));
    // The byte order mark is not a column.
    let error = loaded.places.error_at(&["zookeeper"], "x", "y");
    assert_eq!((error.line, error.column), (1, 1));
}
