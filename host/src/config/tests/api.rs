//! `[api]`, and who may use a recipe through it.

use super::*;
use crate::config::{Allow, Api, Http};

const BEFORE: &str = "zookeeper.connect = \"embedded\"\nrecipes = {}\n[api]\n";

fn directory() -> Directory {
    let directory = Directory::new();
    directory.write("token", format!("{}\n", "0123456789abcdef".repeat(2)), 0o600);
    directory.write("short", "0123456789\n", 0o600);
    directory.write("words", "a token with spaces in it, which is long enough\n", 0o600);
    directory
}

#[test]
fn an_empty_table_is_enough_for_a_socket() {
    let loaded = directory().parse(BEFORE).unwrap();
    let expected = Api { socket: None, socket_mode: 0o600, connections: 4_096, http: None };
    assert_eq!(loaded.config.api, Some(expected));
}

#[test]
fn all_of_it_becomes_its_values() {
    let directory = directory();
    let text = format!(
        "{BEFORE}socket = \"run/wok.sock\"\nsocket-mode = \"0660\"\nconnections = 7\n\
         http = \"[::1]:7070\"\ntoken-file = \"token\"\nhosts = [\"Wok.internal:7070\"]\n\
         tls = {{ cert-file = \"cert.pem\", key-file = \"key.pem\" }}\n"
    );
    let api = directory.parse(&text).unwrap().config.api.unwrap();
    assert_eq!(api.socket, Some(directory.path("run/wok.sock")));
    assert_eq!((api.socket_mode, api.connections), (0o660, 7));
    let Http { address, token, hosts, tls } = api.http.unwrap();
    assert_eq!(address.to_string(), "[::1]:7070");
    assert_eq!(token.expose(), "0123456789abcdef".repeat(2));
    assert_eq!(hosts, ["wok.internal:7070"]);
    assert!(tls.is_some());
}

#[test]
fn a_recipe_allows_users_and_groups() {
    let text = "zookeeper.connect = \"embedded\"\n[recipes.r]\nmodule = \"lock\"\nmount = \"/a\"\n";
    let allow = |more: &str| directory().parse(&format!("{text}{more}"));
    let allowed = |more: &str| allow(more).unwrap().config.recipes[0].allow.clone();
    assert!(allowed("").is_empty());
    let both = Allow { uids: vec![0, 1000], gids: vec![100] };
    assert_eq!(allowed("allow = { uids = [0, 1000], gids = [100] }"), both);
    assert!(allow("allow = { uids = [-1] }").is_err());
    assert!(allow("allow = { users = [1] }").is_err());
}

/// Checks the one error of a text, which is marked where it is.
#[track_caller]
fn check(text: &str, message: &str, remedy: &str) {
    let (text, places) = unmarked(&format!("{BEFORE}{text}"));
    let errors = directory().errors(&text);
    let [error] = &*errors else { panic!("{errors:#?}") };
    assert_eq!((&*error.message, &*error.remedy), (message, remedy));
    assert_eq!([(error.line, error.column)], *places);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    check(
        "socket = »\"\"",
        "`api.socket`: the path is empty",
        "name a file, as \"/run/wok/wok.sock\"",
    );
    check(
        "socket-mode = »\"rw\"",
        "`api.socket-mode`: \"rw\" is no mode of a file",
        "write \"0600\" for the user alone, \"0660\" for its group as well, \"0666\" for all",
    );
    for mode in ["600", "0o600"] {
        check(
            &format!("socket-mode = »{mode}"),
            "`api.socket-mode` is an integer, not a string",
            "write it as `socket-mode = \"0600\"`",
        );
    }
    check(
        "socket-mode = »0600",
        "unexpected leading zero, expected nothing",
        "leave the zeros out; the mode of a file is a string, as in `socket-mode = \"0600\"`",
    );
    check(
        "http = »\"7070\"\ntoken-file = \"token\"",
        "`api.http`: \"7070\" is not an address and a port",
        "write it as \"127.0.0.1:7070\" or \"[::1]:7070\"",
    );
    check(
        "http = »\"127.0.0.1:7070\"",
        "`http` is given without `token-file`",
        "give `token-file`; `openssl rand -hex 32 > api-token; chmod 600 api-token` makes one",
    );
    check(
        "token-file = »\"token\"",
        "`api.token-file`: it is for HTTP over TCP, which is not served",
        "write `http = \"127.0.0.1:7070\"` as well, or leave it out",
    );
    let remedy = "make it one line of at least 32 random characters: `openssl rand -hex 32`";
    check(
        "http = \"127.0.0.1:7070\"\ntoken-file = »\"short\"",
        "`api.token-file`: the token has 10 characters",
        remedy,
    );
    check(
        "http = \"127.0.0.1:7070\"\ntoken-file = »\"words\"",
        "`api.token-file`: the token is not one line of printable ASCII without spaces",
        remedy,
    );
    check(
        "http = \"127.0.0.1:7070\"\ntoken-file = \"token\"\nhosts = [»\"http://a/\"]",
        "`api.hosts.0`: \"http://a/\" is not a name and a port",
        "write what callers write in their URL, as \"wok.internal:7070\"",
    );
}

#[test]
fn a_token_in_plain_text_over_a_network_is_worth_a_warning() {
    let text =
        |address: &str| format!("{BEFORE}http = \"{address}:7070\"\ntoken-file = \"token\"\n");
    let warnings = |address: &str| {
        let warnings = directory().parse(&text(address)).unwrap().warnings;
        warnings.iter().filter(|it| it.message.contains("plain text")).count()
    };
    assert_eq!((warnings("127.0.0.1"), warnings("0.0.0.0")), (0, 1));
}
