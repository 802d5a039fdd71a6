//! The slow lane, for calls that do not give the processor back.
//!
//! Participants share the threads of the host's runtime. Code of a component that runs through a
//! whole tick without an end in sight would make all of them wait, tick after tick; so from there
//! on it runs on one thread apart, which gives way to every other, until it blocks or returns.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::nice;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::turn::Turn;

/// As far back as an ordinary process may go: its work is done when nobody else has any.
const NICENESS: i32 = 19;

/// A call under way.
pub(in crate::guest) type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

type Job = Box<dyn FnOnce() + Send>;

/// The thread, for as long as the scheduler lives.
#[derive(Debug)]
pub(super) struct SlowLane {
    /// Taken to stop the thread. Unbounded; there is at most one job for each participant.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

/// A call's turn in the lane.
pub(super) struct Detour<T> {
    back: oneshot::Receiver<Return<T>>,
}

/// A call that comes back from the lane.
pub(super) struct Return<T> {
    /// The panic of a host call is passed on to the task that waits for the call.
    outcome: thread::Result<Outcome<T>>,
    /// Processor time of the turn.
    pub(super) took: Duration,
}

/// What a turn in the lane came to.
pub(super) enum Outcome<T> {
    /// The call is over.
    Done(T),
    /// It goes on.
    GoesOn(Running<T>),
}

impl<T> Return<T> {
    pub(super) fn outcome(self) -> Outcome<T> {
        self.outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl<T> Future for Detour<T> {
    type Output = Return<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Return<T>> {
        #[allow(clippy::expect_used, reason = "the scheduler of a call outlives it")]
        let back =
            |back: Result<_, _>| back.expect("the lane answers as long as its scheduler lives");
        Pin::new(&mut self.back).poll(context).map(back)
    }
}

impl SlowLane {
    pub(super) fn start() -> std::io::Result<Self> {
        let (jobs, inbox) = channel();
        let thread = thread::Builder::new().name("wok-slow".to_owned()).spawn(|| work(inbox))?;
        Ok(SlowLane { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Gives a call one turn, when those before it have had theirs.
    ///
    /// # Cancellation
    /// If the detour is dropped, the call is dropped after its turn, in the lane.
    pub(super) fn take_turn<T: Send + 'static>(
        &self,
        mut call: Running<T>,
        waker: Waker,
        turn: Arc<Turn>,
    ) -> Detour<T> {
        let (back, detour) = oneshot::channel();
        let runtime = Handle::current();
        let away = turn.detours.token();
        let job = move || {
            // What it asks of the runtime is meant for the one it comes from.
            let entered = runtime.enter();
            let started = processor_time();
            let in_turn = turn.begin();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                match call.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(output) => Outcome::Done(output),
                    Poll::Pending => Outcome::GoesOn(call),
                }
            }));
            drop(in_turn);
            let took = processor_time().saturating_sub(started);
            // If nobody waits for it, it ends here, before it is said to be back.
            drop(back.send(Return { outcome, took }));
            drop(entered);
            drop(away);
        };
        if let Some(jobs) = &self.jobs {
            // The thread outlives the scheduler; were it gone, the job and its call would be dropped.
            jobs.send(Box::new(job)).ok();
        }
        Detour { back: detour }
    }
}

fn work(inbox: Receiver<Job>) {
    // Without it the lane is only slower to give way.
    nice(NICENESS).ok();
    for job in inbox {
        job();
    }
}

/// That this thread has used.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(used.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), nanos)
}

impl Drop for SlowLane {
    fn drop(&mut self) {
        self.jobs = None;
        let Some(thread) = self.thread.take() else { return };
        // An abandoned call may hold the last of the scheduler: the thread then ends by itself.
        if thread.thread().id() != thread::current().id() {
            // Its jobs catch panics, so there is none to report.
            thread.join().ok();
        }
    }
}
