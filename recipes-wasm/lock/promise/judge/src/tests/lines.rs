//! The line that `contenders` answers.

use wok_judge::history::ParticipantId;

use super::*;

/// Participant 3 is told of those, the first as the holder.
fn tells(story: &mut Story, those: &[ParticipantId]) {
    let told = those.iter().enumerate().map(|(place, who)| {
        let path = story.contender(*who).replace(MOUNT, "");
        json!({ "path": path, "owner": "", "is-holder": place == 0 })
    });
    let told: Vec<Value> = told.collect();
    story.invoke(3, "contenders").answer_value(3, json!(told));
}

/// Two stand in line, and the first one holds.
fn two() -> Story {
    let mut story = Story::new();
    story.acquire(1, 0).win(1).acquire(2, 1).watch(2, 1);
    story
}

#[test]
fn c1_a_line_that_stood_so_is_told_by_a_server_that_is_behind_as_well() {
    for those in [&[][..], &[1], &[1, 2]] {
        let mut story = two();
        tells(&mut story, those);
        assert_eq!(judge(&story), [], "{those:?}");
    }
}

#[test]
fn c1_a_line_that_never_stood_so_is_rejected() {
    for those in [&[2][..], &[2, 1], &[1, 1]] {
        let mut story = two();
        tells(&mut story, those);
        check(&story, "C1");
    }
}

#[test]
fn c1_who_has_gone_by_the_answer_may_be_left_out() {
    // The one that is left was second when the line was read, or the line was read later.
    for is_holder in [false, true] {
        let mut story = two();
        let first = story.contender(1);
        story.invoke(3, "contenders").give_up(1, "release").event(2, "deleted", &first).win(2);
        let path = story.contender(2).replace(MOUNT, "");
        let told = json!([{ "path": path, "owner": "", "is-holder": is_holder }]);
        story.answer_value(3, told);
        assert_eq!(judge(&story), []);
    }
}

#[test]
fn c1_what_the_session_itself_has_written_is_told() {
    let mut story = two();
    story.acquire(3, 2).watch(3, 2);
    let call = story.call(3);
    story.push(What::Withdrawn { participant: 3, call });
    story.delete(3).answer(3, Outcome::Cancelled);
    tells(&mut story, &[1]);
    check(&story, "C1");
}

#[test]
fn c1_another_owner_or_another_holder_is_rejected() {
    for (key, value) in [("owner", json!("somebody")), ("is-holder", json!(false))] {
        let mut story = two();
        let path = story.contender(1).replace(MOUNT, "");
        let mut told = json!({ "path": path, "owner": "", "is-holder": true });
        told[key] = value;
        story.invoke(3, "contenders").answer_value(3, json!([told]));
        check(&story, "C1");
    }
}
