//! Configs: every error at once, each with its place and its remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;
use wok_tests::process::{Ended, Program};
use wok_tests::scratch;

/// Where an error is expected; taken out of the text before it is written.
const MARK: char = '»';

struct File {
    _directory: tempfile::TempDir,
    path: PathBuf,
    /// Lines and columns of the marks.
    marks: Vec<(usize, usize)>,
}

impl File {
    fn new(text: &str) -> Result<Self> {
        let mut marks = Vec::new();
        let (mut line, mut column) = (1, 1);
        for character in text.chars() {
            match character {
                MARK => marks.push((line, column)),
                '\n' => (line, column) = (line + 1, 1),
                _ => column += 1,
            }
        }
        let directory = scratch::dir()?;
        let path = directory.path().join("wok.toml");
        fs::write(&path, text.replace(MARK, ""))?;
        Ok(File { _directory: directory, path, marks })
    }

    async fn wok(&self, arguments: &[&str]) -> Result<Ended> {
        Program::wok()?.args(arguments).arg(&self.path).run().await
    }
}

/// What each error of [`DAMAGED`] says, in the order of the marks: a piece of the message, and one
/// of the remedy.
const TOLD: [(&str, &str); 10] = [
    ("unknown key `conect`", "did you mean `connect`?"),
    ("`zookeeper.session-timeout`", "choose from"),
    ("`zookeeper.auth.0.credentials-file`", "name a file that this user can read"),
    ("`recipes.orders.module`", "stock recipe"),
    ("`recipes.orders.mount`: the path is not absolute", "begin it with `/`"),
    ("`recipes.orders.limits.watches` is a string, not an integer", "watches = 64"),
    ("unknown key `runs` in `[recipes.orders]`", "did you mean `run`?"),
    ("is inside /election", "move one of them out"),
    ("does not fit into a session timeout", "give at most"),
    ("unknown key `recipe`", "did you mean `recipes`?"),
];

/// Ten mistakes of a first config.
const DAMAGED: &str = r#"
[zookeeper]
»conect = "zk1:2181"
session-timeout = »"10ms"
auth = [{ scheme = "digest", credentials-file = »"missing" }]

[recipes.orders]
module = »"Lock!"
mount = »"locks/orders"
limits = { watches = »"many" }
»runs = { call = "acquire" }

[recipes.scheduler]
module = "leader-election"
mount = "/election"

[recipes.other]
module = "leader-election"
mount = »"/election/other"
run = { call = "volunteer" }
while-held = { exec = ["true"], stop-timeout = »"1h" }

[»recipe.misspelled]
"#;

#[tokio::test]
async fn every_error_of_a_config_is_told_at_once_with_its_place_and_remedy() -> Result<()> {
    let damaged =
        DAMAGED.replace("\"10ms\"", "\"10s\"").replace(&format!("{MARK}\"10s\""), "\"10s\"");
    // Without its session timeout a stop-timeout cannot be judged, so that is another file's.
    let told: Vec<_> = TOLD.iter().filter(|(text, _)| !text.contains("session-timeout`")).collect();
    check(&damaged, &told).await
}

#[tokio::test]
async fn a_session_timeout_out_of_range_is_told() -> Result<()> {
    let text = "[zookeeper]\nconnect = \"zk1\"\nsession-timeout = »\"10ms\"\n[recipes]\n";
    check(text, &[&TOLD[1]]).await
}

