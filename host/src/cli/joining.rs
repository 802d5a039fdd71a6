//! Options of commands that join a recipe for one operation, and the way there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustix::process::Signal;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::api::Daemon;
use super::connect::{Connect, duration};
use super::daemon_call::{DaemonCall, GRACE};
use super::exit::Failure;
use super::output::Printer;
use super::standard_input::{self, StandardInput};
use super::typed_text::TypedText;
use super::way::{Typed, Way};
use crate::api::json::Unambiguous;
use crate::base::{Base, BaseOptions, Sessions, user_cache};
use crate::config::{MountPath, spell_duration};
use crate::epochs::{Epochs, Joined};
use crate::guest::values::arguments_schema;
use crate::guest::{self, CompileCache, Interface, Limits, Mount};
use crate::modules::ModuleSource;
use crate::participant::Join;
use crate::plain_text;
use crate::session::{ConnectError, SeatLimits, Session, Timing};
use crate::tasks::Tasks;
use crate::znode_path::ZnodePath;

/// The error of a `--wait` in which nothing can come of an operation, with the remedy.
const NO_TIME: &str = "that leaves no time to ask: give it 1s, say; so as not to stand in line, use an \
                       operation such as try-acquire";

/// A time in which something can come of an operation.
fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(NO_TIME.to_owned()),
        time => Ok(time),
    }
}

/// What commands that join a recipe can be told.
#[derive(Debug, Args)]
pub(super) struct Joining {
    #[command(flatten)]
    connect: Connect,

    /// Give up if nothing has come of the operation after this time, the connection included.
    #[arg(long, help_heading = "Operation", value_name = "DURATION", value_parser = some_time)]
    wait: Option<Duration>,

    /// The module's own configuration: `name=value`, or one JSON object.
    #[arg(long, help_heading = "Operation", value_name = "NAME=VALUE")]
    config: Vec<String>,

    /// What the other contenders are told of us: one line of at most 200 bytes. Default: user, host and process.
    #[arg(long, help_heading = "Operation", value_name = "TEXT", value_parser = owner)]
    owner: Option<String>,

    /// Where compiled modules are kept.
    #[arg(long, help_heading = "Operation", value_name = "DIRECTORY", env = "WOK_CACHE_DIR")]
    cache_dir: Option<PathBuf>,
}

/// What is called, as `wok call` and `wok hold` are told.
#[derive(Debug, Args)]
pub(super) struct Called {
    #[command(flatten)]
    typed: Typed,

    #[command(flatten)]
    daemon: Daemon,

    /// A recipe of the running daemon, by its name in the daemon's config; or, with --mount and
    /// --connect, a module: a stock recipe's name, or a path to a component.
    #[arg(value_name = "RECIPE")]
    module: String,

    /// The znode that the module sees as `/`, for a session of this command's own.
    #[arg(long, value_name = "PATH")]
    mount: Option<String>,

    /// The operation to call; `wok inspect` tells those of a module.
    operation: String,

    /// Its arguments: `name=value` each, or one JSON object. For `name=@-`, `wok call` reads the bytes
    /// from standard input.
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

/// What is called, and on which way.
pub(super) enum Calling {
    /// A module, by a session of this command's own.
    OwnSession(Target),
    /// A recipe of the running daemon's.
    Daemon(Daemon, DaemonCall),
}

impl Called {
    /// The operation that they name, and the way to it.
    ///
    /// # Errors
    /// The arguments cannot be read, or do not go together.
    pub(super) fn calling(
        self,
        joining: &Joining,
        input: StandardInput,
    ) -> Result<Calling, Failure> {
        let Called { typed, daemon, module, mount, operation, arguments: mut texts } = self;
        let from_input = input.take(&mut texts)?;
        let mut arguments = object("argument", &texts)?;
        let way = typed.way(&module, mount, joining.connect.connection())?;
        // Nothing is waited for that is of no use: what else is wrong has been said.
        if let (Some(name), Some(object)) = (from_input, arguments.as_object_mut()) {
            if object.contains_key(&name) {
                return Err(given_twice("argument", &name));
            }
            let value = standard_input::read(&name)?;
            object.insert(name, value);
        }
        let arguments = TypedText::new(arguments, texts);
        Ok(match way {
            Way::OwnSession { mount } => {
                let module = ModuleSource::parse(&module);
                Calling::OwnSession(Target { module, mount, operation, arguments })
            }
            Way::Daemon => {
                let (wait, owner) = (joining.wait, joining.owner.clone());
                let until = wait.map(|wait| Instant::now() + wait + GRACE);
                let recipe = module;
                let connect_timeout = joining.connect.timeout();
                let call = DaemonCall {
                    recipe,
                    operation,
                    arguments,
                    wait,
                    until,
                    connect_timeout,
                    owner,
                };
                Calling::Daemon(daemon, call)
            }
        })
    }
}

/// An operation of a module, on a part of the tree.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) module: ModuleSource,
    pub(super) mount: String,
    pub(super) operation: String,
    pub(super) arguments: TypedText,
}

