//! What a look at a transaction means.

/// What a site says, and what is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Commit,
    Abort,
}

const COMMIT: &str = "commit";
const ABORT: &str = "abort";

impl Choice {
    /// As it stands in a znode.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Choice::Commit => COMMIT,
            Choice::Abort => ABORT,
        }
    }

    /// Reads a vote.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        [Choice::Commit, Choice::Abort].into_iter().find(|it| it.word().as_bytes() == data)
    }
}

/// The end of a transaction, as it stands in its `decision` znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// What was decided.
    pub(crate) choice: Choice,
    /// Why, in words.
    pub(crate) reason: String,
}

impl Verdict {
    /// What is written: the word, and the reason in a line of its own.
    pub(crate) fn data(&self) -> Vec<u8> {
        [self.choice.word(), "\n", &self.reason].concat().into_bytes()
    }

    /// Reads what is written.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let (word, reason) = std::str::from_utf8(data).ok()?.split_once('\n')?;
        let choice = Choice::parse(word.as_bytes())?;
        Some(Verdict { choice, reason: reason.to_owned() })
    }
}

/// A site, as its znodes show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// Its name.
    pub(crate) name: String,
    /// Its vote, if it has voted.
    pub(crate) vote: Option<Choice>,
    /// Whether the server stamped that when the transaction's time was over: such a vote came too late,
    /// whatever the clock of its voter showed.
    pub(crate) is_late: bool,
    /// Whether somebody else has written to the vote's znode: what is there is nobody's vote any more, and
    /// never will be one, as it is not at the version of one.
    pub(crate) is_spoilt: bool,
    /// Whether it has ever registered.
    pub(crate) has_registered: bool,
    /// Whether the participant that registered is there.
    pub(crate) is_present: bool,
}

impl Site {
    /// Whether it has registered, and died before it voted. A vote takes the mark of presence away, so
    /// that a site that has voted is not waited for; one that has not registered may only be late.
    pub(crate) fn is_dead(&self) -> bool {
        self.vote.is_none() && !self.is_spoilt && self.has_registered && !self.is_present
    }
}

/// Whether the transaction's time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    IsLeft,
    IsOver,
}

/// What to do about a transaction that is not decided.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing yet.
    Wait,
    /// Write the decision down, if these are still so.
    Decide { verdict: Verdict, grounds: Vec<Ground> },
}

/// What a decision rests on, which its `multi` checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The site, by its place among the sites, has voted. A vote is written once, so it is the one that
    /// was read.
    HasVoted(usize),
    /// It has not.
    HasNotVoted(usize),
}

/// Decides. An abort vote comes before everything else; a transaction for which all sites have voted in time
/// commits, however late the look is. A decision to commit rests on the znodes alone, and they stay as they
/// are: every participant that looks finds the same votes to be late.
pub(crate) fn decide(sites: &[Site], time: Time) -> Step {
    let place = |is: &dyn Fn(&Site) -> bool| {
        let (place, site) = sites.iter().enumerate().find(|(_, site)| is(site))?;
        Some((place, site.name.as_str()))
    };
    if let Some((place, name)) = place(&|site| site.vote == Some(Choice::Abort)) {
        return abort([name, " voted to abort"].concat(), Some(Ground::HasVoted(place)));
    }
    if let Some((_, name)) = place(&|site| site.is_spoilt) {
        return abort(["the vote of ", name, " was overwritten"].concat(), None);
    }
    if let Some((place, name)) = place(&|site| site.is_late) {
        return abort([name, " voted too late"].concat(), Some(Ground::HasVoted(place)));
    }
    let Some((missing, name)) = place(&|site| site.vote.is_none()) else {
        let verdict =
            Verdict { choice: Choice::Commit, reason: "all sites voted to commit".to_owned() };
        let grounds = (0..sites.len()).map(Ground::HasVoted).collect();
        return Step::Decide { verdict, grounds };
    };
    if let Some((place, name)) = place(&Site::is_dead) {
        return abort([name, " died before it voted"].concat(), Some(Ground::HasNotVoted(place)));
    }
    match time {
        Time::IsLeft => Step::Wait,
        Time::IsOver => {
            abort([name, " had not voted in time"].concat(), Some(Ground::HasNotVoted(missing)))
        }
    }
}