/// `wok validate` and `wok run` tell exactly these errors at these places, for people and for
/// programs.
async fn check(text: &str, told: &[&(&str, &str)]) -> Result<()> {
    let file = File::new(text)?;
    assert_eq!(file.marks.len(), told.len(), "marks in the text");
    for command in ["validate", "run"] {
        let ended = file.wok(&[command]).await?;
        assert_eq!(ended.code(), Some(78), "{ended:?}");
        let errors: Vec<&str> = ended.stderr.split("error: ").skip(1).collect();
        assert_eq!(errors.len(), told.len(), "{}", ended.stderr);
        for (error, ((line, column), (message, remedy))) in
            errors.iter().zip(file.marks.iter().zip(told))
        {
            assert!(error.contains(message), "{message:?} is not in {error}");
            assert!(error.contains(remedy), "{remedy:?} is not in {error}");
            let place = format!("{}:{line}:{column}\n", file.path.display());
            assert!(error.contains(&place), "{place:?} is not in {error}");
        }
        let json = file.wok(&[command, "--output", "json"]).await?;
        assert_eq!(json.code(), Some(78), "{json:?}");
        let report: Value = serde_json::from_str(json.stdout.trim())?;
        assert_eq!(report["valid"], false);
        let places: Vec<_> = report["errors"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| (it["line"].as_u64().unwrap(), it["column"].as_u64().unwrap()))
            .collect();
        let marks: Vec<_> =
            file.marks.iter().map(|(line, column)| (*line as u64, *column as u64)).collect();
        assert_eq!(places, marks, "{report}");
    }
    Ok(())
}

#[tokio::test]
async fn what_only_a_module_can_judge_is_told_with_its_place_too() -> Result<()> {
    check(
        r#"
[zookeeper]
connect = "zk1"
acl = "open"

[recipes.wrong-type]
module = "lock"
mount = "/a"
config = { format = »7 }

[recipes.unknown-key]
module = "lock"
mount = "/b"
config = { fromat = »"kazoo" }

[recipes.unknown-operation]
module = "leader-election"
mount = "/c"
run = { call = »"volunter" }

[recipes.wrong-argument]
module = "lock"
mount = "/d"
run = { call = "acquire", arguments = { weight = »1 } }

[recipes.missing]
module = »"./missing.wasm"
mount = "/e"
"#,
        &[
            &("config.format: expected", "wok inspect"),
            &("config.fromat: unknown field; did you mean format?", "wok inspect"),
            &("no operation volunter; did you mean volunteer?", "wok inspect"),
            &("weight", "wok inspect"),
            &("missing.wasm", "`wok build` makes it"),
        ],
    )
    .await
}

#[tokio::test]
async fn what_a_module_refuses_is_told_with_its_place_and_in_its_own_words() -> Result<()> {
    check(
        r#"
[zookeeper]
connect = "zk1"
acl = "open"

[recipes.jobs]
module = "queue"
mount = "/a"
config = { delivery = "at-least-once", max-attempts = »0 }

[recipes.start]
module = "double-barrier"
mount = "/b"

[recipes.start.config]
size = »0
"#,
        &[
            &("`recipes.jobs.config`: the module refuses it: max-attempts: 0", "wok inspect"),
            &(
                "`recipes.start.config`: the module refuses it: size: 0 is not from 1",
                "wok inspect",
            ),
        ],
    )
    .await
}

#[tokio::test]
async fn errors_of_the_file_do_not_hide_what_a_module_refuses() -> Result<()> {
    check(
        r#"
[zookeeper]
connect = "zk1"
»session_timeout = "4s"

[recipes.jobs]
module = "queue"
mount = "/a"
config = { max-attempts = »0 }
"#,
        &[
            &("unknown key `session_timeout`", "did you mean `session-timeout`?"),
            &("the module refuses it: max-attempts: 0 is not from 1 to", "wok inspect"),
        ],
    )
    .await
}

#[tokio::test]
async fn errors_of_the_file_do_not_hide_those_of_its_modules() -> Result<()> {
    check(
        r#"
[zookeeper]
connect = "zk1"
»session_timeout = "4s"

[recipes.damaged]
module = "lock"
mount = »"no-slash"

[recipes.fine]
module = "lock"
mount = "/fine"
config = { format = »7 }
"#,
        &[
            &("unknown key `session_timeout`", "did you mean `session-timeout`?"),
            &("`recipes.damaged.mount`", "begin it with `/`"),
            &("config.format: expected", "wok inspect"),
        ],
    )
    .await
}

