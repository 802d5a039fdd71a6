//! What a transaction's own znode says: whom it asks, and how long they have.

/// The most sites: what is decided or deleted fits into one `multi`, which the host bounds to 128 parts,
/// and a transaction has two znodes for each site, and six more. Each is read with every look.
pub(crate) const MOST_SITES: usize = 40;

/// The most bytes of a site's name.
const LONGEST: usize = 64;

/// The most bytes of a payload, so that as many as are listed at once fit into a component's memory.
const LARGEST_PAYLOAD: usize = 16 << 10;

/// A week: what takes longer is no transaction that sites should wait for.
const MOST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Whom a transaction asks, and how long they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The time that its sites have.
    pub(crate) within_ms: u64,
    /// Their names.
    pub(crate) sites: Vec<String>,
}

impl Terms {
    /// Of a transaction to begin.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub(crate) fn new(sites: Vec<String>, payload: &[u8], within_ms: u64) -> Result<Self, String> {
        let count = sites.len();
        if !(1..=MOST_SITES).contains(&count) {
            return Err(format!("begin: a transaction has 1 to {MOST_SITES} sites, not {count}"));
        }
        if payload.len() > LARGEST_PAYLOAD {
            let length = payload.len();
            return Err(format!(
                "begin: the payload has {length} bytes, and at most {LARGEST_PAYLOAD} are allowed: \
                 put what is larger elsewhere, and say where"
            ));
        }
        if !(1..=MOST_MS).contains(&within_ms) {
            return Err(format!("begin: within-ms is {within_ms}, and not from 1 to {MOST_MS}"));
        }
        for (place, site) in sites.iter().enumerate() {
            check_name(site)?;
            if sites.iter().take(place).any(|other| other == site) {
                return Err(["begin: the site ", site, " is named twice"].concat());
            }
        }
        Ok(Terms { within_ms, sites })
    }

    /// What is written: the time, and a line for each site.
    pub(crate) fn data(&self) -> Vec<u8> {
        format!("within {} ms\n{}", self.within_ms, self.sites.join("\n")).into_bytes()
    }

    /// Reads what is written; none if this recipe has not written it.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(data).ok()?.split('\n');
        let within_ms = lines.next()?.strip_prefix("within ")?.strip_suffix(" ms")?.parse().ok()?;
        let sites = lines.map(str::to_owned).collect();
        Terms::new(sites, &[], within_ms).ok()
    }

    /// The place of a site among the sites.
    pub(crate) fn place(&self, site: &str) -> Option<usize> {
        self.sites.iter().position(|name| name == site)
    }
}

/// Whether a site can have that name.
///
/// # Errors
/// Why not, in words.
pub(crate) fn check_name(site: &str) -> Result<(), String> {
    let length = site.len();
    if !(1..=LONGEST).contains(&length) {
        return Err(format!("the name of a site has 1 to {LONGEST} bytes, and this one {length}"));
    }
    let is_path = site == "." || site == "..";
    if is_path || site.contains(|character: char| character == '/' || character.is_control()) {
        let wrong = " is not the name of a site: it has a slash or a control character, or is a step of a path";
        return Err([site, wrong].concat());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(sites: &[&str], within_ms: u64) -> Result<Terms, String> {
        Terms::new(sites.iter().map(|&site| site.to_owned()).collect(), b"pay", within_ms)
    }

    #[test]
    fn what_is_written_is_read_again() {
        for sites in [&["a"][..], &["ledger", "stock 2", "x=y"]] {
            let terms = terms(sites, 30_000).expect("they are good");
            assert_eq!(Terms::parse(&terms.data()), Some(terms));
        }
        assert_eq!(terms(&["a", "b"], 5).expect("good").data(), b"within 5 ms\na\nb");
        for foreign in
            [&b""[..], b"within 5 ms", b"within 5 ms\n", b"within x ms\na", b"\xff", b"5\na"]
        {
            assert_eq!(Terms::parse(foreign), None);
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_reason() {
        let many: Vec<String> = (0..=MOST_SITES).map(|site| site.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(terms(&many[1..], 1).is_ok());
        let wrong = [
            (&[][..], 1, "1 to 40 sites, not 0"),
            (&many[..], 1, "1 to 40 sites, not 41"),
            (&["a", "b", "a"], 1, "the site a is named twice"),
            (&["a/b"], 1, "a/b is not the name"),
            (&["a\nb"], 1, "control character"),
            (&[".."], 1, ".. is not the name"),
            (&[""], 1, "and this one 0"),
            (&["a"], 0, "within-ms is 0"),
            (&["a"], MOST_MS + 1, "not from 1"),
        ];
        for (sites, within_ms, expected) in wrong {
            let told = terms(sites, within_ms).expect_err(expected);
            assert!(told.contains(expected), "{told}");
        }
        let large = Terms::new(vec!["a".to_owned()], &[0; LARGEST_PAYLOAD + 1], 1);
        assert!(large.expect_err("too large").contains("16385 bytes"));
    }

    #[test]
    fn a_site_has_a_place() {
        let terms = terms(&["a", "b"], 1).expect("they are good");
        assert_eq!((terms.place("b"), terms.place("c")), (Some(1), None));
    }
}
