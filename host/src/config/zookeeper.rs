//! `[zookeeper]`: how to reach the ensemble, and who we are there.

use std::path::Path;

use super::connect_string::Connect;
use super::credentials;
use super::quantity::BadValue;
use super::report::Report;
use super::section::{Field, Key, Section};
use super::session_timeout::SessionTimeout;
use crate::session::{Acl, ConnectOptions, ContactRule, Credential, SaslLogin, Tls};
use crate::znode_path::{PathError, ZnodePath};

const CONNECT: Key = Key::new("connect", "\"zk1:2181,zk2:2181,zk3:2181\"");
const SESSION_TIMEOUT: Key = Key::new("session-timeout", "\"10s\"");
const SESSIONS: Key = Key::new("sessions", "16");
const ROOT: Key = Key::new("root", "\"/wok\"");
const AUTH: Key = Key::new("auth", "[{ scheme = \"digest\", credentials-file = \"…\" }]");
const SASL: Key = Key::new("sasl", "{ credentials-file = \"…\" }");
const ACL: Key = Key::new("acl", "\"creator\"");
const CONTACT: Key = Key::new("contact", "\"quorum\"");
const TLS: Key = Key::new("tls", "{ ca-file = \"…\" }");

/// Sixteen have room for ten thousand participants, which is what an engine has room for, at mounts of
/// up to 67 bytes. They are a quarter of the connections that a server accepts from one address by
/// default (`maxClientCnxns`, 60), so several hosts can live on one machine.
pub(crate) const DEFAULT_SESSIONS: u32 = 16;

/// As many participants as an engine can have take 71, if their mounts are as long as they may be. A
/// hundred send a thousand heartbeats in a session timeout.
const MOST_SESSIONS: u32 = 100;

/// How to reach the ensemble, and who we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZooKeeper {
    /// The servers.
    pub connect: Connect,
    /// The session timeout to ask for.
    pub session_timeout: SessionTimeout,
    /// How many sessions may be open at a time.
    pub sessions: u32,
    /// What stands before every mount; the mounts of [`Recipe`](super::Recipe) have it already.
    pub root: ZnodePath,
    /// Identities to add to the session.
    pub auth: Vec<Credential>,
    /// A SASL login, if there is to be one.
    pub sasl: Option<SaslLogin>,
    /// TLS, or plain TCP.
    pub tls: Option<Tls>,
    /// What the znodes of this host get.
    pub acl: Acl,
    /// On whose word the session is believed in.
    pub contact: ContactRule,
}

impl ZooKeeper {
    /// What the session room takes. The hosts of an embedded server are known once it runs; until
    /// then there are none.
    pub fn connect_options(&self) -> ConnectOptions {
        let hosts = match &self.connect {
            Connect::Servers(servers) => servers.as_str(),
            Connect::Embedded => "",
        };
        ConnectOptions {
            hosts: hosts.to_owned(),
            session_timeout: self.session_timeout.get(),
            auth: self.auth.clone(),
            sasl: self.sasl.clone(),
            tls: self.tls.clone(),
            acl: self.acl,
            contact: self.contact,
        }
    }
}

/// What a pass makes of the section. Parts that the recipes depend on are known even where the whole
/// is not, so that no error hides another.
#[derive(Default)]
pub(super) struct Validated {
    /// The whole.
    pub(super) zookeeper: Option<ZooKeeper>,
    /// What stands before every mount.
    pub(super) root: Option<ZnodePath>,
    /// The session timeout to ask for.
    pub(super) session_timeout: Option<SessionTimeout>,
}

