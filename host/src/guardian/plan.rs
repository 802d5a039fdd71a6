//! When the command is to be stopped and when to be killed. Decides only; `watchdog` acts.

use std::time::Duration;

use super::record::Report;
use crate::clock::Boottime;

/// How long one attempt to kill the command may take, on the busiest machine.
const KILLING: Duration = Duration::from_secs(1);

/// What is to be done with the command now. Each but `Kill` is said once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Let it run.
    Nothing,
    /// Ask the command to end.
    Stop,
    /// Ask what the command left behind to end.
    StopTheRest,
    /// Ask those to end who had left the command's group when that was asked.
    StopThoseApart,
    /// Kill whatever is left; again at every look until nothing is.
    Kill,
}

/// Why the command is being ended, if not because it ended itself or wok asked it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Deadline,
    Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The stop signal is to be sent, or was; killed at the instant, once there is one.
    Stopping {
        kill_at: Option<Boottime>,
        reason: Option<Reason>,
        /// Whether all are asked who have outlived the leader.
        rest_is_asked: bool,
    },
    Killing {
        reason: Option<Reason>,
    },
}

/// How much of the time up to the first deadline a stop-timeout may take: seven parts of eight.
const MOST_OF_IT: (u32, u32) = (7, 8);

/// The deadline and what became of it.
#[derive(Debug)]
pub(super) struct Plan {
    deadline: Boottime,
    stop_timeout: Duration,
    phase: Phase,
}

impl Plan {
    /// A stop-timeout that does not fit into the time there is at first is cut to half of that time: the
    /// stop signal comes that long before the deadline, and a command should not be stopped before the first
    /// heartbeat could extend it. Who knows the session timeout has asked whether the stop-timeout fits, and
    /// one that does takes less than [`MOST_OF_IT`], also where the newest contact is a heartbeat old.
    pub(super) fn new(now: Boottime, deadline: Boottime, stop_timeout: Duration) -> Self {
        let there_is = deadline.saturating_duration_since(now);
        let (parts, of) = MOST_OF_IT;
        let fits = stop_timeout <= there_is * parts / of;
        let stop_timeout = if fits { stop_timeout } else { there_is / 2 };
        Self { deadline, stop_timeout, phase: Phase::Running }
    }

    /// The newest deadline replaces the one before, unless the end has begun: a command that was
    /// told to end cannot be told not to.
    pub(super) fn extend(&mut self, deadline: Boottime) {
        if self.phase == Phase::Running {
            self.deadline = deadline;
        }
    }

