//! Claims: their loss is told, in time, and nothing is done in their name after it.

use super::*;

#[test]
fn m5_a_claim_that_is_held_on_to_though_its_znode_is_gone_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).delete(1).wait(3 * TIMEOUT_MS).lose(1);
    check(&story, "M5");
}

#[test]
fn m5_whatever_the_znode_of_a_claim_is_called() {
    let held_on = |wait: u64| {
        let mut story = Story::new();
        let path = format!("{MOUNT}/leader");
        story.commit(session(1), vec![created(&path, session(1))]);
        let fence = story.newest_zxid().unsigned_abs();
        story.tell(1, Told::Held { path: path.clone(), fence });
        story.commit(session(1), vec![Change::Deleted { path }]).wait(wait).lose(1);
        story
    };
    check(&held_on(3 * TIMEOUT_MS), "M5");
    assert_eq!(judge(&held_on(1000)), []);
}

#[test]
fn m5_a_write_under_a_claim_that_is_lost_is_rejected_even_after_a_pause() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).fault(FaultKind::Pause, 1).wait(TIMEOUT_MS).expire(1);
    story.heal(FaultKind::Pause, 1).write(1, true).lose(1);
    check(&story, "M5");
}

#[test]
fn m5_a_write_after_the_loss_was_told_is_rejected() {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).give_up(1, "release").write(1, true);
    check(&story, "M5");

    let mut story = Story::new();
    story.acquire(1, 0).win(1).tell(1, Told::Lost { reason: "session".to_owned() });
    check(story.write(1, true), "M5");
}

#[test]
fn m5_a_loss_that_is_told_twice_is_rejected_unless_the_first_was_the_components_failure() {
    let told = |first: &str| {
        let mut story = Story::new();
        let path = format!("{MOUNT}/leader");
        story.commit(session(1), vec![created(&path, session(1))]);
        let fence = story.newest_zxid().unsigned_abs();
        story.tell(1, Told::Held { path: path.clone(), fence });
        story.commit(session(1), vec![Change::Deleted { path }]);
        for reason in [first, "znode-deleted"] {
            story.tell(1, Told::Lost { reason: reason.to_owned() });
        }
        story
    };
    check(&told("session"), "M5");
    check(&told("znode-deleted"), "M5");
    assert_eq!(judge(&told("fault")), []);
}
