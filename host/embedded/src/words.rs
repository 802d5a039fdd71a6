//! Four-letter words: what an operator asks a server with `nc`.

mod date;
mod lists;
mod numbers;
mod settings;

pub use settings::Settings;

use crate::standalone::Standalone;
use crate::time::Now;

/// A four-letter word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is documented by ZooKeeper under this very name")]
pub enum Word {
    Conf,
    Cons,
    Crst,
    Dirs,
    Dump,
    Envi,
    Gtmk,
    Isro,
    Mntr,
    Ruok,
    Srst,
    Srvr,
    Stat,
    Stmk,
    Wchc,
    Wchp,
    Wchs,
}

impl Word {
    /// All words that are known.
    pub const ALL: [Word; 17] = [
        Word::Conf,
        Word::Cons,
        Word::Crst,
        Word::Dirs,
        Word::Dump,
        Word::Envi,
        Word::Gtmk,
        Word::Isro,
        Word::Mntr,
        Word::Ruok,
        Word::Srst,
        Word::Srvr,
        Word::Stat,
        Word::Stmk,
        Word::Wchc,
        Word::Wchp,
        Word::Wchs,
    ];

    /// The word as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Word::Conf => "conf",
            Word::Cons => "cons",
            Word::Crst => "crst",
            Word::Dirs => "dirs",
            Word::Dump => "dump",
            Word::Envi => "envi",
            Word::Gtmk => "gtmk",
            Word::Isro => "isro",
            Word::Mntr => "mntr",
            Word::Ruok => "ruok",
            Word::Srst => "srst",
            Word::Srvr => "srvr",
            Word::Stat => "stat",
            Word::Stmk => "stmk",
            Word::Wchc => "wchc",
            Word::Wchp => "wchp",
            Word::Wchs => "wchs",
        }
    }

    /// The word of this name.
    pub fn from_name(name: &str) -> Option<Word> {
        Word::ALL.into_iter().find(|word| word.name() == name)
    }

    /// The word that a connection begins with, if it does: as the length of a frame, each would
    /// be far too large.
    pub fn from_bytes(bytes: [u8; 4]) -> Option<Word> {
        Word::ALL.into_iter().find(|word| word.name().as_bytes() == bytes)
    }
}

/// The whole answer to a word.
pub fn answer(word: Word, state: &mut Standalone, settings: &Settings, now: Now) -> String {
    if !settings.whitelist.contains(&word) {
        return format!("{} is not executed because it is not in the whitelist.\n", word.name());
    }
    match word {
        Word::Ruok => "imok".to_owned(),
        Word::Isro => "rw".to_owned(),
        Word::Srvr => numbers::srvr(state, settings),
        Word::Stat => {
            let mut text = format!("Zookeeper version: {}\nClients:\n", settings.version_text());
            text += &lists::clients(state, lists::Detail::Short);
            text += "\n";
            text + &numbers::facts(state)
        }
        Word::Cons => lists::clients(state, lists::Detail::Long) + "\n",
        Word::Mntr => numbers::mntr(state, settings, now),
        Word::Conf => settings.conf(),
        Word::Envi => settings.envi(),
        Word::Dump => lists::dump(state, now),
        Word::Wchs => lists::watch_summary(state),
        Word::Wchc => lists::watches_by_session(state),
        Word::Wchp => lists::watches_by_path(state),
        Word::Crst => {
            state.member_mut().reset_connection_statistics();
            "Connection stats reset.\n".to_owned()
        }
        Word::Srst => {
            state.member_mut().reset_statistics();
            "Server stats reset.\n".to_owned()
        }
        Word::Dirs => settings.dirs(),
        // Java's bits for what to trace; nothing here has any.
        Word::Gtmk => "306".to_owned(),
        Word::Stmk => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_by_its_bytes() {
        for word in Word::ALL {
            let bytes: [u8; 4] = word.name().as_bytes().try_into().unwrap();
            assert_eq!(Word::from_bytes(bytes), Some(word));
            assert!(i32::from_be_bytes(bytes) > 1 << 24);
        }
        assert_eq!(Word::from_name("kill"), None);
    }
}
