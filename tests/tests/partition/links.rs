//! What a cut link does, without ZooKeeper.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wok_tests::network::{Network, Site};
use wok_tests::patience::within;

/// Answers every byte with itself, in a site.
fn echo(site: &Site) -> SocketAddr {
    let site = site.clone();
    let (told, heard) = mpsc::channel();
    thread::spawn(move || {
        site.enter().unwrap();
        let listener = TcpListener::bind((site.address(), 0)).unwrap();
        told.send(listener.local_addr().unwrap()).unwrap();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || io::copy(&mut &stream, &mut &stream));
        }
    });
    heard.recv().unwrap()
}

async fn is_echoed(stream: &mut TcpStream) -> bool {
    stream.write_all(b"x").await.unwrap();
    // Long for a machine that talks to itself; what vanishes never comes.
    let answer = tokio::time::timeout(Duration::from_millis(500), stream.read_u8()).await;
    answer.is_ok_and(|byte| byte.unwrap() == b'x')
}

async fn comes_late(stream: &mut TcpStream) -> Result<()> {
    assert_eq!(within("what its sender sends again", stream.read_u8()).await??, b'x');
    Ok(())
}

#[tokio::test]
async fn what_is_sent_on_a_link_that_is_cut_vanishes_until_it_is_mended() -> Result<()> {
    let network = Network::new(3)?;
    let [a, b, c] = network.sites() else { panic!("three sites") };
    let (of_b, of_a) = (echo(b), echo(a));
    let mut a_to_b = a.connect(of_b).await?;
    let mut b_to_a = b.connect(of_a).await?;
    let mut c_to_b = c.connect(of_b).await?;
    let mut within_a = a.connect(of_a).await?;
    for stream in [&mut a_to_b, &mut b_to_a, &mut c_to_b, &mut within_a] {
        assert!(is_echoed(stream).await);
    }
    network.cut(0, 1)?;
    assert!(!is_echoed(&mut a_to_b).await && !is_echoed(&mut b_to_a).await);
    assert!(is_echoed(&mut c_to_b).await && is_echoed(&mut within_a).await);
    network.mend(0, 1)?;
    comes_late(&mut a_to_b).await?;
    comes_late(&mut b_to_a).await?;
    network.isolate(1)?;
    assert!(!is_echoed(&mut c_to_b).await && is_echoed(&mut within_a).await);
    network.join(1)?;
    comes_late(&mut c_to_b).await
}
