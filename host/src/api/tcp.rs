//! HTTP over TCP, for those who ask for it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{
    set_socket_keepalive, set_socket_send_buffer_size, set_tcp_keepcnt, set_tcp_keepidle,
    set_tcp_keepintvl, set_tcp_user_timeout,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::caller::Credentials;
use super::far_end::FarEnd;
use super::gate::Gate;
use super::socket::BindError;
use super::{Complaint, Door, SEND_BUFFER};
use crate::config::Http;
use crate::session::TlsIdentity;

/// How long a TLS handshake may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// A caller's system that answers nothing for so long is gone: it is asked when nothing came from it for
/// `ASKED_AFTER`, and then every `ASKED_EVERY`. A network that fails closes no connection, and while an
/// operation is under way the daemon has nothing to send that would tell.
const GONE_AFTER: Duration = Duration::from_secs(25);
const ASKED_AFTER: Duration = Duration::from_secs(10);
const ASKED_EVERY: Duration = Duration::from_secs(5);
const ASKED: u32 = 3;

/// An address that is listened on.
pub(super) struct Tcp {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    gate: Arc<Gate>,
}

impl std::fmt::Debug for Tcp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tcp").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Tcp {
    pub(super) async fn bind(http: &Http) -> Result<Self, BindError> {
        let tls = http.tls.as_ref().map(acceptor).transpose()?;
        let io = |source| BindError::Tcp { address: http.address, source };
        let listener = TcpListener::bind(http.address).await.map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        tracing::info!(%address, tls = tls.is_some(), "the API is served over TCP");
        let mut hosts = http.hosts.clone();
        hosts.extend(own_names(address, tls.is_some()));
        let any_address = address.ip().is_unspecified().then_some(address.port());
        let gate = Arc::new(Gate { token: http.token.clone(), hosts, any_address });
        Ok(Tcp { listener, tls, gate })
    }

    /// What callers must show.
    pub(super) fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Lets callers in until the host stops. They have places of their own, so that who has no token
    /// keeps nobody out who needs none.
    pub(super) async fn accept(&self, door: &Door, places: usize) {
        let door = &Door { places: Arc::new(Semaphore::new(places)), ..door.clone() };
        let mut complaint = Complaint::default();
        while let Some(accepted) = door.closing.run_until_cancelled(self.listener.accept()).await {
            match accepted {
                Ok((stream, _)) => self.admit(door, stream),
                Err(error) => door.pause(&error, &mut complaint).await,
            }
        }
    }

    fn admit(&self, door: &Door, stream: TcpStream) {
        let far_end = match prepare(&stream).and_then(|()| FarEnd::of(&stream)) {
            Ok(far_end) => far_end,
            Err(error) => return tracing::debug!(%error, "a caller cannot be served"),
        };
        match &self.tls {
            None => door.admit(stream, far_end, Credentials::Remote),
            Some(acceptor) => {
                // Before the handshake there is no way to say it.
                let Some(place) = door.place() else {
                    return tracing::debug!("no place for a caller: the connection is closed");
                };
                let (acceptor, shaken) = (acceptor.clone(), door.clone());
                door.tasks.spawn("handshake", async move {
                    let handshake = acceptor.accept(stream);
                    let handshake = tokio::time::timeout(HANDSHAKE_LIMIT, handshake);
                    // A caller that says nothing does not hold up the end.
                    let closing = shaken.closing.clone();
                    let Some(handshake) = closing.run_until_cancelled(handshake).await else {
                        return;
                    };
                    match handshake {
                        Ok(Ok(stream)) => shaken.serve(stream, far_end, Credentials::Remote, place),
                        Ok(Err(error)) => tracing::debug!(%error, "no TLS with a caller"),
                        Err(_elapsed) => tracing::debug!("no TLS with a caller in time"),
                    }
                });
            }
        }
    }
}

/// Lines are short and wanted at once; few of them wait for an app that does not read; and a caller that has
/// gone is noticed.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    set_socket_send_buffer_size(stream, SEND_BUFFER)?;
    set_socket_keepalive(stream, true)?;
    set_tcp_keepidle(stream, ASKED_AFTER)?;
    set_tcp_keepintvl(stream, ASKED_EVERY)?;
    set_tcp_keepcnt(stream, ASKED)?;
    // Where something was sent that is not acknowledged, nobody is asked.
    let gone_after = u32::try_from(GONE_AFTER.as_millis()).unwrap_or(u32::MAX);
    set_tcp_user_timeout(stream, gone_after)?;
    Ok(())
}

/// What a caller on this machine calls the host.
fn own_names(address: SocketAddr, is_tls: bool) -> Vec<String> {
    let port = address.port();
    let is_default = port == if is_tls { 443 } else { 80 };
    let mut names = vec![address.to_string(), format!("localhost:{port}")];
    if is_default {
        names.push("localhost".to_owned());
        names.push(match address {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        });
    }
    names
}

fn acceptor(identity: &TlsIdentity) -> Result<TlsAcceptor, BindError> {
    let tls = |error: &dyn std::fmt::Display| BindError::Tls(error.to_string());
    let certificates = CertificateDer::pem_slice_iter(identity.certificate.as_bytes());
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(|it| tls(&it))?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.expose().as_bytes());
    let key = key.map_err(|error| tls(&error))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
        .map_err(|error| tls(&error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_of_this_machine_know_the_host_by_its_address() {
        let names = |address: &str, is_tls| own_names(address.parse().unwrap(), is_tls);
        assert_eq!(names("127.0.0.1:7070", false), ["127.0.0.1:7070", "localhost:7070"]);
        assert_eq!(names("[::1]:443", true), ["[::1]:443", "localhost:443", "localhost", "[::1]"]);
    }
}
