//! The known name that a mistyped one was meant to be.

/// The nearest of the known names, if one is near enough to be what was meant.
pub(crate) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Names in snake_case are the commonest mistake, and all their characters count as one.
    let name: String = name.to_lowercase().replace('_', "-").chars().take(64).collect();
    known
        .map(|known| (strsim::damerau_levenshtein(&name, known), known))
        .filter(|(distance, known)| *distance <= (known.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_name_and_another_word_does_not() {
        let known = ["revocable", "max-leases", "fair"];
        let found = |name| near(name, known.into_iter());
        assert_eq!(found("revokable"), Some("revocable"));
        assert_eq!(found("MAX_LEASES"), Some("max-leases"));
        assert_eq!(found("far"), Some("fair"));
        assert_eq!(found("fare"), None);
        assert_eq!(found("timeout"), None);
    }
}
