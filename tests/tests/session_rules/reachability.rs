//! What a session that cannot be opened says: each problem in its own words, within a bound.

use std::time::Duration;

use anyhow::Result;
use tokio::net::TcpListener;
use wok::session::{
    ConnectError, ConnectOptions, CreateMode, SaslLogin, SeatLimits, Secret, Tls, TlsIdentity, open,
};
use wok_tests::patience::within;
use wok_tests::zookeeper::{self, Certificates, Options, Server};

use crate::room::{LONG_TIMEOUT, TIMEOUT, create, round_trip};

async fn refused(options: ConnectOptions) -> Result<ConnectError> {
    let outcome = within("an error", open(&options)).await?;
    Ok(outcome.expect_err("it cannot be opened"))
}

#[track_caller]
fn check_says(error: &ConnectError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

fn tls(certificates: &Certificates) -> Tls {
    let key = Secret::new(&certificates.client_key);
    let identity = TlsIdentity { certificate: certificates.client.clone(), key };
    Tls { ca: certificates.authority.clone(), identity: Some(identity) }
}

#[tokio::test]
async fn a_closed_port_is_named() -> Result<()> {
    let port = wok_tests::ports::free()?;
    let host = format!("127.0.0.1:{port}");
    let error = refused(ConnectOptions::new(&host, TIMEOUT)).await?;
    check_says(&error, &[&host, "connection refused"]);
    // Each host of several.
    let other = format!("127.0.0.1:{}", wok_tests::ports::free()?);
    let error = refused(ConnectOptions::new(format!("{host},{other}"), TIMEOUT)).await?;
    check_says(&error, &[&format!("{host}: connection refused"), &format!("{other}: ")]);
    Ok(())
}

#[tokio::test]
async fn a_host_without_an_address_is_named() -> Result<()> {
    let error = refused(ConnectOptions::new("zookeeper.invalid:2181", TIMEOUT)).await?;
    check_says(&error, &["zookeeper.invalid:2181", "no address"]);
    Ok(())
}

#[tokio::test]
async fn a_host_that_accepts_and_says_nothing_is_named_within_a_bound() -> Result<()> {
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let host = silent.local_addr()?.to_string();
    let error = refused(ConnectOptions::new(&host, Duration::from_secs(2))).await?;
    check_says(&error, &[&host, "no session"]);
    Ok(())
}

#[tokio::test]
async fn one_host_that_answers_is_enough() -> Result<()> {
    let closed = wok_tests::ports::free()?;
    let hosts = format!("127.0.0.1:{closed},{}", zookeeper::shared().await.address());
    let options = ConnectOptions::new(hosts, TIMEOUT);
    let session = within("a session", open(&options)).await??;
    session.close().await;
    Ok(())
}

#[tokio::test]
async fn tls_works_with_the_right_authority_and_names_what_is_wrong_otherwise() -> Result<()> {
    let certificates = Certificates::generate()?;
    let server = Server::start(Options::default().tls(&certificates)).await?;
    let secure = server.secure_address().expect("the options ask for it");
    // Long, because a server's first handshake is slow and the client waits two fifths of this.
    let with = |tls: Option<Tls>, hosts: &str| ConnectOptions {
        tls,
        ..ConnectOptions::new(hosts, 3 * LONG_TIMEOUT)
    };

    let session = open(&with(Some(tls(&certificates)), &secure)).await?;
    let seat = session.join("/tls", SeatLimits::default())?;
    seat.submit(create("/tls", CreateMode::Persistent)).await?;
    session.close().await;

    let strangers = Certificates::generate()?;
    let wrong = refused(with(Some(tls(&strangers)), &secure)).await?;
    check_says(&wrong, &[&secure, "tls handshake failed", "certificate"]);

    let nobody = Tls { identity: None, ..tls(&certificates) };
    let unnamed = refused(with(Some(nobody), &secure)).await?;
    check_says(&unnamed, &[&secure, "tls handshake failed", "cert-file"]);

    let plain_port = refused(with(Some(tls(&certificates)), server.address())).await?;
    check_says(&plain_port, &[server.address(), "tls handshake failed"]);

    let no_tls = refused(with(None, &secure)).await?;
    check_says(&no_tls, &[&secure, "no session", "tls"]);

    let garbled = Tls { ca: "not a certificate".into(), identity: None };
    let garbled = refused(with(Some(garbled), &secure)).await?;
    check_says(&garbled, &["ca-file"]);
    Ok(())
}

#[tokio::test]
async fn sasl_works_with_the_right_password_and_says_so_otherwise() -> Result<()> {
    let server = Server::start(Options::default().sasl_user("ada", "secret")).await?;
    let login = |password: &str| {
        let password = Secret::new(password);
        let sasl = Some(SaslLogin { user: "ada".into(), password });
        ConnectOptions { sasl, ..ConnectOptions::new(server.address(), LONG_TIMEOUT) }
    };
    let session = open(&login("secret")).await?;
    round_trip(&session.join("/", SeatLimits::default())?).await?;
    session.close().await;

    let error = refused(login("wrong")).await?;
    check_says(&error, &[server.address(), "credentials", "password"]);
    assert!(matches!(error, ConnectError::AuthFailed { .. }), "{error:?}");
    assert!(!format!("{error:?}").contains("wrong"), "the password is not repeated");
    Ok(())
}

/// Such a server takes every login for done.
#[tokio::test]
async fn a_sasl_login_that_the_server_does_not_know_of_opens_no_session() -> Result<()> {
    let server = zookeeper::shared().await;
    let login = SaslLogin { user: "ada".into(), password: Secret::new("secret") };
    let options = ConnectOptions::new(server.address(), LONG_TIMEOUT);
    let error = refused(ConnectOptions { sasl: Some(login), ..options }).await?;
    check_says(&error, &[server.address(), "SASL", "JAAS"]);
    assert!(matches!(error, ConnectError::NotLoggedIn { .. }), "{error:?}");
    Ok(())
}
