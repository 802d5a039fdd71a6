//! The pages of the guide, played as a reader follows them.
//!
//! A page says what of it is played by the words after a block's language:
//!
//! - `console run`: each line after `$ ` is typed; what is shown below it must be printed, in that
//!   order, with `…` for whatever differs from machine to machine. A command succeeds, unless the
//!   next one is `echo $?`.
//! - `console serve`: the one command goes on, in a terminal of its own; what is shown below it is
//!   waited for.
//! - `… file:NAME`: the block is written to that file.
//! - `diff apply`: the block is applied, as by hand.
//!
//! The address that the guide has for its server, [`ADDRESS`], is any free one here.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::authors::Workshop;
use crate::process::{Line, Running};

/// Where the guide's server listens: the default of `wok zookeeper`.
pub const ADDRESS: &str = "127.0.0.1:2181";

/// How often the patience for a fact is spent on a command, since a page's commands compile.
const PATIENCES: usize = 3;

/// What a block asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Type this, and see that.
    Run(Vec<Command>),
    /// Leave this running, and wait until it says that.
    Serve(Command),
    /// Write a file.
    Write(String, String),
    /// Apply a change.
    Apply(String),
}

/// A command and what is shown of its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    line: String,
    shown: Vec<String>,
}

/// The steps of a page, each with the line where its block begins.
///
/// # Errors
/// If a block is marked in a way that is not known, or never ends.
pub fn steps(page: &str) -> Result<Vec<(usize, Step)>> {
    let mut steps = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let mut text = String::new();
        loop {
            let (_, line) = lines.next().with_context(|| format!("line {}: no end", index + 1))?;
            if line == "```" {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        let step = match info.split_once(' ') {
            None => continue,
            Some(("console", "run")) => Step::Run(commands(&text)?),
            Some(("console", "serve")) => {
                let commands = commands(&text)?;
                ensure!(commands.len() == 1, "line {}: not one command", index + 1);
                Step::Serve(commands.into_iter().next().unwrap_or_default())
            }
            Some(("diff", "apply")) => Step::Apply(text),
            Some((_, mark)) => match mark.strip_prefix("file:") {
                Some(file) => Step::Write(file.to_owned(), text),
                None => bail!("line {}: what is {mark:?}?", index + 1),
            },
        };
        steps.push((index + 1, step));
    }
    Ok(steps)
}

fn commands(text: &str) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(line), _) => {
                commands.push(Command { line: line.to_owned(), shown: Vec::new() });
                goes_on = line.ends_with('\\');
            }
            (None, Some(command)) if goes_on => {
                command.line.push('\n');
                command.line.push_str(line);
                goes_on = line.ends_with('\\');
            }
            (None, Some(command)) => command.shown.push(line.to_owned()),
            (None, None) => bail!("{line:?} is shown before a command"),
        }
    }
    Ok(commands)
}

/// A reader with a terminal.
#[derive(Debug)]
pub struct Reader<'a> {
    shop: &'a Workshop,
    shell: Running,
    /// How many commands were typed.
    typed: usize,
    /// How many lines of the shell's output were looked at.
    seen: usize,
    address: String,
    servers: Vec<Running>,
}

/// Plays the README of an example in a directory of its own, beside copies of the files that it needs.
///
/// # Errors
/// As [`Reader::play`].
pub async fn play_example(name: &str, files: &[&str]) -> Result<()> {
    let shop = Workshop::open()?;
    let mut reader = Reader::begin(&shop, name)?;
    for file in files {
        // With its permissions.
        fs::copy(example(name).join(file), shop.path().join(name).join(file))?;
    }
    reader.play(&readme(name)?).await
}

