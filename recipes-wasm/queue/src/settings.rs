//! What the settings say.

use crate::bindings::exports::wok::queue::queue::{self, Config};
use crate::decide::Layout;

/// What becomes of an item whose consumer dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It comes back. At most so often, if that is said.
    AtLeastOnce {
        /// How often an item is taken before it is a dead letter.
        max_attempts: Option<u32>,
    },
    /// It is gone.
    AtMostOnce,
}

/// The settings of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How items are taken.
    pub(crate) delivery: Delivery,
    /// How items are named.
    pub(crate) layout: Layout,
}

/// As often as an item may be taken: a bound that tells a number from a mistyped one.
const MOST_ATTEMPTS: u32 = 1_000_000;

impl Settings {
    /// Those of a participant that says nothing. A crash costs nothing then.
    pub(crate) const DEFAULT: Settings =
        Settings { delivery: Delivery::AtLeastOnce { max_attempts: None }, layout: Layout::Own };

    /// Those that the config says.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub(crate) fn of(config: Config) -> Result<Self, String> {
        let Config { delivery, layout, max_attempts } = config;
        let is_in_bounds = |most: u32| (1..=MOST_ATTEMPTS).contains(&most);
        let delivery = match (delivery, max_attempts) {
            (Some(queue::Delivery::AtMostOnce), None) => Delivery::AtMostOnce,
            (Some(queue::Delivery::AtMostOnce), Some(_)) => {
                return Err(
                    "max-attempts: with delivery at-most-once an item is taken once; leave one \
                            of the two out"
                        .to_owned(),
                );
            }
            (_, Some(most)) if !is_in_bounds(most) => {
                return Err(format!("max-attempts: {most} is not from 1 to {MOST_ATTEMPTS}"));
            }
            (_, max_attempts) => Delivery::AtLeastOnce { max_attempts },
        };
        let layout = match layout {
            None | Some(queue::Layout::Own) => Layout::Own,
            Some(queue::Layout::CuratorSimple) => Layout::CuratorSimple,
            Some(queue::Layout::Kazoo) => Layout::Kazoo,
        };
        Ok(Settings { delivery, layout })
    }
}
