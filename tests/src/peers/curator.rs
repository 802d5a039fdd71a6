//! Debian's jars of Apache Curator, and the Java that compiles a peer as it starts.

use std::env;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::source;
use crate::process::Program;

/// The manifest of Curator's recipes names what else they need.
const JARS: [&str; 2] = ["/usr/share/java/slf4j-simple.jar", "/usr/share/java/curator-recipes.jar"];

const REMEDY: &str = "`cargo xtask setup` installs them";

/// A directory with other jars, all of those that Curator's recipes need.
const SETTING: &str = "WOK_CURATOR_JARS";

/// The peer, which lacks the address of its server.
pub(super) fn program() -> Result<Program> {
    let class_path = match env::var(SETTING) {
        Ok(directory) => format!("{directory}/*"),
        Err(_) => {
            for jar in JARS {
                ensure!(std::fs::exists(jar)?, "no Apache Curator: {jar} is missing; {REMEDY}");
            }
            JARS.join(":")
        }
    };
    let compiler = Command::new("java").args(["--describe-module", "jdk.compiler"]).output();
    let compiler = compiler.with_context(|| format!("no Java; {REMEDY}"))?;
    ensure!(compiler.status.success(), "a Java that does not compile, for Curator; {REMEDY}");
    Ok(Program::new("java")
        .args(["-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"])
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        .args(["-cp", &class_path])
        .arg(source("curator/Peer.java")))
}
