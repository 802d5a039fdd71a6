//! `leader-election` beside Curator's `LeaderLatch` and kazoo's `Election`.

use anyhow::Result;

use crate::line::check;
use crate::party::{Contest, Party};

const CURATOR: Contest = Contest {
    wok: ["leader-election", "volunteer"],
    format: "curator",
    ask: "election volunteer {path}",
    give_back: "election resign",
};
const KAZOO: Contest = Contest { format: "kazoo", ..CURATOR };

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
