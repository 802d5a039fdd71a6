//! Reads one table of the tree: known keys are asked for by name, and what was not asked for in the
//! end is unknown.

use std::ops::{Range, RangeInclusive};
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::{Place, Show, is_secretive};
use super::quantity::BadValue;
use super::report::Report;
use crate::near::near;

/// A key that the file may have, with a value to show in remedies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    name: &'static str,
    example: &'static str,
}

impl Key {
    pub(super) const fn new(name: &'static str, example: &'static str) -> Self {
        Key { name, example }
    }

    fn remedy(&self) -> String {
        format!("write it as `{} = {}`", self.name, self.example)
    }
}

/// A table, and which of its keys have been asked for.
pub(super) struct Section<'a> {
    table: &'a DeTable<'a>,
    path: Vec<String>,
    place: Place,
    known: Vec<&'static str>,
    missing: Vec<Key>,
}

impl<'a> Section<'a> {
    pub(super) fn new(table: &'a DeTable<'a>, path: Vec<String>, place: Place) -> Self {
        Section { table, path, place, known: Vec::new(), missing: Vec::new() }
    }

    /// The head of the table.
    pub(super) fn place(&self) -> Place {
        self.place.clone()
    }

    /// The value of a key, if it is there.
    pub(super) fn field(&mut self, key: &Key) -> Option<Field<'a>> {
        self.known.push(key.name);
        let (name, value) = self.table.get_key_value(key.name)?;
        Some(Field::new(child(&self.path, name.get_ref()), value, key.remedy()))
    }

    /// The value of a key; [`finish`](Self::finish) reports if it is missing.
    pub(super) fn require(&mut self, key: &Key) -> Option<Field<'a>> {
        let field = self.field(key);
        if field.is_none() {
            self.missing.push(*key);
        }
        field
    }

    /// Every entry, for tables whose keys are names, in the order of the file. `remedy` is for
    /// values of a wrong type.
    pub(super) fn entries(&self, remedy: &str) -> Vec<Entry<'a>> {
        let mut entries: Vec<Entry<'a>> = self
            .table
            .iter()
            .map(|(name, value)| Entry {
                name: name.get_ref(),
                name_place: Place { span: name.span(), show: show_of(&self.path) },
                field: Field::new(child(&self.path, name.get_ref()), value, remedy.to_owned()),
            })
            .collect();
        entries.sort_by_key(|entry| entry.name_place.span.start);
        entries
    }

    /// Reports every key that was not asked for and every required one that is missing. One that is
    /// only misspelled is one mistake, not two.
    pub(super) fn finish(mut self, report: &mut Report<'_>) {
        for (key, value) in self.table {
            let name = key.get_ref().as_ref();
            if self.known.contains(&name) {
                continue;
            }
            let remedy = match self.nearest(name, value.get_ref()) {
                Some(known) => {
                    self.missing.retain(|key| key.name != known);
                    format!("did you mean `{known}`?")
                }
                None => {
                    let known = self.known.iter().map(|known| format!("`{known}`"));
                    let known = known.collect::<Vec<_>>().join(", ");
                    format!("leave it out; the keys here are {known}")
                }
            };
            let message = match self.path.as_slice() {
                [] => format!("unknown key {}", quoted(name)),
                path => format!("unknown key {} in `[{}]`", quoted(name), dotted(path)),
            };
            let show = match show_of(&self.path) {
                Show::Nothing => Show::Nothing,
                _ => Show::UpToPlace,
            };
            report.error(Place { span: key.span(), show }, message, remedy);
        }
        for key in &self.missing {
            let message = match self.path.as_slice() {
                [] => format!("the table `[{}]` is missing", key.name),
                path => format!("`{}` is missing in `[{}]`", key.name, dotted(path)),
            };
            report.error(self.place(), message, key.remedy());
        }
    }

    /// The key that an unknown one was probably meant to be.
    fn nearest(&self, name: &str, value: &DeValue<'_>) -> Option<&'static str> {
        // A key is given once. A table may be written in parts, each with a head of its own.
        let is_possible = |known: &&str| match self.table.get(*known) {
            None => true,
            Some(there) => value.is_table() && there.get_ref().is_table(),
        };
        near(name, self.known.iter().copied().filter(is_possible))
    }
}

/// A named entry of a table.
pub(super) struct Entry<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Where the name stands.
    pub(super) name_place: Place,
    /// Its value.
    pub(super) field: Field<'a>,
}

