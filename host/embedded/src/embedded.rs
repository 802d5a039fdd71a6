//! A server for tests and development, within the process that uses it.

use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio_util::sync::CancellationToken;

use crate::files::{FilesError, Recovery};
use crate::front::{Server, ServerOptions, StartError, Status};

/// A ZooKeeper server of one's own: it starts on a free port of the loopback device and stops
/// when it is dropped. It has a thread and a runtime of its own, so that it serves blocking and
/// asynchronous programs alike. Its state is gone with it, unless [`ServerOptions::data_dir`] is set:
/// then [`EmbeddedZooKeeper::recovery`] tells how the start went, and
/// [`EmbeddedZooKeeper::failure`] why it ended, if the disk failed.
///
/// ```
/// use std::io::{Read, Write};
/// use wok_embedded::EmbeddedZooKeeper;
///
/// let zookeeper = EmbeddedZooKeeper::start()?;
/// // Any client connects to it.
/// let mut connection = std::net::TcpStream::connect(zookeeper.connect_string())?;
/// connection.write_all(b"srvr")?;
/// let mut answer = String::new();
/// connection.read_to_string(&mut answer)?;
/// assert!(answer.contains("Mode: standalone"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EmbeddedZooKeeper {
    connect_string: String,
    status: Status,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedZooKeeper {
    /// Starts a server that grants short session timeouts, answers all four-letter words and
    /// knows nodes with a time to live.
    ///
    /// # Errors
    /// If there is no free port, thread or randomness.
    pub fn start() -> Result<Self, StartError> {
        Self::start_with(ServerOptions::for_tests())
    }

    /// Starts a server with options of one's own.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start_with(options: ServerOptions) -> Result<Self, StartError> {
        let stop = CancellationToken::new();
        let (started, start) = mpsc::sync_channel(1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StartError::Runtime)?;
        let end = stop.clone();
        let serve = async move {
            match Server::start(options).await {
                Ok(server) => {
                    let status = server.status().clone();
                    // The thread that starts the server waits until it is told one or the other.
                    started.send(Ok((server.connect_string(), status))).ok();
                    tokio::select! {
                        () = end.cancelled() => {}
                        () = server.stopped() => {}
                    }
                    server.stop().await;
                }
                Err(error) => {
                    // As above.
                    started.send(Err(error)).ok();
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("zookeeper".to_owned())
            .spawn(move || runtime.block_on(serve))
            .map_err(StartError::Runtime)?;
        let gone = || StartError::Runtime(std::io::Error::other("the server's thread ended"));
        let (connect_string, status) = start.recv().unwrap_or_else(|_| Err(gone()))?;
        Ok(EmbeddedZooKeeper { connect_string, status, stop, thread: Some(thread) })
    }

    /// Where it listens, as clients want it.
    pub fn connect_string(&self) -> &str {
        &self.connect_string
    }

    /// See [`Server::recovery`].
    pub fn recovery(&self) -> Option<&Recovery> {
        self.status.recovery()
    }

    /// See [`Server::failure`].
    pub fn failure(&self) -> Option<&FilesError> {
        self.status.failure()
    }

    /// See [`Server::snapshot_failure`].
    pub fn snapshot_failure(&self) -> Option<String> {
        self.status.snapshot_failure()
    }

    /// Ends once the server does by itself: [`EmbeddedZooKeeper::failure`] then says why. It needs
    /// no runtime of a kind.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn stopped(&self) {
        self.status.stopped().await;
    }
}

impl Drop for EmbeddedZooKeeper {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // It fails if the server panicked, which its own message has told.
            thread.join().ok();
        }
    }
}
