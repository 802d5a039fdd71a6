//! Recipes in C: clang with wasi-libc, and bindings made of the WIT.
//!
//! Of wasi-libc only that is of use which asks nothing of a system: memory, strings, arithmetic.
//! What would (files, clocks, `printf` to a terminal) becomes an import that no recipe may have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

use crate::embed::write;
use crate::error::causes;
use crate::language::c_sources;
use crate::wit::Described;
use crate::{Component, Error, compiler};

const COMPILER: &str = "clang";

/// wasi-libc's target. Its code starts at the first call, as a library's does, and not at `main`.
const TARGET: [&str; 2] = ["--target=wasm32-wasi", "-mexec-model=reactor"];

/// Optimized for size, as recipes in Rust are.
const FLAGS: [&str; 3] = ["-Os", "-Wall", "-Wextra"];

/// The stack is as large as a recipe in Rust has it, and below the data, so that an overflow is a trap
/// instead of a change of the data.
const LINKING: [&str; 3] = ["-Wl,--stack-first", "-Wl,-z,stack-size=1048576", "-Wl,--strip-all"];

/// What compiling and linking takes beside clang: the question to clang that answers with the file's
/// path, and Debian's package. What clang does not find it answers without a directory.
const PARTS: [(&str, &str, &str); 3] = [
    ("the linker wasm-ld", "-print-prog-name=wasm-ld", "lld"),
    ("wasi-libc", "-print-file-name=crt1-reactor.o", "wasi-libc"),
    ("the runtime of clang", "-print-libgcc-file-name", "libclang-rt-dev-wasm32"),
];

/// Compiles the recipe in `directory`. `place` is where the bindings and the module go.
pub(crate) fn build(
    directory: &Path,
    name: &str,
    place: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Component, Error> {
    let described = Described::in_directory(&directory.join("wit"))?;
    look_for_tools(name)?;
    let bindings = place.join("bindings");
    let generated = write_bindings(&described, &bindings)?;
    let module = place.join("module.wasm");
    let mut clang = Command::new(COMPILER);
    // In the recipe's directory and with paths from there: none of this machine is in the module.
    clang.current_dir(directory).args(TARGET).args(FLAGS).arg("-I").arg(&bindings);
    clang.args(c_sources(directory)?).args(generated).args(LINKING).arg("-o").arg(&module);
    compiler::run(&mut clang, name, progress)?;
    let module =
        fs::read(&module).map_err(|source| Error::File { action: "read", path: module, source })?;
    Component::of_module(name, &module)
}

/// Writes the header, its implementation and the object that holds the component's type. Answers
/// which of them are compiled and linked.
fn write_bindings(described: &Described, directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let error = |reason| Error::Wit { place: "bindings for C".to_owned(), reason };
    // The generator has a WIT parser of another version than the rest, so that it reads the text.
    let mut resolve = Resolve::default();
    let world = resolve
        .push_str("recipe.wit", &described.text)
        .and_then(|package| resolve.select_world(&[package], Some(&described.world)))
        .map_err(|failure| error(causes(&failure)))?;
    let mut files = Files::default();
    let mut generator = wit_bindgen_c::Opts::default().build();
    generator
        .generate(&mut resolve, world, &mut files)
        .map_err(|failure| error(causes(&failure)))?;
    fs::create_dir_all(directory).map_err(|source| Error::File {
        action: "make",
        path: directory.to_owned(),
        source,
    })?;
    let mut written = Vec::new();
    for (name, contents) in files.iter() {
        let path = directory.join(name);
        write(&path, contents)?;
        written.push(path);
    }
    remove_older(directory, &written)?;
    written.retain(|path| path.extension().is_some_and(|extension| extension != "h"));
    Ok(written)
}

/// Removes what builds before this one have written there: an `#include` would still find the
/// header of a world that has another name by now. What is no file of such a kind is left alone.
fn remove_older(directory: &Path, written: &[PathBuf]) -> Result<(), Error> {
    let list = |source| Error::File { action: "list", path: directory.to_owned(), source };
    for entry in fs::read_dir(directory).map_err(list)? {
        let entry = entry.map_err(list)?;
        let path = entry.path();
        let is_binding = path.extension().is_some_and(|it| it == "h" || it == "c" || it == "o");
        let is_file = entry.file_type().map_err(list)?.is_file();
        if is_file && is_binding && !written.contains(&path) {
            fs::remove_file(&path).map_err(|source| Error::File {
                action: "remove",
                path,
                source,
            })?;
        }
    }
    Ok(())
}

fn look_for_tools(name: &str) -> Result<(), Error> {
    let mut missing = Vec::new();
    for (what, question, package) in PARTS {
        match find(question) {
            Ok(true) => {}
            Ok(false) => missing.push((what, package)),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                missing = vec![("clang", "clang")];
                missing.extend(PARTS.map(|(what, _, package)| (what, package)));
                break;
            }
            Err(source) => return Err(Error::Run { program: COMPILER.into(), source }),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let (missing, packages): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
    Err(Error::NoTools {
        package: name.to_owned(),
        missing: missing.join(", "),
        remedy: format!("on Debian, `apt-get install {}`", packages.join(" ")),
    })
}

/// Whether clang finds a file.
fn find(question: &str) -> std::io::Result<bool> {
    let output = Command::new(COMPILER).args(TARGET).arg(question).stdin(Stdio::null()).output()?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    Ok(path.is_absolute() && path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(world: &str) -> Described {
        let text = format!(
            "package my:recipe;\n\
             interface mine {{ twice: func(number: u32) -> u32; }}\n\
             world {world} {{ export mine; }}\n"
        );
        Described { world: world.to_owned(), text }
    }

    #[test]
    fn the_bindings_of_a_world_go_when_it_has_another_name() {
        let place = tempfile::tempdir().unwrap();
        let bindings = place.path().join("bindings");
        let files = || {
            let entries = fs::read_dir(&bindings).unwrap();
            let names = entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        };
        write_bindings(&described("recipe"), &bindings).unwrap();
        assert_eq!(files(), ["recipe.c", "recipe.h", "recipe_component_type.o"]);

        // What no build has made stays: an editor's file, and what stands beside the bindings.
        let flags = bindings.join("compile_flags.txt");
        let beside = place.path().join("beside.h");
        fs::write(&flags, "").unwrap();
        fs::write(&beside, "").unwrap();
        let compiled = write_bindings(&described("other"), &bindings).unwrap();
        let made = ["compile_flags.txt", "other.c", "other.h", "other_component_type.o"];
        assert_eq!(files(), made);
        assert!(beside.is_file());
        let mut names: Vec<_> = compiled.iter().filter_map(|path| path.file_name()).collect();
        names.sort();
        assert_eq!(names, ["other.c", "other_component_type.o"]);
    }
}
