//! A workload as its author writes it in TOML. What can be wrong without a look at the module is
//! refused while it is read, with its place.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use toml::Spanned;

use crate::simulation::chance::Chance;

/// Longer than a run lasts, and short enough that sums of it are no matter.
const MOST: u64 = 3_600_000;

/// A workload.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct File {
    /// How many applications there are.
    #[serde(default = "Amount::of_applications")]
    pub(super) applications: Spanned<Amount>,
    /// How many rounds each goes through.
    #[serde(default = "Amount::of_rounds")]
    pub(super) rounds: Spanned<Amount>,
    /// How long it does nothing after each.
    #[serde(default = "Amount::of_rest")]
    pub(super) rest_ms: Amount,
    /// The operations that must be answered in calm, however long that takes; all if it is not said.
    #[serde(default)]
    pub(super) live: Option<Vec<Spanned<String>>>,
    /// The znodes that another program creates in some runs, as the recipe sees them.
    #[serde(default)]
    pub(super) foreign: Vec<Spanned<String>>,
    /// Who the applications are.
    pub(super) roles: Spanned<Vec<Role>>,
    /// Steps with a name.
    #[serde(default)]
    pub(super) steps: BTreeMap<String, Vec<Step>>,
}

/// What some of the applications do.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Role {
    pub(super) name: Spanned<String>,
    /// How many applications have it, in proportion to the other roles.
    #[serde(default = "one")]
    pub(super) share: u32,
    /// Settings of the module that this role has besides those of the run.
    #[serde(default)]
    pub(super) config: Option<Spanned<Map<String, Value>>>,
    pub(super) round: Vec<Step>,
}

/// Something that is done in a round.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Step {
    Call(Box<Call>),
    Work(Spanned<Work>),
    AwaitClaim(AwaitClaim),
    Rest(Rest),
    Leave,
    /// The steps of that name.
    Do(Spanned<String>),
    OneOf(Spanned<Vec<Choice>>),
    Sometimes(Sometimes),
    Repeat(Repeat),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Call {
    pub(super) operation: Spanned<String>,
    #[serde(default)]
    pub(super) arguments: Option<Spanned<Map<String, Value>>>,
    /// Arguments that are left to chance, by their names; dots lead into records.
    #[serde(default)]
    pub(super) draw: BTreeMap<String, Spanned<Draw>>,
    #[serde(default)]
    pub(super) deadline_ms: Option<Amount>,
    /// How many of a hundred calls have the deadline; all if it is not said.
    #[serde(default)]
    pub(super) deadline_percent: Option<Percent>,
    /// What the answer is called in later arguments.
    #[serde(default)]
    pub(super) bind: Option<Spanned<String>>,
}

/// How an argument is drawn.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Draw {
    Between(Amount),
    OneOf(Vec<Value>),
    /// Lower case letters, so many.
    Text(Amount),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Work {
    pub(super) ms: Amount,
    #[serde(default)]
    pub(super) long_ms: Option<Amount>,
    #[serde(default)]
    pub(super) long_percent: Percent,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct AwaitClaim {
    pub(super) ms: Amount,
    #[serde(default)]
    pub(super) for_good_percent: Percent,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Rest {
    pub(super) ms: Amount,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Choice {
    #[serde(default = "one")]
    pub(super) weight: u32,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Sometimes {
    pub(super) percent: Percent,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Repeat {
    pub(super) times: Spanned<Amount>,
    pub(super) steps: Vec<Step>,
}

fn one() -> u32 {
    1
}

/// A number, or one that is drawn from `[low, high]`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Amount {
    /// A number that is given takes nothing from chance.
    pub(super) fn draw(self, chance: &mut Chance) -> u64 {
        if self.low == self.high { self.low } else { chance.within(self.low, self.high) }
    }

    /// Two on each host, and up to two more.
    fn of_applications() -> Spanned<Self> {
        Spanned::new(0..0, Amount { low: 6, high: 8 })
    }

    fn of_rounds() -> Spanned<Self> {
        Spanned::new(0..0, Amount { low: 5, high: 8 })
    }

    fn of_rest() -> Self {
        Amount { low: 0, high: 400 }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Amounts;

        impl<'de> Visitor<'de> for Amounts {
            type Value = Amount;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "a number from 0 to {MOST}, or [low, high]")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Amount, E> {
                let number = u64::try_from(number).ok().filter(|number| *number <= MOST);
                let number =
                    number.ok_or_else(|| E::custom(format!("a number is from 0 to {MOST}")))?;
                Ok(Amount { low: number, high: number })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Amount, A::Error> {
                let (low, high) = (items.next_element::<u64>()?, items.next_element::<u64>()?);
                match (low, high, items.next_element::<u64>()?) {
                    (Some(low), Some(high), None) if low <= high && high <= MOST => {
                        Ok(Amount { low, high })
                    }
                    (Some(_), Some(_), None) => Err(A::Error::custom(format!(
                        "[low, high]: low is not above high, nor high above {MOST}"
                    ))),
                    _ => Err(A::Error::custom("two numbers: [low, high]")),
                }
            }
        }

        deserializer.deserialize_any(Amounts)
    }
}

/// So many of a hundred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Percent(pub(super) u64);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let percent = u64::deserialize(deserializer)?;
        if percent > 100 {
            return Err(D::Error::custom(format!("{percent}: from 0 to 100")));
        }
        Ok(Percent(percent))
    }
}
