//! Options of commands that open a session of their own.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};

use super::exit::Failure;
use super::way::Connection;
use crate::config::{
    BadValue, ConnectString, OTHER_KEY, SessionTimeout, check_pem, parse_duration, parse_login,
};
use crate::session::{
    Acl, ConnectOptions, Credential, SaslLogin, Secret, Timing, Tls, TlsIdentity,
};

/// Credentials and certificates are a few KiB; a device that never ends is not read for ever.
const MAX_BYTES: u64 = 1 << 20;

/// The variable that names the servers where the option does not.
const VARIABLE: &str = "WOK_CONNECT";

/// How to reach ZooKeeper.
#[derive(Debug, Args)]
#[command(next_help_heading = "ZooKeeper")]
pub(super) struct Connect {
    #[command(flatten)]
    named_by: NamedBy,

    /// The servers: host:port, comma separated.
    // Read by those that use it: others do not trip over what a variable says.
    #[arg(long, value_name = "HOSTS", env = VARIABLE)]
    connect: Option<OsString>,

    /// How long to try while no server grants a session, for example one that is starting, or while the
    /// running daemon has no session or is out of contact; `0s` tries once.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    connect_timeout: Duration,

    /// How long the session outlives a lost connection. The server may grant another.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parsed::<SessionTimeout>)]
    session_timeout: SessionTimeout,

    /// A file with `user:password` for the digest scheme.
    #[arg(long, value_name = "FILE")]
    digest_file: Option<PathBuf>,

    /// A file with `user:password` for a SASL DIGEST-MD5 login.
    #[arg(long, value_name = "FILE")]
    sasl_file: Option<PathBuf>,

    /// Who may touch the znodes created here: `creator` once there are credentials, else `open`.
    #[arg(long, value_enum)]
    acl: Option<AclChoice>,

    /// Speak TLS, and trust servers with certificates of these authorities (PEM).
    #[arg(long, value_name = "FILE")]
    tls_ca_file: Option<PathBuf>,

    /// The certificate to show to servers (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_ca_file", requires = "tls_key_file")]
    tls_cert_file: Option<PathBuf>,

    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_key_file: Option<PathBuf>,
}

/// What has named the servers. It stands before what it tells of, which is taken out of the matches.
#[derive(Debug, Clone, Copy)]
enum NamedBy {
    Option,
    Variable,
}

impl NamedBy {
    fn in_words(self) -> &'static str {
        match self {
            NamedBy::Option => "--connect",
            NamedBy::Variable => VARIABLE,
        }
    }
}

impl FromArgMatches for NamedBy {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(match matches.value_source("connect") {
            Some(ValueSource::EnvVariable) => NamedBy::Variable,
            _ => NamedBy::Option,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = NamedBy::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for NamedBy {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum AclChoice {
    Creator,
    Open,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|bad| in_words(&bad))
}

pub(super) fn parsed<T: FromStr<Err = BadValue>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|bad| in_words(&bad))
}

fn in_words(bad: &BadValue) -> String {
    format!("{}; {}", bad.message, bad.remedy)
}

impl Connect {
    /// The times of a session that is granted the timeout that is asked for.
    pub(super) fn timing(&self) -> Timing {
        self.session_timeout.timing()
    }

    /// How long to try while no server grants a session.
    pub(super) fn timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Whether the servers are named, here or in the environment.
    pub(super) fn connection(&self) -> Connection {
        match self.connect {
            Some(_) => Connection::Known,
            None => Connection::Unknown,
        }
    }

    /// Reads the files and checks the rest.
    ///
    /// # Errors
    /// What is wrong, by option.
    pub(super) fn options(&self) -> Result<ConnectOptions, Failure> {
        let Some(connect) = &self.connect else {
            return Err(Failure::Usage("--connect is missing: name the servers".to_owned()));
        };
        let connect = connect.to_string_lossy();
        let servers: ConnectString = connect.parse().map_err(|bad| {
            Failure::Usage(format!("{} {connect:?}: {}", self.named_by.in_words(), in_words(&bad)))
        })?;
        let mut options = ConnectOptions::new(servers.as_str(), self.session_timeout.get());
        if let Some(file) = &self.digest_file {
            let (user, password) = credentials("--digest-file", file)?;
            let secret = Secret::new(format!("{user}:{}", password.expose()));
            options.auth.push(Credential { scheme: "digest".to_owned(), secret });
        }
        if let Some(file) = &self.sasl_file {
            let (user, password) = credentials("--sasl-file", file)?;
            options.sasl = Some(SaslLogin { user, password });
        }
        options.tls = self.tls()?;
        options.acl = acl(self.acl, &options)?;
        Ok(options)
    }

