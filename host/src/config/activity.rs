//! `run` and `while-held`: what the daemon itself does with a recipe.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;

use rustix::process::Signal;

use super::json;
use super::quantity::{BadValue, parse_duration};
use super::recipe::is_kebab_case;
use super::report::Report;
use super::restart::Restart;
use super::section::{Field, Key, Section};
use super::session_timeout::{SessionTimeout, check_stop};
use crate::guardian::{Attendance, GuardedCommand};

const CALL: Key = Key::new("call", "\"volunteer\"");
const ARGUMENTS: Key = Key::new("arguments", "{ weight = 1 }");
const EXEC: Key = Key::new("exec", "[\"./scheduler\", \"--active\"]");
const STOP_SIGNAL: Key = Key::new("stop-signal", "\"TERM\"");
const STOP_TIMEOUT: Key = Key::new("stop-timeout", "\"2s\"");
const RESTART: Key = Key::new("restart", "\"on-failure\"");
const ENV: Key = Key::new("env", "{ LOG_LEVEL = \"info\" }");

/// The host tells a command about its claim in variables that begin like this.
const RESERVED_VARIABLES: &str = "WOK_";

/// The signals that ask a process to stop or to change its mind, by the names of `kill -l`.
const SIGNALS: [(&str, Signal); 7] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("HUP", Signal::HUP),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("WINCH", Signal::WINCH),
];

/// A participant that the daemon keeps by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The operation it calls.
    pub call: String,
    /// The operation's arguments, an object.
    pub arguments: serde_json::Value,
    /// What to run while its claim is held, if anything.
    pub while_held: Option<WhileHeld>,
}

/// A command that runs while a claim is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhileHeld {
    /// The command. Its stop-timeout fits into the session timeout that the file asks for; the
    /// server may grant less, so the guardian bounds it again.
    pub command: GuardedCommand,
    /// Whether it is run again when it has ended by itself.
    pub restart: Restart,
}

/// A signal that asks a command to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopSignal(Signal);

impl StopSignal {
    /// The signal to send.
    pub fn signal(self) -> Signal {
        self.0
    }
}

impl Default for StopSignal {
    /// What init systems and shells send, and what programs are ready for.
    fn default() -> Self {
        StopSignal(Signal::TERM)
    }
}

impl FromStr for StopSignal {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let name = text.strip_prefix("SIG").unwrap_or(text);
        if let Some((_, signal)) = SIGNALS.iter().find(|(known, _)| *known == name) {
            return Ok(StopSignal(*signal));
        }
        if name == "KILL" {
            let message = "KILL gives the command no chance to stop by itself";
            return Err(BadValue::new(
                message,
                "leave it out: KILL follows at the deadline anyway",
            ));
        }
        let known = SIGNALS.map(|(name, _)| name).join(", ");
        let message = format!("{text:?} is not a signal to stop a command with");
        Err(BadValue::new(message, format!("choose one of {known}")))
    }
}

/// `run`, as far as it can be understood.
#[derive(Debug, Clone)]
pub(super) struct Called {
    pub(super) call: Option<String>,
    pub(super) arguments: Option<serde_json::Value>,
}

impl Called {
    /// The whole; none if there are errors.
    pub(super) fn whole(self) -> Option<Run> {
        Some(Run { call: self.call?, arguments: self.arguments?, while_held: None })
    }
}

/// `run`.
pub(super) fn run(mut section: Section<'_>, report: &mut Report<'_>) -> Called {
    let call = section.require(&CALL).and_then(|field| operation(&field, report));
    let arguments = match section.field(&ARGUMENTS) {
        Some(field) => json::object(&field, report),
        None => Some(serde_json::Value::Object(serde_json::Map::new())),
    };
    section.finish(report);
    Called { call, arguments }
}

fn operation(field: &Field<'_>, report: &mut Report<'_>) -> Option<String> {
    let name = field.string(report)?;
    if is_kebab_case(name) {
        return Some(name.to_owned());
    }
    let what = format!("{name:?} is not the name of an operation");
    field.wrong(report, what, "`wok inspect <module>` lists a module's operations");
    None
}