    /// wok wants an ordered end.
    pub(super) fn stop(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Stopping { kill_at: None, reason: None, rest_is_asked: false };
        }
    }

    /// wok wants an immediate end, or is gone. A command that ended itself before keeps its own
    /// status, and only what it left behind is killed.
    pub(super) fn kill(&mut self, leader_has_ended: bool) {
        let reason = match self.phase {
            Phase::Running if !leader_has_ended => Some(Reason::Order),
            Phase::Running => None,
            Phase::Stopping { reason, .. } | Phase::Killing { reason } => reason,
        };
        self.phase = Phase::Killing { reason };
    }

    /// What to do now.
    pub(super) fn due(&mut self, now: Boottime, leader_has_ended: bool) -> Due {
        match self.phase {
            // Before the next arm: of a command whose end is noticed so late, nobody can say
            // whether it acted after the deadline, or who killed it.
            Phase::Running if now >= self.deadline => {
                self.phase = Phase::Killing { reason: Some(Reason::Deadline) };
                Due::Kill
            }
            Phase::Running if leader_has_ended => {
                let kill_at = Some(self.deadline.min(now + self.stop_timeout));
                self.phase = Phase::Stopping { kill_at, reason: None, rest_is_asked: true };
                Due::StopTheRest
            }
            Phase::Running if now >= self.deadline - self.stop_timeout => {
                let kill_at = Some(self.deadline);
                let reason = Some(Reason::Deadline);
                self.phase = Phase::Stopping { kill_at, reason, rest_is_asked: false };
                Due::Stop
            }
            Phase::Running => Due::Nothing,
            Phase::Stopping { kill_at: None, reason, .. } => {
                let kill_at = Some(self.deadline.min(now + self.stop_timeout));
                self.phase = Phase::Stopping { kill_at, reason, rest_is_asked: leader_has_ended };
                if leader_has_ended { Due::StopTheRest } else { Due::Stop }
            }
            Phase::Stopping { kill_at: Some(kill_at), reason, .. } if now >= kill_at => {
                self.phase = Phase::Killing { reason };
                Due::Kill
            }
            // Some may be left to be asked: their leader, who could have done that, has ended.
            Phase::Stopping { kill_at, reason, rest_is_asked: false } if leader_has_ended => {
                self.phase = Phase::Stopping { kill_at, reason, rest_is_asked: true };
                Due::StopThoseApart
            }
            Phase::Stopping { .. } => Due::Nothing,
            Phase::Killing { .. } => Due::Kill,
        }
    }

    /// How long until something is due; none if nothing is, whatever the time.
    pub(super) fn next(&self, now: Boottime) -> Option<Duration> {
        let at = match self.phase {
            Phase::Running => self.deadline - self.stop_timeout,
            Phase::Stopping { kill_at, .. } => kill_at.unwrap_or(now),
            Phase::Killing { .. } => return None,
        };
        Some(at.saturating_duration_since(now))
    }

    /// Until when the guardian has something to show for this plan: at the deadline the kill
    /// begins, and from then on the guardian tries it again and again.
    pub(super) fn next_sign_of_life(&self, now: Boottime) -> Boottime {
        match self.phase {
            Phase::Running | Phase::Stopping { .. } => self.deadline,
            Phase::Killing { .. } => now + KILLING,
        }
    }

    /// Whether it has come to killing.
    pub(super) fn is_killing(&self) -> bool {
        matches!(self.phase, Phase::Killing { .. })
    }

    /// What to say of a command that was ended; none if its own status is what counts.
    pub(super) fn verdict(&self) -> Option<Report> {
        match self.phase {
            Phase::Running => None,
            Phase::Stopping { reason, .. } | Phase::Killing { reason } => {
                reason.map(|reason| match reason {
                    Reason::Deadline => Report::DeadlinePassed,
                    Reason::Order => Report::Killed,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::longest_stop;
    use crate::session::Timing;

    fn at(seconds: u64) -> Boottime {
        Boottime::from_nanos(0) + Duration::from_secs(seconds)
    }

    fn plan(deadline: u64, stop_timeout: u64) -> Plan {
        Plan::new(at(100), at(deadline), Duration::from_secs(stop_timeout))
    }

    #[test]
    fn it_is_stopped_before_the_deadline_and_killed_at_it() {
        let mut plan = plan(110, 2);
        assert_eq!(plan.due(at(107), false), Due::Nothing);
        assert_eq!(plan.next(at(107)), Some(Duration::from_secs(1)));
        assert_eq!(plan.due(at(108), false), Due::Stop);
        assert_eq!(plan.due(at(109), false), Due::Nothing);
        assert_eq!(plan.due(at(110), false), Due::Kill);
        assert_eq!(plan.due(at(110), true), Due::Kill, "until nothing is left");
        assert_eq!(plan.verdict(), Some(Report::DeadlinePassed));
    }

    #[test]
    fn a_missed_stop_is_made_up_by_the_kill_alone() {
        let mut plan = plan(110, 2);
        assert_eq!(plan.due(at(500), false), Due::Kill);
        assert_eq!(plan.verdict(), Some(Report::DeadlinePassed));
    }

    #[test]
    fn an_end_that_is_noticed_after_the_deadline_counts_as_a_loss() {
        let mut plan = plan(110, 2);
        assert_eq!(plan.due(at(110), true), Due::Kill);
        assert_eq!(plan.verdict(), Some(Report::DeadlinePassed));
    }

    #[test]
    fn the_newest_deadline_counts_until_the_end_has_begun() {
        let mut plan = plan(110, 2);
        plan.extend(at(120));
        assert_eq!(plan.due(at(110), false), Due::Nothing);
        plan.extend(at(115));
        assert_eq!(plan.due(at(113), false), Due::Stop);
        plan.extend(at(200));
        assert_eq!(plan.due(at(115), false), Due::Kill);
        plan.extend(at(200));
        assert_eq!(plan.due(at(116), false), Due::Kill);
    }

    #[test]
    fn an_ordered_stop_is_a_kill_after_the_stop_timeout_or_at_the_deadline() {
        for (stopped_at, killed_at) in [(101, 103), (107, 109), (109, 110)] {
            let mut plan = plan(110, 2);
            plan.stop();
            assert_eq!(plan.due(at(stopped_at), false), Due::Stop);
            plan.stop();
            assert_eq!(plan.due(at(killed_at - 1).max(at(stopped_at)), false), Due::Nothing);
            assert_eq!(plan.due(at(killed_at), false), Due::Kill);
            assert_eq!(plan.verdict(), None, "the command's own status counts");
        }
    }

    #[test]
    fn what_a_command_leaves_behind_is_asked_first_and_then_killed() {
        let mut plan = plan(110, 2);
        assert_eq!(plan.due(at(101), true), Due::StopTheRest);
        assert_eq!(plan.due(at(102), true), Due::Nothing);
        assert_eq!(plan.due(at(103), true), Due::Kill);
        assert_eq!(plan.verdict(), None);
    }

    #[test]
    fn who_has_left_the_commands_group_is_asked_when_its_leader_has_ended() {
        let mut plan = plan(110, 2);
        plan.stop();
        assert_eq!(plan.due(at(101), false), Due::Stop);
        assert_eq!(plan.due(at(102), true), Due::StopThoseApart);
        assert_eq!(plan.due(at(102), true), Due::Nothing, "once");
        assert_eq!(plan.due(at(103), true), Due::Kill);
    }

    #[test]
    fn a_kill_is_at_once_and_does_not_change_what_ended_before() {
        let mut first = plan(110, 2);
        first.kill(false);
        assert_eq!(first.due(at(101), false), Due::Kill);
        assert_eq!(first.verdict(), Some(Report::Killed));

        let mut ended = plan(110, 2);
        ended.kill(true);
        assert_eq!(ended.due(at(101), true), Due::Kill);
        assert_eq!(ended.verdict(), None);

        let mut late = plan(110, 2);
        assert_eq!(late.due(at(109), false), Due::Stop);
        late.kill(false);
        assert_eq!(late.verdict(), Some(Report::DeadlinePassed));
    }

    #[test]
    fn a_sign_of_life_is_due_at_the_deadline_and_after_each_attempt_to_kill() {
        let mut plan = plan(110, 2);
        assert_eq!(plan.next_sign_of_life(at(101)), at(110));
        plan.stop();
        assert_eq!(plan.due(at(101), false), Due::Stop);
        assert_eq!(plan.next_sign_of_life(at(101)), at(110), "a stop is in no hurry");
        plan.kill(false);
        assert_eq!(plan.next_sign_of_life(at(102)), at(103));
    }

    /// What the config and the command line take is what the command gets.
    #[test]
    fn a_stop_timeout_that_fits_the_session_is_not_cut() {
        for (timeout, least) in [(4, 1), (10, 4), (10, 2), (30, 4), (3600, 1)] {
            let timing = Timing::new(Duration::from_secs(timeout));
            for timing in [timing, timing.granting(Duration::from_secs(least))] {
                let (stop, there_is) =
                    (longest_stop(timing), timing.patience() - timing.heartbeat());
                let plan = Plan::new(at(100), at(100) + there_is, stop);
                assert_eq!(plan.stop_timeout, stop, "{timing:?}");
            }
        }
    }

    #[test]
    fn a_stop_timeout_that_does_not_fit_is_cut_to_half_of_the_time() {
        let mut plan = plan(110, 60);
        assert_eq!(plan.due(at(104), false), Due::Nothing);
        assert_eq!(plan.due(at(105), false), Due::Stop);
        let mut expired = Plan::new(at(100), at(90), Duration::from_secs(1));
        assert_eq!(expired.due(at(100), false), Due::Kill);
    }
}
