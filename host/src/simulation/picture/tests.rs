//! What somebody who looks for a break has to see.

use wok_judge::stories::{Story, TIMEOUT_MS, good_lock};

use super::scene::{Kind, Scene, Who};
use super::*;
use crate::simulation::history::{FaultKind, What};

/// Participant 2 is granted the lock while participant 1, which came before it, has it.
fn overtaken() -> (Story, Violation) {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).fault(FaultKind::Pause, 3).wait(500).heal(FaultKind::Pause, 3);
    let first = story.entries.len() - 1;
    story.acquire(2, 1).win(2);
    let at = story.entries.len() - 1;
    // What comes afterwards is not looked for.
    story.wait(60_000).acquire(3, 2).win(3);
    let violation = Violation::new("W2", at, "participant 2 was granted <it>".to_owned());
    (story, violation.involving([first]).by([2]))
}

fn lane(scene: &Scene, id: u32) -> &Lane {
    let mut lanes = scene.groups.iter().flat_map(|group| &group.lanes);
    lanes.find(|lane| lane.id == id).unwrap()
}

#[test]
fn a_grant_out_of_turn_is_a_claim_above_a_znode_that_is_not_the_first() {
    let (story, violation) = overtaken();
    let scene = Scene::of(&story.entries, Some(&violation));
    let blamed = lane(&scene, 2);
    assert!(blamed.is_blamed && !lane(&scene, 1).is_blamed);
    let [place] = blamed.places.as_slice() else { panic!("{:?}", blamed.places) };
    assert_eq!(place.kind, Kind::InLine);
    assert!(place.text.contains("-lock-0000000001, czxid "), "{}", place.text);
    let [claim] = blamed.claims.as_slice() else { panic!("{:?}", blamed.claims) };
    assert!(claim.from_us <= place.until_us, "{claim:?}");
    assert_eq!(claim.text, format!("holds, fence {}", story.fence(2)));
    assert_eq!(lane(&scene, 1).places[0].kind, Kind::First);
    assert_eq!(blamed.calls[0].text.split(':').next(), Some("acquire"));
}

#[test]
fn a_fault_that_lasts_is_a_span_and_nothing_after_the_break_is_drawn() {
    let (story, violation) = overtaken();
    let scene = Scene::of(&story.entries, Some(&violation));
    let paused = scene.groups.iter().find(|group| group.host == Some(3)).unwrap();
    assert_eq!(paused.faults[0].until_us - paused.faults[0].from_us, 501_000);
    assert_eq!(scene.moments.last(), scene.broken_us.as_ref());
    assert!(lane(&scene, 3).calls.is_empty());

    let mut killed = Story::new();
    killed.acquire(1, 0).win(1).fault(FaultKind::HostKill, 1).wait(TIMEOUT_MS).expire(1);
    let scene = Scene::of(&killed.entries, None);
    let bar = &scene.groups.iter().find(|group| group.host == Some(1)).unwrap().faults[0];
    assert_eq!(Some(&bar.until_us), scene.moments.last(), "nobody has healed it");
    assert_eq!(lane(&scene, 1).claims[0].until_us, bar.from_us, "it died with its host");
}

#[test]
fn what_led_there_is_numbered_where_it_happened_and_told() {
    let (story, violation) = overtaken();
    let scene = Scene::of(&story.entries, Some(&violation));
    let who: Vec<Who> = scene.marks.iter().map(|mark| mark.who).collect();
    assert_eq!(who, [Who::Host(3), Who::Participant(2)]);
    let last = &scene.marks[1].line;
    assert!(last.contains(&format!("entry {}: participant 2: answers ok", violation.at)), "{last}");
    let svg = svg(&story.entries, Some(&violation), None);
    for told in [
        "W2: participant 2 was granted &lt;it&gt;",
        "participant 1",
        "host 3",
        "pause",
        last.as_str(),
    ] {
        assert!(svg.contains(told), "{told:?} in {svg}");
    }
}

#[test]
fn a_component_that_goes_round_in_a_circle_makes_no_larger_picture_than_can_be_seen() {
    let (mut story, _) = overtaken();
    assert!(!svg(&story.entries, None, None).contains("left out"));
    for _ in 0..20_000 {
        story.ask(1, "exists", "/somewhere").answer_ask(1, None);
    }
    let at = story.entries.len() - 1;
    let violation = Violation::new("L1", at, "it goes on and on".to_owned()).by([1]);
    let drawn = svg(&story.entries, Some(&violation), None);
    assert!(drawn.len() < 500_000, "{} bytes", drawn.len());
    let scene = Scene::of(&story.entries, Some(&violation));
    let asks = lane(&scene, 1).asks.len();
    assert!(asks > 20_000, "{asks} asks");
    let shown = drawn.matches("asks: exists").count();
    assert!((100..2_000).contains(&shown), "{shown} are drawn");
    let told = " bars and marks are left out: each lies upon one of its kind that is drawn";
    assert!(drawn.contains(told));
}

/// Wherever a run is cut off, and whatever it is about.
#[test]
fn every_history_can_be_drawn() {
    let story = good_lock();
    for length in 0..=story.entries.len() {
        let drawn = svg(&story.entries[..length], None, None);
        assert_eq!(drawn.matches("<text").count(), drawn.matches("</text>").count());
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{length} entries");
    }
    for (at, entry) in story.entries.iter().enumerate() {
        let violation = Violation::new("X9", at, String::new());
        let drawn = svg(&story.entries, Some(&violation), None);
        assert!(drawn.contains(&format!("entry {at}: ")), "{:?}", entry.what);
    }
    assert!(story.entries.iter().any(|entry| matches!(entry.what, What::Wrote { .. })));
}