/// `while-held`. Without a session timeout the stop-timeout's length is not judged.
pub(super) fn while_held(
    mut section: Section<'_>,
    directory: &Path,
    session_timeout: Option<SessionTimeout>,
    report: &mut Report<'_>,
) -> Option<WhileHeld> {
    let exec = section.require(&EXEC).and_then(|field| exec(&field, directory, report));
    let stop_signal = match section.field(&STOP_SIGNAL) {
        Some(field) => field.parsed(report),
        None => Some(StopSignal::default()),
    };
    let fitting = |text: &str| {
        let stop = parse_duration(text)?;
        session_timeout.map_or(Ok(()), |timeout| check_stop(stop, timeout.timing()))?;
        Ok(stop)
    };
    let stop_timeout = match section.field(&STOP_TIMEOUT) {
        Some(field) => field.parsed_by(fitting, report),
        None => Some(session_timeout.unwrap_or_default().timing().default_stop()),
    };
    let restart = match section.field(&RESTART) {
        Some(field) => field.parsed(report),
        None => Some(Restart::default()),
    };
    let env = match section.field(&ENV) {
        Some(field) => field.section(report).and_then(|section| env(&section, report)),
        None => Some(Vec::new()),
    };
    section.finish(report);
    let command = GuardedCommand {
        words: exec?,
        env: env?,
        stop_signal: stop_signal?.signal(),
        stop_timeout: stop_timeout?,
        // Ctrl-C is for the daemon, and nobody types for its commands.
        attendance: Attendance::Unattended,
    };
    Some(WhileHeld { command, restart: restart? })
}

/// The words of a command. A program with a slash in it is a file; another one is looked up as a
/// shell does.
fn exec(field: &Field<'_>, directory: &Path, report: &mut Report<'_>) -> Option<Vec<OsString>> {
    let words: Vec<Option<String>> = field
        .array(report)?
        .iter()
        .map(|item| {
            let word = item.string(report)?;
            if word.contains('\0') {
                item.wrong(report, "there is a NUL character in it", "leave it out");
                return None;
            }
            Some(word.to_owned())
        })
        .collect();
    let mut words = words.into_iter().collect::<Option<Vec<String>>>()?.into_iter();
    let Some(program) = words.next().filter(|program| !program.is_empty()) else {
        field.wrong(report, "no program is named", "write `exec = [\"program\", \"argument\"]`");
        return None;
    };
    let arguments = words.map(OsString::from);
    if !program.contains('/') {
        return Some([program.into()].into_iter().chain(arguments).collect());
    }
    let path = directory.join(program);
    let Some(mode) = mode_of_file(&path) else {
        let what = format!("there is no program {}", path.display());
        field.wrong(report, what, "name a file; relative paths begin where this file is");
        return None;
    };
    // The daemon may be another user's than who validates, but without any of these bits not even root
    // can execute a file.
    if mode & 0o111 == 0 {
        let what = format!("nobody may execute {}", path.display());
        field.wrong(report, what, format!("chmod +x {}", path.display()));
        return None;
    }
    Some([path.into_os_string()].into_iter().chain(arguments).collect())
}

fn mode_of_file(path: &Path) -> Option<u32> {
    path.metadata().ok().filter(Metadata::is_file).map(|it| it.mode())
}

fn env(section: &Section<'_>, report: &mut Report<'_>) -> Option<Vec<(OsString, OsString)>> {
    let variables: Vec<Option<(OsString, OsString)>> = section
        .entries("write it in quotes")
        .into_iter()
        .map(|entry| {
            let value = entry.field.string(report);
            let wrong = match entry.name {
                "" => Some(("the variable has no name", "name it")),
                name if name.contains(['=', '\0']) => {
                    Some(("a variable's name has no `=` and no NUL", "give it another name"))
                }
                name if name.starts_with(RESERVED_VARIABLES) => Some((
                    "variables that begin with `WOK_` are set by the host",
                    "give it another name",
                )),
                _ => None,
            };
            if let Some((what, remedy)) = wrong {
                report.error(entry.name_place, what, remedy);
                return None;
            }
            let value = value?;
            if value.contains('\0') {
                entry.field.wrong(report, "there is a NUL character in it", "leave it out");
                return None;
            }
            Some((entry.name.into(), value.into()))
        })
        .collect();
    variables.into_iter().collect()
}
