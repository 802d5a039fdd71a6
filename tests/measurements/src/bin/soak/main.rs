//! The soak parts that need wok itself: `cargo xtask soak <part>` plays them.
//!
//! A part prints lines `figure: <text>`, which become its row in the closing table, and fails if a
//! bound is broken.

mod api_connections;
mod faults;
mod go_zookeeper;
mod hostile_neighbours;
mod openapi_client;
mod partitions;

use anyhow::{Result, bail};

/// A part: its name, and what plays it.
type Part = (&'static str, fn(&Options) -> Result<()>);

const PARTS: &[Part] = &[
    ("hostile-neighbours", hostile_neighbours::play),
    ("partitions", partitions::play),
    ("faults", faults::play),
    ("go-zookeeper", go_zookeeper::play),
    ("openapi-client", openapi_client::play),
    ("api-connections", api_connections::play),
];

/// How a part is played.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) length: Length,
    /// Only that one of what the part does, to find out which of them a figure is due to.
    pub(crate) only: Option<String>,
}

/// How long a part is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// As long as its figures need.
    Full,
    /// Just to see that it works; its figures mean little.
    Short,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, names): (Vec<_>, Vec<_>) =
        arguments.iter().map(String::as_str).partition(|argument| argument.starts_with("--"));
    let mut how = Options { length: Length::Full, only: None };
    for option in options {
        match (option, option.strip_prefix("--only=")) {
            ("--short", _) => how.length = Length::Short,
            (_, Some(only)) => how.only = Some(only.to_owned()),
            _ => bail!("unknown option {option:?}; there are --short and --only=<what>"),
        }
    }
    let known = || PARTS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        bail!("name the parts to play; there are {}", known());
    }
    for name in names {
        match PARTS.iter().find(|(known, _)| *known == name) {
            Some((_, play)) => play(&how)?,
            None => bail!("no part {name:?}; there are {}", known()),
        }
    }
    Ok(())
}

/// Prints a figure of the closing table.
#[allow(clippy::print_stdout, reason = "standard output is how a part reports")]
pub(crate) fn figure(text: &str) {
    println!("figure: {text}");
}

/// Prints what is going on.
#[allow(clippy::print_stdout, reason = "standard output is how a part reports")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}
