//! What the host does for a component, off the component's stack.
//!
//! The stack of a call keeps every page that was ever touched, and a participant that waits keeps
//! its stack. So requests to the ensemble, which go deep, are polled where the call is, and not in
//! it; and the component's code is entered again only when there is an answer.

use std::future::{Future, pending};
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

/// Something to be polled in the component's place. The host call that asked gets the answer.
pub(super) type Errand = BoxFuture<'static, ()>;

/// Makes an errand: the future is large before it is boxed, and that is to be off the stack, too.
type Start = Box<dyn FnOnce() -> Errand + Send>;

/// Where a host call leaves its errand, for the `Metered` call to poll. There is one at a time.
#[derive(Default)]
pub(in crate::guest) struct Errands {
    next: Mutex<Option<Start>>,
}

impl Errands {
    /// Has an errand done.
    ///
    /// # Cancellation
    /// The errand is dropped with the call that asked for it.
    pub(in crate::guest) async fn run<F>(
        &self,
        errand: impl FnOnce() -> F + Send + 'static,
    ) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let start = move || errand().map(|value| drop(answer.send(value))).boxed();
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(start));
        match answered.await {
            Ok(value) => value,
            // The call is being dropped, too.
            Err(_) => pending().await,
        }
    }

    /// The errand that was left since the last look.
    pub(super) fn take(&self) -> Option<Errand> {
        let start = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        start.map(|start| start())
    }
}

impl std::fmt::Debug for Errands {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Errands").finish_non_exhaustive()
    }
}
