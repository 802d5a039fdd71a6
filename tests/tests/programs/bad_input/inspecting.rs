//! `wok inspect`.

use anyhow::{Context, Result};
use serde_json::Value;
use wok_tests::guests::guest_file;
use wok_tests::process::Program;

async fn inspect(module: impl AsRef<std::ffi::OsStr>) -> Result<(String, Value)> {
    let text = Program::wok()?.arg("inspect").arg(&module).run().await?;
    assert_eq!(text.code(), Some(0), "{text:?}");
    let json = Program::wok()?.args(["inspect", "--output", "json"]).arg(&module).run().await?;
    assert_eq!(json.code(), Some(0), "{json:?}");
    Ok((text.stdout, serde_json::from_str(json.stdout.trim())?))
}

fn operation<'a>(report: &'a Value, name: &str) -> Result<&'a Value> {
    let operations = report["operations"].as_array().context("operations")?;
    operations.iter().find(|it| it["name"] == name).with_context(|| format!("{name}: {report}"))
}

#[tokio::test]
async fn a_stock_module_tells_its_operations_and_config_in_its_own_words() -> Result<()> {
    let (text, report) = inspect("lock").await?;
    for told in [
        "lock  wok:lock/lock@0.1.0",
        "A lock that one participant holds at a time.",
        "acquire()",
        "Waits in line for the lock.",
        "config:",
        "contract 0.1.0, of which it imports zookeeper, participant",
        "documented by its own WIT, which matches its types",
        "format: option<format>",
        "enum format",
        "As kazoo's `Lock`",
        "next: wok hold lock --mount /try --connect 127.0.0.1:2181 acquire --",
        "wok new my-lock --from lock",
    ] {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
    assert_eq!(report["interface"], "wok:lock/lock@0.1.0");
    assert_eq!(operation(&report, "acquire")?["parameters"], serde_json::json!([]));
    let docs = operation(&report, "release")?["docs"].as_str().unwrap_or_default();
    assert!(docs.starts_with("Gives the lock back"), "{docs}");
    assert_eq!(report["config"][0]["name"], "format");
    assert_eq!(report["contract"], "0.1.0");
    assert_eq!(report["documentation"]["state"], "matches");
    let imports = report["imports"].as_array().context("imports")?;
    assert!(imports.contains(&"wok:recipe/zookeeper@0.1.0".into()), "{imports:?}");
    let format = &report["config-schema"]["properties"]["format"];
    assert_eq!(format["anyOf"][1]["anyOf"][1]["const"], "kazoo", "{format}");
    let arguments = &operation(&report, "acquire")?["arguments-schema"];
    assert_eq!(arguments["additionalProperties"], false);

    let (text, report) = inspect("leader-election").await?;
    assert!(text.contains("Becomes a candidate and returns at once"), "{text}");
    assert_eq!(report["wake"], true);
    Ok(())
}

#[tokio::test]
async fn who_judges_a_module_and_who_says_how_it_is_used_is_told() -> Result<()> {
    let (text, report) = inspect("lock").await?;
    let judge = &report["judge"];
    // The stock recipes' judges come beside them, as they do for an author who forks an interface.
    assert_eq!(judge["name"], "stock lock", "{judge}");
    let digest = judge["sha256"].as_str().context("a digest")?;
    assert!(digest.len() == 64 && text.contains(digest), "{text}");
    let first = &judge["invariants"][0];
    assert_eq!(first["id"], "M1");
    let told = format!("    M1: {}", first["meaning"].as_str().context("a meaning")?);
    assert!(text.contains(&told), "{told} in {text}");
    assert_eq!(report["workload"]["from"], "component");

    let (_directory, file) = guest_file("echo")?;
    let (text, report) = inspect(&file).await?;
    assert_eq!((&report["judge"], &report["workload"]), (&Value::Null, &Value::Null));
    for told in ["judged by nobody but for what every recipe owes", "nobody has written a workload"]
    {
        assert!(text.contains(told), "{told} in {text}");
    }
    Ok(())
}

#[tokio::test]
async fn the_digest_and_the_size_are_those_of_the_file() -> Result<()> {
    for name in ["echo", "hostile"] {
        let (_directory, file) = guest_file(name)?;
        let (text, report) = inspect(&file).await?;
        let sum = Program::new("sha256sum").arg(&file).run().await?;
        let digest = sum.stdout.split_whitespace().next().context("a digest")?;
        assert_eq!(report["sha256"], digest);
        assert_eq!(report["size"], std::fs::metadata(&file)?.len());
        assert!(text.contains(digest), "{text}");
        assert_eq!(report["module"], name);
    }
    Ok(())
}

#[tokio::test]
async fn a_users_module_is_told_as_a_stock_one() -> Result<()> {
    let (_directory, file) = guest_file("echo")?;
    let (text, report) = inspect(&file).await?;
    for told in [
        "What goes in comes out.",
        "several(number: u32, text: string, maybe: option<color>)",
        "rectangle(sides)",
        "As the sky.",
        "echo-pair(value: tuple<u32, string, bool>) -> tuple<u32, string, bool>",
        "names: option<list<string>>",
        "Refuse these settings, in these words.",
    ] {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
    let several = &operation(&report, "several")?["arguments-schema"];
    assert_eq!(several["required"], serde_json::json!(["number", "text"]));
    assert_eq!(several["properties"]["number"]["maximum"], 4_294_967_295_u32);
    let (_directory, file) = guest_file("hostile")?;
    let (_, hostile) = inspect(&file).await?;
    let docs = operation(&hostile, "spin")?["docs"].as_str().unwrap_or_default();
    assert_eq!(docs, "Loops without a host call.");
    assert_eq!(report["wake"], false);
    let (_directory, file) = guest_file("shelf")?;
    let (_, shelf) = inspect(&file).await?;
    assert_eq!(shelf["config"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn a_module_without_its_own_wit_says_who_would_have_added_it() -> Result<()> {
    let directory = wok_tests::scratch::dir()?;
    let file = directory.path().join("bare.wasm");
    let component = wat::parse_str(
        r#"(component
            (core module $m (func (export "ping") unreachable))
            (core instance $i (instantiate $m))
            (func $ping (canon lift (core func $i "ping")))
            (instance $it (export "ping" (func $ping)))
            (export "my:bare/bare@0.1.0" (instance $it)))"#,
    )?;
    std::fs::write(&file, component)?;
    let (text, report) = inspect(&file).await?;
    assert!(text.contains("no documentation: `wok build` would have added it"), "{text}");
    assert!(text.contains("imports nothing"), "{text}");
    assert_eq!(report["documentation"]["state"], "absent");
    assert_eq!(report["contract"], Value::Null);
    Ok(())
}
