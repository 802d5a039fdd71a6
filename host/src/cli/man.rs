//! `wok man`: the manual pages.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};

use super::exit::Failure;
use super::stdout;

/// Print the manual page of wok or of one command, or write all of them into a directory.
///
/// Packages and those who install wok by themselves write them: `cargo install` brings the program
/// alone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wok man | man -l -\n  wok man hold | man -l -\n  \
    wok man --to ~/.local/share/man/man1")]
pub(super) struct Arguments {
    /// The page of this command.
    #[arg(value_name = "COMMAND", conflicts_with = "to")]
    of: Option<String>,

    /// Write the pages of wok and of all its commands into this directory, which is made where it is
    /// missing.
    #[arg(long, value_name = "DIRECTORY")]
    to: Option<PathBuf>,
}

impl Arguments {
    pub(super) fn execute(self, wok: Command) -> Result<ExitCode, Failure> {
        let pages = pages(wok);
        if let Some(directory) = &self.to {
            write_all(&pages, directory)
                .map_err(|error| Failure::File { path: directory.clone(), error })?;
            return Ok(ExitCode::SUCCESS);
        }
        let name = self.of.as_ref().map_or("wok.1".to_owned(), |of| format!("wok-{of}.1"));
        let Some(page) = pages.iter().find(|page| page.file == name) else {
            let of = self.of.unwrap_or_default();
            return Err(Failure::Usage(format!("wok has no command {of}: see `wok --help`")));
        };
        stdout::write(&page.text);
        Ok(ExitCode::SUCCESS)
    }
}

struct Page {
    file: String,
    text: Vec<u8>,
}

/// The page of wok, and those of its commands.
fn pages(mut wok: Command) -> Vec<Page> {
    // `help` explains the others, and these are their pages.
    wok = wok.disable_help_subcommand(true);
    wok.build();
    let commands: Vec<Command> = wok.get_subcommands().cloned().collect();
    let commands = commands.into_iter().map(|command| {
        let name = format!("wok-{}", command.get_name());
        command.display_name(name)
    });
    [wok.clone()].into_iter().chain(commands).filter_map(page).collect()
}

fn page(mut command: Command) -> Option<Page> {
    // By itself the page would leave out the `--` before another program, and which words may be several.
    let usage = command.render_usage().to_string();
    let command = command.override_usage(usage.trim_start_matches("Usage: ").to_owned());
    let source = concat!("wok ", env!("CARGO_PKG_VERSION"));
    let page = clap_mangen::Man::new(command).source(source).manual("wok");
    let mut text = Vec::new();
    // Into memory, which does not fail.
    page.render(&mut text).ok()?;
    Some(Page { file: page.get_filename(), text })
}

fn write_all(pages: &[Page], directory: &Path) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    pages.iter().try_for_each(|page| std::fs::write(directory.join(&page.file), &page.text))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// What a page says of how the command is typed.
    fn synopsis(page: &str) -> &str {
        let (_, rest) = page.split_once(".SH SYNOPSIS\n").unwrap();
        rest.split_once(".SH").unwrap().0
    }

    #[test]
    fn pages_that_cannot_be_written_have_an_exit_code_of_their_own_kind() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let pages = Arguments { of: None, to: Some(file.path().join("man1")) };
        let failure = pages.execute(crate::cli::Arguments::command()).unwrap_err();
        assert_eq!((failure.kind(), failure.code()), ("output", ExitCode::from(74)));
        let told = failure.to_string();
        assert!(told.starts_with(&format!("cannot write {}", file.path().display())), "{told}");
    }

    #[test]
    fn every_command_has_a_page_that_says_how_it_is_used() {
        let wok = crate::cli::Arguments::command();
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("man1");
        write_all(&pages(wok.clone()), &to).unwrap();
        let names = wok.get_subcommands().map(|it| format!("wok-{}.1", it.get_name()));
        for name in names.chain(["wok.1".to_owned()]) {
            let page = std::fs::read_to_string(to.join(&name)).unwrap();
            assert!(page.starts_with(".ie"), "{name}: {page}");
            assert!(page.contains(".SH SYNOPSIS"), "{name} has no synopsis");
        }
        let hold = std::fs::read_to_string(to.join("wok-hold.1")).unwrap();
        assert!(hold.contains("wok hold orders acquire"), "{hold}");
        assert!(hold.contains("fBwok hold") && hold.contains("\"wok 0."), "{hold}");
        assert!(synopsis(&hold).contains(r"[ARGUMENT]... \-\- <COMMAND>..."), "{hold}");
        let call = std::fs::read_to_string(to.join("wok-call.1")).unwrap();
        assert!(synopsis(&call).ends_with("<OPERATION> [ARGUMENT]...\n"), "{call}");
    }
}
