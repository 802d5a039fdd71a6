//! The command line: one file per command.

mod api;
mod build;
mod call;
mod colour;
mod completions;
mod connect;
mod daemon_call;
mod events;
mod exit;
mod hold;
mod inspect;
mod joining;
mod log;
mod logs;
mod man;
mod new;
mod next;
mod outlet;
mod output;
mod promise;
mod ps;
mod run;
mod shorthand;
mod signals;
mod standard_input;
mod stderr;
mod stdout;
mod test;
mod told;
mod typed_text;
mod validate;
mod way;
mod zookeeper;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use exit::{Failure, LossInWords};
use output::{Output, Printer};

/// Runs ZooKeeper recipes, such as locks and elections, for programs in any language.
///
/// A lock of ZooKeeper is advisory: wok kills the command before the session can expire elsewhere,
/// but if the whole machine freezes, only the fencing token protects what the command works on.
/// Hand WOK_FENCE to whatever you write to, and have it refuse lower ones.
#[derive(Debug, Parser)]
#[command(name = "wok", version, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Exit codes of its own: 64 usage, 69 ZooKeeper or the daemon unreachable or refusing, \
    70 the module failed, 74 what was asked for could not be written, 75 not acquired in time, 76 the claim was \
    lost, 78 configuration. Otherwise the command's own; 126 and 127 as a shell if it cannot be started."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Report for people, or as one JSON object per line for programs.
    #[arg(long, global = true, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a command while a lock is held.
    ///
    /// Waits in line, runs the command with WOK_FENCE and WOK_CLAIM_PATH in its environment, and
    /// releases the lock when it ends. The command, with everything it started, is killed before
    /// the lock can be somebody else's.
    #[command(after_help = shorthand::LOCK_EXAMPLES)]
    Lock(shorthand::Arguments),
    /// Run a command while this process is the leader.
    ///
    /// Volunteers, runs the command once elected with WOK_FENCE and WOK_CLAIM_PATH in its
    /// environment, and resigns when it ends. The command, with everything it started, is killed
    /// before the leadership can be somebody else's.
    #[command(after_help = shorthand::ELECT_EXAMPLES)]
    Elect(shorthand::Arguments),
    Hold(hold::Arguments),
    Call(call::Arguments),
    Ps(ps::Arguments),
    Events(events::Arguments),
    Logs(logs::Arguments),
    Run(run::Arguments),
    Validate(validate::Arguments),
    New(new::Arguments),
    Build(build::Arguments),
    Inspect(inspect::Arguments),
    Test(test::Arguments),
    #[command(name = "zookeeper")]
    ZooKeeper(zookeeper::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

/// Runs the command line and answers the exit code.
pub fn main() -> ExitCode {
    let arguments = match parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage(&with_tip(error)),
    };
    signals::outlive_full_files();
    let printer = Printer::new(arguments.output);
    let outcome = match arguments.command {
        Command::Lock(arguments) => arguments.execute("lock", "acquire", &printer),
        Command::Elect(arguments) => arguments.execute("leader-election", "volunteer", &printer),
        Command::Hold(arguments) => arguments.execute(&printer),
        Command::Call(arguments) => arguments.execute(&printer),
        Command::Ps(arguments) => arguments.execute(&printer),
        Command::Events(arguments) => arguments.execute(&printer),
        Command::Logs(arguments) => arguments.execute(&printer),
        Command::Run(arguments) => arguments.execute(&printer),
        Command::Validate(arguments) => arguments.execute(&printer),
        Command::New(arguments) => arguments.execute(&printer),
        Command::Build(arguments) => arguments.execute(&printer),
        Command::Inspect(arguments) => arguments.execute(&printer),
        Command::Test(arguments) => arguments.execute(&printer),
        Command::ZooKeeper(arguments) => arguments.execute(&printer),
        Command::Completions(arguments) => arguments.execute(Arguments::command()),
        Command::Man(arguments) => arguments.execute(Arguments::command()),
    };
    stdout::finish();
    // What a command did stands, though it could not be told: the exit code says so.
    let outcome = outcome.and_then(|code| match stdout::failure() {
        Some(error) => Err(Failure::Output(error)),
        None => Ok(code),
    });
    let code = match outcome {
        Ok(code) => code,
        Err(failure) => {
            printer.failure(&failure);
            failure.code()
        }
    };
    stderr::finish();
    code
}

