//! Attacks on the processor, the memory and the stack.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use wok::guest::Limits;
use wok_tests::process::Program;
use wok_tests::zookeeper;

use crate::scene::{Room, Scene};

#[tokio::test]
async fn a_loop_is_ended_by_its_processor_time_and_its_neighbour_holds_on_and_on() -> Result<()> {
    let scene = Scene::new().await?;
    // A loop gives way to everything else on the machine, so a busy one takes long to give it more.
    let limits = Limits { cpu_per_call: Duration::from_millis(250), ..Limits::default() };
    let guest = scene.hostile_in(Room { limits, ..Room::default() })?;
    let (fault, holds) = scene.beside(guest.fault("spin", json!({}))).await?;
    assert!(fault.contains("spin used more than 250ms of processor time"), "{fault}");
    assert!(fault.contains("limits.cpu-per-call"), "{fault}");
    // One thread serves both: the neighbour had its turns between those of the loop.
    assert!(holds >= 3, "{holds} holds in a quarter of a second of processor time");
    Ok(())
}

#[tokio::test]
async fn the_time_that_a_call_waits_is_given_back_to_it() -> Result<()> {
    let scene = Scene::new().await?;
    // So many requests take more processor time than the budget, and the call waits far longer for their
    // answers.
    let (budget, count) = (Duration::from_millis(10), 4_000);
    let limits = Limits { cpu_per_call: budget, ..Limits::default() };
    let guest = scene.hostile_in(Room { limits, ..Room::default() })?;
    let flood = json!({"call": "exists", "count": count});
    let (answer, _) = scene.beside(async { Ok(guest.answer("call-flood", flood).await) }).await?;
    assert_eq!(answer, Ok(json!(count)));
    Ok(())
}

#[tokio::test]
async fn memory_ends_at_its_limit_and_a_component_that_needs_more_is_told_which() -> Result<()> {
    let scene = Scene::new().await?;
    let guest = scene.hostile()?;
    let bomb = async { Ok(guest.answer("memory-bomb", json!({})).await) };
    let (pages, _) = scene.beside(bomb).await?;
    let pages = pages.unwrap().as_u64().unwrap();
    assert!(pages > 0 && pages < Limits::default().memory >> 16, "{pages} pages");
    // It lives on, with what it has.
    assert_eq!(guest.answer("woken", json!({})).await, Ok(json!([0, 0])));
    let (fault, _) = scene.beside(scene.hostile()?.fault("allocate", json!({}))).await?;
    assert!(fault.contains("16777216 bytes of memory; raise limits.memory"), "{fault}");
    Ok(())
}

#[tokio::test]
async fn recursion_and_traps_end_the_component_alone() -> Result<()> {
    let scene = Scene::new().await?;
    for (operation, body, told) in [
        ("recurse", json!({}), "the stack is used up, as by deep recursion"),
        ("trap", json!({}), "trap trapped"),
        ("panic", json!({"message": "oh no"}), "; the last error that it logged: panicked at "),
    ] {
        let guest = scene.hostile()?;
        let name = guest.participant.id().to_owned();
        let (fault, _) = scene.beside(guest.fault(operation, body)).await?;
        assert!(fault.contains(told), "{fault}");
        assert!(fault.contains(&format!("participant {name} of hostile")), "{fault}");
    }
    Ok(())
}

#[tokio::test]
async fn attacks_on_the_command_line_end_with_70_and_the_reason() -> Result<()> {
    let server = zookeeper::shared().await;
    let (_directory, file) = wok_tests::guests::guest_file("hostile")?;
    for (operation, argument, told) in [
        ("spin", None, &["limits.cpu-per-call"][..]),
        ("recurse", None, &["deep recursion"]),
        ("panic", Some("message=oh no"), &["oh no", "attacks.rs:", "panicked"]),
        ("trap-while-holding", None, &["trap-while-holding trapped"]),
    ] {
        let ended = Program::wok()?
            .args(["hold", "--connect", server.address(), "--mount", &zookeeper::unique_path()])
            .arg(&file)
            .arg(operation)
            .args(argument)
            .args(["--", "echo", "it runs"])
            .run()
            .await?;
        let code = if operation == "trap-while-holding" { 76 } else { 70 };
        assert_eq!(ended.code(), Some(code), "{ended:?}");
        for text in told {
            assert!(ended.stderr.contains(text), "{text:?} is not in {}", ended.stderr);
        }
        assert_eq!(ended.stdout, "", "the command ran under a claim that was never granted");
    }
    Ok(())
}