    fn tls(&self) -> Result<Option<Tls>, Failure> {
        let Some(ca) = &self.tls_ca_file else { return Ok(None) };
        let identity = match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(certificate), Some(key)) => Some(tls_identity(certificate, key)?),
            _ => None,
        };
        Ok(Some(Tls { ca: pem("--tls-ca-file", ca, "CERTIFICATE")?, identity }))
    }
}

/// What the session's znodes get. A login is given to be used; a certificate may only be there because
/// servers insist on one, so it is taken for an identity where that is asked for.
fn acl(choice: Option<AclChoice>, options: &ConnectOptions) -> Result<Acl, Failure> {
    let has_login = !options.auth.is_empty() || options.sasl.is_some();
    let has_certificate = options.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
    match choice {
        Some(AclChoice::Open) => Ok(Acl::Open),
        Some(AclChoice::Creator) if has_login || has_certificate => Ok(Acl::Creator),
        Some(AclChoice::Creator) => Err(Failure::Usage(
            "--acl creator: there is no identity to be the creator; add --digest-file, \
             --sasl-file, or --tls-cert-file with --tls-key-file"
                .to_owned(),
        )),
        None if has_login => Ok(Acl::Creator),
        None => Ok(Acl::Open),
    }
}

fn credentials(option: &str, file: &Path) -> Result<(String, Secret), Failure> {
    parse_login(&read(option, file)?)
        .map_err(|bad| Failure::Usage(format!("{option} {}: {}", file.display(), in_words(&bad))))
}

fn tls_identity(certificate: &Path, key: &Path) -> Result<TlsIdentity, Failure> {
    let identity = TlsIdentity {
        certificate: pem("--tls-cert-file", certificate, "CERTIFICATE")?,
        key: Secret::new(pem("--tls-key-file", key, "PRIVATE KEY")?),
    };
    if identity.is_mismatched() {
        return Err(Failure::Usage(format!(
            "--tls-key-file {}: the key is not that of the certificate in --tls-cert-file {}; \
             {OTHER_KEY}",
            key.display(),
            certificate.display()
        )));
    }
    Ok(identity)
}

fn pem(option: &str, file: &Path, kind: &str) -> Result<String, Failure> {
    let text = read(option, file)?;
    match check_pem(&text, kind) {
        Ok(()) => Ok(text),
        Err(bad) => Err(Failure::Usage(format!("{option} {}: {}", file.display(), in_words(&bad)))),
    }
}

fn read(option: &str, file: &Path) -> Result<String, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{option} {}: {why}", file.display()));
    let open = File::open(file).map_err(|error| wrong(error.to_string()))?;
    let mut text = String::new();
    open.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(wrong(format!("it is larger than {} KiB", MAX_BYTES / 1024)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn znodes_belong_to_whom_a_login_names_or_on_request_a_certificate() {
        let nobody = ConnectOptions::new("zk1:2181", Duration::from_secs(10));
        let login = SaslLogin { user: "ann".to_owned(), password: Secret::new("geheim") };
        let login = ConnectOptions { sasl: Some(login), ..nobody.clone() };
        let identity = TlsIdentity { certificate: String::new(), key: Secret::new(String::new()) };
        let tls = |identity| Some(Tls { ca: String::new(), identity });
        let certificate = ConnectOptions { tls: tls(Some(identity)), ..nobody.clone() };
        let tls_alone = ConnectOptions { tls: tls(None), ..nobody.clone() };
        let chosen = |choice, options| acl(choice, options).ok();

        let creator = Some(AclChoice::Creator);
        assert_eq!(chosen(creator, &login), Some(Acl::Creator));
        assert_eq!(chosen(creator, &certificate), Some(Acl::Creator));
        assert_eq!(chosen(creator, &tls_alone), None);
        assert_eq!(chosen(creator, &nobody), None);
        assert_eq!(chosen(None, &login), Some(Acl::Creator));
        assert_eq!(chosen(None, &certificate), Some(Acl::Open));
        assert_eq!(chosen(Some(AclChoice::Open), &login), Some(Acl::Open));
    }
}
