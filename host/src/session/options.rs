//! How to reach an ensemble and who we are there.

use std::fmt;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};

use super::contact::ContactRule;
use super::request::Acl;

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<secret>")
    }
}

/// An identity that a session adds, as ZooKeeper's `addauth` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The scheme, such as `digest`.
    pub scheme: String,
    /// What the scheme wants; for `digest`, `user:password`.
    pub secret: Secret,
}

/// A SASL DIGEST-MD5 login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaslLogin {
    /// The user.
    pub user: String,
    /// The password.
    pub password: Secret,
}

/// A client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// The certificate chain in PEM.
    pub certificate: String,
    /// Its key in PEM.
    pub key: Secret,
}

impl TlsIdentity {
    /// Whether the key is for certain another certificate's. Of a pair that cannot be read nothing is
    /// known.
    pub(crate) fn is_mismatched(&self) -> bool {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        let (Ok(chain), Ok(key)) = (chain, key) else { return false };
        let pair = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
        matches!(pair, Err(TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch)))
    }
}

/// TLS to ZooKeeper's secure port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the authorities that a server's certificate may come from, in PEM.
    pub ca: String,
    /// Our own certificate, where servers ask for one.
    pub identity: Option<TlsIdentity>,
}

/// How to reach an ensemble and who we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// `host:port` pairs, comma separated.
    pub hosts: String,
    /// The timeout to ask for; the server may grant another.
    pub session_timeout: Duration,
    /// Identities to add.
    pub auth: Vec<Credential>,
    /// A SASL login.
    pub sasl: Option<SaslLogin>,
    /// TLS, or plain TCP.
    pub tls: Option<Tls>,
    /// What the session's znodes get.
    pub acl: Acl,
    /// On whose word the session is believed in.
    pub contact: ContactRule,
}

impl ConnectOptions {
    /// Plain TCP, nobody in particular, znodes open to all.
    pub fn new(hosts: impl Into<String>, session_timeout: Duration) -> Self {
        ConnectOptions {
            hosts: hosts.into(),
            session_timeout,
            auth: Vec::new(),
            sasl: None,
            tls: None,
            acl: Acl::Open,
            contact: ContactRule::Quorum,
        }
    }
}

/// Why no session could be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No host answered as a ZooKeeper server would.
    #[error("cannot reach ZooKeeper at {hosts}: {reason}")]
    Unreachable {
        /// The hosts tried.
        hosts: String,
        /// What is wrong with each of them.
        reason: String,
    },
    /// The server refused the credentials, or demands some where none were given (`enforce.auth`): it
    /// answers both alike.
    #[error(
        "ZooKeeper at {hosts} refuses the credentials, or demands some where none are given: check \
         the user and the password, or give a login (`sasl` or `auth` in a config, --sasl-file or \
         --digest-file on the command line)"
    )]
    AuthFailed {
        /// The hosts tried.
        hosts: String,
    },
    /// The server knows nobody by the SASL login, because it has no SASL.
    #[error(
        "ZooKeeper at {hosts} knows nobody by the SASL login: give its servers a login section in JAAS and \
         the provider of `sasl` (`authProvider`), or leave the login out"
    )]
    NotLoggedIn {
        /// The hosts tried.
        hosts: String,
    },
    /// A certificate or key does not parse.
    #[error("the TLS {what} cannot be used: {reason}")]
    Certificate {
        /// Which file, by its configuration key.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}
