//! `wok hold`: runs a command while a claim is held.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connect::{Connect, duration, parsed};
use super::exit::Failure;
use super::output::Printer;
use super::signals;
use crate::config::{StopSignal, check_stop};
use crate::daemon::{Acquire, Attempt, Held, HeldCommand, HeldEnd, Order, acquire, run_while_held};
use crate::guardian::{self, Attendance};
use crate::guest::{CompileCache, Limits, Mount};
use crate::host::{Host, HostOptions, user_cache};
use crate::modules::ModuleSource;
use crate::participant::{Follower, Join, Participant};
use crate::session::{SeatLimits, Session, Timing};

/// Run a command while an operation of any module holds a claim.
///
/// The command starts when the claim is held and is killed, with everything it started, before the
/// claim can be somebody else's. SIGTERM stops it in order; other signals are passed on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wok hold lock --mount /locks/backup --connect zk1:2181 acquire -- ./backup.sh\n  \
    wok hold ./my-lock.wasm --mount /locks/a --connect zk1:2181 --config format=kazoo \\\n      \
    acquire -- sh -c 'echo $WOK_FENCE'")]
pub(super) struct Arguments {
    /// The module: a stock recipe's name, or a path to a component.
    module: String,

    /// The znode that the module sees as `/`.
    #[arg(long, value_name = "PATH")]
    mount: String,

    /// The operation to call, as `acquire`.
    operation: String,

    /// Its arguments: `name=value` each, or one JSON object.
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    holding: Holding,
}

/// What all commands that hold a claim can be told.
#[derive(Debug, Args)]
pub(super) struct Holding {
    #[command(flatten)]
    connect: Connect,

    /// Give up if it is not held after this time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,

    /// The module's own configuration: `name=value`, or one JSON object.
    #[arg(long, value_name = "NAME=VALUE")]
    config: Vec<String>,

    /// What the other contenders are told of us. Default: user, host and process.
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,

    /// The signal that asks the command to stop.
    #[arg(long, value_name = "SIGNAL", default_value = "TERM", value_parser = parsed::<StopSignal>)]
    stop_signal: StopSignal,

    /// How long the command then has until it is killed.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    stop_timeout: Option<Duration>,

    /// Where compiled modules are kept.
    #[arg(long, value_name = "DIRECTORY", env = "WOK_CACHE_DIR")]
    cache_dir: Option<PathBuf>,
}

/// What to hold, and what to run meanwhile.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) module: ModuleSource,
    pub(super) mount: String,
    pub(super) operation: String,
    pub(super) arguments: Value,
    pub(super) command: Vec<OsString>,
}

impl Arguments {
    pub(super) fn execute(self, printer: &Printer) -> Result<ExitCode, Failure> {
        let hold = Hold {
            module: ModuleSource::parse(&self.module),
            mount: self.mount,
            operation: self.operation,
            arguments: object("argument", &self.arguments)?,
            command: self.command,
        };
        self.holding.execute(hold, printer)
    }
}

/// Reads `name=value` pairs, or one JSON object. A value that is no JSON is a string.
pub(super) fn object(what: &str, texts: &[String]) -> Result<Value, Failure> {
    if let [text] = texts
        && text.trim_start().starts_with('{')
    {
        return serde_json::from_str(text)
            .map_err(|error| Failure::Usage(format!("the {what} is no JSON object: {error}")));
    }
    let mut object = serde_json::Map::new();
    for text in texts {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            Failure::Usage(format!("{what} {text:?}: write name=value, or one JSON object"))
        })?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        object.insert(name.to_owned(), value);
    }
    Ok(Value::Object(object))
}

impl Holding {
    /// Holds, runs, releases.
    pub(super) fn execute(self, hold: Hold, printer: &Printer) -> Result<ExitCode, Failure> {
        printer.never_wait();
        super::output::log_to_stderr("error");
        guardian::adopt_orphans()
            .map_err(|error| Failure::Module(format!("cannot become a subreaper: {error}")))?;
        // One thread is enough for one participant, and quicker than handing work around.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::Module(format!("cannot start: {error}")))?;
        runtime.block_on(self.hold(hold, printer))
    }