#[tokio::test]
async fn what_modules_can_judge_is_told_of_recipes_with_errors_too() -> Result<()> {
    check(
        r#"
[zookeeper]
connect = »"embeded"

[recipes.unknown]
module = »"locks"
»mounts = "/a"

[recipes.damaged]
module = "lock"
mount = »"no-slash"
config = { format = »7 }
run = { call = »"aquire", »argument = { weight = 1 } }

[recipes.»Upper]
module = "leader-election"
mount = "/c"
run = { call = »"volunter", arguments = »1 }
"#,
        &[
            &("`zookeeper.connect`: \"embeded\" is neither", "did you mean \"embedded\"?"),
            &("no stock recipe \"locks\" (did you mean lock?)", "write the name of a stock recipe"),
            &("unknown key `mounts`", "did you mean `mount`?"),
            &("`recipes.damaged.mount`", "begin it with `/`"),
            &("config.format: expected", "wok inspect"),
            &("no operation aquire; did you mean acquire?", "wok inspect"),
            &("unknown key `argument`", "did you mean `arguments`?"),
            &("\"Upper\" is not a name for a recipe", "lower case"),
            &("no operation volunter; did you mean volunteer?", "wok inspect"),
            &("`recipes.Upper.run.arguments` is an integer", "arguments"),
        ],
    )
    .await
}

#[tokio::test]
async fn a_secret_is_never_repeated_and_a_file_that_everybody_can_read_is_warned_of() -> Result<()>
{
    let file = File::new(
        "[zookeeper]\nconnect = \"zk1\"\nauth = [{ scheme = \"digest\", credentials-file = \
         »\"./credentials\" }]\n[recipes]\n",
    )?;
    let credentials = file.path.with_file_name("credentials");
    let (line, column) = file.marks[0];
    let place = format!("{}:{line}:{column}", file.path.display());
    for (content, mode, code, told) in [
        ("wok geheim\n", 0o600, 78, "no colon between user and password"),
        ("wok:geheim\nwok:geheim\n", 0o600, 78, "more than one line"),
        ("wok:geheim\n", 0o644, 0, "chmod 600"),
        ("wok:geheim\n", 0o600, 0, ""),
    ] {
        fs::write(&credentials, content)?;
        fs::set_permissions(&credentials, fs::Permissions::from_mode(mode))?;
        let ended = file.wok(&["validate"]).await?;
        assert_eq!(ended.code(), Some(code), "{content:?} {mode:o}: {ended:?}");
        assert!(ended.stderr.contains(told), "{told:?} in {}", ended.stderr);
        assert!(!ended.stderr.contains("geheim"), "{}", ended.stderr);
        assert_eq!(ended.stderr.contains(&place), !told.is_empty(), "{}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_config_that_cannot_be_read_or_is_no_toml_is_told() -> Result<()> {
    let file = File::new("[zookeeper]\nconnect = »\n")?;
    let ended = file.wok(&["validate"]).await?;
    assert_eq!(ended.code(), Some(78), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{}:2:", file.path.display())), "{}", ended.stderr);
    std::fs::write(&file.path, b"[zookeeper]\nconnect = \"\xe9\"\n")?;
    let ended = file.wok(&["validate"]).await?;
    assert_eq!(ended.code(), Some(78), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{}:2:12", file.path.display())), "{}", ended.stderr);
    let missing = file.path.with_file_name("missing.toml");
    for command in ["validate", "run"] {
        let ended = Program::wok()?.arg(command).arg(&missing).run().await?;
        assert_eq!(ended.code(), Some(78), "{ended:?}");
        assert!(ended.stderr.contains(missing.to_str().unwrap()), "{}", ended.stderr);
        assert!(ended.stderr.contains("create it, or name another file"), "{}", ended.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_good_config_is_valid_for_people_and_for_programs() -> Result<()> {
    let text = "[zookeeper]\nconnect = \"zk1\"\nacl = \"open\"\n[recipes.a]\nmodule = \"lock\"\n\
                mount = \"/a\"\nconfig = { format = \"kazoo\" }\n";
    let file = File::new(text)?;
    let ended = file.wok(&["validate"]).await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stdout.contains("is valid: 1 recipe"), "{ended:?}");
    assert!(ended.stdout.contains("next: wok run"), "{ended:?}");
    let ended = file.wok(&["validate", "--output", "json"]).await?;
    let report: Value = serde_json::from_str(ended.stdout.trim())?;
    assert_eq!(report, serde_json::json!({"valid": true, "recipes": ["a"]}));
    Ok(())
}