fn abort(reason: String, ground: Option<Ground>) -> Step {
    let verdict = Verdict { choice: Choice::Abort, reason };
    Step::Decide { verdict, grounds: ground.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sites a, b, c: `c` has voted to commit, `l` so and too late, `a` to abort, `.` has not registered, `r`
    /// has, `d` has and is gone, and the vote of `s` is spoilt.
    fn sites(states: &str) -> Vec<Site> {
        let site = |(name, state): (char, char)| Site {
            name: name.to_string(),
            vote: match state {
                'c' | 'l' => Some(Choice::Commit),
                'a' => Some(Choice::Abort),
                _ => None,
            },
            is_late: state == 'l',
            is_spoilt: state == 's',
            has_registered: "clrds".contains(state),
            is_present: state == 'r',
        };
        "abcdefgh".chars().zip(states.chars()).map(site).collect()
    }

    #[track_caller]
    fn check(states: &str, time: Time, choice: Choice, reason: &str, grounds: &[Ground]) {
        let verdict = Verdict { choice, reason: reason.to_owned() };
        let expected = Step::Decide { verdict, grounds: grounds.to_vec() };
        assert_eq!(decide(&sites(states), time), expected, "{states}");
    }

    #[test]
    fn it_commits_when_all_have_voted_so_and_checks_each() {
        let grounds = [Ground::HasVoted(0), Ground::HasVoted(1), Ground::HasVoted(2)];
        for time in [Time::IsLeft, Time::IsOver] {
            check("ccc", time, Choice::Commit, "all sites voted to commit", &grounds);
        }
        check("c", Time::IsLeft, Choice::Commit, "all sites voted to commit", &grounds[..1]);
    }

    #[test]
    fn one_vote_to_abort_aborts_at_once() {
        for states in ["ca.", "cac", "da.", "rar"] {
            for time in [Time::IsLeft, Time::IsOver] {
                check(states, time, Choice::Abort, "b voted to abort", &[Ground::HasVoted(1)]);
            }
        }
    }

    #[test]
    fn a_vote_that_somebody_else_has_overwritten_aborts_and_nothing_has_to_be_checked() {
        for states in ["cs.", "csc", "ds.", "sss"] {
            let name = if states == "sss" { "a" } else { "b" };
            let reason = format!("the vote of {name} was overwritten");
            check(states, Time::IsLeft, Choice::Abort, &reason, &[]);
        }
        check("sa", Time::IsLeft, Choice::Abort, "b voted to abort", &[Ground::HasVoted(1)]);
    }

    /// The looker's own clock has no say: it may be behind, as the voter's was.
    #[test]
    fn a_vote_to_commit_that_came_too_late_aborts_at_once() {
        for states in ["cl", "clc", "cl.", "dlr", "clll"] {
            for time in [Time::IsLeft, Time::IsOver] {
                check(states, time, Choice::Abort, "b voted too late", &[Ground::HasVoted(1)]);
            }
        }
        check("la", Time::IsLeft, Choice::Abort, "b voted to abort", &[Ground::HasVoted(1)]);
        check("ls", Time::IsLeft, Choice::Abort, "the vote of b was overwritten", &[]);
    }

    #[test]
    fn a_site_that_died_before_it_voted_aborts() {
        let ground = [Ground::HasNotVoted(2)];
        check("c.d", Time::IsLeft, Choice::Abort, "c died before it voted", &ground);
    }

    #[test]
    fn a_site_that_has_not_registered_is_waited_for_until_the_deadline() {
        assert_eq!(decide(&sites("c.r"), Time::IsLeft), Step::Wait);
        let ground = [Ground::HasNotVoted(1)];
        check("c.r", Time::IsOver, Choice::Abort, "b had not voted in time", &ground);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for choice in [Choice::Commit, Choice::Abort] {
            assert_eq!(Choice::parse(choice.word().as_bytes()), Some(choice));
            let verdict = Verdict { choice, reason: "b voted to abort".to_owned() };
            assert_eq!(Verdict::parse(&verdict.data()), Some(verdict));
        }
        for foreign in ["", "commit", "perhaps\nwhy", "commit \nwhy"] {
            assert_eq!(Verdict::parse(foreign.as_bytes()), None, "{foreign}");
        }
        assert_eq!(Choice::parse(b""), None);
        assert_eq!(Choice::parse(b"committed"), None);
    }
}
