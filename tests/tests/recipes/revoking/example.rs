//! The program of `examples/gives-way`: it finishes its step before it gives way, and comes back.

use anyhow::Result;
use wok_tests::guide::play_example_program;
use wok_tests::process::{OrderFile, Program};
use wok_tests::zookeeper;

use super::commands::{hold, revoke};

#[tokio::test]
async fn a_report_finishes_its_step_gives_way_and_goes_on_behind_who_asked() -> Result<()> {
    let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
    let go = order.path().display();
    // The first step takes until a line is in the file.
    let script = format!(
        "until grep -q ' go$' '{go}'; do sleep 0.05; done; {}",
        order.append("step $GIVES_WAY_STEP")
    );
    let report = Program::new(env!("CARGO_BIN_EXE_gives-way"))
        .args([zookeeper::shared().await.address(), &path, "3", "sh", "-c", &script])
        .start()?;
    report.wait_for_text("step 1 with fence").await?;
    let urgent = hold(&path, &[], &order.append("urgent")).await?;
    urgent.wait_for_text("standing in line").await?;
    assert_eq!(revoke(&path, &[]).await?, "asked");
    assert_eq!(report.status(), None, "the step is not stopped");
    assert_eq!(Program::shell(&order.append("go")).run().await?.code(), Some(0));
    report.wait_for_text("gives way after step 1").await?;
    assert_eq!(urgent.ended().await?.code(), Some(0));
    assert_eq!(report.ended().await?.code(), Some(0));
    assert_eq!(order.labels()?, ["go", "step 1", "urgent", "step 2", "step 3"]);
    Ok(())
}

#[tokio::test]
async fn the_example_does_what_its_page_says() -> Result<()> {
    play_example_program("gives-way", env!("CARGO_BIN_EXE_gives-way")).await
}