/// A value, and how its key is called.
pub(super) struct Field<'a> {
    path: Vec<String>,
    value: &'a Spanned<DeValue<'a>>,
    remedy: String,
}

impl<'a> Field<'a> {
    fn new(path: Vec<String>, value: &'a Spanned<DeValue<'a>>, remedy: String) -> Self {
        Field { path, value, remedy }
    }

    /// Where the value stands.
    pub(super) fn place(&self) -> Place {
        Place { span: self.value.span(), show: show_of(&self.path) }
    }

    /// The value as it is, for tables whose content is not ours to judge.
    pub(super) fn value(&self) -> &'a Spanned<DeValue<'a>> {
        self.value
    }

    /// How the key is called in the file.
    pub(super) fn name(&self) -> String {
        dotted(&self.path)
    }

    /// Reports that the value is wrong.
    pub(super) fn wrong(
        &self,
        report: &mut Report<'_>,
        what: impl std::fmt::Display,
        remedy: impl Into<String>,
    ) {
        report.error(self.place(), format!("`{}`: {what}", self.name()), remedy);
    }

    /// The value as a string.
    pub(super) fn string(&self, report: &mut Report<'_>) -> Option<&'a str> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            _ => self.wrong_type("a string", report),
        }
    }

    /// The value as a type that is written as a string.
    pub(super) fn parsed<T: FromStr<Err = BadValue>>(&self, report: &mut Report<'_>) -> Option<T> {
        self.parsed_by(T::from_str, report)
    }

    /// As [`parsed`](Self::parsed), by a function.
    pub(super) fn parsed_by<T>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, BadValue>,
        report: &mut Report<'_>,
    ) -> Option<T> {
        let text = self.string(report)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(bad) => {
                let place = match &bad.within {
                    Some(within) => self.place_within(text, within, report),
                    None => self.place(),
                };
                report.error(place, format!("`{}`: {}", self.name(), bad.message), bad.remedy);
                None
            }
        }
    }

    /// The value as a whole number in a range.
    pub(super) fn integer(
        &self,
        range: RangeInclusive<u32>,
        report: &mut Report<'_>,
    ) -> Option<u32> {
        let DeValue::Integer(integer) = self.value.get_ref() else {
            return self.wrong_type("an integer", report);
        };
        let number = u32::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let (least, most) = range.into_inner();
            let what = format_args!("{integer} is out of range");
            self.wrong(report, what, format!("choose a number from {least} to {most}"));
        }
        number
    }

    /// The value as an array.
    pub(super) fn array(&self, report: &mut Report<'_>) -> Option<Vec<Field<'a>>> {
        let DeValue::Array(items) = self.value.get_ref() else {
            return self.wrong_type("an array", report);
        };
        let fields = items.iter().enumerate().map(|(index, item)| {
            Field::new(child(&self.path, &index.to_string()), item, self.remedy.clone())
        });
        Some(fields.collect())
    }

    /// The value as a table.
    pub(super) fn section(&self, report: &mut Report<'_>) -> Option<Section<'a>> {
        let DeValue::Table(table) = self.value.get_ref() else {
            return self.wrong_type("a table", report);
        };
        Some(Section::new(table, self.path.clone(), self.place()))
    }

    fn wrong_type<T>(&self, expected: &str, report: &mut Report<'_>) -> Option<T> {
        let found = self.value.get_ref().type_str();
        let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
        let message = format!("`{}` is {article} {found}, not {expected}", self.name());
        report.error(self.place(), message, self.remedy.clone());
        None
    }

    /// The place of a part of a string, where the text shows the string as it is.
    fn place_within(&self, text: &str, within: &Range<usize>, report: &Report<'_>) -> Place {
        let whole = self.place();
        let first = whole.span.start + 1;
        if report.source().slice(first..first + text.len()) != text {
            return whole;
        }
        Place { span: first + within.start..first + within.end, show: whole.show }
    }
}

fn show_of(path: &[String]) -> Show {
    if is_secretive(path) { Show::Nothing } else { Show::Line }
}

fn child(path: &[String], key: &str) -> Vec<String> {
    let mut child = path.to_vec();
    child.push(key.to_owned());
    child
}

/// A path as the file would spell it.
fn dotted(path: &[String]) -> String {
    let keys = path.iter().map(|key| {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !key.is_empty() && key.chars().all(is_bare) { key.clone() } else { format!("{key:?}") }
    });
    keys.collect::<Vec<_>>().join(".")
}

fn quoted(name: &str) -> String {
    format!("`{}`", dotted(&[name.to_owned()]))
}