impl Target {
    /// The arguments, by what the operation takes.
    fn arguments_for(&self, interface: &Interface) -> Value {
        match interface.operation(&self.operation) {
            Some(operation) => self.arguments.fitted(&arguments_schema(operation)),
            None => self.arguments.as_read().clone(),
        }
    }

    /// What is called, in words.
    pub(super) fn in_words(&self) -> String {
        format!("{} {}", self.module.name(), self.operation)
    }
}

/// All that can be known before anything connects.
pub(super) struct Ready {
    /// With one recipe.
    epochs: Epochs,
    recipe: String,
    pub(super) arguments: guest::Arguments,
    /// When to give up.
    pub(super) deadline: Option<Instant>,
    connect_timeout: Duration,
}

impl Joining {
    /// The times of a session that is granted the timeout that is asked for.
    pub(super) fn timing(&self) -> Timing {
        self.connect.timing()
    }

    /// Loads the module and checks what it is given. Connects to nothing.
    ///
    /// # Errors
    /// What is wrong with the command line, or with the module.
    pub(super) fn prepare(&self, target: &Target) -> Result<Ready, Failure> {
        let mount = MountPath::parse(&target.mount, &ZnodePath::root())
            .map_err(|error| Failure::Usage(format!("mount {}: {error}", target.mount)))?;
        let config = object("config", &self.config)?;
        let base = Base::new(BaseOptions {
            participants: 1,
            memory: Limits::default().memory,
            cache: self.cache_dir.clone().map_or_else(user_cache, CompileCache::In),
            connect: self.connect.options()?,
            sessions: Sessions::at_most(1),
        })
        .map_err(|error| Failure::Config(error.to_string()))?;
        let module =
            base.load(&target.module, None).map_err(|error| Failure::Config(error.to_string()))?;
        let recipe = target.module.name();
        let config = module.configuration(Some(&config)).map_err(|errors| {
            Failure::Config(format!("--config of the module {recipe}: {errors}"))
        })?;
        let arguments = module
            .arguments(&target.operation, &target.arguments_for(module.interface()))
            .map_err(|error| Failure::Usage(hinted(format!("{}: {error}", target.in_words()))))?;
        let mut epochs = Epochs::new(base);
        epochs.load(Join {
            recipe: recipe.clone(),
            module,
            mount: Mount::from(mount.path().clone()),
            config,
            limits: Limits::default(),
            seat: SeatLimits::default(),
            owner: self.owner.clone().unwrap_or_else(default_owner),
            witness: None,
        });
        Ok(Ready {
            epochs,
            recipe,
            arguments,
            deadline: self.wait.map(|wait| Instant::now() + wait),
            connect_timeout: self.connect.timeout(),
        })
    }
}

impl Ready {
    /// The tasks of everything that belongs to the session: the participant, the signals, and what
    /// runs under a claim.
    pub(super) fn tasks(&self) -> &Tasks {
        self.epochs.base().tasks()
    }

    /// Opens a session, and tries for `--connect-timeout`: a server that is starting, or electing a
    /// leader, refuses for a while. Says once that it waits, and for what.
    ///
    /// # Errors
    /// No server grants a session in time, one refuses for good, or a signal ends the attempt.
    pub(super) async fn open_session(
        &self,
        signals: &mut mpsc::Receiver<Signal>,
        printer: &Printer,
    ) -> Result<Arc<Session>, Failure> {
        let wait = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        // Of a session that is being opened nothing is left when it is dropped.
        tokio::select! {
            opened = self.try_to_open(printer) => opened,
            () = wait => Err(Failure::NotAcquired(
                "no session within --wait: check --connect, or wait longer".to_owned(),
            )),
            signal = stopping(signals) => Err(signalled(signal)),
        }
    }

