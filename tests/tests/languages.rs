//! The locks in C and JavaScript: built from their sources by the commands that their pages show, held
//! to a lock's invariants in simulation, and in one line with the stock lock on a real server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use wok_tests::admin::Admin;
use wok_tests::authors::Workshop;
use wok_tests::process::{OrderFile, Program, Running, Signal};
use wok_tests::zookeeper;

fn repository() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository's root")
}

/// Copies an example's files under version control, as an author who starts from it does.
fn take(shop: &Workshop, name: &str) -> Result<PathBuf> {
    let example = repository()?.join("examples").join(name);
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&example)
        .output()
        .context("run git")?;
    ensure!(listed.status.success(), "git: {}", String::from_utf8_lossy(&listed.stderr));
    let copy = shop.path().join(name);
    for file in String::from_utf8(listed.stdout)?.split('\0').filter(|file| !file.is_empty()) {
        let to = copy.join(file);
        fs::create_dir_all(to.parent().context("a file has a parent")?)?;
        fs::copy(example.join(file), &to).with_context(|| format!("copy {file}"))?;
    }
    Ok(copy)
}

/// A recipe with the stock lock's interface.
struct Recipe {
    shop: Workshop,
    /// Its component, from where the workshop's commands run.
    module: String,
}

impl Recipe {
    fn build(shop: Workshop, name: &str) -> Result<Self> {
        let module = format!("{name}/{name}.wasm");
        let built = shop.report(&format!("wok --output json build {name}"))?;
        assert_eq!(built["next"][0], format!("wok inspect {module}"));
        Ok(Recipe { shop, module })
    }

    /// The module is the stock lock to its users, and asks for no more than that.
    fn is_a_lock(&self) -> Result<()> {
        let told = self.shop.report(&format!("wok --output json inspect {}", self.module))?;
        let stock = self.shop.report("wok --output json inspect lock")?;
        for same in ["interface", "operations", "types", "config-schema"] {
            assert_eq!(told[same], stock[same]);
        }
        assert_eq!(told["documentation"]["state"], "matches");
        let imports = told["imports"].as_array().context("imports")?;
        assert!(!imports.is_empty());
        for import in imports {
            assert!(import.as_str().is_some_and(|it| it.starts_with("wok:recipe/")), "{import}");
        }
        Ok(())
    }

    fn keeps_its_promises(&self, seeds: u32) -> Result<()> {
        let tested = self.shop.run(&format!("wok test {} --seeds {seeds}", self.module))?;
        assert_eq!(tested.code, Some(0), "{tested:?}");
        assert!(tested.stdout.contains("every invariant held"), "{tested:?}");
        Ok(())
    }

    /// Starts a daemon that runs `script` while it holds the lock in the directory `path`.
    fn daemon(&self, address: &str, path: &str, script: &str) -> Result<Running> {
        let config = self.shop.path().join("wok.toml");
        let script = serde_json::to_string(script)?;
        let text = format!(
            r#"
[zookeeper]
connect = "{address}"

[recipes.lock]
module = "./{}"
mount = "{path}"
run = {{ call = "acquire" }}
while-held = {{ exec = ["sh", "-c", {script}], stop-timeout = "4s" }}
"#,
            self.module
        );
        fs::write(&config, text)?;
        Program::wok()?.args([Path::new("run"), &config]).start()
    }

    fn hold(&self, address: &str, path: &str, script: &str) -> Result<Running> {
        Program::wok()?
            .args(["hold", &self.module, "--mount", path, "--connect", address, "acquire"])
            .args(["--", "sh", "-c", script])
            .directory(self.shop.path())
            .start()
    }

    /// Holds the lock alone. Here the module is compiled, however long that takes; all who come later
    /// find it in the cache, so that they are waited for and not the compiler.
    fn is_held_alone(&self, address: &str) -> Result<()> {
        let path = zookeeper::unique_path();
        let line = format!(
            "wok hold {} --mount {path} --connect {address} acquire -- printenv WOK_CLAIM_PATH",
            self.module
        );
        let held = self.shop.run(&line)?;
        assert_eq!(held.code, Some(0), "{held:?}");
        assert!(held.stdout.starts_with(&format!("{path}/_c_")), "{held:?}");
        Ok(())
    }

