//! `counter` beside Curator's `DistributedAtomicLong`.

use anyhow::{Result, ensure};
use wok_tests::peers::Peer;
use wok_tests::process::Program;
use wok_tests::zookeeper;

/// What wok answers to a call.
async fn wok(path: &str, call: &[&str]) -> Result<String> {
    let server = zookeeper::shared().await;
    let options = ["call", "counter", "--mount", path, "--connect", server.address()];
    let ended = Program::wok()?.args(options).args(["--output", "json"]).args(call).run().await?;
    ensure!(ended.code() == Some(0), "{call:?}: {ended:?}");
    Ok(ended.stdout.trim().to_owned())
}

async fn curator() -> Result<Peer> {
    Peer::curator(zookeeper::shared().await.address()).await
}

#[tokio::test]
async fn wok_and_curator_read_and_change_one_number() -> Result<()> {
    let mut curator = curator().await?;
    // Each of them is the first to count on one of the znodes.
    let path = zookeeper::unique_path();
    assert_eq!(wok(&path, &["add", "by=5"]).await?, "5");
    assert_eq!(curator.call(&format!("counter get {path}")).await?, "5");
    let path = zookeeper::unique_path();
    assert_eq!(curator.call(&format!("counter add {path} 7 1")).await?, "7");
    assert_eq!(wok(&path, &["get"]).await?, "7");

    assert_eq!(wok(&path, &["add", "by=-300"]).await?, "-293");
    assert_eq!(curator.call(&format!("counter add {path} -7 1")).await?, "-300");
    let differs = wok(&path, &["compare-and-set", "expected=7", "value=0"]).await?;
    assert_eq!(differs, r#"{"differs":-300}"#);
    let set = wok(&path, &["compare-and-set", "expected=-300", "value=72623859790382856"]).await?;
    assert_eq!(set, r#""set""#);
    let swap = |expected: &str| format!("counter compare-and-set {path} {expected} -1");
    assert_eq!(curator.call(&swap("0")).await?, "differs 72623859790382856");
    assert_eq!(curator.call(&swap("72623859790382856")).await?, "set");
    assert_eq!(wok(&path, &["get"]).await?, "-1");
    Ok(())
}

#[tokio::test]
async fn what_wok_and_curator_add_at_one_time_is_all_there() -> Result<()> {
    let path = zookeeper::unique_path();
    let (mut one, mut other) = (curator().await?, curator().await?);
    one.send(&format!("counter add {path} 3 400"))?;
    other.send(&format!("counter add {path} -1 400"))?;
    let adds = async || -> Result<()> {
        for _ in 0..20 {
            wok(&path, &["add", "by=1000"]).await?;
        }
        Ok(())
    };
    tokio::try_join!(adds(), adds())?;
    one.answer().await?;
    other.answer().await?;
    let all = 3 * 400 - 400 + 2 * 20 * 1000;
    assert_eq!(wok(&path, &["get"]).await?, all.to_string());
    assert_eq!(one.call(&format!("counter get {path}")).await?, all.to_string());
    Ok(())
}
