//! From recipes to components.

use std::collections::BTreeMap;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::cargo::{self, Package, Workspace};
use crate::component::hexadecimal;
use crate::language::Language;
use crate::place::Place;
use crate::wit::resolve;
use crate::workload::append_workload;
use crate::{Component, Error, Toolchain, append_wit, c, javascript};

/// Builds recipes, and judges of what they promise.
pub struct Builder<'a> {
    guests: Vec<PathBuf>,
    judges: Vec<PathBuf>,
    target_dir: PathBuf,
    progress: Box<dyn FnMut(&str) + 'a>,
}

impl<'a> Builder<'a> {
    /// A builder whose compilers work below `target_dir`. Never the outer cargo's: it holds the lock.
    pub fn new(target_dir: impl Into<PathBuf>) -> Self {
        let (guests, judges) = (Vec::new(), Vec::new());
        Builder { guests, judges, target_dir: target_dir.into(), progress: Box::new(|_| {}) }
    }

    /// Adds the recipe in this directory: a crate, sources in C, or a package of npm's.
    #[must_use]
    pub fn guest(mut self, directory: impl Into<PathBuf>) -> Self {
        self.guests.push(directory.into());
        self
    }

    /// Adds every crate directly below this directory, in the order of their names.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn guests_in(mut self, directory: impl AsRef<Path>) -> Result<Self, Error> {
        self.guests.extend(crates_in(directory.as_ref())?);
        Ok(self)
    }

    /// Adds the judge of a promise: the crate in this directory.
    #[must_use]
    pub fn judge(mut self, directory: impl Into<PathBuf>) -> Self {
        self.judges.push(directory.into());
        self
    }

    /// Hears every line of a compiler's progress and every warning; errors are in [`Error::Compile`].
    #[must_use]
    pub fn progress(mut self, progress: impl FnMut(&str) + 'a) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Builds all of them, the crates with one cargo invocation per workspace. The components come in
    /// the order the guests were added, and then the judges in theirs.
    ///
    /// # Errors
    /// The first guest that fails, or a toolchain that is missing.
    pub fn build(mut self) -> Result<Vec<Component>, Error> {
        let guests = mem::take(&mut self.guests);
        let languages =
            guests.iter().map(|guest| Language::of(guest)).collect::<Result<Vec<_>, _>>()?;
        let is_crate = |(guest, language): (&PathBuf, &Language)| {
            (*language == Language::Rust).then(|| guest.clone())
        };
        let crates = guests.iter().zip(&languages).filter_map(is_crate);
        let crates = crates.map(|guest| (guest, Kind::Recipe));
        let judges = mem::take(&mut self.judges).into_iter().map(|judge| (judge, Kind::Judge));
        let crates: Vec<_> = crates.chain(judges).collect();
        let mut crates = self.build_crates(&crates)?.into_iter();

        let mut components = Vec::new();
        for (guest, language) in guests.iter().zip(languages) {
            match language {
                // As many were built as there are.
                Language::Rust => components.extend(crates.next()),
                Language::C => components.push(self.build_other(guest, c::build)?),
                Language::JavaScript => {
                    components.push(self.build_other(guest, javascript::build)?);
                }
            }
        }
        components.extend(crates);
        Ok(components)
    }

    fn build_crates(&mut self, crates: &[(PathBuf, Kind)]) -> Result<Vec<Component>, Error> {
        let manifest = |(directory, kind): &(PathBuf, Kind)| Ok((manifest_of(directory)?, *kind));
        let manifests = crates.iter().map(manifest).collect::<Result<Vec<_>, Error>>()?;
        let Some((first, _)) = crates.first() else {
            return Ok(Vec::new());
        };
        let workspaces = by_workspace(manifests.iter().map(|(manifest, _)| manifest))?;
        let kind_of = |package: &Package| {
            let kind = manifests.iter().find(|(manifest, _)| *manifest == package.manifest);
            kind.map_or(Kind::Recipe, |(_, kind)| *kind)
        };
        for package in workspaces.iter().flat_map(|(_, packages)| packages) {
            check(package, kind_of(package))?;
        }
        let toolchain = Toolchain::find(first)?;

        let mut place = Place::enter(&absolute(&self.target_dir)?, &mut self.progress)?;
        let mut components = BTreeMap::new();
        for (workspace, packages) in workspaces {
            let directory = place.prepare(&workspace)?;
            let built = cargo::build(
                &workspace.root,
                &packages,
                directory,
                &toolchain,
                &mut self.progress,
            )?;
            for package in packages {
                let module = built.iter().find(|built| built.manifest == package.manifest);
                let module = module.ok_or_else(|| Error::Cargo {
                    manifest: package.manifest.clone(),
                    reason: "cargo tells of no module that it made".to_owned(),
                })?;
                let kind = kind_of(&package);
                let component = component(&package, kind, &module.module)?;
                components.insert(package.manifest, component);
            }
        }
        Ok(manifests.iter().filter_map(|(manifest, _)| components.get(manifest).cloned()).collect())
    }

    /// Builds a recipe that is no crate, with the compiler of its language.
    fn build_other(&mut self, directory: &Path, compile: Compile) -> Result<Component, Error> {
        let directory = directory.canonicalize().map_err(|source| Error::File {
            action: "resolve",
            path: directory.to_owned(),
            source,
        })?;
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = absolute(&self.target_dir)?.join(directory_of(&directory));
        fs::create_dir_all(&place).map_err(|source| Error::File {
            action: "make",
            path: place.clone(),
            source,
        })?;
        let mut component = compile(&directory, &name, &place, &mut self.progress)?;
        append_wit(&mut component.wasm, &directory.join("wit"))?;
        append_workload(&mut component.wasm, &directory)?;
        Ok(component)
    }
}

