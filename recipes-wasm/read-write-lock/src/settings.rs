//! What a read-write lock is configured to do.

use wok_sdk::RevokeRequest;

use crate::bindings::exports::wok::read_write_lock::read_write_lock::{Config, Consent, Format};
use crate::decide::Names;

/// The settings of one participant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) names: Names,
    /// How a contender of these names is asked to give way.
    pub(crate) request: RevokeRequest,
    /// When this participant consents to that; none if it does not listen.
    pub(crate) consent: Option<Consent>,
    /// When it forces one that it has asked; none if it never does.
    pub(crate) force_after_ms: Option<u64>,
}

impl Settings {
    pub(crate) const DEFAULT: Settings = Settings {
        names: Names::CURATOR,
        request: RevokeRequest::CURATOR,
        consent: None,
        force_after_ms: None,
    };

    const KAZOO: Settings =
        Settings { names: Names::KAZOO, request: RevokeRequest::UNLOCK, ..Settings::DEFAULT };

    pub(crate) fn of(config: &Config) -> Result<Self, String> {
        let is_revocable = config.revocable.unwrap_or(false);
        if config.consent.is_some() && !is_revocable {
            return Err("consent: nobody asks this participant; set revocable = true".to_owned());
        }
        if config.force_after_ms == Some(0) {
            return Err("force-after-ms: 0 leaves no time to give way".to_owned());
        }
        let named = match config.format.unwrap_or(Format::Curator) {
            Format::Curator => Settings::DEFAULT,
            Format::Kazoo => Settings::KAZOO,
        };
        Ok(Settings {
            consent: is_revocable.then(|| config.consent.unwrap_or(Consent::AtOnce)),
            force_after_ms: config.force_after_ms,
            ..named
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Config =
        Config { format: None, revocable: None, consent: None, force_after_ms: None };

    #[test]
    fn nobody_is_asked_or_forced_unless_that_is_said() {
        let settings = Settings::of(&NOTHING).unwrap();
        assert_eq!((settings.consent, settings.force_after_ms), (None, None));
        let settings = Settings::of(&Config { revocable: Some(false), ..NOTHING }).unwrap();
        assert_eq!(settings.consent, None);
    }

    #[test]
    fn who_is_revocable_gives_way_at_once_unless_that_is_said_otherwise() {
        let revocable = Config { revocable: Some(true), ..NOTHING };
        assert_eq!(Settings::of(&revocable).unwrap().consent, Some(Consent::AtOnce));
        let asked = Config { consent: Some(Consent::ByRelease), ..revocable };
        assert_eq!(Settings::of(&asked).unwrap().consent, Some(Consent::ByRelease));
    }

    #[test]
    fn each_format_has_its_word() {
        let word = |format: Format| {
            Settings::of(&Config { format: Some(format), ..NOTHING }).unwrap().request
        };
        assert_eq!(word(Format::Kazoo), RevokeRequest::UNLOCK);
        assert_eq!(word(Format::Curator), RevokeRequest::CURATOR);
    }

    #[test]
    fn settings_that_mean_nothing_are_refused() {
        let consents = Config { consent: Some(Consent::AtOnce), ..NOTHING };
        assert!(Settings::of(&consents).unwrap_err().starts_with("consent: "));
        let hurries = Config { force_after_ms: Some(0), ..NOTHING };
        assert!(Settings::of(&hurries).unwrap_err().starts_with("force-after-ms: "));
    }
}
