//! A command that comes while there is no quorum.

use anyhow::Result;
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
    let lock = Program::wok()?
        .args(["lock", "--connect", &address, "--connect-timeout", "1h"])
        .args([&zookeeper::unique_path(), "--", "echo", "held at last"])
        .start()?;
    let said = lock.wait_for_text("trying for").await?.text;
    assert!(said.contains("is it in a quorum"), "{said}");
    ensemble.mend().await?;
    let ended = lock.ended().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert_eq!(ended.stdout, "held at last\n");
    assert_eq!(ended.stderr.matches("trying for").count(), 1, "{}", ended.stderr);
    Ok(())
}
