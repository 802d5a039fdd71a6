//! One server's directory and ports, and the files that make a server of them.

use std::env;
use std::fmt::Write;
use std::fs::{self, OpenOptions};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::options::{Fsync, Options};
use crate::{launch, network, ports, scratch};

/// ZooKeeper's usual ports, for servers that are alone at their address.
const CLIENT: u16 = 2181;
const QUORUM: u16 = 2888;
const ELECTION: u16 = 3888;

const JAR: &str = "/usr/share/java/zookeeper.jar";
/// Writes the server's log to standard error and needs no configuration file.
const LOGGER: &str = "/usr/share/java/slf4j-simple.jar";
/// Netty's parts that Debian's package of ZooKeeper depends on but does not load by itself.
const NETTY: &str = "/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar";

/// A server of an ensemble, as the others see it.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    address: Ipv4Addr,
    quorum: u16,
    election: u16,
}

impl Peer {
    pub(super) fn new() -> Result<Self> {
        let address = Ipv4Addr::LOCALHOST;
        Ok(Peer { address, quorum: ports::free()?, election: ports::free()? })
    }

    /// One that has all the ports of its site.
    pub(super) fn at(site: &network::Site) -> Self {
        Peer { address: site.address(), quorum: QUORUM, election: ELECTION }
    }

    /// Where it listens for those that follow it.
    pub(super) fn quorum_address(&self) -> String {
        format!("127.0.0.1:{}", self.quorum)
    }

    /// The same server, to be followed by way of another port.
    pub(super) fn by_way_of(&self, quorum: u16) -> Self {
        Peer { quorum, ..self.clone() }
    }
}

/// A server's place in its ensemble.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    /// From 1.
    pub(super) id: usize,
    /// All of them, as this one reaches them.
    pub(super) peers: Vec<Peer>,
}

#[derive(Debug)]
pub(super) struct Site {
    directory: TempDir,
    options: Options,
    membership: Option<Membership>,
    pub(super) client_port: u16,
    pub(super) secure_port: Option<u16>,
}

impl Site {
    pub(super) fn new(options: Options, membership: Option<Membership>) -> Result<Self> {
        let secure_port = if options.tls.is_some() { Some(ports::free()?) } else { None };
        let client_port = if options.home.is_some() { CLIENT } else { ports::free()? };
        let directory = scratch::dir()?;
        let site = Site { directory, options, membership, client_port, secure_port };
        site.write_files()?;
        Ok(site)
    }

    /// The address that it is reached at.
    pub(super) fn host(&self) -> Ipv4Addr {
        self.options.home.as_ref().map_or(Ipv4Addr::LOCALHOST, network::Site::address)
    }

    /// Where it runs, if not on this machine's own network.
    pub(super) fn home(&self) -> Option<&network::Site> {
        self.options.home.as_ref()
    }

    /// Where the server says its data is: what tells it from a stranger on the same port.
    pub(super) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.directory.path().join("server.log")
    }

    fn write_files(&self) -> Result<()> {
        let file = |name: &str, text: &str| {
            let path = self.directory.path().join(name);
            fs::write(&path, text).with_context(|| format!("write {}", path.display()))
        };
        fs::create_dir(self.data())?;
        file("zoo.cfg", &self.config())?;
        if let Some(Membership { id, .. }) = &self.membership {
            file("data/myid", &id.to_string())?;
        }
        if let Some(tls) = &self.options.tls {
            file("server.pem", &format!("{}{}", tls.server_key, tls.server))?;
            file("authority.pem", &tls.authority)?;
        }
        if !self.options.users.is_empty() {
            file("jaas.conf", &self.jaas())?;
        }
        Ok(())
    }

    fn config(&self) -> String {
        let directory = self.directory.path().display();
        let tick = self.options.tick.as_millis();
        let mut config = format!(
            "tickTime={tick}\n\
             initLimit=20\n\
             syncLimit=10\n\
             dataDir={directory}/data\n\
             clientPortAddress={}\n\
             clientPort={}\n\
             maxClientCnxns=0\n\
             admin.enableServer=false\n\
             4lw.commands.whitelist=*\n\
             extendedTypesEnabled=true\n",
            self.host(),
            self.client_port
        );
        let mut line = |text: std::fmt::Arguments| {
            writeln!(config, "{text}").expect("a string takes everything");
        };
        if self.options.fsync == Fsync::Off {
            line(format_args!("forceSync=no"));
        }
        if let Some(Membership { peers, .. }) = &self.membership {
            for (index, Peer { address, quorum, election }) in peers.iter().enumerate() {
                line(format_args!("server.{}={address}:{quorum}:{election}", index + 1));
            }
        }
        if let Some(port) = self.secure_port {
            let host = self.host();
            line(format_args!("secureClientPortAddress={host}\nsecureClientPort={port}"));
            line(format_args!(
                "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
                 ssl.keyStore.location={directory}/server.pem\n\
                 ssl.keyStore.type=PEM\n\
                 ssl.trustStore.location={directory}/authority.pem\n\
                 ssl.trustStore.type=PEM\n\
                 ssl.clientAuth=need"
            ));
        }
        if !self.options.users.is_empty() {
            line(format_args!(
                "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
            ));
        }
        for (key, value) in &self.options.settings {
            line(format_args!("{key}={value}"));
        }
        config
    }

    fn jaas(&self) -> String {
        let users: String = (self.options.users.iter())
            .map(|(user, password)| format!("  user_{user}=\"{password}\"\n"))
            .collect();
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
        format!("Server {{\n  {module} required\n{users};\n}};\n")
    }

    /// The command that runs the server, its log appended to a file.
    pub(super) fn command(&self) -> Result<Command> {
        let jar = env::var("WOK_ZOOKEEPER_JAR").unwrap_or_else(|_| JAR.to_owned());
        anyhow::ensure!(
            fs::exists(&jar)?,
            "no Apache ZooKeeper at {jar}: install Debian's packages `zookeeper` and \
             `default-jre-headless`, or name the jar in WOK_ZOOKEEPER_JAR"
        );
        // A directory has all that a server needs, in versions that fit.
        let class_path = match fs::metadata(&jar)?.is_dir() {
            true => format!("{jar}/*"),
            false => format!("{jar}:{LOGGER}:{NETTY}"),
        };
        let log = OpenOptions::new().create(true).append(true).open(self.log_path())?;
        let mut command = match &self.options.home {
            None => launch::command("java"),
            Some(home) => {
                let [program, arguments @ ..] = home.prefix();
                let mut command = launch::command(program);
                command.args(arguments).arg("java");
                command
            }
        };
        command
            // The least that a small heap needs, and a short start before fast running.
            .args(["-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"])
            .arg("-Dorg.slf4j.simpleLogger.showDateTime=true")
            // In KiB: the default preallocates 64 MiB for every server of every test.
            .arg("-Dzookeeper.preAllocSize=1024");
        if !self.options.users.is_empty() {
            let jaas = self.directory.path().join("jaas.conf");
            command.arg(format!("-Djava.security.auth.login.config={}", jaas.display()));
        }
        for (name, value) in &self.options.properties {
            command.arg(format!("-D{name}={value}"));
        }
        let main = match self.membership {
            None => "org.apache.zookeeper.server.ZooKeeperServerMain",
            Some(_) => "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        };
        command.args(&self.options.jvm_options);
        command
            .args(["-cp", &class_path, main])
            .arg(self.directory.path().join("zoo.cfg"))
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }
}