/// From a recipe's directory and name, a place to work in and who hears of the progress.
type Compile = fn(&Path, &str, &Path, &mut dyn FnMut(&str)) -> Result<Component, Error>;

/// What a crate is to become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Recipe,
    /// The judge of a promise. Its WIT is that of every judge.
    Judge,
}

/// Finds before the compiler starts what only its output would show otherwise: it takes a minute.
fn check(package: &Package, kind: Kind) -> Result<(), Error> {
    let wit = directory(&package.manifest).join("wit");
    let reason = if !package.makes_module {
        "its Cargo.toml has no `[lib] crate-type = [\"cdylib\"]`"
    } else if kind == Kind::Judge {
        return Ok(());
    } else if !wit.is_dir() {
        "it has no directory `wit` that describes its interface"
    } else {
        return resolve(&wit).map(drop);
    };
    let path = directory(&package.manifest).to_owned();
    Err(Error::NoRecipe { path, reason: reason.to_owned() })
}

fn directory(manifest: &Path) -> &Path {
    manifest.parent().unwrap_or(Path::new("."))
}

/// The name of the directory in which the compiler of another language works on a recipe.
fn directory_of(recipe: &Path) -> String {
    hexadecimal(&Sha256::digest(recipe.as_os_str().as_encoded_bytes())).chars().take(16).collect()
}

fn component(package: &Package, kind: Kind, module: &Path) -> Result<Component, Error> {
    let directory = directory(&package.manifest);
    let package = &package.name;
    let module = fs::read(module).map_err(|source| Error::File {
        action: "read",
        path: module.to_owned(),
        source,
    })?;
    let mut component = match kind {
        Kind::Recipe => {
            let mut component = Component::of_module(package, &module)?;
            append_wit(&mut component.wasm, &directory.join("wit"))?;
            append_workload(&mut component.wasm, directory)?;
            component
        }
        Kind::Judge => Component::judge_of_module(package, &module)?,
    };
    component.name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(component)
}

/// The crates directly below a directory.
pub(crate) fn crates_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let error = |source| Error::File { action: "list", path: directory.to_owned(), source };
    let mut crates = Vec::new();
    for entry in fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.join("Cargo.toml").is_file() {
            crates.push(path);
        }
    }
    crates.sort();
    Ok(crates)
}

/// The packages to build, with the workspaces that they belong to.
fn by_workspace<'a>(
    manifests: impl Iterator<Item = &'a PathBuf>,
) -> Result<Vec<(Workspace, Vec<Package>)>, Error> {
    let mut wanted: Vec<(Workspace, Vec<Package>)> = Vec::new();
    for manifest in manifests {
        let find = |workspace: &Workspace| {
            workspace.packages.iter().find(|package| package.manifest == *manifest).cloned()
        };
        let known = wanted.iter_mut().find_map(|(workspace, packages)| {
            find(workspace).map(|package| packages.push(package))
        });
        if known.is_some() {
            continue;
        }
        let workspace = cargo::workspace_of(manifest)?;
        let package = find(&workspace).ok_or_else(|| Error::Cargo {
            manifest: manifest.clone(),
            reason: "it is no package: give the directory of one".to_owned(),
        })?;
        wanted.push((workspace, vec![package]));
    }
    Ok(wanted)
}

fn manifest_of(directory: &Path) -> Result<PathBuf, Error> {
    let manifest = directory.join("Cargo.toml");
    manifest.canonicalize().map_err(|error| Error::NoRecipe {
        path: directory.to_owned(),
        reason: format!("Cargo.toml: {error}"),
    })
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|source| Error::File {
        action: "resolve",
        path: path.to_owned(),
        source,
    })
}