    async fn hold(self, hold: Hold, printer: &Printer) -> Result<ExitCode, Failure> {
        let mount = Mount::new(&hold.mount)
            .map_err(|error| Failure::Usage(format!("mount {}: {error}", hold.mount)))?;
        let config = object("config", &self.config)?;
        // What cannot fit into the timeout that is asked for is refused before anything connects;
        // the server may grant another one, so it is asked again then.
        self.stop_timeout(self.connect.timing())?;
        let limits = Limits::default();
        let host = Host::new(HostOptions {
            participants: 1,
            memory: limits.memory,
            cache: self.cache_dir.clone().map_or_else(user_cache, CompileCache::In),
            connect: self.connect.options()?,
        })
        .map_err(|error| Failure::Config(error.to_string()))?;
        let module =
            host.load(&hold.module, None).map_err(|error| Failure::Config(error.to_string()))?;
        let config = module.configuration(Some(&config)).map_err(|errors| {
            Failure::Config(format!("--config of the module {}: {errors}", hold.module.name()))
        })?;
        let arguments = module.arguments(&hold.operation, &hold.arguments).map_err(|error| {
            Failure::Usage(format!("{} {}: {error}", hold.module.name(), hold.operation))
        })?;
        let attempt = Acquire {
            arguments,
            deadline: self.wait.map(|wait| Instant::now() + wait),
            withdrawn: CancellationToken::new(),
        };
        let session =
            host.open_session().await.map_err(|error| Failure::Unreachable(error.to_string()))?;
        let join = Join {
            recipe: hold.module.name(),
            module,
            mount,
            config,
            limits,
            seat: SeatLimits::default(),
            owner: self.owner.clone().unwrap_or_else(default_owner),
            witness: None,
        };
        let outcome = self.hold_on(&host, &session, join, attempt, hold, printer).await;
        // The participant is gone by now, and its znodes with it.
        session.close().await;
        outcome
    }

    async fn hold_on(
        &self,
        host: &Host,
        session: &Arc<Session>,
        join: Join,
        attempt: Acquire,
        hold: Hold,
        printer: &Printer,
    ) -> Result<ExitCode, Failure> {
        let stop_timeout = self.stop_timeout(session.timing())?;
        let mut signals = signals::receive(host.tasks())
            .map_err(|error| Failure::Module(format!("cannot handle signals: {error}")))?;
        let (participant, mut follower) = host
            .join(session, join)
            .map_err(|failure| Failure::Unreachable(failure.to_string()))?;
        let recipe = hold.module.name();
        let holder = Holder { participant, operation: hold.operation, recipe, printer };
        let outcome = match holder.acquire(&mut follower, attempt, &mut signals).await {
            Ok(held) => {
                let command = HeldCommand {
                    command: hold.command,
                    env: Vec::new(),
                    stop_signal: self.stop_signal.signal(),
                    stop_timeout,
                    attendance: Attendance::Attended,
                };
                holder.run(host, &mut follower, &held, command, signals).await
            }
            Err(failure) => Err(failure),
        };
        holder.participant.leave();
        while follower.next().await.is_some() {}
        outcome
    }

    /// How long the command has to stop, in a session of these times.
    fn stop_timeout(&self, timing: Timing) -> Result<Duration, Failure> {
        match self.stop_timeout {
            None => Ok(timing.default_stop()),
            Some(stop) => check_stop(stop, timing).map(|()| stop).map_err(|bad| {
                Failure::Usage(format!("--stop-timeout: {}; {}", bad.message, bad.remedy))
            }),
        }
    }
}

