//! The tests of other clients, unchanged, on the embedded server or on Apache ZooKeeper.
//!
//! They start their servers by `java`, and on the embedded server they find another one. What they
//! are expected to do is a checked-in list: none that passes on Apache ZooKeeper may be expected to
//! fail on wok without a reason that holds up.

mod expected;
pub mod kazoo;

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::process::wok_binary;

pub use expected::{Expected, Surprise};

const JARS: [&str; 5] = ["zookeeper", "slf4j-simple", "netty-all", "netty-codec", "netty-resolver"];

/// The server that the tests run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// The embedded one.
    Wok,
    /// Debian's Apache ZooKeeper.
    Apache,
}

impl On {
    /// Both.
    pub const ALL: [On; 2] = [On::Wok, On::Apache];

    /// As the lists name it.
    pub fn name(self) -> &'static str {
        match self {
            On::Wok => "wok",
            On::Apache => "apache",
        }
    }

    /// The one of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self> {
        match On::ALL.into_iter().find(|on| on.name() == name) {
            Some(on) => Ok(on),
            None => bail!("no server {name:?}; there are wok and apache"),
        }
    }

    /// Has `tests` find that server's `java` of `tests/java/` before any other, and
    /// [`class_path`] in `ZOOKEEPER_CLASSPATH`.
    ///
    /// # Errors
    /// If `wok` is needed and cannot be built.
    pub fn put_java(self, tests: &mut Command) -> Result<()> {
        let java = Path::new(env!("CARGO_MANIFEST_DIR")).join("java").join(self.name());
        let others = env::var("PATH").unwrap_or_default();
        tests
            .env("PATH", format!("{}:{others}", java.display()))
            .env("ZOOKEEPER_CLASSPATH", class_path());
        if self == On::Wok {
            tests.env("WOK_BINARY", wok_binary()?);
        }
        Ok(())
    }
}

/// The class path of Debian's Apache ZooKeeper.
pub fn class_path() -> String {
    JARS.map(|jar| format!("/usr/share/java/{jar}.jar")).join(":")
}
