//! The local API: HTTP and JSON, for apps of any language.
//!
//! An app joins a recipe and follows its participant on the answer, whose lines come as things happen.
//! The open connection is what keeps the participant: it ends with the connection, or with the process
//! that made the connection.
//!
//! | question | file |
//! |---|---|
//! | where does the host listen? | `socket.rs`, `tcp.rs` |
//! | how long does a connection live? | `connection.rs`, `far_end.rs` |
//! | who calls, and may they? | `caller.rs`, `gate.rs`, `desk.rs` |
//! | which request goes where? | `routes.rs` |
//! | what keeps the participant of an app, and what ends it? | `attendance.rs`, `lease.rs` |
//! | what keeps a claim that an app runs something under? | `dependence.rs` |
//! | what is told as it happens? | `lines.rs`, `events.rs` |
//! | what is answered? | `join.rs`, `operations.rs`, `participants.rs`, `recipes.rs`, `host.rs` |
//! | what is said when something is wrong? | `problem.rs` |
//! | what does a program know of all that beforehand? | `openapi.rs` |

mod answer;
mod attendance;
mod body;
mod caller;
mod connection;
mod dependence;
mod desk;
mod events;
mod far_end;
mod gate;
mod host;
mod join;
pub(crate) mod json;
mod lease;
mod lines;
pub mod openapi;
mod operations;
mod participants;
mod problem;
mod recipes;
mod routes;
mod socket;
mod tcp;
mod unread;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "command-line")]
pub(crate) use body::LONGEST as LONGEST_TIMEOUT;
pub use desk::Served;
#[cfg(feature = "command-line")]
pub(crate) use lines::{answer_line, notice_line};
pub use socket::{BindError, default_socket, temporary_files};

use crate::config;
use crate::epochs::Epochs;
use crate::logbook::Logbook;
use crate::tasks::Tasks;
use attendance::Attendances;
use caller::{Caller, Credentials};
use desk::Desk;
use far_end::FarEnd;
use socket::Socket;
use tcp::Tcp;

/// How long nobody is accepted after an accept that failed, as where the process has no descriptor
/// left.
const PAUSE: Duration = Duration::from_millis(100);

/// How often that is told.
const COMPLAINT: Duration = Duration::from_secs(60);

/// What the kernel keeps of a stream that its app does not read. What waits there is old when it is
/// read, so a few lines are enough.
const SEND_BUFFER: usize = 16 << 10;

/// The API, listening.
#[derive(Debug)]
pub struct Api {
    socket: Socket,
    path: PathBuf,
    tcp: Option<Tcp>,
    connections: u32,
}

impl Api {
    /// Listens where the config says. Nobody is answered before [`serve`](Self::serve).
    ///
    /// # Errors
    /// A socket or an address cannot be had.
    ///
    /// # Cancellation
    /// Nothing is left that listens.
    pub async fn bind(config: &config::Api) -> Result<Self, BindError> {
        let path = config.socket.clone().unwrap_or_else(default_socket);
        let socket = Socket::bind(&path, config.socket_mode).await?;
        let tcp = match &config.http {
            Some(http) => Some(Tcp::bind(http).await?),
            None => None,
        };
        Ok(Api { socket, path, tcp, connections: config.connections })
    }

