//! `cargo xtask soak`: the parts that are too long for every push.
//!
//! A part is a function here, or a part of the same name of the binary `soak` in `tests/`, or a test
//! of CI's that is told to go on longer. What the latter two print behind `figure: ` goes into the
//! closing table.

use std::ffi::OsStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail, ensure};

use crate::setup::{self, Purpose};
use crate::{process, progress, stop, workspace};

mod bare_machine;
mod busy_machine;
mod fuzz;
mod newest_peers;

/// One part of `tests/`.
const LIMIT: Duration = Duration::from_secs(4 * 60 * 60);

/// How a part is played; it gives its figures.
enum Play {
    Here(fn() -> Result<Vec<String>>),
    /// A part of `tests/`, and what the machine is made ready for.
    Tests(Purpose),
    Longer(Longer),
}

/// A test of CI's, with a variable that has it do more.
struct Longer {
    profile: Profile,
    test: &'static str,
    filter: &'static str,
    setting: (&'static str, &'static str),
}

/// How a test is compiled.
#[derive(Clone, Copy)]
enum Profile {
    /// As for CI, with debug assertions.
    Ci,
    /// As users have it. A simulation runs more seeds in the same time: nothing in it is optimized less.
    Release,
}

impl Profile {
    const fn name(self) -> &'static str {
        match self {
            Profile::Ci => "ci",
            Profile::Release => "release",
        }
    }
}

struct Part {
    name: &'static str,
    about: &'static str,
    play: Play,
}

/// Every part there is.
const PARTS: &[Part] = &[
    Part {
        name: "bare-machine",
        about: "the README's two commands on a Debian with only gcc and Rust",
        play: Play::Here(bare_machine::play),
    },
    Part {
        name: "busy-machine",
        about: "CI's ring 3 at the lowest priority, beside a busy loop for each processor",
        play: Play::Here(|| busy_machine::play(&["3"])),
    },
    Part {
        name: "busy-simulation",
        about: "CI's rings 1 and 2 in the same way",
        play: Play::Here(|| busy_machine::play(&["1", "2"])),
    },
    Part {
        name: "hostile-neighbours",
        about: "the host calls of 100 participants beside components that misbehave",
        play: Play::Tests(Purpose::Test),
    },
    Part {
        name: "embedded-scripts",
        about: "1,000 random scripts on the embedded server and on Apache ZooKeeper",
        play: Play::Longer(Longer {
            profile: Profile::Ci,
            test: "embedded",
            filter: "random",
            setting: ("WOK_RANDOM_SEEDS", "1000"),
        }),
    },
    Part {
        name: "embedded-kills",
        about: "the embedded server killed 200 times under load, with its data directory",
        play: Play::Longer(Longer {
            profile: Profile::Ci,
            test: "durable",
            filter: "killed",
            setting: ("WOK_KILLS", "200"),
        }),
    },
    Part {
        name: "fuzz",
        about: "100,000,000 inputs of hostile frames and files for the embedded server",
        play: Play::Here(fuzz::play),
    },
    Part {
        name: "simulation",
        about: "100,000 seeds that count of every stock recipe",
        play: Play::Longer(Longer {
            profile: Profile::Release,
            test: "simulation",
            filter: "stock",
            setting: ("WOK_SEEDS", "100000"),
        }),
    },
    Part {
        name: "exhaustive",
        about: "each fault at each request of two and three participants, in 30 plans of each recipe",
        play: Play::Longer(Longer {
            profile: Profile::Release,
            test: "simulation",
            filter: "exhaustive",
            setting: ("WOK_EXHAUSTIVE_RUNS", "30"),
        }),
    },
    Part {
        name: "mutants",
        about: "up to 10,000 fresh seeds for each mutant of a recipe",
        play: Play::Longer(Longer {
            profile: Profile::Release,
            test: "simulation",
            filter: "mutants",
            setting: ("WOK_MUTANT_SEEDS", "10000"),
        }),
    },
    Part {
        name: "rules",
        about: "up to 10,000 seeds for each rule that the host leaves out",
        play: Play::Longer(Longer {
            profile: Profile::Release,
            test: "simulation",
            filter: "rules",
            setting: ("WOK_MUTANT_SEEDS", "10000"),
        }),
    },
    Part {
        name: "partitions",
        about: "20 rounds of every cut and of a slow link between three servers, at three timeouts",
        play: Play::Tests(Purpose::Test),
    },
    Part {
        name: "faults",
        about: "30 rounds of every operation of the stock recipes under four faults of three servers",
        play: Play::Tests(Purpose::Test),
    },
    Part {
        name: "queue",
        about: "a queue on three servers, one of whose users is killed each second for a minute",
        play: Play::Longer(Longer {
            profile: Profile::Ci,
            test: "recipes",
            filter: "anybody_is_killed",
            setting: ("WOK_QUEUE_KILLS", "60"),
        }),
    },
    Part {
        name: "kazoo-on-apache",
        about: "kazoo's own tests on Apache ZooKeeper, by the same list of expected failures",
        play: Play::Longer(Longer {
            profile: Profile::Ci,
            test: "embedded",
            filter: "kazoo",
            setting: ("WOK_KAZOO_ON", "apache"),
        }),
    },
    Part {
        name: "newest-peers",
        about: "the tests beside other clients, with the newest Curator and ZooKeeper from PyPI",
        play: Play::Here(newest_peers::play),
    },
    Part {
        name: "go-zookeeper",
        about: "the tests of Debian's ZooKeeper client for Go, by one list of expected failures",
        play: Play::Tests(Purpose::Go),
    },
    Part {
        name: "api-connections",
        about: "10,000 connections to the local API that are idle or drip, and others for those given up",
        play: Play::Tests(Purpose::Test),
    },
    Part {
        name: "openapi-client",
        about: "a client for Python, generated from the API's document, that takes a lock",
        play: Play::Tests(Purpose::Test),
    },
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The parts to play; all of them if none is named
    parts: Vec<String>,
    /// Only name the parts
    #[arg(long)]
    list: bool,
}

