//! Every cut between three servers, with each kind of host, at three session timeouts.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use wok_tests::network::Network;
use wok_tests::partition::{Cut, Ground, HandOver, Kind, round};

use crate::{Length, Options, figure, say};

const KINDS: [Kind; 3] = [Kind::Lock, Kind::Daemon, Kind::Apps];

/// The session timeouts that are played, in seconds: two ticks, five, and fifteen.
const TIMEOUTS: [u64; 3] = [4, 10, 30];

/// After so many failed rounds a cut is given up: each of them may have waited for minutes.
const MOST_FAILED: u32 = 5;

/// Plays all lanes side by side: they spend their time waiting. What fails keeps nothing else from being
/// played.
pub(crate) fn play(options: &Options) -> Result<()> {
    let lanes = lanes(options);
    ensure!(
        !lanes.is_empty(),
        "nothing is named {:?}: a name is a cut, a kind of host and a timeout in seconds, or a part of \
         that, as in WithLeader/Lock/10",
        options.only.as_deref().unwrap_or_default()
    );
    // Where nobody may make it, this says so at once and not in each round.
    drop(Network::new(1)?);
    announce(&lanes);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let played = runtime.block_on(join_all(lanes.iter().map(Lane::play)));
    let outcomes: Vec<Outcome> = played.into_iter().flatten().collect();
    say(&table(&outcomes));
    let failed = outcomes.iter().filter(|outcome| outcome.failed > 0);
    let failed: Vec<String> = failed.map(Outcome::told).collect();
    ensure!(failed.is_empty(), "{} of {}:\n{}", failed.len(), outcomes.len(), failed.join("\n"));
    Ok(())
}

/// A kind of host and a timeout: its cuts are played one after another, on servers of their own.
struct Lane {
    kind: Kind,
    /// In seconds.
    timeout: u64,
    cuts: Vec<Cut>,
    rounds: u32,
}

fn lanes(options: &Options) -> Vec<Lane> {
    let rounds = if options.length == Length::Full { 20 } else { 1 };
    let lane = |kind: Kind, timeout: u64| {
        let is_wanted = |cut: &Cut| {
            let name = format!("{cut:?}/{kind:?}/{timeout}");
            cut.is_playable(Duration::from_secs(timeout))
                && options.only.as_ref().is_none_or(|only| name.contains(only))
        };
        let cuts = Cut::ALL.into_iter().filter(is_wanted).collect();
        Lane { kind, timeout, cuts, rounds }
    };
    let lanes = KINDS.into_iter().flat_map(|kind| TIMEOUTS.map(|timeout| lane(kind, timeout)));
    lanes.filter(|lane| !lane.cuts.is_empty()).collect()
}

/// Says what is going to be played, and how long that takes.
fn announce(lanes: &[Lane]) {
    let takes = lanes.iter().map(Lane::takes).max().unwrap_or_default();
    say(&format!(
        "{} lanes, side by side: about {} on a machine that does nothing else",
        lanes.len(),
        spell(takes)
    ));
    for lane in lanes {
        let cuts = lane.cuts.iter().map(|cut| format!("{cut:?}")).collect::<Vec<_>>().join(", ");
        let Lane { kind, timeout, rounds, .. } = lane;
        say(&format!(
            "{kind:?}, {timeout} s: {rounds} rounds of each of {cuts}; about {}",
            spell(lane.takes())
        ));
    }
}

/// A time, in whole minutes.
fn spell(time: Duration) -> String {
    let minutes = time.as_secs().div_ceil(60);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// What the rounds of one cut have come to.
struct Outcome {
    cut: Cut,
    kind: Kind,
    /// In seconds.
    timeout: u64,
    played: u32,
    handed_over: u32,
    /// The shortest time between the last line of one holder and the first of the next.
    shortest: Option<Duration>,
    failed: u32,
}

impl Outcome {
    /// In words.
    fn told(&self) -> String {
        let Outcome { cut, kind, timeout, played, handed_over, shortest, failed } = self;
        let after = shortest.map_or_else(String::new, |gap| {
            format!(", the next began {gap:.2?} after the last line at the soonest")
        });
        let failed = match failed {
            0 => String::new(),
            failed => format!(", {failed} FAILED"),
        };
        format!(
            "{cut:?}, {kind:?}, {timeout} s: {played} rounds, {handed_over} handed over{after}{failed}"
        )
    }

    fn enter(&mut self, handed: Option<HandOver>) {
        let Some(HandOver { gap, holder_said }) = handed else { return };
        self.handed_over += 1;
        self.shortest = Some(self.shortest.map_or(gap, |shortest| shortest.min(gap)));
        if self.cut == Cut::Slow {
            say(&format!("the holder on the slow link said {holder_said:#?}"));
        }
    }
}

/// All of them, as a table of Markdown.
fn table(outcomes: &[Outcome]) -> String {
    let mut lines = vec![
        "| cut | host | timeout | rounds | handed over | soonest after | failed |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(outcomes.iter().map(|outcome| {
        let Outcome { cut, kind, timeout, played, handed_over, shortest, failed } = outcome;
        let shortest = shortest.map_or_else(|| "-".to_owned(), |gap| format!("{gap:.2?}"));
        format!(
            "| {cut:?} | {kind:?} | {timeout} s | {played} | {handed_over} | {shortest} | {failed} |"
        )
    }));
    lines.join("\n")
}

impl Lane {
    fn takes(&self) -> Duration {
        let timeout = Duration::from_secs(self.timeout);
        self.cuts.iter().map(|cut| cut.takes(timeout)).sum::<Duration>() * self.rounds
    }

    async fn play(&self) -> Vec<Outcome> {
        let (mut ground, mut outcomes) = (None, Vec::new());
        for cut in &self.cuts {
            let outcome = self.play_cut(*cut, &mut ground).await;
            figure(&outcome.told());
            outcomes.push(outcome);
        }
        outcomes
    }

    async fn play_cut(&self, cut: Cut, ground: &mut Option<Ground>) -> Outcome {
        let Lane { kind, timeout, rounds, .. } = *self;
        let mut outcome =
            Outcome { cut, kind, timeout, played: 0, handed_over: 0, shortest: None, failed: 0 };
        while outcome.played < rounds && outcome.failed < MOST_FAILED {
            outcome.played += 1;
            let which = format!("{cut:?}, {kind:?}, {timeout} s: round {}", outcome.played);
            match self.play_round(cut, ground).await {
                Ok(handed) => {
                    say(&format!("{which} of {rounds}"));
                    outcome.enter(handed);
                }
                Err(error) => {
                    say(&format!("{which} of {rounds} FAILED: {error:#}"));
                    outcome.failed += 1;
                }
            }
        }
        outcome
    }

    /// Plays a round, on the servers of the one before if that went well: one that fails leaves the
    /// links as they are.
    async fn play_round(&self, cut: Cut, ground: &mut Option<Ground>) -> Result<Option<HandOver>> {
        let there = match ground.take() {
            Some(there) => there,
            None => Ground::new().await.context("new servers")?,
        };
        let handed = round(&there, cut, self.kind, Duration::from_secs(self.timeout)).await?;
        *ground = Some(there);
        Ok(handed)
    }
}
