//! What `contenders` tells of the leases and of the queue behind them.

use super::*;

/// What `contenders` tells of one of them.
fn shown(path: &str, is_holder: bool) -> Value {
    json!({ "path": path.replace(MOUNT, ""), "owner": "", "is-holder": is_holder })
}

/// Participant 3 is told of those.
fn tells(semaphore: &mut Semaphore, those: &[Value]) {
    semaphore.story.invoke(3, "contenders").answer_value(3, json!(those));
}

/// One holds both permits, and another one waits for one. What `contenders` tells of each.
fn held_and_wanted() -> (Semaphore, [Value; 3]) {
    let mut it = Semaphore::new();
    it.ask(1, 2).win(1, 2).ask(2, 1);
    let lease = |number: usize| shown(&format!("/leases/{}", it.leases[&1].0[number]), true);
    let told = [lease(0), lease(1), shown(&it.places[&2], false)];
    (it, told)
}

#[test]
fn c1_leases_in_any_order_and_the_queue_behind_them_are_told() {
    let (_, [one, other, next]) = held_and_wanted();
    // A server that is behind has neither the one that waits nor the leases.
    for those in [
        vec![one.clone(), other.clone(), next.clone()],
        vec![other.clone(), one.clone(), next],
        vec![one, other],
        vec![],
    ] {
        let (mut it, _) = held_and_wanted();
        tells(&mut it, &those);
        check_good(&it);
    }
}

#[test]
fn c1_what_was_so_at_no_moment_is_rejected() {
    let (_, [one, other, next]) = held_and_wanted();
    let waits = |lease: &Value| shown(lease["path"].as_str().unwrap(), false);
    let holds = shown(next["path"].as_str().unwrap(), true);
    let mut others = one.clone();
    others["owner"] = json!("somebody");
    for those in [
        vec![one.clone(), next.clone()],
        vec![one.clone(), one.clone(), other.clone(), next.clone()],
        vec![next.clone(), one.clone(), other.clone()],
        vec![one.clone(), other.clone(), next.clone(), next.clone()],
        vec![one.clone(), other.clone(), holds],
        vec![one, waits(&other), next.clone()],
        vec![others, other, next],
    ] {
        let (mut it, _) = held_and_wanted();
        tells(&mut it, &those);
        check(&it, "C1");
    }
}

#[test]
fn c1_who_goes_from_the_queue_to_the_leases_between_the_two_reads_is_in_neither_and_not_in_both() {
    for (keeps_place, expected) in [(false, &[][..]), (true, &["C1"])] {
        let mut it = Semaphore::new();
        it.ask(1, 1);
        let place = shown(&it.places[&1], false);
        it.story.invoke(3, "contenders");
        it.win(1, 1);
        let lease = shown(&format!("/leases/{}", it.leases[&1].0[0]), true);
        let told = if keeps_place { vec![lease, place] } else { vec![] };
        it.story.answer_value(3, json!(told));
        assert_breaks(&judge(&it), expected);
    }
}
