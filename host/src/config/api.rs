//! `[api]`: where apps reach the host, and who may.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::credentials::{matched, pem};
use super::file::{self, Content};
use super::quantity::BadValue;
use super::report::Report;
use super::section::{Field, Key, Section};
use crate::session::{Secret, TlsIdentity};

const SOCKET: Key = Key::new("socket", "\"/run/wok/wok.sock\"");
const SOCKET_MODE: Key = Key::new("socket-mode", "\"0600\"");
const CONNECTIONS: Key = Key::new("connections", "4096");
const HTTP: Key = Key::new("http", "\"127.0.0.1:7070\"");
const TOKEN_FILE: Key = Key::new("token-file", "\"/etc/wok/api-token\"");
const HOSTS: Key = Key::new("hosts", "[\"wok.internal:7070\"]");
const TLS: Key = Key::new("tls", "{ cert-file = \"…\", key-file = \"…\" }");
const CERT_FILE: Key = Key::new("cert-file", "\"/etc/wok/api.pem\"");
const KEY_FILE: Key = Key::new("key-file", "\"/etc/wok/api.key\"");

/// The user alone.
const DEFAULT_SOCKET_MODE: u32 = 0o600;

/// An app that follows a claim keeps one connection. With the descriptors that tell of its end and of its
/// process's end these take 12,288 of the descriptors that a process of systemd's may have, 524,288.
const DEFAULT_CONNECTIONS: u32 = 4_096;

/// All participants that an engine has room for, with some to spare.
const MOST_CONNECTIONS: u32 = 20_000;

/// A token must not be guessed: 32 characters of a random text are 128 bits even in hexadecimal.
const SHORTEST_TOKEN: usize = 32;

/// A name longer than that is none of DNS.
const LONGEST_HOST: usize = 262;

/// Where apps reach the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Api {
    /// The Unix socket; none for the one that is the user's by default.
    pub socket: Option<PathBuf>,
    /// Who may connect to it, as for `chmod`.
    pub socket_mode: u32,
    /// How many connections are served at a time, over the socket and over TCP each.
    pub connections: u32,
    /// HTTP over TCP as well, if it is asked for.
    pub http: Option<Http>,
}

/// HTTP over TCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Where to listen.
    pub address: SocketAddr,
    /// What a caller must show.
    pub token: Secret,
    /// Names that a caller may know the host by, beside the address itself and `localhost`.
    pub hosts: Vec<String>,
    /// The certificate, or plain HTTP.
    pub tls: Option<TlsIdentity>,
}

