//! Every cut between three servers, with each kind of host, at three session timeouts.

use std::time::Duration;

use anyhow::{Result, ensure};
use wok_tests::partition::{Cut, Ground, HandOver, Kind, round};

use crate::{Length, Options, figure, say};

/// The session timeouts that are played, in seconds: two ticks, five, and fifteen.
const TIMEOUTS: [u64; 3] = [4, 10, 30];

/// Plays all lanes side by side: they spend their time waiting.
pub(crate) fn play(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let lanes = [Kind::Lock, Kind::Daemon, Kind::Apps]
        .into_iter()
        .flat_map(|kind| TIMEOUTS.into_iter().map(move |timeout| lane(options, kind, timeout)));
    runtime.block_on(futures_util::future::try_join_all(lanes)).map(drop)
}

/// Plays the rounds of a kind and a timeout one after another, on servers of their own.
async fn lane(options: &Options, kind: Kind, timeout: u64) -> Result<()> {
    let rounds = if options.length == Length::Full { 20 } else { 1 };
    let is_wanted = |cut: &Cut| {
        let name = format!("{cut:?}/{kind:?}/{timeout}");
        options.only.as_ref().is_none_or(|only| name.contains(only))
    };
    let cuts: Vec<Cut> = Cut::ALL.into_iter().filter(is_wanted).collect();
    if cuts.is_empty() {
        return Ok(());
    }
    let ground = Ground::new().await?;
    for cut in cuts {
        let (mut handed_over, mut shortest) = (0, None::<Duration>);
        for number in 1..=rounds {
            let handed = round(&ground, cut, kind, Duration::from_secs(timeout)).await?;
            if let Some(HandOver { gap, holder_said }) = handed {
                handed_over += 1;
                shortest = Some(shortest.map_or(gap, |shortest| shortest.min(gap)));
                if cut == Cut::Slow {
                    say(&format!("the holder on the slow link said {holder_said:#?}"));
                }
            }
            say(&format!("{cut:?}, {kind:?}, {timeout} s: round {number} of {rounds}"));
        }
        let is_often = cut == Cut::Slow && timeout >= 10 && handed_over * 4 > rounds;
        ensure!(!is_often, "{cut:?}, {kind:?}, {timeout} s: {handed_over} of {rounds} lost");
        let after = shortest.map_or_else(String::new, |gap| {
            format!(", the next began {gap:.2?} after the last line at the soonest")
        });
        figure(&format!(
            "{cut:?}, {kind:?}, {timeout} s: {rounds} rounds, {handed_over} handed over{after}"
        ));
    }
    Ok(())
}
