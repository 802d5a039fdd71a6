//! Bounds: what every component owes, whatever its interface.

use super::*;

#[test]
fn v1_a_contender_that_another_session_deletes_is_rejected() {
    let mut story = Story::new();
    story.stand(1, 0);
    let path = story.contender(1);
    story.commit(session(2), vec![Change::Deleted { path }]);
    check(&story, "V1");
}

#[test]
fn l1_a_component_that_fails_by_itself_is_rejected() {
    let ends = |how: &str, fault: &str| {
        let (how, fault) = (how.to_owned(), Some(fault.to_owned()));
        let mut story = Story::new();
        story.tell(1, Told::Ended { how, fault });
        story
    };
    for how in ["failed", "lost"] {
        check(&ends(how, "acquire trapped: unreachable"), "L1");
    }
    let killed = format!("acquire trapped: {}", crate::guest::KILLED);
    for story in [ends("failed", &killed), ends("refused", "the session is over")] {
        assert_eq!(judge(&story), []);
    }
}

#[test]
fn l1_a_component_that_does_not_end_is_rejected_unless_its_host_was_stopped() {
    let overdue = || Told::Ended {
        how: "failed".to_owned(),
        fault: Some("the module did not return within 1s of being cancelled".to_owned()),
    };
    let mut story = Story::new();
    check(story.tell(1, overdue()), "L1");
    // One that is cut off cancels and ends as ever.
    for fault in [FaultKind::HostCut, FaultKind::HalfOpen, FaultKind::LostBefore] {
        let mut story = Story::new();
        check(story.fault(fault, 1).tell(1, overdue()), "L1");
    }
    let stopped = || {
        let mut story = Story::new();
        story.fault(FaultKind::Pause, 1).heal(FaultKind::Pause, 1);
        story
    };
    assert_eq!(judge(stopped().tell(1, overdue())), []);
    // It is told when nothing of it is left, which may be late.
    assert_eq!(judge(stopped().ask(1, "release", MOUNT).wait(60_000).tell(1, overdue())), []);
    // That it was stopped long before is no excuse.
    check(stopped().wait(10_000).ask(1, "release", MOUNT).tell(1, overdue()), "L1");
}

#[test]
fn x1_a_call_outside_the_mount_is_rejected() {
    let mut story = Story::new();
    check(story.ask(1, "get-data", "/mounts/a-evil"), "X1");
}

#[test]
fn x2_a_participant_that_goes_on_after_its_end_is_rejected() {
    let mut story = Story::new();
    check(story.leave(1).ask(1, "exists", MOUNT), "X2");
}

#[test]
fn x2_a_watch_that_is_left_is_rejected() {
    let mut story = Story::new();
    check(story.leave(1).end(None, Vec::new(), 1), "X2");
}

#[test]
fn s1_an_event_without_a_cause_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0);
    let path = story.contender(1);
    check(story.event(2, "deleted", &path), "S1");
}

#[test]
fn s1_an_event_that_comes_twice_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).delete(1).answer(1, Outcome::Cancelled);
    let path = story.contender(1);
    check(story.event(2, "deleted", &path).event(2, "deleted", &path), "S1");
}

/// The second change is told before the first, `fault` or not.
fn out_of_order(fault: Option<FaultKind>) -> Story {
    let mut story = Story::new();
    let paths = [format!("{MOUNT}/x"), format!("{MOUNT}/y")];
    for path in &paths {
        let (path, ephemeral_owner) = (path.clone(), 0);
        story.commit(0, vec![created(&path, ephemeral_owner)]);
    }
    if let Some(fault) = fault {
        story.fault(fault, 1);
    }
    for path in &paths {
        story.commit(0, vec![Change::Deleted { path: path.clone() }]);
    }
    for path in paths.iter().rev() {
        story.event(1, "deleted", path);
    }
    story
}

#[test]
fn s1_events_in_the_wrong_order_are_rejected_unless_the_connection_was_lost() {
    check(&out_of_order(None), "S1");
    let story = out_of_order(Some(FaultKind::LostBefore));
    assert_eq!(judge(&story), []);
}
