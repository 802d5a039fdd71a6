//! What a pass finds, and how people and programs read it.

use std::fmt;

use serde::Serialize;

/// The longest piece of a line that is shown.
const MAX_EXCERPT: usize = 120;

/// Whether a finding stops the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It does.
    Error,
    /// It does not.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// One thing that is wrong or doubtful, with its place.
///
/// `Display` shows it with the line and a caret; `Serialize` leaves the line's text out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it stops the host.
    pub severity: Severity,
    /// The file, as it was named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
    /// The text at the place, where it may be shown.
    #[serde(skip)]
    pub(super) excerpt: Option<Excerpt>,
}

impl Finding {
    /// An error about a file as a whole.
    pub(super) fn of_file(
        file: String,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Finding {
            severity: Severity::Error,
            file,
            line: 1,
            column: 1,
            message: message.into(),
            remedy: remedy.into(),
            excerpt: None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { severity, file, line, column, message, remedy, excerpt } = self;
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        writeln!(f, "{severity}: {message}")?;
        writeln!(f, "{gutter}--> {file}:{line}:{column}")?;
        if let Some(excerpt) = excerpt {
            writeln!(f, "{gutter} |")?;
            writeln!(f, "{number} | {}", excerpt.text)?;
            writeln!(f, "{gutter} | {}{}", excerpt.indent, "^".repeat(excerpt.width))?;
        }
        write!(f, "{gutter} = help: {remedy}")
    }
}

/// The part of a line that is shown, and what in it is marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    text: String,
    indent: String,
    width: usize,
}

impl Excerpt {
    /// `before` characters of the line stand before the `width` characters that are marked.
    pub(super) fn new(line: &str, before: usize, width: usize) -> Self {
        // A window around the place: a long line would scroll everything else away.
        let skipped = if before > MAX_EXCERPT / 2 { before - MAX_EXCERPT / 4 } else { 0 };
        let shown = line.chars().skip(skipped).take(MAX_EXCERPT).map(printable);
        let text: String = shown.collect();
        let before = before - skipped;
        // Tabs stay tabs, so that the mark stands below its text at any tab width.
        let indent = text.chars().chain(std::iter::repeat(' ')).take(before);
        let indent = indent.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let room = text.chars().count().saturating_sub(before);
        Excerpt { text, indent, width: width.min(room).max(1) }
    }
}

/// A file that is no TOML may hold anything, and a terminal would obey it.
fn printable(character: char) -> char {
    if character.is_control() && character != '\t' { '\u{fffd}' } else { character }
}

/// Every error of a pass, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ConfigErrors(Vec<Finding>);

impl ConfigErrors {
    /// The errors.
    pub fn findings(&self) -> &[Finding] {
        &self.0
    }

    /// Adds the errors of another pass.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Finding>) -> Self {
        self.0.extend(more);
        ConfigErrors::from(self.0)
    }
}

impl From<Vec<Finding>> for ConfigErrors {
    fn from(mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| (finding.line, finding.column));
        ConfigErrors(findings)
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { "\n\n" };
            write!(f, "{gap}{finding}")?;
        }
        match self.0.len() {
            0 | 1 => Ok(()),
            count => write!(f, "\n\n{count} errors"),
        }
    }
}

impl std::error::Error for ConfigErrors {}
