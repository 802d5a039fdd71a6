//! A command that comes while there is no quorum.

use std::time::Instant;

use anyhow::Result;
use wok_tests::patience::AT_ONCE;
use wok_tests::process::Program;
use wok_tests::zookeeper;

use crate::{Silence, ensemble};

#[tokio::test]
async fn a_lock_waits_for_a_quorum_and_says_so_once() -> Result<()> {
    let mut ensemble = ensemble(Silence::Borne).await?;
    let servers = ensemble.servers_mut();
    servers[0].kill();
    servers[1].kill();
    // The one that is left accepts connections, and serves nobody.
    let address = servers[2].address().to_owned();
    let lock = |patience: &str| {
        anyhow::Ok(
            Program::wok()?
                .args(["lock", "--connect", &address, "--connect-timeout", patience])
                .args([&zookeeper::unique_path(), "--", "echo", "held at last"]),
        )
    };
    let impatient = lock("0s")?;
    let lock = lock("1h")?.start()?;
    let said = lock.wait_for_text("trying for").await?.text;
    assert!(said.contains("is it in a quorum"), "{said}");
    // It has found out by now that it is alone.
    let begun = Instant::now();
    let ended = impatient.run().await?;
    assert!(begun.elapsed() < AT_ONCE, "told after {:?}", begun.elapsed());
    assert_eq!(ended.code(), Some(69), "{ended:?}");
    assert!(!ended.stderr.contains("trying"), "{}", ended.stderr);
    ensemble.mend().await?;
    let ended = lock.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "held at last\n");
    assert_eq!(ended.stderr.matches("trying for").count(), 1, "{}", ended.stderr);
    Ok(())
}
