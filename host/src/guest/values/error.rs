//! What is wrong with a value, and where.

use std::fmt;

/// A step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Into a field of an object.
    Key(String),
    /// Into an item of an array.
    Index(usize),
}

/// One thing that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// Where: empty for the whole value.
    pub path: Vec<Segment>,
    /// What, without the path.
    pub problem: String,
}

/// All that is wrong with a value; at least one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueErrors {
    /// In the order of the value's type.
    pub errors: Vec<ValueError>,
}

impl ValueError {
    pub(in crate::guest) fn at_top(problem: impl Into<String>) -> Self {
        ValueError { path: Vec::new(), problem: problem.into() }
    }
}

impl ValueErrors {
    /// The same errors of a value that is part of another.
    #[must_use]
    pub(in crate::guest) fn under(mut self, segment: &Segment) -> Self {
        for error in &mut self.errors {
            error.path.insert(0, segment.clone());
        }
        self
    }
}

impl From<ValueError> for ValueErrors {
    fn from(error: ValueError) -> Self {
        ValueErrors { errors: vec![error] }
    }
}

/// As `config.limits[2].name: expected a number, got a string`.
impl fmt::Display for ValueError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.path.iter().enumerate() {
            match segment {
                Segment::Key(key) if position == 0 => write!(formatter, "{key}")?,
                Segment::Key(key) => write!(formatter, ".{key}")?,
                Segment::Index(index) => write!(formatter, "[{index}]")?,
            }
        }
        if !self.path.is_empty() {
            formatter.write_str(": ")?;
        }
        formatter.write_str(&self.problem)
    }
}

impl fmt::Display for ValueErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.errors.iter().enumerate() {
            if position > 0 {
                formatter.write_str("; ")?;
            }
            error.fmt(formatter)?;
        }
        Ok(())
    }
}

impl std::error::Error for ValueError {}
impl std::error::Error for ValueErrors {}
