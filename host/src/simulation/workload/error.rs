//! Why a workload is refused.

/// What is said of numbers of more than 64 bits.
const TOO_LARGE: [&str; 2] = ["JSON number out of range", "integer number overflowed"];

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
    /// What the reader of TOML says of the text.
    pub(in crate::simulation) fn of_toml(
        origin: &str,
        text: &str,
        error: &toml::de::Error,
    ) -> Self {
        let span = error.span().unwrap_or_default();
        let start = span.start;
        let problem = match text.get(span) {
            // As serde_json and toml have it.
            Some(number) if TOO_LARGE.contains(&error.message()) => {
                format!("{number}: numbers go from {} to {}", i64::MIN, u64::MAX)
            }
            _ => error.message().to_owned(),
        };
        Self::at(origin, text, start, &problem)
    }

    /// The error at a byte of the text.
    pub(in crate::simulation) fn at(origin: &str, text: &str, at: usize, problem: &str) -> Self {
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