pub(super) fn validate(
    mut section: Section<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Validated {
    let connect = section.require(&CONNECT).and_then(|field| field.parsed(report));
    let is_embedded = connect == Some(Connect::Embedded);
    let session_timeout = match section.field(&SESSION_TIMEOUT) {
        Some(field) => field.parsed(report),
        None => Some(SessionTimeout::default()),
    };
    let sessions = match section.field(&SESSIONS) {
        Some(field) => field.integer(1..=MOST_SESSIONS, report),
        None => Some(DEFAULT_SESSIONS),
    };
    let root = match section.field(&ROOT) {
        Some(field) => field.parsed_by(read_path, report),
        None => Some(ZnodePath::root()),
    };
    let identities = identities(&mut section, is_embedded, directory, report);
    let acl = match section.field(&ACL) {
        Some(field) => acl_as_written(&field, identities.standing(), report),
        // Nobody else reaches it by accident.
        None if is_embedded && identities.standing() == Standing::Nobody => Some(Acl::Open),
        None => Some(acl_by_default(&section, identities.standing(), report)),
    };
    let contact = match section.field(&CONTACT) {
        Some(field) => contact_as_written(&field, report),
        None => Some(ContactRule::default()),
    };
    section.finish(report);
    let whole = || {
        let Identities { auth, sasl, tls } = identities;
        Some(ZooKeeper {
            connect: connect?,
            session_timeout: session_timeout?,
            sessions: sessions?,
            root: root.clone()?,
            auth: auth?,
            sasl: sasl?,
            tls: tls?,
            acl: acl?,
            contact: contact?,
        })
    };
    Validated { zookeeper: whole(), root, session_timeout }
}

/// Who we are to the servers; the outer none is for what could not be read.
struct Identities {
    auth: Option<Vec<Credential>>,
    sasl: Option<Option<SaslLogin>>,
    tls: Option<Option<Tls>>,
}

fn identities(
    section: &mut Section<'_>,
    is_embedded: bool,
    directory: &Path,
    report: &mut Report<'_>,
) -> Identities {
    let auth = match section.field(&AUTH) {
        Some(field) => credentials::auth(&field, directory, report),
        None => Some(Vec::new()),
    };
    let sasl = match section.field(&SASL) {
        Some(field) if is_embedded => lacking("SASL", &field, report),
        Some(field) => field
            .section(report)
            .and_then(|section| credentials::sasl(section, directory, report))
            .map(Some),
        None => Some(None),
    };
    let tls = match section.field(&TLS) {
        Some(field) if is_embedded => lacking("TLS", &field, report),
        Some(field) => field
            .section(report)
            .and_then(|section| credentials::tls(section, directory, report))
            .map(Some),
        None => Some(None),
    };
    Identities { auth, sasl, tls }
}

/// Refuses what the embedded server has not.
fn lacking<T>(what: &str, field: &Field<'_>, report: &mut Report<'_>) -> Option<T> {
    let fault = format!("the embedded server has no {what}");
    field.wrong(report, fault, "leave it out, or name the servers of an ensemble in `connect`");
    None
}

impl Identities {
    /// An identity that could not be read is still one that was meant.
    fn standing(&self) -> Standing {
        let has_certificate =
            |tls: &Option<Tls>| tls.as_ref().is_some_and(|tls| tls.identity.is_some());
        if self.auth.as_ref().is_none_or(|auth| !auth.is_empty())
            || self.sasl.as_ref().is_none_or(Option::is_some)
        {
            Standing::Login
        } else if self.tls.as_ref().is_none_or(has_certificate) {
            Standing::Certificate
        } else {
            Standing::Nobody
        }
    }
}

/// Reads a path of the ensemble.
pub(super) fn read_path(text: &str) -> Result<ZnodePath, BadValue> {
    ZnodePath::parse(text).map_err(|error| {
        let bad = BadValue::new(error.fault(), error.remedy());
        match error {
            PathError::ForbiddenCharacter { character, at } => {
                bad.at(at..at + character.len_utf8())
            }
            _ => bad,
        }
    })
}

/// Whom the ensemble will take the session for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Somebody that `auth` or `sasl` names.
    Login,
    /// The user that the client certificate names, if the servers look at the certificate.
    Certificate,
    /// Nobody in particular.
    Nobody,
}

fn acl_as_written(field: &Field<'_>, standing: Standing, report: &mut Report<'_>) -> Option<Acl> {
    match field.string(report)? {
        "open" => Some(Acl::Open),
        "creator" if standing == Standing::Nobody => {
            let what = "the session has no identity that znodes could belong to";
            field.wrong(report, what, "give `auth`, `sasl` or a certificate in `tls`");
            None
        }
        "creator" => Some(Acl::Creator),
        other => {
            let what = format!("{other:?} is not an ACL");
            field.wrong(report, what, "write \"creator\" or \"open\"");
            None
        }
    }
}

fn contact_as_written(field: &Field<'_>, report: &mut Report<'_>) -> Option<ContactRule> {
    match field.string(report)? {
        "quorum" => Some(ContactRule::Quorum),
        "leader" => Some(ContactRule::Leader),
        other => {
            let what = format!("nobody's word for a session is called {other:?}");
            let remedy = "write \"quorum\", or \"leader\" to save the heartbeats' transactions at \
                          the price that the guide names";
            field.wrong(report, what, remedy);
            None
        }
    }
}

/// A login is given to be used. A certificate may only be there because servers insist on one, and
/// whether they take it for an identity cannot be told from here.
fn acl_by_default(section: &Section<'_>, standing: Standing, report: &mut Report<'_>) -> Acl {
    if standing == Standing::Login {
        return Acl::Creator;
    }
    let remedy = match standing {
        Standing::Certificate => {
            "write `acl = \"creator\"` if the servers take the certificate for an identity, give \
             `auth`, or write `acl = \"open\"` if that is meant"
        }
        Standing::Login | Standing::Nobody => {
            "give `auth`, or write `acl = \"open\"` if that is meant"
        }
    };
    report.warning(
        section.place(),
        "the znodes of this host are open: all who reach the ensemble can delete a claim",
        remedy,
    );
    Acl::Open
}
