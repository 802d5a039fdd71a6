//! The simulation's servers beside Apache ZooKeeper's in network namespaces, where elections are cut
//! off as well. `tests/tests/ensemble/model/` has the other scripts.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use wok_tests::network::Network;
use wok_tests::wire::At::{Follower, Leader, OtherFollower};
use wok_tests::wire::message::{Watch::No, create, get_data, set_data, sync};
use wok_tests::wire::{Real, Trio};
use wok_tests::zookeeper::{Ensemble, Options};

/// When a leader hears of a follower once more, and how long after that it hears nothing any more:
/// before the follower gives it up.
const ONCE_MORE: Duration = Duration::from_millis(1_950);
const A_MOMENT: Duration = Duration::from_millis(150);

/// Plays a script on both. Servers give each other up after four seconds of silence.
#[track_caller]
fn check(script: impl Fn(&mut Trio) -> Result<()>) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let real = || {
        let network = Network::new(3)?;
        let start = Ensemble::start_apart(network.sites(), Options::as_simulated(8, 8));
        let ensemble = runtime.block_on(start)?;
        Real::apart(network, ensemble)
    };
    if let Err(error) = Trio::check(real, script) {
        panic!("{error:#}");
    }
}

/// As `Way::Out` of the simulation has it: the others hear nothing of the leader, and it hears them.
#[test]
fn a_leader_that_is_not_heard_is_replaced() {
    check(|trio| {
        trio.keep_parts()?;
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        trio.call(a, create("/out"))?;
        trio.call(b, sync("/out"))?;
        trio.cut_way(Leader, Follower)?;
        trio.cut_way(Leader, OtherFollower)?;
        trio.call(a, sync("/out"))?;
        trio.send(a, &[set_data("/out", Some(b"lost"), 0)])?;
        trio.end(a)?;
        trio.end(b)?;
        trio.until_serving(Follower)?;
        let b = trio.return_at(Follower, "b again", b)?.context("it was sent away")?;
        trio.call(b, set_data("/out", Some(b"kept"), 0))?;
        trio.heal()?;
        let c = trio.connect_at(Leader, "c")?;
        trio.call(c, sync("/out"))?;
        trio.call(c, get_data("/out", No))?;
        Ok(())
    });
}

/// As `Way::OutFirst` has it: later it hears nothing of them either, and so not that they give it up.
#[test]
fn a_leader_that_a_follower_has_spoken_to_last_answers_after_another_is_elected() {
    check(|trio| {
        trio.keep_parts()?;
        let (a, b) = (trio.connect_at(Leader, "a")?, trio.connect_at(Follower, "b")?);
        let c = trio.connect_at(OtherFollower, "c")?;
        trio.call(a, create("/two"))?;
        trio.call(b, sync("/two"))?;
        trio.cut_way(Leader, Follower)?;
        trio.cut_way(Leader, OtherFollower)?;
        trio.rest(ONCE_MORE);
        // The leader begins to count the follower's silence anew. Its answer is not heard.
        trio.send(b, &[sync("/two")])?;
        trio.rest(A_MOMENT);
        trio.cut_way(Follower, Leader)?;
        trio.cut_way(OtherFollower, Leader)?;
        trio.end(b)?;
        trio.end(c)?;
        trio.until_serving(Follower)?;
        let b = trio.return_at(Follower, "b again", b)?.context("it was sent away")?;
        trio.call(b, set_data("/two", Some(b"new"), 0))?;
        // Two lead, and the old one answers what was before.
        trio.call(a, sync("/two"))?;
        trio.call(a, get_data("/two", No))?;
        trio.end(a)?;
        trio.heal()?;
        let d = trio.connect_at(Leader, "d")?;
        trio.call(d, sync("/two"))?;
        trio.call(d, get_data("/two", No))?;
        Ok(())
    });
}
