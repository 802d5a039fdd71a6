//! A server in a process of its own: this very test program, told so by its environment.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use wok_embedded::{Server, ServerOptions};

const DIRECTORY: &str = "WOK_SERVED_DIRECTORY";
const SNAPSHOT_COUNT: &str = "WOK_SERVED_SNAPSHOT_COUNT";
const SAYS: &str = "serving on ";
const FAILED: &str = "failed: ";
const PREALLOCATION: &str = "WOK_SERVED_PREALLOCATION";

/// Serves until it is killed, or the process that started it is gone.
#[test]
fn serve_if_this_process_is_told_to() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let options = ServerOptions {
        data_dir: Some(directory.into()),
        snapshot_count: std::env::var(SNAPSHOT_COUNT).unwrap().parse().unwrap(),
        preallocation: std::env::var(PREALLOCATION).unwrap().parse().unwrap(),
        ..ServerOptions::for_tests()
    };
    let warnings = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
    warnings.with_ansi(false).without_time().init();
    let say = |what: &str, text: &str| {
        std::io::stdout().write_all(format!("\n{what}{text}\n").as_bytes()).unwrap();
    };
    let (gone, mut is_over) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        gone.send(()).ok();
    });
    let serve = async {
        let server = Server::start(options).await.unwrap();
        say(SAYS, &server.connect_string());
        tokio::select! {
            _ = &mut is_over => server.stop().await,
            () = server.stopped() => {
                let failure = server.failure().expect("a reason").to_string();
                server.stop().await;
                say(FAILED, &failure);
                is_over.await.unwrap();
            }
        }
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(serve);
}

pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
    /// Kept open: it has more to say when it ends.
    output: BufReader<ChildStdout>,
    /// What was read of it.
    heard: String,
}

/// How a server is set up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) snapshot_count: u64,
    pub(crate) preallocation: u64,
    pub(crate) open_files: u64,
}

impl Default for Setup {
    /// Small steps, so that logs on small disks grow more than once.
    fn default() -> Self {
        Setup { snapshot_count: u64::MAX, preallocation: 64 << 10, open_files: 1_000 }
    }
}

#[allow(dead_code, reason = "not every test that starts one needs all of it")]
impl Process {
    pub(crate) fn start(directory: &Path, snapshot_count: u64) -> Process {
        Process::start_with(directory, Setup { snapshot_count, ..Setup::default() })
    }

    pub(crate) fn start_with(directory: &Path, setup: Setup) -> Process {
        let Setup { snapshot_count, preallocation, open_files } = setup;
        // A file that must not grow is then an error to the server, and not its end.
        let script = format!("trap '' XFSZ; ulimit -n {open_files}; exec \"$0\" \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "process::serve_if_this_process_is_told_to"])
            .env(DIRECTORY, directory)
            .env(SNAPSHOT_COUNT, snapshot_count.to_string())
            .env(PREALLOCATION, preallocation.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Process { child, address: String::new(), output, heard: String::new() };
        process.address = process.hear(SAYS);
        process
    }

    /// Waits until the server has ended by itself, and tells why.
    pub(crate) fn failure(&mut self) -> String {
        self.hear(FAILED)
    }

    /// The rest of the next line that begins like this.
    fn hear(&mut self, what: &str) -> String {
        loop {
            let before = self.heard.len();
            assert_ne!(self.output.read_line(&mut self.heard).unwrap(), 0, "it says {what:?}");
            if let Some(rest) = self.heard[before..].trim_end().strip_prefix(what) {
                return rest.to_owned();
            }
        }
    }

    /// Refuses the server to write a file beyond so many bytes; `None` is no limit.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let pid = Pid::from_child(&self.child);
        prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    }

    /// Lets the server end as it should; answers all that it has said, its warnings included.
    pub(crate) fn stop(mut self) -> String {
        drop(self.child.stdin.take());
        self.output.read_to_string(&mut self.heard).unwrap();
        assert!(self.child.wait().unwrap().success());
        std::mem::take(&mut self.heard)
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
