//! `cargo xtask`: everything a clean clone needs beyond cargo itself.
//!
//! Code map, in reading order:
//! - [`setup`]: what the machine has, and the installation of what it lacks
//! - [`quick_start`]: the play of `cargo xtask run`
//! - [`rings`]: `cargo xtask test`
//! - [`soak`] and [`bench`]: the long runs
//! - [`zookeeper`]: a private server, `wok zookeeper`
//! - [`process`], [`stop`], [`progress`], [`workspace`]: child processes, Ctrl-C, what is shown,
//!   where things are
//!
//! Invariants: no child outlives this program, every wait ends, and nothing is reported that was
//! not looked at. It knows the CLI of `wok` but never links it, so that it compiles in seconds.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod process;
mod progress;
mod quick_start;
mod rings;
mod setup;
mod soak;
mod stop;
mod workspace;
mod zookeeper;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands", version)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Make the machine ready: look what is there, install what is missing
    Setup(setup::Arguments),
    /// Play the quick start: a daemon, two contenders for one lock, a hand-over
    Run(quick_start::Arguments),
    /// Run the rings of tests and print what each part took
    Test(rings::Arguments),
    /// Run the parts that are too long for every push
    Soak(soak::Arguments),
    /// Run the benchmarks beside their baselines
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let task = Arguments::parse().command;
    let outcome = stop::listen().and_then(|()| match task {
        Task::Setup(arguments) => setup::setup(&arguments),
        Task::Run(arguments) => quick_start::run(&arguments),
        Task::Test(arguments) => rings::test(&arguments),
        Task::Soak(arguments) => soak::soak(&arguments),
        Task::Bench(arguments) => bench::bench(&arguments),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<stop::Stopped>() => ExitCode::from(130),
        // Its parts are already reported, and the figures must stay the last line.
        Err(error) if error.is::<rings::Red>() => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
