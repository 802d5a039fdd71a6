//! The faults of a seed. Each seed switches some kinds on and leaves the others off, so that their
//! combinations are explored, too.

use crate::simulation::chance::Chance;
use crate::simulation::history::{FaultKind, HostId};
use crate::simulation::plan::{Fault, Way, When};

/// How many faults come.
const FAULTS: (u64, u64) = (4, 10);

/// In how many runs of a hundred servers are cut off for long, whatever else comes.
const PARTITIONS_PERCENT: u64 = 50;

/// In how many runs of a hundred a fault of any kind strikes one of the host calls that the module
/// makes least often, and how many calls these are: chance alone would hardly ever strike them.
const RARE_PERCENT: u64 = 50;
const RARE_CALLS: usize = 5;
const RARE_LAG_PERCENT: u64 = 20;

/// In how many runs of a hundred a server is stopped as it takes a session over. In how many of these it is
/// cut off from its leader meanwhile, so that what it asks when it goes on does not get there.
const SERVER_PAUSE_PERCENT: u64 = 25;
const CUT_OFF_PERCENT: u64 = 60;

/// For how many hundredths of a session timeout it is stopped. After 40 its client comes anew, and after 90
/// the client's host has given the session up. The cut comes before its leader gives it up by itself.
const SERVER_PAUSE_HUNDREDTHS: (u64, u64) = (30, 90);
const CUT_OFF_WITHIN_MS: (u64, u64) = (100, 2_000);

/// How long into a run faults come, and which request of a host's they wait for.
const FAULTS_UNTIL_MS: u64 = 12_000;
const LAST_REQUEST: u64 = 70;

/// What there is to strike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Targets<'a> {
    pub(super) hosts: HostId,
    pub(super) servers: usize,
    pub(super) session_timeout_ms: u64,
    /// The host calls that the module makes, and how often on each host.
    pub(super) host_calls: &'a [(String, u64)],
}

impl Targets<'_> {
    /// The faults that come.
    pub(super) fn faults(&self, chance: &mut Chance) -> Vec<Fault> {
        let kinds: Vec<FaultKind> = kinds().filter(|_| chance.happens(45)).collect();
        let count = chance.within(FAULTS.0, FAULTS.1);
        let mut faults: Vec<Fault> =
            (0..count).filter_map(|_| self.fault(&kinds, chance)).collect();
        if chance.happens(PARTITIONS_PERCENT) {
            faults.extend(self.partition(chance));
        }
        if chance.happens(RARE_PERCENT) {
            faults.extend(self.rare(chance));
        }
        // One server alone neither follows nor is cut off from others.
        faults.retain(|fault| {
            let is_of_several = fault.fault.is_between_servers() || fault.fault.is_of_a_follower();
            self.servers > 1 || !is_of_several
        });
        faults.into_iter().map(Fault::without_strange_keys).collect()
    }

    /// Servers that are stopped as they take a session over.
    pub(super) fn server_pauses(&self, chance: &mut Chance) -> Vec<Fault> {
        if self.servers == 1 || !chance.happens(SERVER_PAUSE_PERCENT) {
            return Vec::new();
        }
        let (host, way) = (self.host(chance), Way::Both);
        let hundredths = chance.within(SERVER_PAUSE_HUNDREDTHS.0, SERVER_PAUSE_HUNDREDTHS.1);
        let ms = self.session_timeout_ms * hundredths / 100;
        let pause = |when| Fault { fault: FaultKind::ServerPause, when, host, ms, way };
        if !chance.happens(CUT_OFF_PERCENT) {
            let when = match chance.pick(&self.rare_calls()) {
                Some((name, made)) => {
                    When::HostCall { name: name.clone(), nth: chance.within(1, *made) }
                }
                None => When::At { ms: chance.within(100, FAULTS_UNTIL_MS) },
            };
            return vec![pause(when)];
        }
        let at = chance.within(500, 8_000);
        let cut = Fault {
            fault: FaultKind::LinkCut,
            when: When::At { ms: at + chance.within(CUT_OFF_WITHIN_MS.0, CUT_OFF_WITHIN_MS.1) },
            host,
            ms: chance.within(3_000, 9_000),
            way: self::way(chance),
        };
        vec![pause(When::At { ms: at }), cut]
    }

    fn fault(&self, kinds: &[FaultKind], chance: &mut Chance) -> Option<Fault> {
        let fault = *chance.pick(kinds)?;
        let when = match (chance.within(1, 4), chance.pick(self.host_calls)) {
            (1, _) | (_, None) => When::At { ms: chance.within(100, FAULTS_UNTIL_MS) },
            (2, _) => When::Request { nth: chance.within(1, LAST_REQUEST) },
            (_, Some((name, made))) => {
                When::HostCall { name: name.clone(), nth: chance.within(1, *made) }
            }
        };
        Some(self.of_kind(fault, when, chance))
    }

    fn rare(&self, chance: &mut Chance) -> Option<Fault> {
        let calls = self.rare_calls();
        let (name, made) = *chance.pick(&calls)?;
        // Lag strikes only hosts whose server follows another, so it has to come more often.
        let fault = match chance.happens(RARE_LAG_PERCENT) {
            true => FaultKind::Lag,
            false => *chance.pick(&kinds().collect::<Vec<_>>())?,
        };
        let when = When::HostCall { name: name.clone(), nth: chance.within(1, *made) };
        Some(self.of_kind(fault, when, chance))
    }

    /// The host calls that the module makes least often.
    fn rare_calls(&self) -> Vec<&(String, u64)> {
        let mut calls: Vec<&(String, u64)> = self.host_calls.iter().collect();
        calls.sort_by_key(|(_, made)| *made);
        calls.truncate(RARE_CALLS);
        calls
    }

    fn of_kind(&self, fault: FaultKind, when: When, chance: &mut Chance) -> Fault {
        let host = self.host(chance);
        let ms = match fault {
            FaultKind::Pause => chance.within(200, 12_000),
            FaultKind::HostKill => chance.within(100, 3_000),
            FaultKind::LeaderChange => chance.within(100, 1_500),
            kind if kind.is_cut() => chance.within(500, 9_000),
            _ => chance.within(100, 4_000),
        };
        let way = if fault.is_between_servers() { way(chance) } else { Way::Both };
        Fault { fault, when, host, ms, way }
    }

    /// Servers that are cut off from each other for long enough that sessions end, and leaders are
    /// elected.
    fn partition(&self, chance: &mut Chance) -> Option<Fault> {
        let kinds = [FaultKind::LinkCut, FaultKind::ServerCut, FaultKind::LeaderCut];
        let fault = *chance.pick(&kinds)?;
        let when = When::At { ms: chance.within(500, 8_000) };
        let host = self.host(chance);
        let ms = chance.within(3_000, 9_000);
        Some(Fault { fault, when, host, ms, way: way(chance) })
    }

    fn host(&self, chance: &mut Chance) -> HostId {
        let last = u64::from(self.hosts).saturating_sub(1);
        HostId::try_from(chance.within(0, last)).unwrap_or(0)
    }
}

/// The kinds that are drawn one by one: all but those that [`Targets::server_pauses`] draws.
fn kinds() -> impl Iterator<Item = FaultKind> {
    FaultKind::ALL.into_iter().filter(|kind| *kind != FaultKind::ServerPause)
}

/// Both ways in more than half of them.
fn way(chance: &mut Chance) -> Way {
    let way = chance.pick(&Way::ALL).copied().unwrap_or_default();
    if chance.happens(40) { Way::Both } else { way }
}
