//! Who we are to the ensemble. Secrets come only from files and are never printed.

use std::path::Path;

use super::file::{self, Content};
use super::quantity::BadValue;
use super::report::Report;
use super::section::{Field, Key, Section};
use crate::session::{Credential, SaslLogin, Secret, Tls, TlsIdentity};

const SCHEME: Key = Key::new("scheme", "\"digest\"");
const CREDENTIALS_FILE: Key = Key::new("credentials-file", "\"/etc/wok/zookeeper-credentials\"");
const CA_FILE: Key = Key::new("ca-file", "\"/etc/wok/ca.pem\"");
const CERT_FILE: Key = Key::new("cert-file", "\"/etc/wok/client.pem\"");
const KEY_FILE: Key = Key::new("key-file", "\"/etc/wok/client.key\"");

/// ZooKeeper adds each identity with a request of its own at every reconnect.
const MAX_IDENTITIES: usize = 16;

/// What mends a key that is not its certificate's.
pub(crate) const OTHER_KEY: &str = "name the key that the certificate was made with; where the \
    certificate's file has several, the one of that key stands first";

/// `auth`: a list of identities.
pub(super) fn auth(
    field: &Field<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<Vec<Credential>> {
    let items = field.array(report)?;
    if items.len() > MAX_IDENTITIES {
        let what = format!("{} identities are listed", items.len());
        field.wrong(report, what, format!("list at most {MAX_IDENTITIES}"));
        return None;
    }
    let credentials: Vec<Option<Credential>> = items
        .iter()
        .map(|item| {
            let section = item.section(report)?;
            credential(section, directory, report)
        })
        .collect();
    credentials.into_iter().collect()
}

fn credential(
    mut section: Section<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<Credential> {
    let scheme = section.require(&SCHEME).and_then(|field| {
        let scheme = field.string(report)?;
        if scheme == "digest" {
            return Some(scheme.to_owned());
        }
        let remedy = match scheme {
            "sasl" => "give the login as `sasl = { credentials-file = \"…\" }` instead",
            "x509" => "give the certificate in `tls` instead",
            _ => "write `scheme = \"digest\"`",
        };
        field.wrong(report, format_args!("{scheme:?} is not a scheme that sessions add"), remedy);
        None
    });
    let login = login(&mut section, directory, report);
    section.finish(report);
    let (user, password) = login?;
    Some(Credential {
        scheme: scheme?,
        secret: Secret::new(format!("{user}:{}", password.expose())),
    })
}

/// `sasl`: a login.
pub(super) fn sasl(
    mut section: Section<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<SaslLogin> {
    let login = login(&mut section, directory, report);
    section.finish(report);
    let (user, password) = login?;
    Some(SaslLogin { user, password })
}

/// Reads a user and a password from the file that the section names.
fn login(
    section: &mut Section<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<(String, Secret)> {
    let field = section.require(&CREDENTIALS_FILE)?;
    let name = field.string(report)?;
    if name.contains(':') && !directory.join(name).exists() {
        // Not repeated: it is most likely the password.
        let what = "there is no such file, and it looks like the credentials themselves";
        field.wrong(report, what, "put `user:password` into a file and name that");
        return None;
    }
    let text = file::read(&field, directory, Content::Secret, report)?;
    match parse_login(&text) {
        Ok(login) => Some(login),
        Err(wrong) => {
            field.wrong(report, wrong.message, wrong.remedy);
            None
        }
    }
}

/// The user and the password of a credentials file's text.
///
/// # Errors
/// It is not one line of `user:password`.
pub fn parse_login(text: &str) -> Result<(String, Secret), BadValue> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let wrong = match line.split_once(':') {
        _ if line.is_empty() => "the file is empty",
        _ if line.contains(['\n', '\r', '\0']) => "the file has more than one line",
        None => "the file has no colon between user and password",
        Some(("", _)) => "the file names no user",
        Some((_, "")) => "the file has no password",
        Some((user, password)) => return Ok((user.to_owned(), Secret::new(password))),
    };
    Err(BadValue::new(wrong, "make it one line, `user:password`"))
}

/// `tls`: whom to trust, and our own certificate.
pub(super) fn tls(
    mut section: Section<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<Tls> {
    let ca = section
        .require(&CA_FILE)
        .and_then(|field| pem(&field, directory, "CERTIFICATE", Content::Public, report));
    let place = section.place();
    let certificate = section.field(&CERT_FILE);
    let key = section.field(&KEY_FILE);
    let identity = match (certificate, key) {
        (None, None) => Some(None),
        (Some(certificate), Some(key)) => {
            let chain = pem(&certificate, directory, "CERTIFICATE", Content::Public, report);
            let secret = pem(&key, directory, "PRIVATE KEY", Content::Secret, report);
            chain.zip(secret).and_then(|(chain, secret)| {
                let identity = TlsIdentity { certificate: chain, key: Secret::new(secret) };
                matched(identity, &certificate, &key, directory, report).map(Some)
            })
        }
        (Some(_), None) => {
            let what = "`cert-file` is given without `key-file`";
            report.error(place, what, "give both, or neither if servers ask for no certificate");
            None
        }
        (None, Some(_)) => {
            let what = "`key-file` is given without `cert-file`";
            report.error(place, what, "give both, or neither if servers ask for no certificate");
            None
        }
    };
    section.finish(report);
    Some(Tls { ca: ca?, identity: identity? })
}

/// Reads a PEM file and makes sure that it is of the kind the key asks for: mixed up names are the
/// usual mistake.
pub(super) fn pem(
    field: &Field<'_>,
    directory: &Path,
    kind: &str,
    content: Content,
    report: &mut Report<'_>,
) -> Option<String> {
    let text = file::read(field, directory, content, report)?;
    match check_pem(&text, kind) {
        Ok(()) => Some(text),
        Err(BadValue { message, remedy, .. }) => {
            field.wrong(report, message, remedy);
            None
        }
    }
}

/// Refuses a certificate with the key of another: nobody could be spoken to with it.
pub(super) fn matched(
    identity: TlsIdentity,
    certificate: &Field<'_>,
    key: &Field<'_>,
    directory: &Path,
    report: &mut Report<'_>,
) -> Option<TlsIdentity> {
    if !identity.is_mismatched() {
        return Some(identity);
    }
    let certificate_file = directory.join(certificate.string(report)?);
    let key_file = directory.join(key.string(report)?);
    let what = format!(
        "the key in {} is not that of the certificate in `cert-file` {}",
        key_file.display(),
        certificate_file.display()
    );
    key.wrong(report, what, OTHER_KEY);
    None
}

/// Whether a file's text has a block of the kind that is asked for.
pub(crate) fn check_pem(text: &str, kind: &str) -> Result<(), BadValue> {
    let is_head =
        |line: &str| line.starts_with("-----BEGIN ") && line.ends_with(&format!("{kind}-----"));
    if text.lines().map(str::trim_end).any(is_head) {
        return Ok(());
    }
    let message = format!("the file has no PEM block of kind `{kind}`");
    Err(BadValue::new(message, "name a PEM file; `openssl` converts other formats"))
}