    async fn try_to_open(&self, printer: &Printer) -> Result<Arc<Session>, Failure> {
        let waits =
            |error: &ConnectError| printer.connecting(&error.to_string(), self.connect_timeout);
        let opened = self.epochs.open_within(self.connect_timeout, waits).await;
        opened.map_err(|error| match error {
            ConnectError::Unreachable { .. } => {
                Failure::Unreachable(self.given_up(&error.to_string()))
            }
            refused => Failure::Unreachable(refused.to_string()),
        })
    }

    fn given_up(&self, reason: &str) -> String {
        match self.connect_timeout {
            Duration::ZERO => reason.to_owned(),
            limit => format!(
                "{reason}; tried for {}: check --connect, or give --connect-timeout more",
                spell_duration(limit)
            ),
        }
    }

    /// Joins the recipe, on the session that was opened.
    ///
    /// # Errors
    /// The session has no room.
    pub(super) async fn join(&self) -> Result<Joined, Failure> {
        let joined = self.epochs.join(&self.recipe).await;
        joined.map_err(|error| Failure::Unreachable(error.to_string()))
    }

    /// Closes the session. The participant has left by then, or a signal has cut that short: what it had
    /// goes with the session.
    pub(super) async fn close(&self) {
        self.epochs.close().await;
    }
}

/// A runtime for one participant: one thread is enough, and quicker than handing work around.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Module(format!("cannot start: {error}")))
}

/// The next signal that ends an attempt; others mean nothing before a command runs.
pub(super) async fn stopping(signals: &mut mpsc::Receiver<Signal>) -> Signal {
    loop {
        match signals.recv().await {
            Some(signal @ (Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT)) => {
                return signal;
            }
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

/// The failure of what a signal ended.
pub(super) fn signalled(signal: Signal) -> Failure {
    Failure::Signalled(u8::try_from(signal.as_raw()).unwrap_or(0))
}

/// What is wrong with arguments, and how a text is written that stands within another value.
pub(super) fn hinted(message: String) -> String {
    match message.contains("expected a string, got") {
        true => format!("{message}; within a list a text stands in quotes: 'items=[\"1\", \"2\"]'"),
        false => message,
    }
}

/// Reads `name=value` pairs, or one JSON object. A value that is no JSON is a string. No key is given
/// twice.
pub(super) fn object(what: &str, texts: &[String]) -> Result<Value, Failure> {
    if let [text] = texts
        && text.trim_start().starts_with('{')
    {
        return serde_json::from_str(text)
            .map(|Unambiguous(object)| object)
            .map_err(|error| Failure::Usage(format!("the {what} is no JSON object: {error}")));
    }
    let mut object = serde_json::Map::new();
    for text in texts {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            Failure::Usage(format!("{what} {text:?}: write name=value, or one JSON object"))
        })?;
        let value = match serde_json::from_str(value) {
            Ok(Unambiguous(value)) => value,
            // It is JSON, and says two things.
            Err(error) if serde_json::from_str::<Value>(value).is_ok() => {
                return Err(Failure::Usage(format!("{what} {name}: {error}")));
            }
            Err(_) => Value::String(value.to_owned()),
        };
        if object.insert(name.to_owned(), value).is_some() {
            return Err(given_twice(what, name));
        }
    }
    Ok(Value::Object(object))
}

fn given_twice(what: &str, name: &str) -> Failure {
    Failure::Usage(format!("{what} {name} is given twice: give it once"))
}

/// What others may be told of somebody.
fn owner(text: &str) -> Result<String, String> {
    match plain_text::check_name(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(name) => Err(format!("it is {name}")),
    }
}

/// Who this process is, in words.
fn default_owner() -> String {
    let uid = || format!("uid {}", rustix::process::geteuid().as_raw());
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty()).unwrap_or_else(uid);
    let host = rustix::system::uname();
    format!("{user}@{} pid {}", host.nodename().to_string_lossy(), std::process::id())
}
