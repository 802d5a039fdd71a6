//! Why no host gave us a session, in words: the client crate only says that none did.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::runtime::Handle;

use super::options::Tls;

/// How long a host may take to answer each step of a probe. The client has waited for it before;
/// this only finds out what it waited for.
const STEP: Duration = Duration::from_secs(2);

/// How long a server may take to complain about our certificate after the handshake, which in TLS
/// 1.3 is over for the client before the server has judged it.
const COMPLAINT: Duration = Duration::from_millis(500);

/// Tries every host of a connect string, all at a time; answers what is wrong with each, by its name
/// if there are several.
pub(super) async fn diagnose(hosts: &str, tls: Option<&Tls>, blocking: &Handle) -> String {
    let hosts = hosts.split('/').next().unwrap_or_default().split(',').map(str::trim);
    let hosts: Vec<&str> = hosts.filter(|host| !host.is_empty()).collect();
    if let [host] = *hosts {
        return probe(host, tls.cloned(), blocking).await;
    }
    let probes = hosts.into_iter().map(async |host| {
        let finding = probe(host, tls.cloned(), blocking).await;
        format!("{host}: {finding}")
    });
    join_all(probes).await.join("; ")
}

async fn probe(host: &str, tls: Option<Tls>, blocking: &Handle) -> String {
    let resolved = tokio::time::timeout(STEP, tokio::net::lookup_host(with_port(host))).await;
    let address = match resolved {
        Ok(Ok(mut addresses)) => addresses.next(),
        Ok(Err(error)) => return format!("no address is known for it: {error}"),
        Err(_elapsed) => return "no address for it was found in time".to_owned(),
    };
    let Some(address) = address else {
        return "no address is known for it".to_owned();
    };
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_owned();
    // tidy: it ends by itself after two steps, and its answer is awaited here
    let probed = blocking.spawn_blocking(move || reach(address, &name, tls.as_ref()));
    probed.await.unwrap_or_else(|failed| format!("it could not be probed: {failed}"))
}

/// A host without a port is at ZooKeeper's.
fn with_port(host: &str) -> String {
    if host.contains(':') { host.to_owned() } else { format!("{host}:2181") }
}

fn reach(address: SocketAddr, name: &str, tls: Option<&Tls>) -> String {
    let stream = match TcpStream::connect_timeout(&address, STEP) {
        Ok(stream) => stream,
        Err(error) => return in_words(&error),
    };
    match tls {
        None => "it accepts connections but granted no session: is it a ZooKeeper server, is it \
                 in a quorum, does this port want tls, are there as many connections from here \
                 as its maxClientCnxns allows?"
            .to_owned(),
        Some(tls) => match handshake(stream, name, tls) {
            Ok(()) => "tls works but it granted no session: is it a ZooKeeper server, is it in a \
                       quorum?"
                .to_owned(),
            Err(reason) if tls.identity.is_none() && reason.contains("alert") => format!(
                "tls handshake failed: {reason}; does it want a certificate of ours, cert-file \
                 and key-file?"
            ),
            Err(reason) => format!("tls handshake failed: {reason}"),
        },
    }
}

/// The operating system's word for it, without its number and in lowercase.
fn in_words(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::ConnectionReset => "connection reset".to_owned(),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "no answer in time".to_owned(),
        ErrorKind::UnexpectedEof => "it closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

fn handshake(stream: TcpStream, name: &str, tls: &Tls) -> Result<(), String> {
    let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned());
    let name = name.map_err(|error| error.to_string())?;
    let connection = ClientConnection::new(Arc::new(client_config(tls)?), name);
    let connection = connection.map_err(|error| error.to_string())?;
    let timeouts = |stream: &TcpStream, time| {
        stream.set_read_timeout(Some(time)).and_then(|()| stream.set_write_timeout(Some(time)))
    };
    timeouts(&stream, STEP).map_err(|error| in_words(&error))?;
    let mut stream = StreamOwned::new(connection, stream);
    stream.conn.complete_io(&mut stream.sock).map_err(|error| in_words(&error))?;
    timeouts(&stream.sock, COMPLAINT).map_err(|error| in_words(&error))?;
    match stream.read(&mut [0]) {
        // A server waits for us to speak first.
        Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => Ok(()),
        Err(error) => Err(in_words(&error)),
        Ok(_) => Ok(()),
    }
}

fn client_config(tls: &Tls) -> Result<ClientConfig, String> {
    let words = |error: rustls::pki_types::pem::Error| error.to_string();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(tls.ca.as_bytes()) {
        roots.add(certificate.map_err(words)?).map_err(|error| error.to_string())?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots);
    let Some(identity) = &tls.identity else { return Ok(config.with_no_client_auth()) };
    let chain = CertificateDer::pem_slice_iter(identity.certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(words)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(words)?;
    config.with_client_auth_cert(chain, key).map_err(|error| error.to_string())
}
