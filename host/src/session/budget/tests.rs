//! What accounts take of a session, and give back.

use super::*;

fn taken(budget: &Budget) -> (usize, usize) {
    let room = budget.room();
    (room.reserved, room.shared)
}

fn data(account: &Arc<Account>, path: &str) -> Result<Charge, Failure> {
    account.charge(WatchKind::Data, path)
}

#[test]
fn a_watch_inside_the_reservation_takes_nothing_more() {
    let budget = Arc::new(Budget::default());
    let account = budget.open("/locks/a", 0).unwrap();
    let before = taken(&budget);
    let charge = data(&account, "/locks/a/_c_x-lock-0000000001").unwrap();
    assert_eq!(taken(&budget), before);
    drop(charge);
    drop(account);
    assert_eq!(taken(&budget), (0, 0));
}

#[test]
fn a_thousand_participants_fit_and_the_first_too_many_is_refused_at_join() {
    let budget = Arc::new(Budget::default());
    let mut accounts = Vec::new();
    let refusal = loop {
        match budget.open("/locks/orders", 0) {
            Ok(account) => accounts.push(account),
            Err(error) => break error,
        }
    };
    assert!(accounts.len() >= 1_000, "only {}", accounts.len());
    assert!(matches!(refusal, Failure::OverLimit(text) if text.contains("/locks/orders")));
    // Those that joined can still do what they reserved for.
    let watched = format!("/locks/orders/{}", "n".repeat(NAME_BYTES - 1));
    let charges: Vec<_> = accounts.iter().map(|account| data(account, &watched)).collect();
    assert!(charges.iter().all(Result::is_ok));
}

#[test]
fn who_reserves_more_can_watch_it_whatever_others_do() {
    let budget = Arc::new(Budget::default());
    let reserved = 8 * 1024;
    let frugal = budget.open("/votes", reserved).unwrap();
    let greedy: Vec<_> = (0..2).map(|_| budget.open("/m", 0).unwrap()).collect();
    let long = |from: usize| format!("/m/{from}{}", "x".repeat(4_000));
    let taking = greedy.iter().enumerate().flat_map(|(from, account)| {
        (0..3).map(move |number| data(account, &long(from * 3 + number)))
    });
    let taken_all: Vec<_> = taking.collect();
    assert!(taken_all.iter().any(Result::is_err), "the shared part is used up");
    let sites: Vec<_> = (0..100).map(|site| data(&frugal, &format!("/votes/{site:060}"))).collect();
    assert!(sites.iter().all(Result::is_ok));
    // As many as fit into what joins reserve.
    let all = std::iter::from_fn(|| budget.open("/votes", reserved).ok());
    assert_eq!(all.collect::<Vec<_>>().len(), (RESERVED_BYTES - reserved - 2 * 66) / reserved);
}

#[test]
fn one_participant_takes_its_share_and_no_more_and_never_what_others_join_with() {
    let budget = Arc::new(Budget::default());
    let greedy = budget.open("/m", 0).unwrap();
    let mut charges = Vec::new();
    let refusal = loop {
        match data(&greedy, &"x".repeat(1000)) {
            Ok(charge) => charges.push(charge),
            Err(error) => break error,
        }
    };
    assert!(matches!(refusal, Failure::OverLimit(text) if text.contains("its share")));
    assert_eq!(charges.len(), SHARE_BYTES / 1000);
    // Another still finds room for more than it has reserved, and a thousand can join.
    let other = budget.open("/m", 0).unwrap();
    assert!(data(&other, &"x".repeat(4096)).is_ok());
    let joined: Vec<_> = (0..900).map(|_| budget.open("/locks/orders", 0)).collect();
    assert!(joined.iter().all(Result::is_ok));
    drop(charges);
    assert_eq!(taken(&budget).1, 0);
}

#[test]
fn those_who_watch_one_znode_beyond_their_room_pay_once_until_the_last_has_gone() {
    let budget = Arc::new(Budget::default());
    let path = format!("/barrier/{}", "x".repeat(1_000));
    let accounts: Vec<_> = (0..900).map(|_| budget.open("/barrier", 0).unwrap()).collect();
    let mut charges: Vec<_> = accounts.iter().map(|it| data(it, &path).unwrap()).collect();
    assert_eq!(taken(&budget).1, path.len());
    // Another kind is re-armed beside it.
    let children = accounts[0].charge(WatchKind::Children, &path).unwrap();
    assert_eq!(taken(&budget).1, 2 * path.len());
    drop(children);
    charges.truncate(1);
    assert_eq!(taken(&budget).1, path.len());
    charges.clear();
    assert_eq!(taken(&budget).1, 0);
    assert!(budget.room().watched.is_empty());
}

#[test]
fn what_a_long_name_took_is_given_back_with_it() {
    let budget = Arc::new(Budget::default());
    let account = budget.open("/m", 0).unwrap();
    account.reserve(4000).unwrap();
    assert_eq!(taken(&budget).1, 4000 - account.reserved);
    // The contender itself is watched in that room.
    let charge = data(&account, &"x".repeat(4000)).unwrap();
    assert_eq!(taken(&budget).1, 4000 - account.reserved);
    account.release(|| 4000);
    assert_eq!(taken(&budget).1, 4000 - account.reserved);
    account.release(|| 0);
    assert_eq!(taken(&budget).1, 4000 - account.reserved, "it is watched still");
    drop(charge);
    assert_eq!(taken(&budget).1, 0);
    assert!(account.reserve(SHARE_BYTES + account.reserved + 1).is_err());
    assert_eq!(taken(&budget).1, 0);
}

#[test]
fn a_refused_charge_changes_nothing() {
    let budget = Arc::new(Budget::default());
    let account = budget.open("/m", 0).unwrap();
    let before = taken(&budget);
    assert!(data(&account, &"x".repeat(WATCHED_BYTES + 1)).is_err());
    assert_eq!(taken(&budget), before);
    assert!(data(&account, "/m/a").is_ok());
}

#[test]
fn a_session_knows_who_has_joined_until_the_last_watch_has_gone() {
    let budget = Arc::new(Budget::default());
    let participants = budget.participants();
    let (first, second) = (budget.open("/m", 0).unwrap(), budget.open("/m", 0).unwrap());
    assert_eq!(*participants.borrow(), 2);
    assert!(budget.has_joined_at("/m") && !budget.has_joined_at("/n"));
    let watch = data(&first, "/m/a").unwrap();
    drop((first, second));
    assert_eq!(*participants.borrow(), 1);
    assert!(budget.has_joined_at("/m"));
    drop(watch);
    assert_eq!(*participants.borrow(), 0);
    assert!(!budget.has_joined_at("/m"));
}