    /// The daemon holds the lock by this recipe, the stock lock stands behind it, and behind that
    /// this recipe again: each gets it in its turn.
    async fn shares_a_line_with_the_stock_lock(&self) -> Result<()> {
        let server = zookeeper::shared().await;
        self.is_held_alone(server.address())?;
        let admin = Admin::connect(server.address()).await?;
        let (order, path) = (OrderFile::new()?, zookeeper::unique_path());
        let stays = format!(
            "trap '{}; exit 0' TERM; {}; while :; do sleep 0.05; done",
            order.append("1 leaves").replace('\'', "'\\''"),
            order.append("1 enters $WOK_FENCE"),
        );
        let goes = |number: u32| {
            let enters = order.append(&format!("{number} enters $WOK_FENCE"));
            format!("{enters}; {}", order.append(&format!("{number} leaves")))
        };

        let daemon = self.daemon(server.address(), &path, &stays)?;
        wok_tests::patience::eventually("the daemon to hold the lock", async || {
            Ok((order.labels()?.len() == 1).then_some(()))
        })
        .await?;
        let second = Program::wok()?
            .args(["lock", "--connect", server.address(), &path, "--", "sh", "-c", &goes(2)])
            .start()?;
        second.wait_for_text("standing in line").await?;
        let third = self.hold(server.address(), &path, &goes(3))?;
        third.wait_for_text("standing in line").await?;
        let mut contenders = admin.children(&path).await?;
        assert!(contenders.iter().all(|name| name.starts_with("_c_")), "{contenders:?}");
        contenders.retain(|name| name.contains("-lock-"));
        assert_eq!(contenders.len(), 3, "{contenders:?}");

        daemon.signal(Signal::TERM)?;
        assert_eq!(daemon.ended().await?.code(), Some(0));
        assert_eq!(second.ended().await?.code(), Some(0));
        assert_eq!(third.ended().await?.code(), Some(0));
        assert_eq!(admin.children(&path).await?, Vec::<String>::new());
        check_turns(&order.labels()?)
    }
}

/// One after the other, with fences that grow.
#[track_caller]
fn check_turns(labels: &[String]) -> Result<()> {
    let mut last = 0;
    assert_eq!(labels.len(), 6, "{labels:?}");
    for (number, turn) in (1..).zip(labels.chunks(2)) {
        let fence = turn[0].strip_prefix(&format!("{number} enters "));
        let fence: u64 = fence.with_context(|| format!("out of turn: {labels:?}"))?.parse()?;
        assert!(fence > last, "{labels:?}");
        assert_eq!(turn[1], format!("{number} leaves"), "{labels:?}");
        last = fence;
    }
    Ok(())
}

#[tokio::test]
async fn the_lock_in_c_is_a_lock() -> Result<()> {
    let shop = Workshop::open()?;
    take(&shop, "lock-in-c")?;
    let recipe = Recipe::build(shop, "lock-in-c")?;
    recipe.is_a_lock()?;
    recipe.keeps_its_promises(200)?;
    recipe.shares_a_line_with_the_stock_lock().await
}

#[tokio::test]
async fn the_lock_in_javascript_is_a_lock() -> Result<()> {
    let shop = Workshop::open()?;
    let directory = take(&shop, "lock-in-javascript")?;
    let before = shop.run("wok build lock-in-javascript")?;
    assert_eq!(before.code, Some(78), "{before:?}");
    assert!(before.stderr.contains("npm ci"), "{before:?}");

    install(&directory)?;
    let tested = shop.run("cd lock-in-javascript && npm test")?;
    assert_eq!(tested.code, Some(0), "{tested:?}");
    let recipe = Recipe::build(shop, "lock-in-javascript")?;
    recipe.is_a_lock()?;
    recipe.keeps_its_promises(5)?;
    recipe.shares_a_line_with_the_stock_lock().await
}

