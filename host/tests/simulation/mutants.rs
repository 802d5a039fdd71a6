//! Recipes with one mistake each: the judges notice every one of them.
//!
//! A mutant is a patch of a stock recipe in `tests/mutants`. What stands before the diff says what is
//! wrong with it, and in lines of their own:
//!
//! * `Recipe:` which recipe it is made of;
//! * `Caught-by:` the invariants that it may be caught by;
//! * `Seed:` a seed that breaks one of them;
//! * `Without:` the rule that the host has to leave out. While it keeps it, nothing is broken.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use diffy::Patch;
use diffy::patch_set::{FileOperation, ParseOptions, PatchKind, PatchSet};
use wok::guest::CompileCache;
use wok::session::Omission;
use wok::simulation::search::Search;
use wok::simulation::subject::Subject;
use wok::simulation::verdict::Verdict;
use wok::simulation::workload;

use super::number;

/// The first of the fresh seeds, beyond those that are known.
const FIRST_SEED: u64 = 1_000_001;

struct Mutant {
    name: String,
    recipe: String,
    expected: Vec<String>,
    seed: u64,
    without: Option<Omission>,
    patch: String,
}

#[test]
fn every_mutant_of_a_recipe_is_caught() {
    let mutants = mutants();
    assert!(!mutants.is_empty(), "tests/mutants has no patches");
    println!("{}", row("mutant", "known seed", "fresh seeds", "needed"));
    let mut wrong = Vec::new();
    let mut most = (0, "");
    for (mutant, checked) in mutants.iter().zip(check(&mutants, &build(&mutants))) {
        match checked {
            Ok(needed) => most = most.max((needed, &mutant.name)),
            Err(why) => wrong.push(format!("tests/mutants/{}.patch: {why}", mutant.name)),
        }
    }
    let (seeds, name) = most;
    println!(
        "figure: {} of {} mutants caught, in at most {seeds} fresh seeds ({name})",
        mutants.len() - wrong.len(),
        mutants.len()
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Checks one on each processor: most are caught by their first seeds, so that one mutant alone would
/// keep one processor busy with compiling its component, and leave the others idle.
fn check(mutants: &[Mutant], components: &[Vec<u8>]) -> Vec<Result<u64, String>> {
    // The judge of a recipe is compiled once for all of its mutants.
    let cache = tempfile::tempdir().unwrap();
    let next = AtomicUsize::new(0);
    let checked = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = mutants.get(index) else { return };
                    let outcome = mutant.check(&components[index], cache.path());
                    checked.lock().unwrap().push((index, outcome));
                }
            });
        }
    });
    let mut checked = checked.into_inner().unwrap();
    checked.sort_by_key(|(index, _)| *index);
    checked.into_iter().map(|(_, outcome)| outcome).collect()
}

impl Mutant {
    fn read(path: &Path) -> Self {
        let patch = fs::read_to_string(path).unwrap();
        let said = |key: &str| {
            let said = |line: &str| line.strip_prefix(key)?.strip_prefix(": ").map(str::to_owned);
            patch.lines().take_while(|line| !line.starts_with("--- ")).find_map(said)
        };
        let must = |key: &str| {
            said(key).unwrap_or_else(|| panic!("{}: no `{key}: ` before the diff", path.display()))
        };
        let rule = |name: String| {
            let rule = Omission::ALL.into_iter().find(|rule| format!("{rule:?}") == name);
            rule.unwrap_or_else(|| panic!("{}: {name} is no rule of the host's", path.display()))
        };
        Mutant {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            recipe: must("Recipe"),
            expected: must("Caught-by").split_whitespace().map(str::to_owned).collect(),
            seed: must("Seed").parse().unwrap(),
            without: said("Without").map(rule),
            patch,
        }
    }

    /// How many fresh seeds it took.
    fn check(&self, wasm: &[u8], cache: &Path) -> Result<u64, String> {
        let first = number("WOK_FIRST_SEED", FIRST_SEED);
        let counting = number("WOK_MUTANT_SEEDS", 200);
        let cache = || CompileCache::In(cache.to_owned());
        let subject = || Subject::new(&self.name, wasm, None, cache()).unwrap();
        let search = |subject: &Subject| {
            Search { first, counting, threads: 1 }.run(subject, |_| {}).unwrap()
        };
        let subject = match self.without {
            None => subject(),
            Some(rule) => {
                if let Some(failure) = search(&subject()).failure {
                    let seed = failure.plan.seed;
                    let broken = broken(&failure);
                    return Err(format!(
                        "seed {seed} breaks {broken} though the host has {rule:?}"
                    ));
                }
                subject().without(rule)
            }
        };
        let findings = search(&subject);
        let Some(fresh) = findings.failure else {
            return Err(format!("none of {} runs from seed {first} on broke it", findings.runs));
        };
        let known = Verdict::of(&subject, workload::plan(&subject, self.seed)).unwrap();
        let needed = fresh.plan.seed - first + 1;
        println!("{}", row(&self.name, &broken(&known), &broken(&fresh), &needed.to_string()));
        self.is_expected(&known).map_err(|why| {
            let seed = fresh.plan.seed;
            format!("{why}; if the workload has changed, write `Seed: {seed}` there")
        })?;
        self.is_expected(&fresh).map(|()| needed)
    }

