//! The two ways to an operation: a session of the command's own, or the running daemon's.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::exit::Failure;

/// What only a session of one's own can be told. Of the rest, both can, but for `--socket`.
const OF_AN_OWN_SESSION: [&str; 11] = [
    "mount",
    "connect",
    "session_timeout",
    "digest_file",
    "sasl_file",
    "acl",
    "tls_ca_file",
    "tls_cert_file",
    "tls_key_file",
    "config",
    "cache_dir",
];

/// What only the way through the daemon can be told.
const OF_THE_DAEMON: &str = "socket";

/// The options that were typed, and did not come from the environment or a default: `WOK_CONNECT` may
/// be there for other commands. It stands before what it tells of, which is taken out of the matches.
#[derive(Debug, Default)]
pub(super) struct Typed(Vec<&'static str>);

impl FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_typed = |id: &&str| {
            let is_known = matches.try_contains_id(id).is_ok();
            is_known && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let known = OF_AN_OWN_SESSION.into_iter().chain([OF_THE_DAEMON]);
        Ok(Typed(known.filter(is_typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Typed::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Typed {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// How an operation is called.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Of a module, by a session of this command's own, on this part of the tree.
    OwnSession {
        /// What the module sees as `/`.
        mount: String,
    },
    /// Of a recipe of the running daemon's.
    Daemon,
}

impl Typed {
    /// The way that was meant by the first argument, `--mount`, and `--connect` or `WOK_CONNECT`.
    ///
    /// # Errors
    /// What was typed does not go together.
    pub(super) fn way(
        &self,
        module: &str,
        mount: Option<String>,
        connect: Connection,
    ) -> Result<Way, Failure> {
        let typed = |option: &str| self.0.contains(&option);
        let wrong = |text: String| Err(Failure::Usage(text));
        match (mount, connect) {
            (Some(_) | None, _) if typed("connect") && typed(OF_THE_DAEMON) => wrong(
                "--socket leads to the running daemon, and --connect past it: leave one out"
                    .to_owned(),
            ),
            (Some(_), Connection::Unknown) => wrong(format!(
                "--mount goes with --connect, for a session of this command's own; without both, \
                 {module} is the name of a recipe of the running daemon, which has its mount in the \
                 daemon's config"
            )),
            (Some(_), _) if typed(OF_THE_DAEMON) => wrong(format!(
                "--mount is for a session of this command's own: a recipe of the running daemon has \
                 its mount in the daemon's config; leave --mount or --{OF_THE_DAEMON} out"
            )),
            (Some(mount), Connection::Known) => Ok(Way::OwnSession { mount }),
            (None, _) if typed("connect") => wrong(format!(
                "--connect goes with --mount <PATH>, the znode that the module sees as `/`; without \
                 both, {module} is the name of a recipe of the running daemon"
            )),
            (None, _) if module.contains('/') || module.ends_with(".wasm") => wrong(format!(
                "{module} is a module, and no recipe of the running daemon: add --mount and --connect \
                 for a session of this command's own"
            )),
            (None, _) => match OF_AN_OWN_SESSION.into_iter().find(|it| typed(it)) {
                Some(option) => wrong(format!(
                    "--{} goes with --mount and --connect, for a session of this command's own; the \
                     running daemon has that in its config",
                    option.replace('_', "-")
                )),
                None => Ok(Way::Daemon),
            },
        }
    }
}

/// Whether it is known where ZooKeeper is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connection {
    Known,
    Unknown,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Typed options, the mount, whether the servers are known; and the way, or what is said.
    #[track_caller]
    fn check(typed: &[&'static str], connect: Connection, expected: Result<Way, &str>) {
        let mount = typed.contains(&"mount").then(|| "/a".to_owned());
        let way = Typed(typed.to_vec()).way("orders", mount, connect);
        match (way, expected) {
            (Ok(way), Ok(expected)) => assert_eq!(way, expected),
            (Err(failure), Err(part)) => {
                let text = failure.to_string();
                assert!(text.contains(part), "{part:?} is not in {text:?}");
            }
            (way, expected) => panic!("{way:?}, and not {expected:?}"),
        }
    }

    #[test]
    fn what_is_typed_says_which_way_is_meant() {
        use Connection::{Known, Unknown};
        let own = || Ok(Way::OwnSession { mount: "/a".to_owned() });
        check(&[], Unknown, Ok(Way::Daemon));
        check(&["socket"], Unknown, Ok(Way::Daemon));
        check(&["connect_timeout"], Unknown, Ok(Way::Daemon));
        check(&["mount", "connect"], Known, own());
        check(&["mount", "connect", "config", "acl"], Known, own());
        // WOK_CONNECT is there for others, and is taken by who names a mount.
        check(&[], Known, Ok(Way::Daemon));
        check(&["mount"], Known, own());
        check(&["mount"], Unknown, Err("--mount goes with --connect"));
        check(&["connect"], Known, Err("--connect goes with --mount"));
        check(&["mount", "socket"], Known, Err("--mount is for a session of this command's own"));
        check(&["connect", "socket"], Known, Err("leave one out"));
        check(&["config"], Unknown, Err("--config goes with --mount and --connect"));
        check(&["session_timeout"], Known, Err("--session-timeout goes with"));
    }

    #[test]
    fn a_path_is_no_recipe_of_the_daemon() {
        for module in ["./lock", "a/b", "lock.wasm"] {
            let failure = Typed::default().way(module, None, Connection::Unknown).unwrap_err();
            assert!(failure.to_string().contains("add --mount and --connect"), "{failure}");
        }
    }

    #[test]
    fn every_option_belongs_to_one_of_the_ways_or_to_both() {
        const BOTH: [&str; 13] = [
            "module",
            "operation",
            "arguments",
            "command",
            "follow",
            "wait",
            "connect_timeout",
            "owner",
            "stop_signal",
            "stop_timeout",
            "output",
            "help",
            "version",
        ];
        let command = crate::cli::Arguments::command();
        for name in ["hold", "call"] {
            let command = command.find_subcommand(name).unwrap();
            for argument in command.get_arguments().map(|it| it.get_id().as_str()) {
                let is_known = BOTH.contains(&argument)
                    || OF_AN_OWN_SESSION.contains(&argument)
                    || argument == OF_THE_DAEMON;
                assert!(is_known, "which way is --{argument} of `wok {name}` for?");
            }
        }
    }
}
