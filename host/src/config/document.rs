//! The text, the TOML tree in it, and where in the text each key stands.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::finding::{Excerpt, Finding, Severity};
use super::report::Report;
use super::section::Section;

/// A text with syntax errors often has many that follow from one; more than this helps nobody.
const MAX_SYNTAX_ERRORS: usize = 20;

/// Nobody points deeper into a file than this, and the walk recurses.
const MAX_DEPTH: usize = 32;

/// How much of the text around a place may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    /// The whole line.
    Line,
    /// The line up to the end of the place: what follows an unknown key may be a secret.
    UpToPlace,
    /// Nothing: secrets may have been written here by mistake.
    Nothing,
}

/// Where in the text something stands.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// In bytes.
    pub(super) span: Range<usize>,
    /// What of it may be shown.
    pub(super) show: Show,
}

/// The text of a file and the beginnings of its lines.
#[derive(Debug, Clone)]
pub(super) struct Source {
    file: String,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    pub(super) fn new(file: String, text: &str) -> Self {
        // Editors do not count a byte order mark as a column.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0).chain(after_breaks).collect();
        Source { file, text, line_starts }
    }

    pub(super) fn slice(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }

    /// The number of the line that `at` stands in, counted from 1.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    pub(super) fn finding(
        &self,
        severity: Severity,
        place: &Place,
        message: String,
        remedy: String,
    ) -> Finding {
        let line = self.line_of(place.span.start);
        let starts = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let ends = self.line_starts.get(line).copied().unwrap_or(self.text.len());
        let text = self.slice(starts..ends).trim_end_matches(['\r', '\n']);
        let before = self.slice(starts..place.span.start).chars().count();
        let width = self.slice(place.span.start..place.span.end.min(starts + text.len()));
        let excerpt = match place.show {
            _ if assigns_a_secret(text) => None,
            Show::Nothing => None,
            Show::Line => Some(Excerpt::new(text, before, width.chars().count())),
            Show::UpToPlace => {
                let shown = self.slice(starts..place.span.end);
                Some(Excerpt::new(shown, before, width.chars().count()))
            }
        };
        let file = self.file.clone();
        Finding { severity, file, line, column: before + 1, message, remedy, excerpt }
    }
}

/// Whether a line gives a value to a key that is called like a secret.
fn assigns_a_secret(line: &str) -> bool {
    let line = line.to_lowercase();
    ["passw", "secret", "token"].iter().any(|word| {
        line.match_indices(word).any(|(at, _)| {
            let after = line.get(at + word.len()..).unwrap_or_default();
            let rest_of_key = |c: char| c.is_alphanumeric() || "-_\"'".contains(c);
            after.trim_start_matches(rest_of_key).trim_start().starts_with('=')
        })
    })
}

/// The tree of a text.
pub(super) struct Document<'s> {
    root: Spanned<DeTable<'s>>,
}

impl<'s> Document<'s> {
    /// None if the text is no TOML; what is wrong is in the report.
    pub(super) fn parse(source: &'s Source, report: &mut Report<'_>) -> Option<Self> {
        let (root, errors) = DeTable::parse_recoverable(&source.text);
        if errors.is_empty() {
            return Some(Document { root });
        }
        for error in errors.iter().take(MAX_SYNTAX_ERRORS) {
            let end = source.text.trim_end().len();
            let span = error.span().unwrap_or(end..end);
            let place = Place { span, show: Show::Line };
            report.error(place, error.message(), syntax_remedy(error.message()));
        }
        None
    }

    pub(super) fn root(&self) -> Section<'_> {
        Section::new(self.root.get_ref(), Vec::new(), Place { span: 0..0, show: Show::UpToPlace })
    }

    pub(super) fn positions(&self) -> Positions {
        let mut places = BTreeMap::new();
        collect(self.root.get_ref(), &mut Vec::new(), &mut places);
        Positions { places }
    }
}

fn syntax_remedy(message: &str) -> &'static str {
    match message {
        "duplicate key" => "leave one of them out",
        _ if message.starts_with("unexpected leading zero") => {
            "leave the zeros out; the mode of a file is a string, as in `socket-mode = \"0600\"`"
        }
        _ if message.starts_with("string values must be quoted") => "write \"…\" around it",
        _ => "correct the TOML; what the rest of the file says is checked after that",
    }
}

/// Where each key's value stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Positions {
    places: BTreeMap<Vec<String>, Range<usize>>,
}

impl Positions {
    /// The place of a path, or of what is nearest around it.
    pub(super) fn nearest(&self, key_path: &[&str]) -> Place {
        let mut path: Vec<String> = key_path.iter().map(|key| (*key).to_owned()).collect();
        let show = if is_secretive(&path) { Show::Nothing } else { Show::Line };
        loop {
            if let Some(span) = self.places.get(&path) {
                return Place { span: span.clone(), show };
            }
            if path.pop().is_none() {
                return Place { span: 0..0, show: Show::UpToPlace };
            }
        }
    }
}

/// Whether people may have written a secret at this path instead of the name of its file.
pub(super) fn is_secretive(path: &[String]) -> bool {
    let mut keys = path.iter().map(String::as_str);
    keys.next() == Some("zookeeper") && matches!(keys.next(), Some("auth" | "sasl"))
}

type Places = BTreeMap<Vec<String>, Range<usize>>;

fn collect(table: &DeTable<'_>, path: &mut Vec<String>, places: &mut Places) {
    for (key, value) in table {
        path.push(key.get_ref().clone().into_owned());
        collect_value(value, path, places);
        path.pop();
    }
}

fn collect_value(value: &Spanned<DeValue<'_>>, path: &mut Vec<String>, places: &mut Places) {
    places.insert(path.clone(), value.span());
    if path.len() >= MAX_DEPTH {
        return;
    }
    match value.get_ref() {
        DeValue::Table(table) => collect(table, path, places),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                collect_value(item, path, places);
                path.pop();
            }
        }
        _ => {}
    }
}