    fn is_expected(&self, verdict: &Verdict) -> Result<(), String> {
        if self.expected.iter().any(|invariant| verdict.breaks(invariant)) {
            return Ok(());
        }
        let (seed, expected) = (verdict.plan.seed, self.expected.join(" or "));
        Err(format!("seed {seed} breaks {}, not {expected}", broken(verdict)))
    }

    /// Writes the recipe with the mistake into a crate of the mutant's name.
    fn write(&self, directory: &Path) {
        let recipe = repository().join("recipes-wasm").join(&self.recipe);
        for path in files_of(&recipe) {
            let name = path.strip_prefix(&recipe).unwrap();
            let text = fs::read_to_string(&path).unwrap();
            put(&directory.join(name), &self.mutate(name, text));
        }
    }

    fn mutate(&self, name: &Path, text: String) -> String {
        if name == Path::new("Cargo.toml") {
            let mut manifest: toml::Table = text.parse().unwrap();
            // Two packages of a workspace cannot have the recipe's name.
            table(&mut manifest, "package").insert("name".to_owned(), self.name.clone().into());
            return manifest.to_string();
        }
        let changes = self.changes().into_iter().filter(|(file, _)| file == name);
        changes.fold(text, |text, (_, patch)| {
            diffy::apply(&text, &patch).unwrap_or_else(|error| {
                panic!(
                    "tests/mutants/{}.patch does not fit recipes-wasm/{}/{} any more: {error}\n\
                     make the mistake it tells of in the recipe as it is now, replace the diff \
                     with that of `git diff -U1 --relative` in the recipe's directory, and undo it",
                    self.name,
                    self.recipe,
                    name.display()
                )
            })
        })
    }

    /// What is changed in which file.
    fn changes(&self) -> Vec<(PathBuf, Patch<'_, str>)> {
        let mut changes = Vec::new();
        for file in PatchSet::parse(&self.patch, ParseOptions::unidiff()) {
            let file = file.unwrap_or_else(|error| panic!("{}: {error}", self.name));
            let FileOperation::Modify { modified, .. } = file.operation().strip_prefix(1) else {
                panic!("{}: it does more than change files", self.name);
            };
            let path = PathBuf::from(modified.as_ref());
            let PatchKind::Text(patch) = file.into_patch() else {
                panic!("{}: it changes what is no text", self.name);
            };
            changes.push((path, patch));
        }
        assert!(!changes.is_empty(), "{}: it changes nothing", self.name);
        changes
    }
}

fn row(mutant: &str, known: &str, fresh: &str, needed: &str) -> String {
    format!("{mutant:<30}  {known:<20}  {fresh:<20}  {needed:>6}")
}

/// What a run broke, the first of it first.
fn broken(verdict: &Verdict) -> String {
    let mut ids: Vec<&str> = Vec::new();
    for violation in &verdict.violations {
        if !ids.contains(&&*violation.invariant) {
            ids.push(&violation.invariant);
        }
    }
    if ids.is_empty() { "nothing".to_owned() } else { ids.join(" ") }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn mutants() -> Vec<Mutant> {
    let patches = files_of(&repository().join("tests/mutants"));
    patches.iter().map(|path| Mutant::read(path)).collect()
}

/// Builds all of them in a workspace of their own, with one cargo invocation. It stays where it is,
/// so that the next time only what has changed is compiled.
fn build(mutants: &[Mutant]) -> Vec<Vec<u8>> {
    let workspace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    let text = |name: &str| fs::read_to_string(repository().join(name)).unwrap();
    let mut manifest: toml::Table = text("Cargo.toml").parse().unwrap();
    let members = ["guest-sdk".to_owned()].into_iter();
    let members =
        members.chain(mutants.iter().map(|mutant| format!("recipes-wasm/{}", mutant.name)));
    let workspace_table = table(&mut manifest, "workspace");
    workspace_table.remove("default-members");
    workspace_table.insert("members".to_owned(), members.collect::<Vec<_>>().into());
    // Two in three minutes of compiling them would be spent on making them small.
    table(table(&mut manifest, "profile"), "guest").insert("lto".to_owned(), false.into());
    put(&workspace.join("Cargo.toml"), &manifest.to_string());
    for name in ["Cargo.lock", "rust-toolchain.toml"] {
        put(&workspace.join(name), &text(name));
    }
    let sdk = repository().join("guest-sdk");
    for path in files_of(&sdk).iter().filter(|path| !path.starts_with(sdk.join("build"))) {
        let name = path.strip_prefix(&sdk).unwrap();
        put(&workspace.join("guest-sdk").join(name), &fs::read_to_string(path).unwrap());
    }
    let mut builder = wok_build::Builder::new(workspace.join("target"));
    for mutant in mutants {
        let directory = workspace.join("recipes-wasm").join(&mutant.name);
        mutant.write(&directory);
        builder = builder.guest(directory);
    }
    let components = builder.build().unwrap_or_else(|error| panic!("mutants: {error}"));
    components.into_iter().map(|component| component.wasm).collect()
}

fn table<'a>(manifest: &'a mut toml::Table, name: &str) -> &'a mut toml::Table {
    manifest.get_mut(name).unwrap().as_table_mut().unwrap()
}

/// The files below a directory, in the order of their paths.
fn files_of(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // A `wok build` of the recipe leaves it there.
            if path.file_name().is_some_and(|name| name != "target") {
                files.extend(files_of(&path));
            }
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Writes a file unless it is there: cargo goes by the times of files.
fn put(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
