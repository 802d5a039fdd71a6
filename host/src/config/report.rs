//! Collects what a pass finds.

use super::document::{Place, Source};
use super::finding::{ConfigErrors, Finding, Severity};

/// The findings of one pass over one text.
pub(super) struct Report<'s> {
    source: &'s Source,
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl<'s> Report<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Report { source, errors: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn source(&self) -> &'s Source {
        self.source
    }

    pub(super) fn error(
        &mut self,
        place: Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let error = self.source.finding(Severity::Error, &place, message.into(), remedy.into());
        self.errors.push(error);
    }

    pub(super) fn warning(
        &mut self,
        place: Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let warning = self.source.finding(Severity::Warning, &place, message.into(), remedy.into());
        self.warnings.push(warning);
    }

    pub(super) fn into_errors(self) -> ConfigErrors {
        ConfigErrors::from(self.errors)
    }

    /// The warnings, unless there are errors.
    pub(super) fn finish(self) -> Result<Vec<Finding>, ConfigErrors> {
        if self.errors.is_empty() { Ok(self.warnings) } else { Err(self.into_errors()) }
    }
}
