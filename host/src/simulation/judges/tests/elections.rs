//! Elections: one leads, whoever could lead does, and who observes is told the truth.

use super::*;

#[test]
fn e1_two_leaders_are_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 5).hold(1).volunteer(2, 3).hold(2);
    check_election(&story, "E1");
}

#[test]
fn e1_a_term_that_comes_again_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1);
    let path = story.contender(1);
    story.tell(1, Told::Released { path }).hold(1);
    check_election(&story, "E1");
}

#[test]
fn e2_a_leader_that_is_told_only_after_the_next_leads_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).expire(1).hold(2).wait(500).lose(1);
    check_election(&story, "E2");
}

#[test]
fn e2_a_leader_that_leads_again_without_being_told_that_it_lost_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).delete(1).volunteer(1, 1).hold(1);
    check_election(&story, "E2");
}

#[test]
fn e3_a_candidate_who_could_lead_and_does_not_is_rejected() {
    let mut story = Story::new();
    story.push(What::Calm).volunteer(1, 0).wait(2 * TIMEOUT_MS + 6000).volunteer(2, 1);
    check_election(&story, "E3");
}

#[test]
fn e3_a_leader_who_stays_though_its_znode_is_gone_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).delete(1).wait(3 * TIMEOUT_MS).lose(1);
    check_election(&story, "E3");
}

#[test]
fn e4_an_observer_that_goes_back_to_an_earlier_term_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).give_up(1, "resign").hold(2);
    let (one, two) = (story.fence(1), story.fence(2));
    check_election(story.news(3, two).news(3, one), "E4");
}

#[test]
fn e4_a_term_that_is_news_twice_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1);
    let fence = story.fence(1);
    check_election(story.news(3, fence).news(3, fence), "E4");
}

#[test]
fn e4_what_observe_answered_is_no_news() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).invoke(3, "observe");
    let fence = story.fence(1);
    story.answer(3, Outcome::Ok { value: json!({ "fence": fence }), holds: false });
    check_election(story.news(3, fence), "E4");
}

#[test]
fn e4_an_answer_older_than_what_was_known_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1).give_up(1, "resign").hold(2);
    let (one, two) = (story.fence(1), story.fence(2));
    story.news(3, two).invoke(3, "leader");
    story.answer(3, Outcome::Ok { value: json!({ "fence": one }), holds: false });
    check_election(&story, "E4");
}

#[test]
fn e4_a_leader_that_never_was_is_rejected() {
    let mut story = Story::new();
    story.volunteer(1, 0).hold(1).volunteer(2, 1);
    let fence = story.fence(2);
    check_election(story.news(3, fence).give_up(1, "resign").hold(2), "E4");
}