/// `npm ci`, once for a lock file, below `target`; then the recipe has what it brought.
fn install(recipe: &Path) -> Result<()> {
    let place = repository()?.join("target/lock-in-javascript");
    let lock = fs::read_to_string(recipe.join("package-lock.json"))?;
    let ready = place.join("ready");
    if !fs::read_to_string(&ready).is_ok_and(|has| has == lock) {
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        fs::create_dir_all(&place)?;
        for file in ["package.json", "package-lock.json", ".npmrc"] {
            fs::copy(recipe.join(file), place.join(file))?;
        }
        let npm = Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund"])
            .current_dir(&place)
            .output();
        let npm = npm.context("run npm; on Debian it is in the packages nodejs and npm")?;
        let said = String::from_utf8_lossy(&npm.stderr);
        ensure!(npm.status.success(), "npm ci in {}: {said}", place.display());
        fs::write(ready, lock)?;
    }
    std::os::unix::fs::symlink(place.join("node_modules"), recipe.join("node_modules"))?;
    Ok(())
}

#[test]
fn the_examples_have_the_stock_locks_interface() -> Result<()> {
    let stock = fs::read_to_string(repository()?.join("recipes-wasm/lock/wit/lock.wit"))?;
    for name in ["lock-in-c", "lock-in-javascript"] {
        wok_tests::generated::check(&format!("examples/{name}/wit/lock.wit"), &stock)?;
    }
    Ok(())
}

#[test]
fn the_lock_of_npm_holds_for_every_registry() -> Result<()> {
    let file = repository()?.join("examples/lock-in-javascript/package-lock.json");
    let lock: serde_json::Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let packages = lock["packages"].as_object().context("packages")?;
    assert!(packages.len() > 10);
    for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
        assert!(package["resolved"].is_null(), "{name} comes from one registry");
        assert!(package["integrity"].is_string(), "{name} may be anything");
    }
    Ok(())
}

const SQUARE: &str = "package my:square;
interface square { square: func(number: u32) -> u32; }
world recipe { include wok:recipe/imports@0.1.0; export square; }";

/// Writes a recipe in C whose one function has this body.
fn write_square(shop: &Workshop, body: &str) -> Result<()> {
    let directory = shop.path().join("square");
    for part in ["src", "wit"] {
        fs::create_dir_all(directory.join(part))?;
    }
    fs::write(directory.join("wit/square.wit"), SQUARE)?;
    let text = format!(
        "#include <stdio.h>\n#include \"recipe.h\"\n\
         uint32_t exports_my_square_square_square(uint32_t number) {{ {body} }}\n"
    );
    fs::write(directory.join("src/square.c"), text)?;
    Ok(())
}

#[test]
fn a_mistake_in_c_and_what_no_recipe_may_are_told() -> Result<()> {
    let shop = Workshop::open()?;
    fs::create_dir_all(shop.path().join("square"))?;
    let refused = |told: &[&str]| -> Result<()> {
        let done = shop.run("wok build square")?;
        assert_eq!(done.code, Some(78), "{done:?}");
        for text in told {
            assert!(done.stderr.contains(text), "{text:?} is not in {}", done.stderr);
        }
        Ok(())
    };
    refused(&["square", "Cargo.toml", "package.json", "src/*.c"])?;
    write_square(&shop, "return \"text\" * number;")?;
    refused(&["src/square.c:3:", "invalid operands"])?;
    write_square(&shop, "printf(\"%u\", number); return number * number;")?;
    refused(&["square", "wasi_snapshot_preview1"])?;

    write_square(&shop, "uint32_t unused; return number * number;")?;
    let warned = shop.run("wok build square")?;
    assert_eq!(warned.code, Some(0), "{warned:?}");
    assert!(warned.stderr.contains("src/square.c:3:") && warned.stderr.contains("unused"));
    Ok(())
}

#[test]
fn what_the_machine_lacks_for_c_is_told_by_the_names_of_its_packages() -> Result<()> {
    let shop = Workshop::open()?;
    write_square(&shop, "return number;")?;
    let wok = fs::canonicalize(wok_tests::process::wok_binary()?)?;
    let done = shop.run(&format!("PATH=/nonexistent '{}' build square", wok.display()))?;
    assert_eq!(done.code, Some(78), "{done:?}");
    let packages = "apt-get install clang lld wasi-libc libclang-rt-dev-wasm32";
    assert!(done.stderr.contains(packages), "{done:?}");
    Ok(())
}
