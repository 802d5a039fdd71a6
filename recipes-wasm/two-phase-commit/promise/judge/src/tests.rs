//! The judge accepts what is good, and rejects what breaks a promise by that promise alone.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wok_judge::history::{Change, Data, Entry, FaultKind, Outcome, ParticipantId, Told, What};
use wok_judge::proofs::{
    assert_breaks, assert_good_wherever_cut_off, assert_judged_without_beginning,
};
use wok_judge::stories::{MOUNT, Story, TIMEOUT_MS, created, good_election, good_lock, session};
use wok_judge::{Judge, Violation};

use crate::CommitJudge;

mod refusals;

/// Of the transaction in these tests.
const WITHIN_MS: u64 = 120_000;

/// Longer than a call may wait that nothing disturbs.
const LONG_MS: u64 = 6000;

fn verdict(history: &[Entry]) -> Vec<Violation> {
    CommitJudge.verdict(history)
}

#[track_caller]
fn check(story: &Story, expected: &str) {
    assert_breaks(&verdict(&story.entries), &[expected]);
}

fn path(below: &str) -> String {
    format!("{MOUNT}/tx-7-1{below}")
}

fn set(below: &str, data: &str) -> Change {
    let data = Data::from(data.as_bytes().to_vec());
    Change::DataSet { path: path(below), version: 1, data }
}

fn ok(value: Value) -> Outcome {
    Outcome::Ok { value, holds: false }
}

/// What may happen to a transaction, in the words of these tests.
trait Transacting {
    /// The ensemble creates it, for the sites a and b.
    fn begun(&mut self) -> &mut Self;
    /// The ensemble writes the site's vote.
    fn voted(&mut self, who: ParticipantId, site: &str, word: &str) -> &mut Self;
    fn ask_to_vote(&mut self, who: ParticipantId, site: &str, word: &str) -> &mut Self;
    /// It asks, and this is done.
    fn vote(&mut self, who: ParticipantId, site: &str, word: &str) -> &mut Self;
    fn decided(&mut self, who: ParticipantId, word: &str) -> &mut Self;
    fn await_outcome(&mut self, who: ParticipantId) -> &mut Self;
    fn told(&mut self, who: ParticipantId, word: &str) -> &mut Self;
    fn about(&mut self, who: ParticipantId, operation: &str) -> &mut Self;
}

impl Transacting for Story {
    fn begun(&mut self) -> &mut Self {
        let terms = format!("within {WITHIN_MS} ms\na\nb");
        let (path, data) = (path(""), Data::from(terms.into_bytes()));
        self.commit(session(1), vec![Change::Created { path, ephemeral_owner: 0, data }])
    }

    fn voted(&mut self, who: ParticipantId, site: &str, word: &str) -> &mut Self {
        let mark = Change::Deleted { path: path(&format!("/present/{site}")) };
        self.commit(session(who), vec![set(&format!("/sites/{site}"), word), set("", "x"), mark])
    }

    fn ask_to_vote(&mut self, who: ParticipantId, site: &str, word: &str) -> &mut Self {
        let arguments = json!({ "transaction": "/tx-7-1", "site": site, "choice": word });
        self.invoke_with(who, "vote", arguments)
    }

    fn vote(&mut self, who: ParticipantId, site: &str, word: &str) -> &mut Self {
        self.ask_to_vote(who, site, word).voted(who, site, word).answer(who, ok(Value::Null))
    }

    fn decided(&mut self, who: ParticipantId, word: &str) -> &mut Self {
        self.commit(session(who), vec![set("/decision", &format!("{word}\nwhy")), set("", "x")])
    }

    fn await_outcome(&mut self, who: ParticipantId) -> &mut Self {
        self.about(who, "outcome")
    }

    fn told(&mut self, who: ParticipantId, word: &str) -> &mut Self {
        self.answer(who, ok(json!({ "decision": word, "reason": "why" })))
    }

    fn about(&mut self, who: ParticipantId, operation: &str) -> &mut Self {
        self.invoke_with(who, operation, json!({ "transaction": "/tx-7-1", "site": "a" }))
    }
}

