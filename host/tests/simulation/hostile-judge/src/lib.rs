//! A judge that does what its config says, and nothing that a judge should.
#![allow(clippy::panic, reason = "it is what it is for")]

use wok_judge::history::Entry;
use wok_judge::{Judge, Violation};

/// What it does.
#[derive(Debug)]
pub struct Hostile(String);

impl Judge for Hostile {
    const INVARIANTS: &'static [(&'static str, &'static str)] = &[("Z1", "nothing ever happens")];

    fn begin(config: &str) -> Result<Self, String> {
        match config {
            "\"refuse\"" => Err("no".to_owned()),
            config if config.contains("kazoo") => Ok(Hostile("unknown".to_owned())),
            config => Ok(Hostile(config.trim_matches('"').to_owned())),
        }
    }

    fn verdict(&self, history: &[Entry]) -> Vec<Violation> {
        let broken = |invariant: &'static str, at: usize| {
            vec![Violation::new(invariant, at, format!("{} entries", history.len()))]
        };
        match self.0.as_str() {
            "panic" => panic!("on purpose"),
            "loop" => loop {
                std::hint::black_box(history);
            },
            "recurse" => broken("Z1", deep(history.len())),
            "grow" => {
                let mut kept = Vec::new();
                loop {
                    kept.push(vec![1_u8; 1 << 20]);
                    std::hint::black_box(&kept);
                }
            }
            "flood" => (0..100_000).flat_map(|_| broken("Z1", 0)).collect(),
            "shout" => vec![Violation::new("Z1", 0, "!".repeat(16 << 20))],
            "unknown" => broken("M1", 0),
            "beyond" => broken("Z1", history.len()),
            "broken" => broken("Z1", 0),
            _ => Vec::new(),
        }
    }
}

/// Never comes back.
#[allow(unconditional_recursion, reason = "it is what it is for")]
fn deep(number: usize) -> usize {
    std::hint::black_box(deep(std::hint::black_box(number)) + 1)
}

wok_judge::export!(Hostile);
