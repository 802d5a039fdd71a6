//! Why a workload is refused.

/// Why a workload is refused, and where that stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}:{line}:{column}: {problem}")]
pub struct WorkloadError {
    /// The file, or the section of a component.
    pub origin: String,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: String,
}

impl WorkloadError {
    /// The error at a byte of the text.
    pub(super) fn at(origin: &str, text: &str, at: usize, problem: &str) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        WorkloadError {
            origin: origin.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            problem: problem.to_owned(),
        }
    }
}