/// Who this process is, in words.
fn default_owner() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "?".to_owned());
    let host = rustix::system::uname();
    format!("{user}@{} pid {}", host.nodename().to_string_lossy(), std::process::id())
}

/// A participant on its way to a claim, and with it.
struct Holder<'a> {
    participant: Participant,
    operation: String,
    recipe: String,
    printer: &'a Printer,
}

impl Holder<'_> {
    async fn acquire(
        &self,
        follower: &mut Follower,
        attempt: Acquire,
        signals: &mut mpsc::Receiver<Signal>,
    ) -> Result<Held, Failure> {
        let withdrawn = attempt.withdrawn.clone();
        let mut signalled = None;
        let attempt = acquire(&self.participant, follower, attempt, |notice| {
            self.printer.notice(&self.recipe, notice);
        });
        let mut attempt = std::pin::pin!(attempt);
        let outcome = loop {
            // Cancel-safe: the attempt is kept across turns, signals stay queued.
            tokio::select! {
                outcome = &mut attempt => break outcome,
                Some(signal) = signals.recv() => {
                    if matches!(signal, Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT) {
                        signalled = Some(signal);
                        withdrawn.cancel();
                    }
                }
            }
        };
        if let Some(signal) = signalled {
            return Err(Failure::Signalled(u8::try_from(signal.as_raw()).unwrap_or(0)));
        }
        let what = format!("{} {}", self.recipe, self.operation);
        match outcome {
            Attempt::Held(held) => Ok(held),
            Attempt::NotHeld(value) => {
                Err(Failure::NotAcquired(format!("{what} did not acquire it: it answered {value}")))
            }
            Attempt::Cancelled => {
                Err(Failure::NotAcquired(format!("{what}: not held within --wait")))
            }
            Attempt::Refused(error) => Err(Failure::Module(format!("{what}: {error}"))),
            Attempt::Busy => Err(Failure::Module(format!("{what}: busy"))),
            Attempt::Lost(loss) => Err(Failure::Lost(format!("{what}: {loss}"))),
            Attempt::Failed(fault) => Err(Failure::Module(fault)),
        }
    }

    async fn run(
        &self,
        host: &Host,
        follower: &mut Follower,
        held: &Held,
        command: HeldCommand,
        mut signals: mpsc::Receiver<Signal>,
    ) -> Result<ExitCode, Failure> {
        self.printer.held(&self.recipe, &held.path, held.fence);
        let program = command.command.first().map(|it| it.to_string_lossy().into_owned());
        let (order, orders) = mpsc::channel(1);
        let passing_on = async {
            while let Some(signal) = signals.recv().await {
                let what = match signal {
                    Signal::TERM => Order::Stop,
                    other => Order::Signal(other),
                };
                if order.send(what).await.is_err() {
                    break;
                }
            }
            std::future::pending().await
        };
        // Cancel-safe: the command is awaited to its end, signals only until then.
        let running =
            run_while_held(host.tasks(), &self.participant, follower, held, command, orders);
        let ended = tokio::select! {
            ended = running => ended,
            never = passing_on => never,
        };
        match ended {
            Ok(HeldEnd::Ended(outcome)) => match outcome.exit_code() {
                Some(code @ (126 | 127)) if outcome.is_not_started() => Err(Failure::NotStarted {
                    message: format!("cannot run {}: {outcome}", program.unwrap_or_default()),
                    code,
                }),
                Some(code) => Ok(ExitCode::from(code)),
                None => Err(Failure::Lost(format!("the command was ended: {outcome}"))),
            },
            Ok(HeldEnd::Lost(loss)) => {
                self.printer.lost(&self.recipe, &loss);
                Ok(Failure::Lost(String::new()).code())
            }
            Ok(HeldEnd::Released) => Err(Failure::Lost(
                "the module gave the claim up while the command ran; the command was stopped"
                    .to_owned(),
            )),
            Err(error) => Err(Failure::NotStarted { message: error.to_string(), code: 126 }),
        }
    }
}