/// Everything that can go right with a transaction.
fn good() -> Story {
    let mut story = Story::new();
    story.begun().invoke_with(2, "transactions", json!({ "site": "a" }));
    story.answer(2, ok(json!([{ "path": "/tx-7-1", "payload": "", "deadline-ms": 1 }])));
    let registered = created(&path("/registered/a"), 0);
    story.about(2, "register").commit(session(2), vec![registered]).answer(2, ok(Value::Null));
    story.vote(2, "a", "commit").await_outcome(1).wait(LONG_MS).await_outcome(2);
    story.about(3, "status");
    let sites = json!([{ "site": "a", "vote": "commit", "in-doubt-ms": null },
        { "site": "b", "vote": null, "in-doubt-ms": null }]);
    story.answer(3, ok(json!({ "outcome": null, "sites": sites })));
    story.ask_to_vote(3, "b", "commit").voted(3, "b", "commit").decided(1, "commit");
    story.answer(3, ok(Value::Null)).told(1, "commit").told(2, "commit");
    let detail = [("transaction", "/tx-7-1"), ("decision", "commit"), ("reason", "why")];
    let detail = detail.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let event = "decided".to_owned();
    story.tell(3, Told::Emitted { event, detail: BTreeMap::from(detail) });
    // The same vote again is the same; another one is refused.
    story.ask_to_vote(3, "b", "commit").answer(3, ok(Value::Null));
    story.ask_to_vote(3, "b", "abort").answer_error(3, json!({ "invalid": "voted" }));
    story.about(1, "forget").commit(session(1), vec![Change::Deleted { path: path("") }]);
    story.answer(1, ok(Value::Null)).await_outcome(2).answer_error(2, json!("no-node"));
    story.push(What::Calm).leave(1).leave(2);
    story
}

#[test]
fn good_runs_are_good_wherever_they_are_cut_off() {
    assert_good_wherever_cut_off(&good(), verdict);
}

#[test]
fn a_history_without_its_beginning_does_not_confuse_the_judge() {
    for story in [good_lock(), good_election(), good()] {
        assert_judged_without_beginning(&story, verdict);
    }
}

#[test]
fn t1_who_is_told_another_outcome_is_rejected() {
    let mut story = Story::new();
    story.begun().vote(2, "a", "abort").decided(1, "abort").await_outcome(3);
    check(story.told(3, "commit"), "T1");
}

#[test]
fn t1_who_is_told_before_it_is_decided_is_rejected() {
    let mut story = Story::new();
    story.begun().vote(2, "a", "abort").await_outcome(3).told(3, "abort");
    check(story.decided(1, "abort"), "T1");
}

#[test]
fn t2_a_commit_without_a_vote_is_rejected() {
    let mut story = Story::new();
    check(story.begun().vote(2, "a", "commit").decided(1, "commit"), "T2");
    let mut story = Story::new();
    story.begun().vote(2, "a", "commit").vote(3, "b", "abort");
    check(story.decided(1, "commit"), "T2");
}

#[test]
fn t2_an_abort_without_a_reason_is_rejected() {
    let mut story = Story::new();
    check(story.begun().vote(2, "a", "commit").decided(1, "abort"), "T2");
    let mut story = Story::new();
    story.begun().vote(2, "a", "commit").vote(3, "b", "commit");
    check(story.decided(1, "abort"), "T2");
}

