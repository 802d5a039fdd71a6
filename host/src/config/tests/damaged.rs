//! Files with random damage.

use proptest::prelude::*;

use super::*;

const GOOD: &str = "[zookeeper]
connect = \"zk1:2181,[::1]:2181\"
session-timeout = '10s'
root = \"/wök\"
acl = \"open\"
engine = 1
[recipes.orders]
module = \"lock\"
sha256 = \"00\"
mount = \"/locks/orders\"
config = { a = [1, { b = \"\\u0041\" }], c.d = 1979-05-27 }
limits = { memory = \"16MiB\", watches = 0x40 }
run = { call = \"acquire\", arguments = {} }
while-held = { exec = [\"job\"], stop-signal = \"TERM\", env = { A = \"b\" } }
";

proptest! {
    #[test]
    fn damage_is_told_with_places_inside_the_text(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize, "[\\PC\t\n\"'=,.{}\\[\\]/:0-9]{0,3}"), 1..5)
    ) {
        let mut text: Vec<char> = GOOD.chars().collect();
        for (at, length, with) in cuts {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, with.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(errors) = Config::parse(&text, Path::new("wok.toml")) {
            prop_assert!(!errors.findings().is_empty());
            for finding in errors.findings() {
                let line = text.split('\n').nth(finding.line - 1);
                let columns = line.map(|line| line.chars().count() + 1);
                prop_assert!(columns.is_some_and(|columns| finding.column <= columns), "{finding}");
                prop_assert!(finding.column >= 1);
                prop_assert!(!finding.remedy.is_empty() && !finding.message.is_empty());
            }
            prop_assert!(!errors.to_string().is_empty());
        }
    }
}
