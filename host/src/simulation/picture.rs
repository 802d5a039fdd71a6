//! A run as a picture: a lane for each participant, time from left to right.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::history::{Change, Entry, FaultKind, HostId, ParticipantId, Told, What};
use super::judges::Violation;

const LANE: f64 = 22.0;
const LEFT: f64 = 190.0;
const WIDTH: f64 = 1_000.0;
const TOP: f64 = 46.0;

/// From when to when, in microseconds.
type Span = (u64, u64);

/// What a lane shows.
#[derive(Debug, Default)]
struct Lane {
    host: HostId,
    alive: Option<Span>,
    calls: Vec<Span>,
    /// What it believed to hold.
    beliefs: Vec<Span>,
    /// How long its contenders were there.
    contenders: Vec<Span>,
    /// When it was told of a loss.
    losses: Vec<u64>,
}

/// The picture, as SVG.
pub fn svg(history: &[Entry], violation: Option<&Violation>) -> String {
    let end_us = history.last().map_or(1, |entry| entry.at_us).max(1);
    let (lanes, faults) = read(history, end_us);
    let cuts = cuts(history, end_us);
    let broken = violation.and_then(|it| history.get(it.at)).map(|entry| entry.at_us);
    let height = TOP + LANE * (lanes.len() as f64 + 1.0) + 34.0;
    let x = |at_us: u64| LEFT + WIDTH * at_us as f64 / end_us as f64;
    let mut svg = String::new();
    // Writing to a string does not fail.
    let mut put = |line: String| writeln!(svg, "{line}").unwrap_or_default();
    put(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">",
        LEFT + WIDTH + 20.0
    ));
    put("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>".to_owned());
    put(format!(
        "<text x=\"10\" y=\"18\">grey: alive; blue: a call; yellow: in line; green: believes to \
         hold; pink: somebody is cut off; red: {}</text>",
        violation.map_or("a fault", |it| &*it.invariant)
    ));
    for (from, until) in cuts {
        put(format!(
            "<rect x=\"{:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#f4cccc\"/>",
            x(from),
            (x(until) - x(from)).max(1.0),
            height - 30.0 - TOP
        ));
    }
    for (row, (participant, lane)) in lanes.iter().enumerate() {
        let y = TOP + LANE * row as f64;
        let mut bar = |span: &Span, color: &str, from: f64, thick: f64| {
            let width = (x(span.1) - x(span.0)).max(1.0);
            put(format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{thick}\" \
                 fill=\"{color}\"/>",
                x(span.0),
                y + from
            ));
        };
        lane.alive.iter().for_each(|span| bar(span, "#dddddd", 2.0, 16.0));
        lane.calls.iter().for_each(|span| bar(span, "#9ec5fe", 2.0, 4.0));
        lane.contenders.iter().for_each(|span| bar(span, "#ffe08a", 7.0, 4.0));
        lane.beliefs.iter().for_each(|span| bar(span, "#3aa655", 12.0, 6.0));
        lane.losses.iter().for_each(|at_us| bar(&(*at_us, *at_us), "#c00000", 2.0, 16.0));
        put(format!(
            "<text x=\"10\" y=\"{:.1}\">participant {participant}, host {}</text>",
            y + 14.0,
            lane.host
        ));
    }
    for (number, (at_us, text)) in faults.iter().enumerate() {
        let (x, bottom) = (x(*at_us), height - 30.0);
        put(format!(
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#e06666\" \
             stroke-dasharray=\"3,3\"/>\n<text x=\"{x:.1}\" y=\"{:.1}\" fill=\"#c00000\">{text}</text>",
            bottom + 12.0 * (1.0 + (number % 2) as f64)
        ));
    }
    if let Some(at_us) = broken {
        let x = x(at_us);
        put(format!(
            "<line x1=\"{x:.1}\" y1=\"26\" x2=\"{x:.1}\" y2=\"{:.1}\" stroke=\"red\" \
             stroke-width=\"2\"/>",
            height - 30.0
        ));
    }
    put("</svg>".to_owned());
    svg
}

/// From when to when somebody was cut off.
fn cuts(history: &[Entry], end_us: u64) -> Vec<Span> {
    let mut cuts: Vec<(FaultKind, Option<HostId>, Span)> = Vec::new();
    for entry in history {
        match &entry.what {
            What::Fault { fault, host, .. } if fault.is_cut() => {
                cuts.push((*fault, *host, (entry.at_us, end_us)));
            }
            What::Healed { fault, host } => {
                let is_it = |cut: &&mut (FaultKind, Option<HostId>, Span)| {
                    cut.0 == *fault && cut.1 == *host && cut.2.1 == end_us
                };
                if let Some((_, _, span)) = cuts.iter_mut().find(is_it) {
                    span.1 = entry.at_us;
                }
            }
            _ => {}
        }
    }
    cuts.into_iter().map(|(_, _, span)| span).collect()
}

/// The lanes, and when what was done to the run.
fn read(
    history: &[Entry],
    end_us: u64,
) -> (BTreeMap<ParticipantId, Lane>, Vec<(u64, &'static str)>) {
    let mut lanes: BTreeMap<ParticipantId, Lane> = BTreeMap::new();
    let mut faults = Vec::new();
    let mut calls = BTreeMap::new();
    let mut beliefs: BTreeMap<ParticipantId, u64> = BTreeMap::new();
    let mut contenders: BTreeMap<String, (ParticipantId, u64)> = BTreeMap::new();
    for entry in history {
        let at_us = entry.at_us;
        match &entry.what {
            What::Joined { participant, host, .. } => {
                let lane = lanes.entry(*participant).or_default();
                (lane.host, lane.alive) = (*host, Some((at_us, end_us)));
            }
            What::Invoked { participant, call, .. } => {
                calls.insert(*call, (*participant, at_us));
            }
            What::Returned { call, .. } => {
                if let Some((participant, since)) = calls.remove(call) {
                    lanes.entry(participant).or_default().calls.push((since, at_us));
                }
            }
            What::HostCallAnswered { participant, created: Some(path), .. } => {
                contenders.insert(path.clone(), (*participant, at_us));
            }
            What::Txn { changes, .. } => {
                for change in changes {
                    if let Change::Deleted { path } = change
                        && let Some((participant, since)) = contenders.remove(path)
                    {
                        lanes.entry(participant).or_default().contenders.push((since, at_us));
                    }
                }
            }
            What::Told { participant, notice } => {
                let lane = lanes.entry(*participant).or_default();
                match notice {
                    Told::Held { .. } => drop(beliefs.insert(*participant, at_us)),
                    Told::Released { .. } | Told::Lost { .. } | Told::Ended { .. } => {
                        lane.beliefs
                            .extend(beliefs.remove(participant).map(|since| (since, at_us)));
                    }
                    _ => {}
                }
                match notice {
                    Told::Lost { .. } => lane.losses.push(at_us),
                    Told::Ended { .. } => {
                        lane.alive = lane.alive.map(|(since, _)| (since, at_us));
                    }
                    _ => {}
                }
            }
            What::Fault { fault, .. } => faults.push((at_us, fault.name())),
            _ => {}
        }
    }
    for (participant, since) in beliefs {
        lanes.entry(participant).or_default().beliefs.push((since, end_us));
    }
    for (participant, since) in contenders.into_values() {
        lanes.entry(participant).or_default().contenders.push((since, end_us));
    }
    (lanes, faults)
}