/// Plays the README of an example that is a program, which is in `PATH` by the example's name.
///
/// # Errors
/// As [`Reader::play`].
pub async fn play_example_program(name: &str, program: &str) -> Result<()> {
    let shop = Workshop::open()?;
    shop.install(name, Path::new(program))?;
    Reader::begin(&shop, name)?.play(&readme(name)?).await
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

fn readme(name: &str) -> Result<String> {
    let page = example(name).join("README.md");
    fs::read_to_string(&page).with_context(|| page.display().to_string())
}

impl<'a> Reader<'a> {
    /// One who begins in a new directory of that name.
    ///
    /// # Errors
    /// If there is one already, or no shell can be started.
    pub fn begin(shop: &'a Workshop, name: &str) -> Result<Self> {
        let directory = shop.path().join(name);
        fs::create_dir(&directory)?;
        let mut shell = shop.start("exec bash 2>&1")?;
        shell.write(&format!("cd {}\n", directory.display()))?;
        Ok(Reader {
            shop,
            shell,
            typed: 0,
            seen: 0,
            address: ADDRESS.to_owned(),
            servers: Vec::new(),
        })
    }

    /// Plays a page.
    ///
    /// # Errors
    /// The first step that does not go as the page says, with its line.
    pub async fn play(&mut self, page: &str) -> Result<()> {
        for (line, step) in steps(page)? {
            self.step(&step).await.with_context(|| format!("line {line}"))?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Run(commands) => {
                for (index, command) in commands.iter().enumerate() {
                    let (code, printed) = self.type_in(&self.here(&command.line)).await?;
                    let is_asked = commands.get(index + 1).is_some_and(|it| it.line == "echo $?");
                    ensure!(
                        code == 0 || is_asked,
                        "{}: exit code {code}: {printed:#?}",
                        command.line
                    );
                    self.compare(command, &printed)?;
                }
                Ok(())
            }
            Step::Serve(command) => self.serve(command).await,
            Step::Write(file, text) => {
                let path = self.directory().await?.join(file);
                fs::write(&path, self.here(text)).with_context(|| format!("write {file}"))
            }
            Step::Apply(diff) => {
                let patch = self.shop.path().join("patch");
                fs::write(&patch, diff)?;
                let apply = format!("git apply --whitespace=nowarn {}", patch.display());
                let (code, printed) = self.type_in(&apply).await?;
                ensure!(code == 0, "the change does not apply: {printed:#?}");
                Ok(())
            }
        }
    }

    /// The guide's address is that of the server that was started.
    fn here(&self, text: &str) -> String {
        text.replace(ADDRESS, &self.address)
    }

    async fn directory(&mut self) -> Result<PathBuf> {
        let (_, printed) = self.type_in("pwd").await?;
        Ok(printed.first().context("no directory")?.into())
    }

    async fn serve(&mut self, command: &Command) -> Result<()> {
        let directory = self.directory().await?;
        let is_server = command.line == "wok zookeeper";
        let more = if is_server { " --listen 127.0.0.1:0" } else { "" };
        let line = format!("cd {} && exec {}{more}", directory.display(), self.here(&command.line));
        let server = self.shop.start(&line)?;
        if is_server {
            let told = server.wait_for_text("serving ZooKeeper on ").await?.text;
            let address = told.split("serving ZooKeeper on ").nth(1).unwrap_or_default();
            self.address = address.split(';').next().unwrap_or_default().to_owned();
        }
        for shown in &command.shown {
            let shown = self.here(shown);
            server.wait_for_line(&format!("{shown:?}"), |line| is_like(&shown, &line.text)).await?;
        }
        self.servers.push(server);
        Ok(())
    }

    /// Types a command and waits for its end: its exit code and what it printed.
    async fn type_in(&mut self, command: &str) -> Result<(i32, Vec<String>)> {
        self.typed += 1;
        let done = format!("@done {} ", self.typed);
        // The code is left as it was, so that the next command can ask for it.
        let ask = format!("it=$?; printf '\\n{done}%s\\n' $it; (exit $it)");
        self.shell.write(&format!("{{ {command}\n}} < /dev/null\n{ask}\n"))?;
        let is_done = |line: &Line| line.text.starts_with(&done);
        let command_ends = format!("the end of `{command}`");
        let mut waited = Ok(());
        for _ in 0..PATIENCES {
            waited = self.shell.wait_for_line(&command_ends, is_done).await.map(drop);
            if waited.is_ok() || self.shell.status().is_some() {
                break;
            }
        }
        waited?;
        let lines = self.shell.lines().into_iter().skip(self.seen).map(|line| line.text);
        let mut printed = Vec::new();
        let mut code = None;
        for line in lines {
            self.seen += 1;
            match line.strip_prefix(&done) {
                Some(told) => {
                    code = Some(told.parse()?);
                    break;
                }
                None => printed.push(line),
            }
        }
        Ok((code.context("no end")?, printed))
    }

    fn compare(&self, command: &Command, printed: &[String]) -> Result<()> {
        let mut rest = printed.iter();
        for shown in command.shown.iter().filter(|line| !line.trim().is_empty()) {
            let shown = self.here(shown);
            let found = rest.any(|line| is_like(&shown, line));
            ensure!(found, "{}: no line {shown:?} (any more) in {printed:#?}", command.line);
        }
        Ok(())
    }
}

/// Whether a line is as shown, where `…` stands for anything.
fn is_like(shown: &str, line: &str) -> bool {
    let mut parts = shown.trim_end().split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.trim_end().strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_marked_is_played() {
        let page = "```console\n$ rm -rf /\n```\ntext\n```console run\n$ a \\\n  b\nshown\n$ c\n```\n\
                    ```toml file:a.toml\nx = 1\n```\n```rust\nfn f() {}\n```\n";
        let command = |line: &str, shown: &[&str]| Command {
            line: line.to_owned(),
            shown: shown.iter().map(|it| (*it).to_owned()).collect(),
        };
        let expected = vec![
            (5, Step::Run(vec![command("a \\\n  b", &["shown"]), command("c", &[])])),
            (11, Step::Write("a.toml".to_owned(), "x = 1\n".to_owned())),
        ];
        assert_eq!(steps(page).unwrap(), expected);
        assert!(steps("```console rum\n$ a\n```\n").is_err());
        assert!(steps("```console run\n$ a\n").is_err());
    }

    #[test]
    fn an_ellipsis_stands_for_anything_and_nothing_else_does() {
        assert!(is_like("a … c …", "a b c d"));
        assert!(is_like("…", ""));
        assert!(is_like("fence …", "fence 12"));
        assert!(!is_like("fence …", "a fence 12"));
        assert!(!is_like("fence", "fence 12"));
        assert!(!is_like("a … c", "a b d"));
    }
}
