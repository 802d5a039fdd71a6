//! `lock` beside Curator's `InterProcessMutex` and kazoo's `Lock`.

use anyhow::Result;

use crate::line::{Line, check, check_littered};
use crate::party::{Contest, Party};

const CURATOR: Contest = Contest {
    wok: ["lock", "acquire"],
    format: "curator",
    infix: "-lock-",
    ask: "lock acquire {path} curator",
    give_back: "lock release",
};
const KAZOO: Contest =
    Contest { format: "kazoo", infix: "__lock__", ask: "lock acquire {path} kazoo", ..CURATOR };

#[tokio::test]
async fn the_lock_is_handed_from_wok_to_curator_and_back() -> Result<()> {
    let [mut first, mut last] = [Party::wok(), Party::wok()];
    let mut curator = Party::curator().await?;
    check(CURATOR, &mut [&mut first, &mut curator, &mut last]).await?;
    check(CURATOR, &mut [&mut curator, &mut first]).await
}

#[tokio::test]
async fn the_lock_is_handed_from_wok_to_kazoo_and_back() -> Result<()> {
    let [mut first, mut last] = [Party::wok(), Party::wok()];
    let mut kazoo = Party::kazoo().await?;
    check(KAZOO, &mut [&mut first, &mut kazoo, &mut last]).await?;
    check(KAZOO, &mut [&mut kazoo, &mut first]).await
}

/// kazoo names its contenders otherwise than Curator unless it is told to: see the peer.
#[tokio::test]
async fn wok_curator_and_kazoo_stand_in_one_line_in_any_order() -> Result<()> {
    let (mut wok, mut curator) = (Party::wok(), Party::curator().await?);
    let mut kazoo = Party::kazoo().await?;
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut parties = [Some(&mut wok), Some(&mut curator), Some(&mut kazoo)];
        let mut line = order.map(|party| parties[party].take().unwrap());
        check(CURATOR, &mut line).await?;
    }
    Ok(())
}

#[tokio::test]
async fn children_that_are_no_contenders_are_in_nobodys_way_to_the_lock() -> Result<()> {
    let [mut first, mut last] = [Party::wok(), Party::wok()];
    let (mut curator, mut kazoo) = (Party::curator().await?, Party::kazoo().await?);
    check_littered(CURATOR, &mut [&mut first, &mut curator, &mut last, &mut kazoo]).await?;
    check_littered(CURATOR, &mut [&mut curator, &mut first]).await?;
    check_littered(KAZOO, &mut [&mut first, &mut kazoo, &mut last]).await?;
    check_littered(KAZOO, &mut [&mut kazoo, &mut first]).await
}

#[tokio::test]
async fn a_peer_that_dies_with_the_lock_is_succeeded_by_wok_and_the_other_way_round() -> Result<()>
{
    for contest in [CURATOR, KAZOO] {
        let peer = async || match contest.format {
            "curator" => Party::curator().await,
            _ => Party::kazoo().await,
        };
        let (mut first, mut second, mut third) = (peer().await?, Party::wok(), peer().await?);
        let line = Line::new(contest).await?;
        for (ahead, party) in [&mut first, &mut second, &mut third].into_iter().enumerate() {
            line.join(party, ahead).await?;
        }
        first.has_it().await?;
        first.kill();
        second.has_it().await?;
        assert!(!third.has_answered(), "{third:?} beside {second:?}");
        second.kill();
        line.take_turns(&mut [&mut third]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn whoever_dies_in_line_lets_nobody_by() -> Result<()> {
    let (mut first, mut second, mut third) =
        (Party::curator().await?, Party::wok(), Party::curator().await?);
    let line = Line::new(CURATOR).await?;
    for (ahead, party) in [&mut first, &mut second, &mut third].into_iter().enumerate() {
        line.join(party, ahead).await?;
    }
    second.kill();
    line.ends_behind(1).await?;
    line.take_turns(&mut [&mut first, &mut third]).await
}
