//! What the tests run beside wok: Apache ZooKeeper, the Java it runs on, Apache Curator, Python, Git,
//! a compiler of C++ for the fuzzer, and a client for Go.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::first_line;
use crate::process;
use crate::workspace::QUESTION;

/// Where Debian's packages put jars.
const JARS: &str = "/usr/share/java";

/// The class path of a server. The jar's manifest names what else it needs; `slf4j-simple` puts
/// its log on standard error without a configuration file.
const CLASS_PATH: &str = "/usr/share/java/slf4j-simple.jar:/usr/share/java/zookeeper.jar";

/// Curator's recipes. The manifest names what else they need.
const CURATOR: &str = "/usr/share/java/curator-recipes.jar";

/// The package that brings a client for Go, and its tests.
pub(super) const GO_CLIENT: &str = "golang-github-samuel-go-zookeeper-dev";
const GO_CLIENT_TESTS: &str = "/usr/share/gocode/src/github.com/samuel/go-zookeeper/zk/zk_test.go";

/// The oldest Java that Apache ZooKeeper 3.8 is tested on and that still gets fixes.
const JAVA: u32 = 11;

/// What Java is there, if it serves.
pub(super) fn java() -> Result<Option<String>> {
    let mut command = Command::new("java");
    // A missing program is an answer, not a failure.
    let Ok(output) = process::output("java -version", command.arg("-version"), QUESTION) else {
        crate::stop::look()?;
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let Some((version, major)) = java_version(&text) else {
        return Ok(None);
    };
    Ok((major >= JAVA && is_on_path("keytool")).then(|| version.to_owned()))
}

/// What Apache Curator is there, if Java compiles what uses it.
pub(super) fn curator() -> Result<Option<String>> {
    if !Path::new(CURATOR).exists() {
        return Ok(None);
    }
    let compiler = first_line("java", &["--describe-module", "jdk.compiler"])?;
    let version = jar_of("curator-recipes-").unwrap_or_else(|| "of an unknown version".into());
    Ok(compiler.map(|_| version))
}

/// What Python is there, if it makes virtual environments and C can be compiled for it.
pub(super) fn python() -> Result<Option<String>> {
    let program = "import ensurepip, os, platform, sysconfig, venv\n\
                   headers = os.path.join(sysconfig.get_path('include'), 'Python.h')\n\
                   print(platform.python_version() if os.path.exists(headers) else '')";
    first_line("python3", &["-c", program])
}

/// What Git is there: the guide's changes are applied by it, and it tells which files are ours.
pub(super) fn git() -> Result<Option<String>> {
    first_line("git", &["--version"])
}

/// What makes network namespaces, for the tests that cut servers off from each other.
pub(super) fn iproute() -> Result<Option<String>> {
    first_line("ip", &["-Version"])
}

/// The oldest curl that knows `--json`.
pub(super) const CURL: (u32, u32) = (7, 82);

/// What curl is there, if it knows `--json`.
pub(super) fn curl() -> Result<Option<String>> {
    let line = first_line("curl", &["--version"])?.filter(|line| is_curl_enough(line));
    // What follows in brackets are its libraries.
    Ok(line.map(|line| line.split(" (").next().unwrap_or_default().to_owned()))
}

/// Whether the curl that says this of itself knows `--json`.
fn is_curl_enough(line: &str) -> bool {
    let version = line.split(' ').nth(1).unwrap_or_default();
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let version = numbers.next().zip(numbers.next());
    version.is_some_and(|version| version >= CURL)
}

/// What compiler of C++ is there.
pub(super) fn compiler() -> Result<Option<String>> {
    first_line("c++", &["-dumpfullversion"])
}

/// What Go is there, if a client with its tests is, too.
pub(super) fn go_client() -> Result<Option<String>> {
    if !Path::new(GO_CLIENT_TESTS).exists() {
        return Ok(None);
    }
    let Some(go) = first_line("go", &["env", "GOVERSION"])? else {
        return Ok(None);
    };
    let version = first_line("dpkg-query", &["-W", "-f=${Version}", GO_CLIENT])?;
    let version = version.unwrap_or_else(|| "of an unknown version".into());
    Ok(Some(format!("{go} with go-zookeeper {version}")))
}

/// What ZooKeeper is there.
pub(super) fn zookeeper() -> Result<Option<String>> {
    if !CLASS_PATH.split(':').all(|jar| Path::new(jar).exists()) {
        return Ok(None);
    }
    Ok(Some(jar_of("zookeeper-").unwrap_or_else(|| "of an unknown version".into())))
}

/// The version of the jar whose name begins so.
fn jar_of(prefix: &str) -> Option<String> {
    let names = std::fs::read_dir(JARS).into_iter().flatten().flatten();
    names.filter_map(|file| jar_version(&file.file_name().to_string_lossy(), prefix)).min()
}

/// The version in the name of a jar, as in `zookeeper-3.8.0.jar`.
fn jar_version(name: &str, prefix: &str) -> Option<String> {
    let version = name.strip_prefix(prefix)?.strip_suffix(".jar")?;
    version.starts_with(|letter: char| letter.is_ascii_digit()).then(|| version.to_owned())
}

/// The quoted version in what `java -version` says, and its major number.
fn java_version(text: &str) -> Option<(&str, u32)> {
    let version = text.split('"').nth(1)?;
    let major = version.split('.').next()?.parse().ok()?;
    Some((version, major))
}

pub(super) fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curl_is_judged_by_its_version() {
        assert!(is_curl_enough("curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1"));
        assert!(is_curl_enough("curl 8.0.0-DEV (x86_64-pc-linux-gnu)"));
        assert!(!is_curl_enough("curl 7.81.0 (x86_64-pc-linux-gnu)"));
        assert!(!is_curl_enough(""));
    }

    #[test]
    fn the_major_version_of_java_is_read_from_its_first_line() {
        let modern = "openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime";
        assert_eq!(java_version(modern), Some(("17.0.15", 17)));
        assert_eq!(java_version("java version \"1.8.0_392\""), Some(("1.8.0_392", 1)));
        assert_eq!(java_version("sh: java: not found"), None);
    }

    #[test]
    fn the_version_of_a_jar_is_in_its_own_name() {
        let zookeeper = |name| jar_version(name, "zookeeper-");
        assert_eq!(zookeeper("zookeeper-3.8.0.jar").as_deref(), Some("3.8.0"));
        assert_eq!(zookeeper("zookeeper-jute-3.8.0.jar"), None);
        assert_eq!(zookeeper("zookeeper.jar"), None);
        assert_eq!(zookeeper("curator-recipes-5.4.0.jar"), None);
    }
}