    /// The Unix socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves apps until `stopping`; then their participants leave, and are told so.
    ///
    /// # Cancellation
    /// Do not drop it; cancel `stopping`.
    pub async fn serve(
        self,
        epochs: Arc<Epochs>,
        served: BTreeMap<String, Served>,
        logbook: Arc<Logbook>,
        stopping: &CancellationToken,
    ) {
        let Api { socket, tcp, connections, .. } = self;
        let (tasks, gate) = (Tasks::on(Handle::current()), tcp.as_ref().map(Tcp::gate));
        let desk = Desk {
            epochs,
            served,
            attendances: Arc::new(Attendances::default()),
            tasks: Tasks::on(Handle::current()),
            stopping: stopping.clone(),
            logbook,
        };
        let desk = Arc::new(desk);
        let closing = CancellationToken::new();
        let door = Door {
            router: routes::router(Arc::clone(&desk), gate),
            places: Arc::new(Semaphore::new(connections as usize)),
            newest: Arc::default(),
            tasks: tasks.clone(),
            closing: closing.clone(),
        };
        // Until the last participant has left: an app that is asked to end what depends on its claim
        // needs one more request, to say that nothing depends on its claim.
        let until_left = async {
            stopping.cancelled().await;
            desk.tasks.join().await;
            closing.cancel();
        };
        tokio::join!(until_left, door.accept_local(&socket), async {
            if let Some(tcp) = &tcp {
                tcp.accept(&door, connections as usize).await;
            }
        });
        // The file goes first, so that nobody comes to a host that does not answer.
        drop((socket, tcp));
        tasks.join().await;
        desk.tasks.join().await;
    }
}

/// When it was told last that no connection can be accepted. Told at every attempt, it would fill the log in
/// which somebody looks for the reason.
#[derive(Debug, Default)]
struct Complaint(Option<Instant>);

impl Complaint {
    /// Whether it is time to tell it, which is noted.
    fn is_due(&mut self) -> bool {
        let is_due = self.0.is_none_or(|told| told.elapsed() >= COMPLAINT);
        if is_due {
            self.0 = Some(Instant::now());
        }
        is_due
    }
}

/// Where connections come in.
#[derive(Debug, Clone)]
struct Door {
    router: Router,
    places: Arc<Semaphore>,
    /// The number of the connection that was served last.
    newest: Arc<AtomicU64>,
    /// Those of connections.
    tasks: Tasks,
    /// Cancelled when nobody is served any more.
    closing: CancellationToken,
}

impl Door {
    async fn accept_local(&self, socket: &Socket) {
        let mut complaint = Complaint::default();
        while let Some(accepted) = self.closing.run_until_cancelled(socket.listener.accept()).await
        {
            match accepted {
                Ok((stream, _)) => self.admit_local(stream),
                Err(error) => self.pause(&error, &mut complaint).await,
            }
        }
    }

    fn admit_local(&self, stream: UnixStream) {
        let limited = set_socket_send_buffer_size(&stream, SEND_BUFFER);
        let credentials = limited.map_err(Into::into).and_then(|()| Credentials::of(&stream));
        match credentials.and_then(|credentials| Ok((credentials, FarEnd::of(&stream)?))) {
            Ok((credentials, far_end)) => self.admit(stream, far_end, credentials),
            // It has gone again, or there is no descriptor left.
            Err(error) => tracing::debug!(%error, "a caller cannot be served"),
        }
    }

    /// Serves a connection, or refuses it where there is no place.
    fn admit(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        far_end: FarEnd,
        credentials: Credentials,
    ) {
        match self.place() {
            Some(place) => self.serve(io, far_end, credentials, place),
            None => self.tasks.spawn("refusal", connection::refuse(io)),
        }
    }

    /// A place for a connection, if one is left.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Serves a connection that has its place.
    fn serve(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        far_end: FarEnd,
        credentials: Credentials,
        place: OwnedSemaphorePermit,
    ) {
        let caller = Caller {
            credentials,
            connection: self.newest.fetch_add(1, Ordering::Relaxed) + 1,
            hang_up: CancellationToken::new(),
        };
        let (router, closing) = (self.router.clone(), self.closing.clone());
        let serving = connection::serve(io, far_end, caller, router, closing, place);
        self.tasks.spawn("connection", serving);
    }

    async fn pause(&self, error: &std::io::Error, complaint: &mut Complaint) {
        if complaint.is_due() {
            tracing::warn!(%error, "cannot accept a connection of the API; trying again");
        }
        self.closing.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
    }
}
