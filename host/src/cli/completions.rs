//! `wok completions`: what a shell completes `wok` with.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::Failure;
use super::stdout;

/// Print a script with which a shell completes the commands and options of wok.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wok completions bash > ~/.local/share/bash-completion/completions/wok\n  \
    wok completions zsh > ~/.zfunc/_wok\n  \
    wok completions fish > ~/.config/fish/completions/wok.fish")]
pub(super) struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Arguments {
    pub(super) fn execute(self, mut wok: Command) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut wok, "wok", &mut script);
        stdout::write(&script);
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::*;

    #[test]
    fn every_shell_completes_every_command() {
        let wok = crate::cli::Arguments::command();
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut wok.clone(), "wok", &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in wok.get_subcommands().map(Command::get_name) {
                assert!(script.contains(command), "{shell} does not complete {command}");
            }
        }
    }
}
