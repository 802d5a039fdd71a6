//! Apache ZooKeeper, as Debian packages it.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const JAR: &str = "/usr/share/java/zookeeper.jar";
/// A logger, and Netty's parts that the package depends on but does not load by itself.
const MORE: &str = "/usr/share/java/slf4j-simple.jar:/usr/share/java/netty-codec.jar:\
                    /usr/share/java/netty-resolver.jar";
/// A virtual machine on a busy computer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often another process may take the port before this gives up.
const STARTS: usize = 5;

pub(crate) struct Apache {
    child: Child,
    pub(crate) address: String,
    site: TempDir,
}

impl Apache {
    /// Starts a server on a data directory and waits until it serves.
    pub(crate) fn start(directory: &Path, snapshot_count: u64) -> Apache {
        Apache::start_with(directory, snapshot_count, "extendedTypesEnabled=true")
    }

    /// With a line of its config, as by default it is.
    pub(crate) fn start_with(directory: &Path, snapshot_count: u64, line: &str) -> Apache {
        for _ in 0..STARTS {
            if let Some(apache) = Apache::try_start(directory, snapshot_count, line) {
                return apache;
            }
        }
        panic!("no port that stays free");
    }

    fn try_start(directory: &Path, snapshot_count: u64, line: &str) -> Option<Apache> {
        let jar = std::env::var("WOK_ZOOKEEPER_JAR").unwrap_or_else(|_| JAR.to_owned());
        assert!(Path::new(&jar).exists(), "no Apache ZooKeeper at {jar}: run `cargo xtask setup`");
        let site = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let config = format!(
            "tickTime=2000\ndataDir={}\nclientPortAddress=127.0.0.1\nclientPort={port}\n\
             admin.enableServer=false\n4lw.commands.whitelist=*\n{line}\n",
            directory.display()
        );
        fs::write(site.path().join("zoo.cfg"), config).unwrap();
        let log = File::create(site.path().join("log")).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "java"])
            .args(["-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"])
            .arg(format!("-Dzookeeper.snapCount={snapshot_count}"))
            .arg("-Dzookeeper.preAllocSize=1024")
            .args(["-cp", &format!("{jar}:{MORE}")])
            .arg("org.apache.zookeeper.server.ZooKeeperServerMain")
            .arg(site.path().join("zoo.cfg"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("`setpriv` of util-linux: run `cargo xtask setup`");
        let mut apache = Apache { child, address: format!("127.0.0.1:{port}"), site };
        let deadline = Instant::now() + PATIENCE;
        while !apache.serves(directory) {
            let log = apache.log();
            if log.contains("java.net.BindException") {
                return None;
            }
            let has_ended = apache.child.try_wait().unwrap().is_some();
            assert!(
                !has_ended && Instant::now() < deadline,
                "Apache ZooKeeper does not serve (without Java, run `cargo xtask setup`):\n{log}"
            );
            // Between two questions, not instead of one.
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Some(apache)
    }

    fn serves(&self, directory: &Path) -> bool {
        let ask = |word: &str| -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            stream.write_all(word.as_bytes())?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        };
        // The second question tells it from a stranger who took its port.
        ask("srvr").is_ok_and(|text| text.contains("Mode: "))
            && ask("conf").is_ok_and(|text| text.contains(&directory.display().to_string()))
    }

    fn log(&self) -> String {
        fs::read_to_string(self.site.path().join("log")).unwrap()
    }

    /// As its script does.
    pub(crate) fn stop(mut self) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }

    /// As `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