pub(super) fn validate(
    mut section: Section<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<Api> {
    let socket = match section.field(&SOCKET) {
        Some(field) => field.parsed_by(read_socket, report).map(|path| Some(directory.join(path))),
        None => Some(None),
    };
    let socket_mode = match section.field(&SOCKET_MODE) {
        Some(field) => field.parsed_by(read_mode, report),
        None => Some(DEFAULT_SOCKET_MODE),
    };
    let connections = match section.field(&CONNECTIONS) {
        Some(field) => field.integer(1..=MOST_CONNECTIONS, report),
        None => Some(DEFAULT_CONNECTIONS),
    };
    let http = http(&mut section, directory, report);
    section.finish(report);
    Some(Api { socket: socket?, socket_mode: socket_mode?, connections: connections?, http: http? })
}

/// The keys of HTTP over TCP; the outer none is for what has errors.
fn http(
    section: &mut Section<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<Option<Http>> {
    let address = section.field(&HTTP);
    let token = section.field(&TOKEN_FILE);
    let hosts = section.field(&HOSTS);
    let tls = section.field(&TLS);
    let Some(address) = address else {
        let mut is_well = true;
        for field in [&token, &hosts, &tls].into_iter().flatten() {
            let what = "it is for HTTP over TCP, which is not served";
            field.wrong(report, what, "write `http = \"127.0.0.1:7070\"` as well, or leave it out");
            is_well = false;
        }
        return is_well.then_some(None);
    };
    let place = address.place();
    let address = address.parsed_by(read_address, report);
    if token.is_none() {
        let remedy = "give `token-file`; `openssl rand -hex 32 > api-token; chmod 600 api-token` \
                      makes one";
        report.error(place.clone(), "`http` is given without `token-file`", remedy);
    }
    let token = token.and_then(|field| read_token(&field, directory, report));
    let hosts = match hosts {
        Some(field) => read_hosts(&field, report),
        None => Some(Vec::new()),
    };
    let identity = match tls {
        Some(field) => field
            .section(report)
            .and_then(|section| read_identity(section, directory, report))
            .map(Some),
        None => Some(None),
    };
    let http = Http { address: address?, token: token?, hosts: hosts?, tls: identity? };
    if http.tls.is_none() && !http.address.ip().is_loopback() {
        let what = "the token goes over the network in plain text";
        report.warning(place, what, "give `tls`, or listen on 127.0.0.1");
    }
    Some(Some(http))
}

fn read_socket(text: &str) -> Result<PathBuf, BadValue> {
    // `sun_path` has 108 bytes, one of them for the end (unix(7)).
    match text.len() {
        0 => Err(BadValue::new("the path is empty", "name a file, as \"/run/wok/wok.sock\"")),
        108.. => {
            let what = format!("the path has {} bytes", text.len());
            Err(BadValue::new(what, "use at most 107, which is all that a socket's name can have"))
        }
        _ => Ok(PathBuf::from(text)),
    }
}

fn read_mode(text: &str) -> Result<u32, BadValue> {
    let digits = text.strip_prefix('0').filter(|it| it.len() == 3);
    let mode = digits.and_then(|digits| u32::from_str_radix(digits, 8).ok());
    mode.ok_or_else(|| {
        let remedy = "write \"0600\" for the user alone, \"0660\" for its group as well, \"0666\" \
                      for all";
        BadValue::new(format!("{text:?} is no mode of a file"), remedy)
    })
}

fn read_address(text: &str) -> Result<SocketAddr, BadValue> {
    text.parse().map_err(|_| {
        BadValue::new(
            format!("{text:?} is not an address and a port"),
            "write it as \"127.0.0.1:7070\" or \"[::1]:7070\"",
        )
    })
}

fn read_token(field: &Field<'_>, directory: &Path, report: &mut Report<'_>) -> Option<Secret> {
    let text = file::read(field, directory, Content::Secret, report)?;
    let token = text.trim_end_matches(['\r', '\n']);
    let remedy = "make it one line of at least 32 random characters: `openssl rand -hex 32`";
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        field.wrong(report, "the token is not one line of printable ASCII without spaces", remedy);
        return None;
    }
    if token.len() < SHORTEST_TOKEN {
        let what = format!("the token has {} characters", token.len());
        field.wrong(report, what, remedy);
        return None;
    }
    Some(Secret::new(token))
}

fn read_hosts(field: &Field<'_>, report: &mut Report<'_>) -> Option<Vec<String>> {
    let items = field.array(report)?;
    let hosts = items.iter().map(|item| item.parsed_by(read_host, report));
    hosts.collect::<Vec<_>>().into_iter().collect()
}

fn read_host(text: &str) -> Result<String, BadValue> {
    let is_host = !text.is_empty()
        && text.len() <= LONGEST_HOST
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"/@?#*\\".contains(&byte))
        && port_of(text).is_none_or(|port| port.parse::<u16>().is_ok());
    match is_host {
        true => Ok(text.to_ascii_lowercase()),
        false => Err(BadValue::new(
            format!("{text:?} is not a name and a port"),
            "write what callers write in their URL, as \"wok.internal:7070\"",
        )),
    }
}

/// What stands behind the last colon, unless that is one of an address in brackets.
fn port_of(host: &str) -> Option<&str> {
    let (_, port) = host.rsplit_once(':')?;
    (!port.ends_with(']')).then_some(port)
}

fn read_identity(
    mut section: Section<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<TlsIdentity> {
    let certificate = section.require(&CERT_FILE);
    let key = section.require(&KEY_FILE);
    section.finish(report);
    let chain = certificate
        .as_ref()
        .and_then(|field| pem(field, directory, "CERTIFICATE", Content::Public, report));
    let secret = key
        .as_ref()
        .and_then(|field| pem(field, directory, "PRIVATE KEY", Content::Secret, report));
    let identity = TlsIdentity { certificate: chain?, key: Secret::new(secret?) };
    matched(identity, &certificate?, &key?, directory, report)
}