struct Row {
    name: &'static str,
    took: Duration,
    outcome: Result<Vec<String>>,
}

/// `cargo xtask soak`.
pub(crate) fn soak(arguments: &Arguments) -> Result<()> {
    let parts = select(&arguments.parts)?;
    if arguments.list {
        parts.iter().for_each(|part| progress::say!("{:<20} {}", part.name, part.about));
        return Ok(());
    }
    let mut rows = Vec::new();
    for part in parts {
        progress::heading(&format!("{}: {}", part.name, part.about));
        let started = Instant::now();
        let outcome = match &part.play {
            Play::Here(play) => play(),
            Play::Tests(purpose) => play_of_tests(part.name, *purpose),
            Play::Longer(longer) => play_longer(longer),
        };
        stop::look()?;
        if let Err(error) = &outcome {
            eprintln!("error: {}: {error:#}", part.name);
        }
        rows.push(Row { name: part.name, took: started.elapsed(), outcome });
    }
    report(&rows)
}

fn select(names: &[String]) -> Result<Vec<&'static Part>> {
    if names.is_empty() {
        return Ok(PARTS.iter().collect());
    }
    let find = |name: &String| match PARTS.iter().find(|part| part.name == name) {
        Some(part) => Ok(part),
        None => bail!("no soak part is named `{name}`; `cargo xtask soak --list` names them"),
    };
    names.iter().map(find).collect()
}

fn play_of_tests(name: &str, purpose: Purpose) -> Result<Vec<String>> {
    setup::make_ready(purpose)?;
    let mut soak = workspace::released("soak")?;
    soak.arg(name);
    let mut figures = Vec::new();
    let status = process::run("soak", &mut soak, LIMIT, |line| figures.extend(figure(line)))?;
    ensure!(status.success(), "{}; {}", process::describe(status), figures.join("; "));
    Ok(figures)
}

