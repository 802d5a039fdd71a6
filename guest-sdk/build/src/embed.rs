//! Components for `include_bytes!`: what a build script needs.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::builder::crates_in;
use crate::{Builder, Component, Error, JUDGE_DIRECTORY, TOOLCHAIN_VARIABLE};

/// What a build script embeds.
#[derive(Clone, Copy, Debug)]
pub struct Embedding<'a> {
    /// The directory whose crates are built, relative to the build script's package.
    pub crates: &'a str,
    /// The file to write in `OUT_DIR`: an expression, the table `&[(name, wasm)]`.
    pub table: &'a str,
    /// The variable that names a directory of ready-made `<name>.wasm`, which skips the build.
    pub ready_made: &'a str,
    /// The file to write in `OUT_DIR` for the judges that stand in `promise/judge` of these crates: the
    /// same table, with the names of the recipes. Ready-made ones are called `<name>.judge.wasm`.
    /// Without it no judge is built.
    pub judges: Option<&'a str>,
}

/// Builds every crate of a directory, in one cargo invocation, and writes the table of them.
///
/// In `build.rs`:
/// ```no_run
/// wok_build::embed(wok_build::Embedding {
///     crates: "../recipes-wasm",
///     table: "recipes.rs",
///     ready_made: "WOK_RECIPES_DIR",
///     judges: Some("judges.rs"),
/// })?;
/// # Ok::<(), wok_build::Error>(())
/// ```
/// and in the crate:
/// ```text
/// pub static RECIPES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/recipes.rs"));
/// ```
///
/// # Errors
/// Whatever keeps a component from being made.
pub fn embed(embedding: Embedding<'_>) -> Result<(), Error> {
    let package = directory_in("CARGO_MANIFEST_DIR")?;
    let out_dir = directory_in("OUT_DIR")?;
    rerun_if_env_changed(embedding.ready_made);

    let (judges, recipes) = match env::var_os(embedding.ready_made).filter(|it| !it.is_empty()) {
        Some(directory) => {
            let files = ready_made(&package.join(directory))?.into_iter();
            files.partition(|(name, _)| name.ends_with(JUDGE))
        }
        None => {
            let crates = package.join(embedding.crates);
            watch_sources(&crates);
            built(&crates, embedding.judges.is_some(), &out_dir)?
        }
    };
    write(&out_dir.join(embedding.table), table(&recipes).as_bytes())?;
    match embedding.judges {
        Some(file) => write(&out_dir.join(file), table(&judges).as_bytes()),
        None => Ok(()),
    }
}

/// What stands behind a recipe's name in that of its judge.
const JUDGE: &str = ".judge";

/// Names and files.
type Files = Vec<(String, PathBuf)>;

fn table(files: &Files) -> String {
    let mut table = String::from("&[\n");
    for (name, path) in files {
        let name = name.strip_suffix(JUDGE).unwrap_or(name);
        // Cannot fail: it writes to a String.
        let _ =
            writeln!(table, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    table.push_str("]\n");
    table
}

/// Builds the recipes, and their judges if they are wanted: the files of the judges, and those of the
/// recipes.
fn built(crates: &Path, with_judges: bool, out_dir: &Path) -> Result<(Files, Files), Error> {
    let mut builder = Builder::new(target_dir(out_dir)).guests_in(crates)?;
    let mut judged = Vec::new();
    for recipe in crates_in(crates)? {
        let judge = recipe.join(JUDGE_DIRECTORY);
        if with_judges && judge.join("Cargo.toml").is_file() {
            judged.push(recipe.file_name().unwrap_or_default().to_string_lossy().into_owned());
            builder = builder.judge(judge);
        }
    }
    let mut components = builder.build()?;
    let judges = components.split_off(components.len().saturating_sub(judged.len()));
    let mut files = Vec::new();
    for (name, judge) in judged.into_iter().zip(judges) {
        let path = out_dir.join(format!("{name}{JUDGE}.wasm"));
        judge.write(&path)?;
        files.push((name, path));
    }
    Ok((files, written(&components, out_dir)?))
}

fn ready_made(directory: &Path) -> Result<Files, Error> {
    rerun_if_changed(directory);
    let error = |source| Error::File { action: "list", path: directory.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            rerun_if_changed(&path);
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, path));
        }
    }
    files.sort();
    Ok(files)
}

fn written(components: &[Component], out_dir: &Path) -> Result<Files, Error> {
    let mut files = Vec::new();
    for component in components {
        let path = out_dir.join(format!("{}.wasm", component.name));
        component.write(&path)?;
        files.push((component.name.clone(), path));
    }
    Ok(files)
}

/// Below the outer target directory, so that `cargo clean` knows it, and not that directory itself.
fn target_dir(out_dir: &Path) -> PathBuf {
    let outer = out_dir.ancestors().find(|ancestor| ancestor.join("CACHEDIR.TAG").is_file());
    outer.unwrap_or(out_dir).join("guests")
}

/// The crates (cargo looks at everything below a directory), the SDK they are compiled with and the
/// toolchain.
fn watch_sources(crates: &Path) {
    rerun_if_env_changed(TOOLCHAIN_VARIABLE);
    rerun_if_changed(crates);
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for part in ["Cargo.toml", "src", "wit", "judge"] {
        rerun_if_changed(&sdk.join(part));
    }
}

pub(crate) fn rerun_if_changed(path: &Path) {
    directive(&format!("rerun-if-changed={}", path.display()));
}

fn rerun_if_env_changed(variable: &str) {
    directive(&format!("rerun-if-env-changed={variable}"));
}

#[allow(clippy::print_stdout, reason = "it is how a build script speaks to cargo")]
fn directive(text: &str) {
    println!("cargo::{text}");
}

pub(crate) fn directory_in(variable: &'static str) -> Result<PathBuf, Error> {
    env::var_os(variable).map(PathBuf::from).ok_or_else(|| Error::NoRecipe {
        path: PathBuf::from(variable),
        reason: "not set: this runs in a build script".to_owned(),
    })
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).map_err(|source| Error::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}
