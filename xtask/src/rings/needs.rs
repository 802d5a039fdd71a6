//! What some tests need and not every machine has.
//!
//! Such a test fails where it does not have it. So it is left out where a probe finds that this
//! machine lacks it, which the summary says loudly, and nowhere else. The tests of one need are in a
//! test program or a module of their own, by whose name they are left out.

use anyhow::{Result, ensure};

use super::Ring;

mod control_groups;
mod namespaces;

/// Something that tests need.
pub(super) struct Need {
    /// The tests, as the summary calls them.
    pub(super) title: &'static str,
    /// Where they are.
    pub(super) tests: Tests,
    /// The rings that have some.
    pub(super) rings: &'static [Ring],
    /// Whether this machine has it; the error says what is missing.
    probe: fn() -> Result<()>,
    /// How it can be had.
    pub(super) remedy: &'static str,
}

/// The tests of one need.
#[derive(Clone, Copy)]
pub(super) enum Tests {
    /// All of an integration test.
    Program(&'static str),
    /// Those of all modules of this name.
    Module(&'static str),
}

impl Need {
    /// Whether this integration test has no test without this need.
    pub(super) fn is_whole_program(&self, test: &str) -> bool {
        matches!(self.tests, Tests::Program(name) if name == test)
    }
}

const NEEDS: [Need; 4] = [
    Need {
        title: "partitions",
        tests: Tests::Program("partition"),
        rings: &[Ring::Real],
        probe: namespaces::can_be_made,
        remedy: "run as root",
    },
    Need {
        title: "in a control group",
        tests: Tests::Module("in_a_control_group"),
        rings: &[Ring::Real],
        probe: control_groups::can_be_made,
        remedy: "run as root, where cgroups v2 are mounted",
    },
    Need {
        title: "without a control group",
        tests: Tests::Module("without_a_control_group"),
        rings: &[Ring::Real],
        probe: some_user_has_no_control_groups,
        remedy: "run as root, who can become another user",
    },
    Need {
        title: "as root",
        tests: Tests::Module("as_root"),
        rings: &[Ring::Units, Ring::Real],
        probe: this_is_root,
        remedy: "run as root",
    },
];

/// What is missing here, and why.
pub(super) fn missing() -> Vec<(Need, anyhow::Error)> {
    NEEDS.into_iter().filter_map(|need| (need.probe)().err().map(|why| (need, why))).collect()
}

fn this_is_root() -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "this user is not root");
    Ok(())
}

fn some_user_has_no_control_groups() -> Result<()> {
    let is_other_user = this_is_root().is_err();
    ensure!(
        !(is_other_user && control_groups::can_be_made().is_ok()),
        "this user can make control groups, so no command goes without"
    );
    Ok(())
}
