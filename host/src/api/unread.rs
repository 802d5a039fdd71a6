//! What a client has yet to send when it is refused.
//!
//! A client reads the answer when it has sent all of its request. If the connection is closed before,
//! the client meets a broken pipe instead of the error.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::Frame;

/// How long the rest of a refused request is waited for.
const LIMIT: Duration = Duration::from_millis(500);

/// How much of it is read at most.
const MOST: usize = 8 << 20;

/// Reads the rest of a request that is refused before the answer is sent.
pub(super) async fn read_rest(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let mut body = Shared(Arc::new(Mutex::new(body)));
    let given = Body::new(Shared(Arc::clone(&body.0)));
    let response = next.run(Request::from_parts(parts, given)).await;
    let status = response.status();
    if status.is_client_error() || status.is_server_error() {
        // One that sends no more, or too much, is answered all the same.
        drop(tokio::time::timeout(LIMIT, body.read()).await);
    }
    response
}

/// A body that the handler reads from, and `read_rest` after the handler.
struct Shared(Arc<Mutex<Body>>);

impl Shared {
    async fn read(&mut self) {
        let mut read = 0;
        while read < MOST {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await;
            let Some(Ok(frame)) = frame else { return };
            read += frame.data_ref().map_or(0, Bytes::len);
        }
    }
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }
}
