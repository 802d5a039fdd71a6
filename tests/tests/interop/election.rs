//! `leader-election` beside Curator's `LeaderLatch` and kazoo's `Election`.

use anyhow::Result;

use crate::line::{check, check_littered};
use crate::party::{Contest, Party};

const CURATOR: Contest = Contest {
    wok: ["leader-election", "volunteer"],
    format: "curator",
    infix: "-latch-",
    ask: "election volunteer {path}",
    give_back: "election resign",
};
const KAZOO: Contest = Contest { format: "kazoo", infix: "__lock__", ..CURATOR };

#[tokio::test]
async fn curators_latch_and_wok_lead_in_the_order_in_which_they_volunteered() -> Result<()> {
    let [mut first, mut last] = [Party::wok(), Party::wok()];
    let mut curator = Party::curator().await?;
    check(CURATOR, &mut [&mut first, &mut curator, &mut last]).await?;
    check(CURATOR, &mut [&mut curator, &mut first]).await
}

#[tokio::test]
async fn kazoos_election_and_wok_lead_in_the_order_in_which_they_volunteered() -> Result<()> {
    let [mut first, mut last] = [Party::wok(), Party::wok()];
    let mut kazoo = Party::kazoo().await?;
    check(KAZOO, &mut [&mut first, &mut kazoo, &mut last]).await?;
    check(KAZOO, &mut [&mut kazoo, &mut first]).await
}

#[tokio::test]
async fn children_that_are_no_candidates_are_in_nobodys_way_to_lead() -> Result<()> {
    let [mut first, mut last] = [Party::wok(), Party::wok()];
    let (mut curator, mut kazoo) = (Party::curator().await?, Party::kazoo().await?);
    check_littered(CURATOR, &mut [&mut first, &mut curator, &mut last]).await?;
    check_littered(CURATOR, &mut [&mut curator, &mut first]).await?;
    check_littered(KAZOO, &mut [&mut first, &mut kazoo, &mut last]).await?;
    check_littered(KAZOO, &mut [&mut kazoo, &mut first]).await
}