#[test]
fn t2_a_deadline_or_a_death_is_a_reason_and_a_clock_that_jumped() {
    let mut story = Story::new();
    story.begun().vote(2, "a", "commit").wait(WITHIN_MS).decided(1, "abort");
    assert_eq!(verdict(&story.entries), []);
    let mut story = Story::new();
    let gone = Change::Deleted { path: path("/present/b") };
    story.begun().vote(2, "a", "commit").commit(session(3), vec![gone]).decided(1, "abort");
    assert_eq!(verdict(&story.entries), []);
    let mut story = Story::new();
    story.begun().fault(FaultKind::ClockJump, 1).decided(1, "abort");
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn t2_the_time_is_counted_from_when_the_leader_may_have_stamped_the_creation() {
    let asked = json!({ "sites": ["a", "b"], "payload": "", "within-ms": WITHIN_MS });
    let mut story = Story::new();
    story.invoke_with(1, "begin", asked).wait(LONG_MS).begun().wait(WITHIN_MS - LONG_MS);
    story.decided(1, "abort");
    assert_eq!(verdict(&story.entries), []);
    let mut story = Story::new();
    story.begun().vote(2, "a", "commit").wait(WITHIN_MS - LONG_MS);
    check(story.decided(1, "abort"), "T2");
}

#[test]
fn t2_a_vote_that_came_too_late_is_a_reason_to_abort_and_none_to_commit() {
    for (word, expected) in [("commit", &["T2"][..]), ("abort", &[])] {
        let mut story = Story::new();
        story.begun().vote(2, "a", "commit").wait(WITHIN_MS + 1).vote(3, "b", "commit");
        assert_breaks(&verdict(&story.decided(3, word).entries), expected);
    }
}

#[test]
fn t2_a_vote_may_have_been_stamped_when_it_was_asked_for_or_when_the_log_has_it() {
    for word in ["commit", "abort"] {
        let mut story = Story::new();
        story
            .begun()
            .vote(2, "a", "commit")
            .wait(WITHIN_MS - LONG_MS)
            .ask_to_vote(3, "b", "commit");
        story.wait(LONG_MS + 1).voted(3, "b", "commit").decided(3, word);
        assert_eq!(verdict(&story.entries), [], "{word}");
    }
}

#[test]
fn t3_a_second_decision_is_rejected() {
    let mut story = Story::new();
    story.begun().vote(2, "a", "abort").decided(1, "abort");
    check(story.decided(2, "abort"), "T3");
}

#[test]
fn t3_a_second_vote_and_one_after_the_decision_are_rejected() {
    let mut story = Story::new();
    story.begun().vote(2, "a", "commit");
    check(story.vote(2, "a", "commit"), "T3");
    let mut story = Story::new();
    story.begun().vote(2, "a", "abort").decided(1, "abort");
    check(story.vote(3, "b", "commit"), "T3");
}

#[test]
fn t4_who_waits_on_when_it_can_be_decided_is_rejected() {
    let votes = [("commit", "commit"), ("abort", "abort"), ("commit", "abort")];
    for (a, b) in votes {
        let mut story = Story::new();
        story.begun().await_outcome(1).vote(2, "a", a).vote(3, "b", b).wait(LONG_MS);
        check(story.about(3, "status"), "T4");
    }
}

#[test]
fn t4_who_waits_on_after_the_deadline_is_rejected_and_not_before() {
    let mut story = Story::new();
    story.begun().await_outcome(1).vote(2, "a", "commit").wait(WITHIN_MS - LONG_MS);
    story.about(3, "status");
    assert_eq!(verdict(&story.entries), []);
    check(story.wait(2 * LONG_MS).answer(3, Outcome::Cancelled), "T4");
}

#[test]
fn t4_who_waits_for_a_dead_site_is_rejected_once_faults_are_over() {
    let mut story = Story::new();
    let gone = Change::Deleted { path: path("/present/b") };
    story.begun().await_outcome(1).fault(FaultKind::LostBefore, 2);
    story.commit(session(3), vec![gone]).wait(TIMEOUT_MS).about(3, "status");
    assert_eq!(verdict(&story.entries), []);
    check(story.wait(TIMEOUT_MS + 6000).answer(3, Outcome::Cancelled), "T4");
}

#[test]
fn t4_a_site_that_died_and_came_back_may_be_waited_for() {
    for comes_back in ["registers", "votes"] {
        let mut story = Story::new();
        let mark = path("/present/b");
        story.begun().commit(session(3), vec![created(&mark, session(3))]);
        story.commit(session(3), vec![Change::Deleted { path: mark.clone() }]).await_outcome(1);
        match comes_back {
            "votes" => story.vote(3, "b", "commit"),
            _ => story.commit(session(3), vec![created(&mark, session(3))]),
        };
        story.wait(WITHIN_MS / 2).about(3, "status");
        assert_eq!(verdict(&story.entries), [], "{comes_back}");
        // What it has voted since cannot be left out.
        if comes_back == "votes" {
            check(story.decided(1, "abort"), "T2");
        }
    }
}

#[test]
fn t5_a_status_with_a_vote_that_was_not_cast_is_rejected() {
    let mut story = Story::new();
    story.begun().about(3, "status");
    let sites = json!([{ "site": "a", "vote": "commit" }, { "site": "b", "vote": null }]);
    check(story.answer(3, ok(json!({ "outcome": null, "sites": sites }))), "T5");
}

#[test]
fn t5_another_time_in_doubt_is_rejected() {
    let mut story = Story::new();
    story.begun().vote(2, "a", "commit").wait(20_000).vote(3, "b", "abort").decided(1, "abort");
    let sites = json!([{ "site": "a", "vote": "commit", "in-doubt-ms": 10 },
        { "site": "b", "vote": "abort", "in-doubt-ms": null }]);
    let shown = json!({ "outcome": { "decision": "abort" }, "sites": sites });
    check(story.about(3, "status").answer(3, ok(shown)), "T5");
}

#[test]
fn t5_the_time_in_doubt_is_counted_from_when_the_leader_may_have_stamped_the_vote() {
    for (shown_ms, is_good) in [(20_000, true), (10_002, true), (0, false), (40_000, false)] {
        let mut story = Story::new();
        story.begun().ask_to_vote(2, "a", "commit").wait(10_000).voted(2, "a", "commit");
        story.answer(2, ok(Value::Null)).wait(10_000).vote(3, "b", "abort").decided(1, "abort");
        let sites = json!([{ "site": "a", "vote": "commit", "in-doubt-ms": shown_ms },
            { "site": "b", "vote": "abort", "in-doubt-ms": null }]);
        let shown = json!({ "outcome": { "decision": "abort" }, "sites": sites });
        story.about(3, "status").answer(3, ok(shown));
        match is_good {
            true => assert_eq!(verdict(&story.entries), [], "{shown_ms}"),
            false => check(&story, "T5"),
        }
    }
}

#[test]
fn t2_a_transaction_that_is_not_the_one_that_was_asked_for_is_rejected() {
    let begin = |sites: Value, payload: &str, within_ms: u64, told: &str| {
        let mut story = Story::new();
        let terms = json!({ "sites": sites, "payload": payload, "within-ms": within_ms });
        let data = Data::from(b"p".to_vec());
        let payload = Change::Created { path: path("/payload"), ephemeral_owner: 0, data };
        story.invoke_with(1, "begin", terms).begun().commit(session(1), vec![payload]);
        story.answer(1, ok(json!(told)));
        story
    };
    let asked = || json!(["b", "a"]);
    assert_breaks(&verdict(&begin(asked(), "p", WITHIN_MS, "/tx-7-1").entries), &[]);
    check(&begin(json!(["a", "b", "c"]), "p", WITHIN_MS, "/tx-7-1"), "T2");
    check(&begin(asked(), "q", WITHIN_MS, "/tx-7-1"), "T2");
    check(&begin(asked(), "p", WITHIN_MS + 1, "/tx-7-1"), "T2");
    check(&begin(asked(), "p", WITHIN_MS, "/tx-7-2"), "T2");
}

#[test]
fn c1_votes_are_those_that_were_asked_for() {
    let mut story = Story::new();
    check(story.begun().ask_to_vote(2, "a", "commit").voted(2, "b", "commit"), "C1");
    let mut story = Story::new();
    check(story.begun().ask_to_vote(2, "a", "commit").voted(2, "a", "abort"), "C1");
    let mut story = Story::new();
    story.begun().ask_to_vote(2, "a", "commit");
    check(story.answer(2, ok(Value::Null)), "C1");
}

/// A site asks for its transactions and is answered these.
fn listed(story: &mut Story, site: &str, told: Value) {
    story.invoke_with(2, "transactions", json!({ "site": site })).answer(2, ok(told));
}

#[test]
fn c4_what_is_listed_asks_the_site() {
    let one = || json!([{ "path": "/tx-7-1" }]);
    let mut story = Story::new();
    listed(story.begun(), "a", one());
    assert_eq!(verdict(&story.entries), []);
    // Nobody has begun it, it asks others, or the site has voted.
    let mut story = Story::new();
    listed(story.begun(), "a", json!([{ "path": "/tx-7-2" }]));
    check(&story, "C4");
    let mut story = Story::new();
    listed(story.begun(), "c", one());
    check(&story, "C4");
    let mut story = Story::new();
    listed(story.begun().vote(2, "a", "commit"), "a", one());
    check(&story, "C4");
    // It votes while it asks, through somebody else.
    let mut story = Story::new();
    story.begun().invoke_with(2, "transactions", json!({ "site": "a" }));
    story.vote(3, "a", "commit").answer(2, ok(one()));
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn c4_what_asks_the_site_all_the_while_is_listed() {
    let mut story = Story::new();
    listed(story.begun(), "a", json!([]));
    check(&story, "C4");
    let mut story = Story::new();
    listed(story.begun().vote(3, "b", "abort").decided(1, "abort"), "a", json!([]));
    assert_eq!(verdict(&story.entries), []);
    // Where a fault is near, its server may have missed it.
    let mut story = Story::new();
    listed(story.begun().fault(FaultKind::LeaderCut, 3), "a", json!([]));
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn c4_what_is_listed_comes_with_its_payload() {
    for (payload, expected) in [("p", &[][..]), ("q", &["C4"])] {
        let data = Data::from(b"p".to_vec());
        let change = Change::Created { path: path("/payload"), ephemeral_owner: 0, data };
        let mut story = Story::new();
        story.begun().commit(session(1), vec![change]);
        listed(&mut story, "a", json!([{ "path": "/tx-7-1", "payload": payload }]));
        assert_breaks(&verdict(&story.entries), expected);
    }
}

#[test]
fn t5_and_c4_all_are_told_the_deadlines_of_one_clock() {
    // The servers' clock may show anything when the history begins, and goes on from there.
    let asked = |second_ms: u64| {
        let mut story = Story::new();
        story.begun();
        for (who, deadline_ms) in [(1, 5_000_000), (2, second_ms)] {
            let told = json!([{ "path": "/tx-7-1", "deadline-ms": deadline_ms }]);
            story.invoke_with(who, "transactions", json!({ "site": "a" })).answer(who, ok(told));
        }
        story
    };
    assert_eq!(verdict(&asked(5_000_000).entries), []);
    check(&asked(5_000_010), "C4");
    let mut story = asked(5_000_000);
    let shown = json!({ "outcome": null, "deadline-ms": 4_999_000, "sites": waiting() });
    check(story.about(3, "status").answer(3, ok(shown)), "T5");
}

/// The sites of a transaction in which nobody has voted.
fn waiting() -> Value {
    json!([{ "site": "a", "vote": null, "is-dead": false, "in-doubt-ms": null },
        { "site": "b", "vote": null, "is-dead": false, "in-doubt-ms": null }])
}

#[test]
fn t5_a_status_without_what_its_session_has_written_is_rejected() {
    let status = |story: &mut Story, who| {
        let shown = json!({ "outcome": null, "sites": waiting() });
        story.about(who, "status").answer(who, ok(shown));
    };
    let mut story = Story::new();
    status(story.begun().vote(2, "a", "commit"), 2);
    check(&story, "T5");
    let mut story = Story::new();
    status(story.begun().vote(2, "a", "abort").decided(3, "abort"), 3);
    check(&story, "T5");
    // The server of somebody else may be behind.
    let mut story = Story::new();
    status(story.begun().vote(2, "a", "commit"), 3);
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn t5_who_is_shown_as_dead_had_registered_and_gone_before_it_voted() {
    let status = |story: &mut Story, vote: Value, is_dead: bool| {
        let sites = json!([{ "site": "a", "vote": vote, "is-dead": is_dead, "in-doubt-ms": null },
            { "site": "b", "vote": null, "is-dead": false, "in-doubt-ms": null }]);
        story.about(1, "status").answer(1, ok(json!({ "outcome": null, "sites": sites })));
    };
    let registered = |story: &mut Story| {
        story.begun().commit(session(2), vec![created(&path("/present/a"), session(2))]);
    };
    let gone = || vec![Change::Deleted { path: path("/present/a") }];
    for is_dead in [false, true] {
        let mut story = Story::new();
        registered(&mut story);
        status(&mut story, Value::Null, is_dead);
        assert_breaks(&verdict(&story.entries), if is_dead { &["T5"] } else { &[] });
        // The own session of the one that looks has seen it go.
        let mut story = Story::new();
        registered(&mut story);
        status(story.commit(session(1), gone()), Value::Null, is_dead);
        assert_breaks(&verdict(&story.entries), if is_dead { &[] } else { &["T5"] });
        // The vote has taken the mark away.
        let mut story = Story::new();
        registered(&mut story);
        status(story.vote(2, "a", "commit"), json!("commit"), is_dead);
        assert_breaks(&verdict(&story.entries), if is_dead { &["T5"] } else { &[] });
    }
}

#[test]
fn t5_the_reason_that_is_shown_is_the_decisions() {
    for (reason, expected) in [("why", &[][..]), ("because", &["T5"])] {
        let mut story = Story::new();
        story.begun().vote(2, "a", "abort").decided(1, "abort").about(3, "status");
        let sites = json!([{ "site": "a", "vote": "abort" }, { "site": "b", "vote": null }]);
        let end = json!({ "decision": "abort", "reason": reason });
        story.answer(3, ok(json!({ "outcome": end, "sites": sites })));
        assert_breaks(&verdict(&story.entries), expected);
    }
}

/// It is told how the transaction ended.
fn hear(story: &mut Story, who: ParticipantId, reason: &str) {
    let detail = [("transaction", "/tx-7-1"), ("decision", "abort"), ("reason", reason)];
    let detail = detail.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let detail = BTreeMap::from(detail);
    story.tell(who, Told::Emitted { event: "decided".to_owned(), detail });
}

#[test]
fn t6_who_follows_is_told_the_end() {
    for is_told in [true, false] {
        let mut story = Story::new();
        story.begun().vote(2, "a", "abort").decided(1, "abort");
        if is_told {
            hear(&mut story, 2, "why");
        }
        story.wait(LONG_MS).about(3, "status");
        assert_breaks(&verdict(&story.entries), if is_told { &[] } else { &["T6"] });
    }
}

#[test]
fn t6_who_does_not_follow_is_not_told_and_nobody_is_told_another_reason() {
    for (who, reason, expected) in
        [(2, "why", &[][..]), (3, "why", &["T6"]), (2, "because", &["T6"])]
    {
        let mut story = Story::new();
        story.begun().vote(2, "a", "abort").decided(1, "abort");
        hear(&mut story, who, reason);
        assert_breaks(&verdict(&story.entries), expected);
    }
}

#[test]
fn c3_a_site_that_is_not_told_of_a_transaction_is_rejected() {
    let mut story = Story::new();
    story.invoke_with(2, "transactions", json!({ "site": "a" })).answer(2, ok(json!([])));
    story.begun().wait(LONG_MS).about(3, "status");
    check(&story, "C3");
    let mut story = Story::new();
    story.invoke_with(2, "transactions", json!({ "site": "a" })).answer(2, ok(json!([])));
    let detail = BTreeMap::from([("transaction".to_owned(), "/tx-7-1".to_owned())]);
    story.begun().tell(2, Told::Emitted { event: "asked".to_owned(), detail });
    story.wait(LONG_MS).about(3, "status");
    assert_eq!(verdict(&story.entries), []);
}

#[test]
fn h1_who_asks_again_and_again_is_rejected() {
    let mut story = Story::new();
    story.begun().await_outcome(1);
    for _ in 0..40 {
        story.ask(1, "pipeline", MOUNT).answer_ask(1, None);
    }
    check(story.vote(2, "a", "abort").decided(1, "abort").told(1, "abort"), "H1");
}
