//! What a link does that is cut or slow, without ZooKeeper.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use wok_tests::network::{Network, Site, Slowness};
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

/// A socket for datagrams, in a site.
fn datagrams(site: &Site) -> Result<UdpSocket> {
    let site = site.clone();
    let bound = thread::spawn(move || -> Result<std::net::UdpSocket> {
        site.enter()?;
        Ok(std::net::UdpSocket::bind((site.address(), 0))?)
    });
    let socket = bound.join().unwrap()?;
    socket.set_nonblocking(true)?;
    Ok(UdpSocket::from_std(socket)?)
}

async fn say(from: &UdpSocket, to: &UdpSocket, text: &str) -> Result<()> {
    from.send_to(text.as_bytes(), to.local_addr()?).await?;
    Ok(())
}

async fn heard(by: &UdpSocket) -> Result<String> {
    let mut bytes = [0; 16];
    let length = within("a datagram", by.recv(&mut bytes)).await??;
    Ok(String::from_utf8(bytes[..length].to_vec())?)
}

#[tokio::test]
async fn a_way_that_is_cut_leaves_the_other_way_as_it_is() -> Result<()> {
    let network = Network::new(2)?;
    let [a, b] = network.sites() else { panic!("two sites") };
    let sockets = [datagrams(a)?, datagrams(b)?];
    for (from, to) in [(0, 1), (1, 0)] {
        let (here, there) = (&sockets[from], &sockets[to]);
        say(here, there, "before").await?;
        assert_eq!(heard(there).await?, "before");
        network.cut(from, to)?;
        say(here, there, "lost").await?;
        say(there, here, "back").await?;
        assert_eq!(heard(here).await?, "back");
        network.mend(from, to)?;
        say(here, there, "after").await?;
        assert_eq!(heard(there).await?, "after", "of what was sent before, nothing has come");
    }
    Ok(())
}

/// Loses more than the link that the partitions are played on, so that a few datagrams show it.
const SLOW: Slowness = Slowness {
    delay: Duration::from_millis(100),
    jitter: Duration::from_millis(50),
    lost_percent: 30,
};

/// How many datagrams are measured. So many fit into a socket's buffer, whoever reads it late.
const MEASURED: usize = 100;

/// So many that one of them comes.
const ENOUGH: usize = 30;

/// How long each of them took that came.
async fn measure(from: &UdpSocket, to: &UdpSocket) -> Result<Vec<Duration>> {
    // The first ones wait until the sites know each other's hardware addresses.
    for _ in 0..ENOUGH {
        say(from, to, "hello").await?;
    }
    // A measurement before this one may have left its ends.
    let mut first = heard(to).await?;
    while first == "end" {
        first = heard(to).await?;
    }
    assert_eq!(first, "hello");
    let (mut sent, mut took) = (Vec::new(), Vec::new());
    for number in 0..MEASURED {
        sent.push(Instant::now());
        say(from, to, &number.to_string()).await?;
    }
    // What comes behind one of these was not lost but sent later: a link keeps the order.
    for _ in 0..ENOUGH {
        say(from, to, "end").await?;
    }
    loop {
        match heard(to).await?.as_str() {
            "hello" => {}
            "end" => return Ok(took),
            number => took.push(sent[number.parse::<usize>()?].elapsed()),
        }
    }
}

#[tokio::test]
async fn a_slow_link_delays_and_loses_as_it_was_asked_to_each_way() -> Result<()> {
    let mut network = Network::new(2)?;
    network.slow_down(1, SLOW)?;
    let [near, far] = network.sites() else { panic!("two sites") };
    let (near, far) = (datagrams(near)?, datagrams(far)?);
    for (from, to) in [(&near, &far), (&far, &near)] {
        let took = measure(from, to).await?;
        let lost = MEASURED - took.len();
        // Five standard deviations below the 30 that are to be expected, and more above.
        assert!((7..=70).contains(&lost), "{lost} lost");
        let (fastest, sum) = (took.iter().min().unwrap(), took.iter().sum::<Duration>());
        assert!(*fastest >= SLOW.delay - SLOW.jitter, "{took:?}");
        assert!(*fastest < SLOW.delay * 10, "{took:?}");
        // On average as long as was asked for, or longer, since one holds up those behind it.
        assert!(sum >= SLOW.delay * u32::try_from(took.len())?, "{took:?}");
    }
    network.change_slowness(1, Slowness::default())?;
    for (from, to) in [(&near, &far), (&far, &near)] {
        assert_eq!(measure(from, to).await?.len(), MEASURED, "nothing is lost any more");
    }
    Ok(())
}
