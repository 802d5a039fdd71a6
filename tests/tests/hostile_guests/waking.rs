//! What `wake` does wrong.

use anyhow::Result;
use serde_json::{Value, json};
use wok::participant::{Ending, Loss};
use wok_tests::patience::eventually;

use crate::scene::{Guest, Scene};

fn at_once(then: &str) -> Value {
    json!({"after-ms": 1, "then": then})
}

/// How often `wake` was called.
async fn woken(guest: &Guest) -> u64 {
    let woken = guest.answer("woken", json!({})).await.unwrap();
    woken[0].as_u64().unwrap()
}

async fn woken_once(guest: &Guest) -> Result<()> {
    eventually("a wake", async || Ok((woken(guest).await == 1).then_some(()))).await
}

#[tokio::test]
async fn a_wake_that_faults_ends_its_participant_alone() -> Result<()> {
    let scene = Scene::new().await?;
    for (then, told, kind) in
        [("spin", "wake used more than 100ms", "cpu-spent"), ("trap", "wake trapped", "trapped")]
    {
        let mut guest = scene.hostile()?;
        let attacking = async {
            guest.answer("wake-when", at_once(then)).await.unwrap();
            guest.ending().await
        };
        let (ending, _) = scene.beside(attacking).await?;
        let Ending::Failed(fault) = ending else { panic!("{ending:?}") };
        assert!(fault.to_string().contains(told), "{fault}");
        assert_eq!(fault.kind(), kind);
    }
    Ok(())
}

#[tokio::test]
async fn a_wake_that_faults_while_its_participant_holds_loses_the_claim() -> Result<()> {
    let scene = Scene::new().await?;
    let mut guest = scene.hostile()?;
    guest.answer("hold", json!({})).await.unwrap();
    let attacking = async {
        guest.answer("wake-when", at_once("trap")).await.unwrap();
        guest.ending().await
    };
    let (ending, _) = scene.beside(attacking).await?;
    let Ending::Lost(Loss::Fault(fault)) = ending else { panic!("{ending:?}") };
    assert!(fault.to_string().contains("wake trapped"), "{fault}");
    assert_eq!(scene.left_behind().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_wake_that_waits_is_refused_and_goes_on() -> Result<()> {
    let scene = Scene::new().await?;
    for then in ["wait", "leave", "count"] {
        let guest = scene.hostile()?;
        guest.answer("wake-when", at_once(then)).await.unwrap();
        scene.beside(woken_once(&guest)).await?;
        // It was woken for the one watch, and is no more.
        assert_eq!(guest.answer("woken", json!({})).await, Ok(json!([1, 1])));
    }
    Ok(())
}

#[tokio::test]
async fn a_wake_that_arms_itself_again_takes_turns_and_its_participant_can_be_called_and_left()
-> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    guest.answer("wake-when", at_once("again")).await.unwrap();
    let waking = eventually("many wakes", async || Ok((woken(&guest).await > 500).then_some(())));
    let ((), holds) = scene.beside(waking).await?;
    assert!(holds >= 3, "{holds} holds of the neighbour");
    scene.beside(guest.leave()).await?;
    Ok(())
}
