//! One connection, from the accept to its end.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use super::caller::{Caller, until_process_ends};
use super::far_end::FarEnd;

/// How long the head of a request may take to come, and how long a connection may be idle. A client
/// on this machine sends a head at once.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// The head of a request, and what of an answer waits to be written: a stream's lines are short, and
/// what waits here is old when it is read.
const BUFFER: usize = 16 << 10;

/// How long a connection that is refused may take to read why.
const REFUSAL_LIMIT: Duration = Duration::from_secs(1);

/// How long hyper has to notice that the caller has gone before the connection is dropped.
const UNSEEN: Duration = Duration::from_millis(500);

/// How long a connection has to take what is left when nobody is served any more.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is said to a connection beyond the limit.
const FULL: &str = "{\"error\":\"unavailable\",\"message\":\"all connections of the API are taken: \
                    close some, or raise `connections` in [api]\"}\n";

/// Serves a connection to its end, or until `stopping`, when streams still end in order.
pub(super) async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    far_end: FarEnd,
    caller: Caller,
    router: Router,
    stopping: CancellationToken,
    _place: OwnedSemaphorePermit,
) {
    let caller = Arc::new(caller);
    let told = Arc::clone(&caller);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&told));
        router.clone().call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = std::pin::pin!(connection);
    let mut process = std::pin::pin!(until_process_ends(&caller.credentials));
    let mut gone = std::pin::pin!(async {
        far_end.closed().await;
        tokio::time::sleep(UNSEEN).await;
    });
    let mut is_stopping = false;
    // A client that reads takes the rest at once; one that does not must not keep the daemon from ending.
    let mut unread = std::pin::pin!(async {
        stopping.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    });
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection of the API ended");
                }
                return;
            }
            // What it asked for is given up at once. The connection may live on in a child.
            () = &mut process => return,
            () = &mut gone => return,
            () = caller.hang_up.cancelled() => return,
            () = &mut unread => return,
            () = stopping.cancelled(), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Tells a connection that there is no place for it.
pub(super) async fn refuse(mut io: impl AsyncRead + AsyncWrite + Unpin) {
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\nRetry-After: 1\r\n\r\n{FULL}",
        FULL.len()
    );
    let told = async {
        io.write_all(answer.as_bytes()).await?;
        io.shutdown().await?;
        // A client reads the answer when it has sent its request: closed before, it meets a broken pipe.
        tokio::io::copy(&mut (&mut io).take(BUFFER as u64), &mut tokio::io::sink()).await
    };
    // One that does not read is closed all the same.
    drop(tokio::time::timeout(REFUSAL_LIMIT, told).await);
}
