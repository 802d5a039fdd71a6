//! Whether this machine lets us make network namespaces.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::process;
use crate::workspace::QUESTION;

/// Makes one and removes it.
///
/// # Errors
/// There are none to be had here; the error says why.
pub(super) fn can_be_made() -> Result<()> {
    let name = format!("wok-probe-{}", std::process::id());
    ip(&["netns", "add", &name])?;
    ip(&["netns", "del", &name])
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = process::output("ip", Command::new("ip").args(arguments), QUESTION)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", arguments.join(" "), said.trim());
    Ok(())
}
