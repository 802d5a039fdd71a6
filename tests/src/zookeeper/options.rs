//! How a server is set up.

use std::time::Duration;

use super::certificates::Certificates;
use crate::network::Site;

/// Whether the server waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// It does, as in production.
    On,
    /// It does not: tests on a slow disk would measure the disk.
    Off,
}

/// How a server is set up. The default: 500 ms ticks (so sessions of 1 s to 10 s, expired at most
/// half a second late), no limit of connections, container and TTL znodes, no `fsync`, every
/// four-letter word, no admin server.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) tick: Duration,
    pub(super) fsync: Fsync,
    pub(super) tls: Option<Certificates>,
    pub(super) users: Vec<(String, String)>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) properties: Vec<(String, String)>,
    pub(super) jvm_options: Vec<String>,
    pub(super) home: Option<Site>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            tick: Duration::from_millis(500),
            fsync: Fsync::Off,
            tls: None,
            users: Vec::new(),
            settings: Vec::new(),
            properties: Vec::new(),
            jvm_options: Vec::new(),
            home: None,
        }
    }
}

impl Options {
    /// As the simulation's servers, which grant sessions of 1 s to 40 s. The limits, in ticks of
    /// 500 ms, are for how long servers that hear nothing of each other bear it, and how long one may
    /// take that begins to follow.
    pub fn as_simulated(sync_limit: u32, init_limit: u32) -> Self {
        Options::default()
            .setting("minSessionTimeout", "1000")
            .setting("maxSessionTimeout", "40000")
            .setting("syncLimit", &sync_limit.to_string())
            .setting("initLimit", &init_limit.to_string())
            // Those that look for a leader ask again soon, not after up to a minute.
            .property("zookeeper.fastleader.maxNotificationInterval", "400")
    }

    /// The server's unit of time. Sessions last between 2 and 20 ticks.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The server runs in a site of a network.
    #[must_use]
    pub fn at(mut self, site: &Site) -> Self {
        self.home = Some(site.clone());
        self
    }

    /// Whether the server waits for the disk.
    #[must_use]
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// Opens a second port that speaks TLS only and asks for a client certificate of the same
    /// authority. The plain port stays, for four-letter words.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        self.tls = Some(certificates.clone());
        self
    }

    /// Lets `user` authenticate by SASL (DIGEST-MD5). May be repeated.
    #[must_use]
    pub fn sasl_user(mut self, user: &str, password: &str) -> Self {
        self.users.push((user.into(), password.into()));
        self
    }

    /// A line of `zoo.cfg`. It comes last, so it overrides what the harness writes.
    #[must_use]
    pub fn setting(mut self, key: &str, value: &str) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// A Java system property.
    #[must_use]
    pub fn property(mut self, name: &str, value: &str) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// An option of the Java virtual machine. It comes last, so it overrides what the harness says.
    #[must_use]
    pub fn jvm_option(mut self, option: &str) -> Self {
        self.jvm_options.push(option.into());
        self
    }
}