/// Reads the command line. A variable that is empty counts as one that is not set.
fn parse() -> Result<Arguments, clap::Error> {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let mut command = without_variables(Arguments::command(), is_empty);
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// A command none of whose options is read from one of these variables.
fn without_variables(command: clap::Command, ignored: impl Fn(&OsStr) -> bool) -> clap::Command {
    command.mut_subcommands(|command| {
        command.mut_args(|argument| match argument.get_env() {
            Some(name) if ignored(name) => argument.env(Resettable::Reset),
            _ => argument,
        })
    })
}

/// The error of a command line, with what the usual mistakes need.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let tip = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word)))
            if !word.starts_with('-') && usage.contains("<COMMAND>") =>
        {
            "the command stands behind `--`, as in `wok lock /locks/a -- ./job.sh`"
        }
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing)))
            if missing.iter().any(|it| it.starts_with("--connect")) =>
        {
            "the servers can also be named in WOK_CONNECT; `wok zookeeper` serves one to try"
        }
        _ => return error,
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// What is said of a command line that cannot be read: help that was asked for, or what is wrong.
fn usage(error: &clap::Error) -> ExitCode {
    let output = if asks_for_json(std::env::args_os()) { Output::Json } else { Output::Text };
    let outcome = match output {
        Output::Json if error.use_stderr() => {
            let text = error.to_string();
            Err(Failure::Usage(text.trim().trim_start_matches("error: ").to_owned()))
        }
        _ => exit::usage(error),
    };
    outcome.unwrap_or_else(|failure| {
        Printer::new(output).failure(&failure);
        failure.code()
    })
}

/// Whether a command line that cannot be read asks to be answered as a program.
fn asks_for_json(arguments: impl Iterator<Item = OsString>) -> bool {
    // What stands after `--` is another program's.
    let own: Vec<OsString> = arguments.take_while(|it| it != "--").collect();
    let is_pair = |pair: &[OsString]| matches!(pair, [a, b] if a == "--output" && b == "json");
    own.windows(2).any(is_pair) || own.iter().any(|it| it == "--output=json")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Arguments::command().debug_assert();
    }

    #[test]
    fn a_variable_that_is_empty_is_not_read() {
        let read = |ignored: &str| {
            let command = super::Arguments::command();
            let command = super::without_variables(command, |name| name == ignored);
            let of = |command: &clap::Command| -> Vec<String> {
                let names = command.get_arguments().filter_map(|it| it.get_env());
                names.map(|name| name.to_string_lossy().into_owned()).collect()
            };
            command.get_subcommands().flat_map(of).collect::<Vec<_>>()
        };
        for name in ["WOK_CONNECT", "WOK_SOCKET", "WOK_CACHE_DIR"] {
            assert!(read("NONE").iter().any(|it| it == name), "{name} is read by nobody");
            assert!(!read(name).iter().any(|it| it == name), "{name} is read");
        }
    }

    #[test]
    fn programs_are_answered_as_such_even_where_the_rest_cannot_be_read() {
        let asks = |line: &str| super::asks_for_json(line.split(' ').map(Into::into));
        assert!(asks("wok --output json lokc"));
        assert!(asks("wok lock --output=json"));
        assert!(!asks("wok lokc"));
        assert!(!asks("wok lock /a -- tool --output json"));
    }

    #[test]
    fn every_command_has_help_and_an_example() {
        let command = super::Arguments::command();
        for subcommand in command.get_subcommands() {
            let name = subcommand.get_name();
            assert!(subcommand.get_about().is_some(), "{name} says nothing of itself");
            let help = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{name} has no example");
            assert!(help.contains(&format!("wok {name}")), "{name}'s example is not its own");
        }
    }
}
