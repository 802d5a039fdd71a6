//! Opening sessions on a thread of their own.

use std::sync::Arc;
use std::thread;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::client::Client;
use super::epoch::Session;
use super::options::{ConnectError, ConnectOptions};
use crate::clock::{Clock, SystemClock};
use crate::tasks::Tasks;

/// Opens sessions. They live on a thread of their own, so that no guest, however busy, comes
/// between a session and its heartbeats.
#[derive(Debug)]
pub struct Opener {
    options: ConnectOptions,
    runtime: Handle,
    stop: CancellationToken,
    thread: Option<thread::JoinHandle<()>>,
}

impl Opener {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system refuses a thread or a poller.
    pub fn new(options: ConnectOptions) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("wok-session".to_owned())
            .spawn(move || runtime.block_on(stopped.cancelled()))?;
        Ok(Opener { options, runtime: handle, stop, thread: Some(thread) })
    }

    /// Opens a session, trying every host once.
    ///
    /// # Errors
    /// No host answered, or a host refused the credentials; the error names the hosts.
    pub async fn open(&self) -> Result<Session, ConnectError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let tasks = Tasks::on(self.runtime.clone());
        let options = self.options.clone();
        let contact = clock.now();
        let connecting = {
            let tasks = tasks.clone();
            // On that thread, because the crate starts its own task where it is called.
            self.runtime.spawn(async move { Client::connect(&options, &tasks).await })
        };
        let client = connecting.await.map_err(|failed| ConnectError::Unreachable {
            hosts: self.options.hosts.clone(),
            reason: format!("connecting failed: {failed}"),
        })??;
        Ok(Session::new(Box::new(client), self.options.acl, clock, contact, tasks))
    }

    /// How sessions are opened.
    pub fn options(&self) -> &ConnectOptions {
        &self.options
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been reported by its hook.
            thread.join().ok();
        }
    }
}