fn play_longer(longer: &Longer) -> Result<Vec<String>> {
    setup::make_ready(Purpose::Test)?;
    let Longer { profile, test, filter, setting: (name, value) } = longer;
    play_test(*profile, test, filter, &[(name, OsStr::new(value))])
}

/// Plays the tests of a name with other settings than CI's. It gives their figures.
fn play_test(
    profile: Profile,
    test: &str,
    filter: &str,
    settings: &[(&str, &OsStr)],
) -> Result<Vec<String>> {
    let told = |(name, value): &(&str, &OsStr)| format!("{name}={}", value.display());
    let told = settings.iter().map(told).collect::<Vec<_>>().join(" ");
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--profile", profile.name(), "--workspace", "--test", test, "--"]);
    // As it goes on: a soak takes hours.
    cargo.args([filter, "--nocapture"]);
    cargo
        .env("WOK_BINARY", workspace::target()?.join(profile.name()).join("wok"))
        .envs(settings.iter().copied());
    let mut figures = Vec::new();
    let status = process::run("cargo test", &mut cargo, LIMIT, |line| {
        figures.extend(figure(line));
        figures.extend(line.strip_prefix("test result: ").map(|it| format!("{told}: {it}")));
    })?;
    ensure!(status.success(), "{}; {}", process::describe(status), figures.join("; "));
    ensure!(!figures.is_empty(), "no test {filter} in {test}");
    Ok(figures)
}

/// What a line has for the table. The name of its test may stand before it.
fn figure(line: &str) -> Option<String> {
    line.split_once("figure: ").map(|(_, figure)| figure.to_owned())
}

/// Prints the table as Markdown, to be kept with a note.
fn report(rows: &[Row]) -> Result<()> {
    let date = date(SystemTime::now());
    let commit = commit()?;
    progress::say!(
        "\n| date | commit | part | outcome | took | figures |\n|---|---|---|---|---|---|"
    );
    for row in rows {
        let (outcome, figures) = match &row.outcome {
            Ok(figures) => ("passed", figures.join("; ")),
            // In one line, and in one cell.
            Err(error) => ("failed", format!("{error:#}").replace('\n', "; ").replace('|', "/")),
        };
        let took = progress::spell(row.took);
        progress::say!("| {date} | {commit} | {} | {outcome} | {took} | {figures} |", row.name);
    }
    let failed = rows.iter().filter(|row| row.outcome.is_err()).count();
    ensure!(failed == 0, "{failed} of {} parts failed", rows.len());
    Ok(())
}

/// The commit that is played, with a mark if the files differ from it.
fn commit() -> Result<String> {
    let mut git = std::process::Command::new("git");
    git.current_dir(workspace::root()).args(["describe", "--always", "--dirty", "--abbrev=12"]);
    Ok(process::capture("git describe", &mut git, workspace::QUESTION)?.trim().to_owned())
}

/// The day in UTC, as year-month-day.
fn date(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// Days since 1970-01-01 as year, month, day: Howard Hinnant's `civil_from_days` for days that are
/// not negative. Years begin in March, so that the leap day is their last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        let check = |days: u64, text: &str| {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(days * 86_400 + 86_399)), text);
        };
        check(0, "1970-01-01");
        check(11_016, "2000-02-29");
        check(11_017, "2000-03-01");
        check(20_453, "2025-12-31");
    }

    #[test]
    fn an_unknown_part_is_an_error_that_says_where_the_names_are() {
        let error = select(&["bare-machin".to_owned()]).err().map(|error| error.to_string());
        assert_eq!(
            error.as_deref(),
            Some("no soak part is named `bare-machin`; `cargo xtask soak --list` names them")
        );
    }
}
