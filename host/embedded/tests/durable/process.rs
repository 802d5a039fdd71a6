//! A server in a process of its own: this very test program, told so by its environment.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use wok_embedded::{EmbeddedZooKeeper, ServerOptions};

const DIRECTORY: &str = "WOK_SERVED_DIRECTORY";
const SNAPSHOT_COUNT: &str = "WOK_SERVED_SNAPSHOT_COUNT";
const SAYS: &str = "serving on ";

/// Serves until it is killed, or whoever started it is gone.
#[test]
fn serve_if_this_process_is_told_to() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let options = ServerOptions {
        data_dir: Some(directory.into()),
        snapshot_count: std::env::var(SNAPSHOT_COUNT).unwrap().parse().unwrap(),
        ..ServerOptions::for_tests()
    };
    let server = EmbeddedZooKeeper::start_with(options).unwrap();
    let line = format!("\n{SAYS}{}\n", server.connect_string());
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
    /// Kept open: it has more to say when it ends.
    _output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(directory: &Path, snapshot_count: u64) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "process::serve_if_this_process_is_told_to"])
            .env(DIRECTORY, directory)
            .env(SNAPSHOT_COUNT, snapshot_count.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "it says where it listens");
            if let Some(address) = line.trim_end().strip_prefix(SAYS) {
                break address.to_owned();
            }
        };
        Process { child, address, _output: output }
    }

    /// Lets the server end as it should.
    #[allow(dead_code, reason = "not every test that starts one needs it")]
    pub(crate) fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }

    /// As `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
