//! Files that are no modules, or not the ones that were meant.

use std::path::PathBuf;

use anyhow::Result;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use wok::modules::stock_names;
use wok_tests::guests::{guest, guest_file};
use wok_tests::process::Program;
use wok_tests::scratch;

/// A component with one import of an interface and no export.
fn importing(interface: &str) -> String {
    format!(r#"(component (import "{interface}" (instance)))"#)
}

/// A component that exports an interface of one function under each of these names.
fn exporting(interfaces: &[&str]) -> String {
    let exports: String =
        interfaces.iter().map(|name| format!(r#"(export "{name}" (instance $it))"#)).collect();
    format!(
        r#"(component
            (core module $m (func (export "ping") unreachable))
            (core instance $i (instantiate $m))
            (func $ping (canon lift (core func $i "ping")))
            (instance $it (export "ping" (func $ping)))
            {exports})"#
    )
}

/// A module's name and bytes, and what the error must say.
type BadModule = (&'static str, Vec<u8>, &'static [&'static str]);

/// What is wrong, the file's bytes, and what is said of it.
fn bad_modules() -> Result<Vec<BadModule>> {
    let component = |text: String| wat::parse_str(text);
    Ok(vec![
        ("text", b"[package]\n".to_vec(), &["not WebAssembly", "`wok build`"]),
        ("empty", Vec::new(), &["not WebAssembly", "`wok build`"]),
        ("core", wat::parse_str("(module)")?, &["a core module", "`wok build`"]),
        (
            "cut",
            guest("echo")?.iter().copied().take(5_000).collect(),
            &["module cut", "copied as a whole"],
        ),
        (
            "future",
            component(importing("wok:recipe/zookeeper@7.0.0"))?,
            &["built for contract 7.0.0", "this host serves 0.1.0", "wok-sdk of this host"],
        ),
        (
            "wasi",
            component(importing("wasi:cli/environment@0.2.0"))?,
            &["imports wasi:cli/environment@0.2.0", "no WASI", "stubs"],
        ),
        (
            "two",
            component(exporting(&["my:two/one@0.1.0", "my:two/other@0.1.0"]))?,
            &["my:two/one@0.1.0, my:two/other@0.1.0", "exactly one interface"],
        ),
        ("none", component(exporting(&[]))?, &["exports no interface", "exactly one"]),
    ])
}

/// A directory with a file.
fn file(name: &str, bytes: &[u8]) -> Result<(tempfile::TempDir, PathBuf)> {
    let directory = scratch::dir()?;
    let path = directory.path().join(format!("{name}.wasm"));
    std::fs::write(&path, bytes)?;
    Ok((directory, path))
}

#[tokio::test]
async fn what_is_no_module_is_told_by_every_command_that_takes_one() -> Result<()> {
    for (name, bytes, told) in bad_modules()? {
        let (directory, path) = file(name, &bytes)?;
        let config = directory.path().join("wok.toml");
        let text = format!(
            "[zookeeper]\nconnect = \"zk1\"\n[recipes.it]\nmodule = \"./{name}.wasm\"\nmount = \
             \"/it\"\n"
        );
        std::fs::write(&config, text)?;
        let inspect = Program::wok()?.arg("inspect").arg(&path).run().await?;
        // Nothing connects for a module that cannot be used: the address leads nowhere.
        let hold = Program::wok()?
            .args(["hold", "--connect", "127.0.0.1:1", "--mount", "/it"])
            .arg(&path)
            .args(["acquire", "--", "true"])
            .run()
            .await?;
        let validate = Program::wok()?.arg("validate").arg(&config).run().await?;
        for ended in [&inspect, &hold, &validate] {
            assert_eq!(ended.code(), Some(78), "{name}: {ended:?}");
            for text in told {
                assert!(ended.stderr.contains(text), "{name}: {text:?} in {}", ended.stderr);
            }
            assert_eq!(ended.stderr.matches(told[0]).count(), 1, "told once: {}", ended.stderr);
        }
        // The config's error stands at the module's line, the value's column.
        let place = format!("{}:4:10", config.display());
        assert!(validate.stderr.contains(&place), "{place} in {}", validate.stderr);
    }
    Ok(())
}

#[tokio::test]
async fn a_module_that_is_not_there_is_named_with_what_there_is() -> Result<()> {
    let there_are = format!("there are {}", stock_names().collect::<Vec<_>>().join(", "));
    for (module, told) in [
        ("./missing.wasm", &["./missing.wasm", "No such file"][..]),
        ("locc", &["no stock recipe \"locc\" (did you mean lock?)", there_are.as_str(), ".wasm"]),
    ] {
        let ended = Program::wok()?.args(["inspect", module]).run().await?;
        assert_eq!(ended.code(), Some(78), "{ended:?}");
        for text in told {
            assert!(ended.stderr.contains(text), "{text:?} is not in {}", ended.stderr);
        }
    }
    Ok(())
}

/// A pipe would be waited for, and a device read until the memory is full.
#[tokio::test]
async fn a_module_that_is_no_regular_file_is_not_opened() -> Result<()> {
    let directory = scratch::dir()?;
    let pipe = directory.path().join("pipe.wasm");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
    let endless = directory.path().join("endless.wasm");
    std::os::unix::fs::symlink("/dev/zero", &endless)?;
    let huge = directory.path().join("huge.wasm");
    std::fs::File::create(&huge)?.set_len((32 << 20) + 1)?;
    for (path, told) in [
        (&pipe, "it is not a regular file"),
        (&endless, "it is not a regular file"),
        (&huge, "it is larger than 32 MiB; build it for release"),
    ] {
        let call = ["call", "--connect", "127.0.0.1:1", "--mount", "/it"];
        let inspect = Program::wok()?.arg("inspect").arg(path);
        for command in [inspect, Program::wok()?.args(call).arg(path).arg("acquire")] {
            let ended = command.run().await?;
            assert_eq!(ended.code(), Some(78), "{ended:?}");
            assert!(ended.stderr.contains(told), "{told:?} is not in {}", ended.stderr);
        }
    }
    let judge = ["test", "lock", "--seeds", "1", "--judge"];
    let ended = Program::wok()?.args(judge).arg(&pipe).run().await?;
    assert_eq!(ended.code(), Some(78), "{ended:?}");
    assert!(ended.stderr.contains("it is not a regular file"), "{}", ended.stderr);
    Ok(())
}

#[tokio::test]
async fn a_module_with_another_digest_than_pinned_is_refused_with_both() -> Result<()> {
    let (directory, file) = guest_file("echo")?;
    let sum = Program::new("sha256sum").arg(&file).run().await?;
    let digest = sum.stdout.split_whitespace().next().unwrap_or_default().to_owned();
    let config = directory.path().join("wok.toml");
    let with_pin = |pin: &str| -> Result<()> {
        let text = format!(
            "[zookeeper]\nconnect = \"zk1\"\n[recipes.it]\nmodule = \"./echo.wasm\"\n\
             sha256 = \"{pin}\"\nmount = \"/it\"\nconfig = {{ name = \"x\" }}\n"
        );
        Ok(std::fs::write(&config, text)?)
    };
    with_pin(&digest)?;
    let ended = Program::wok()?.arg("validate").arg(&config).run().await?;
    assert_eq!(ended.code(), Some(0), "{ended:?}");

    let pinned = "0".repeat(64);
    with_pin(&pinned)?;
    let ended = Program::wok()?.arg("validate").arg(&config).run().await?;
    assert_eq!(ended.code(), Some(78), "{ended:?}");
    for text in [&digest, &pinned, &format!("{}:5:10", config.display())] {
        assert!(ended.stderr.contains(text), "{text:?} is not in {}", ended.stderr);
    }
    Ok(())
}
