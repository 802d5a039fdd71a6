//! What a request must show before it is looked at.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Request, header};
use axum::middleware::Next;
use axum::response::Response;
use subtle::ConstantTimeEq;

use super::caller::{Caller, Credentials};
use super::problem::Problem;
use crate::session::Secret;

/// What a request over TCP must show.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) token: Secret,
    /// What a caller may know the host by, in lower case.
    pub(super) hosts: Vec<String>,
    /// The port, where the host listens at all of this machine's addresses: a caller may know it by any.
    pub(super) any_address: Option<u16>,
}

/// Lets a request pass, or answers why not. A page in a browser never passes: it would act for a
/// person who knows nothing of it.
pub(super) async fn pass(
    State(gate): State<Option<Arc<Gate>>>,
    Extension(caller): Extension<Arc<Caller>>,
    request: Request<Body>,
    next: Next,
) -> Result<Response, Problem> {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) {
        let message =
            "the request comes from a web page (it has `Origin`), and pages are not served";
        return Err(Problem::forbidden(message));
    }
    match (&caller.credentials, &gate) {
        (Credentials::Local { .. }, _) => {}
        (Credentials::Remote, Some(gate)) => gate.check(headers)?,
        (Credentials::Remote, None) => return Err(Problem::unauthorized()),
    }
    Ok(next.run(request).await)
}

impl Gate {
    fn check(&self, headers: &HeaderMap) -> Result<(), Problem> {
        // An attacker can have a name of its own resolve to this machine, so that a browser takes this
        // host for the attacker's. Such a name is not among ours.
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = host.unwrap_or_default().to_ascii_lowercase();
        if !self.hosts.contains(&host) && !self.is_address(&host) {
            let message = "`Host` is not a name of this host: name it in `hosts` of [api] if it is";
            return Err(Problem::forbidden(message));
        }
        let shown = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        // RFC 9110, section 11.1: the case of a scheme's name means nothing.
        let shown = shown.and_then(|value| value.split_at_checked(b"Bearer ".len()));
        let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
        let shown = shown.map_or(&[][..], |(_, token)| token);
        match shown.ct_eq(self.token.expose().as_bytes()).into() {
            true => Ok(()),
            false => Err(Problem::unauthorized()),
        }
    }

    /// Whether that is an address of this machine, as far as need be known: a name that an attacker has
    /// resolve to this machine is no address.
    fn is_address(&self, host: &str) -> bool {
        let Some(port) = self.any_address else { return false };
        host.parse::<SocketAddr>().is_ok_and(|address| address.port() == port)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, StatusCode};

    use super::*;

    #[test]
    fn only_the_token_and_a_known_host_pass() {
        let (token, hosts) = (Secret::new("0123456789"), vec!["localhost:7070".into()]);
        let mut gate = Gate { token, hosts, any_address: None };
        let status_by = |gate: &Gate, host: Option<&'static str>, shown: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(host) = host {
                headers.insert(header::HOST, HeaderValue::from_static(host));
            }
            if let Some(shown) = shown {
                headers.insert(header::AUTHORIZATION, HeaderValue::from_static(shown));
            }
            gate.check(&headers).err().map(|problem| problem.status)
        };
        let status = |host, shown| status_by(&gate, host, shown);
        assert_eq!(status(Some("localhost:7070"), Some("Bearer 0123456789")), None);
        assert_eq!(status(Some("LOCALHOST:7070"), Some("bearer 0123456789")), None);
        let unauthorized = Some(StatusCode::UNAUTHORIZED);
        for shown in ["Bearer 012345678", "Bearer 01234567890", "Bearer ", "Basic x", "0123456789"]
        {
            assert_eq!(status(Some("localhost:7070"), Some(shown)), unauthorized, "{shown}");
        }
        assert_eq!(status(Some("localhost:7070"), None), unauthorized);
        let forbidden = Some(StatusCode::FORBIDDEN);
        for host in ["evil.example:7070", "localhost", "localhost:70700", "", "10.0.0.1:7070"] {
            assert_eq!(status(Some(host), Some("Bearer 0123456789")), forbidden, "{host}");
        }
        assert_eq!(status(None, Some("Bearer 0123456789")), forbidden);
        // Where it listens at every address.
        gate.any_address = Some(7070);
        let status = |host| status_by(&gate, Some(host), Some("Bearer 0123456789"));
        for host in ["10.0.0.1:7070", "[::1]:7070", "localhost:7070"] {
            assert_eq!(status(host), None, "{host}");
        }
        for host in ["evil.example:7070", "10.0.0.1", "10.0.0.1:7071", "10.0.0.1.evil.example:7070"]
        {
            assert_eq!(status(host), forbidden, "{host}");
        }
    }
}
