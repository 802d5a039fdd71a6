//! Recipes in JavaScript: componentize-js, which puts an engine and the sources into a component.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::embed::write;
use crate::wit::Described;
use crate::{Component, Error, compiler};

/// Where npm installs it, from the recipe's directory.
const COMPILER: &str = "node_modules/@bytecodealliance/componentize-js/src/cli.js";

/// All that its engine would import of WASI. It is left out of the component.
const FEATURES: [&str; 5] = ["stdio", "random", "clocks", "http", "fetch-event"];

#[derive(Deserialize)]
struct Manifest {
    main: String,
}

/// Builds the recipe in `directory`. `place` is where what the compiler needs goes.
pub(crate) fn build(
    directory: &Path,
    name: &str,
    place: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Component, Error> {
    let described = Described::in_directory(&directory.join("wit"))?;
    let main = main_of(directory)?;
    if !directory.join(COMPILER).is_file() {
        return Err(missing(name, "componentize-js", directory));
    }
    let wit = place.join("recipe.wit");
    write(&wit, described.text.as_bytes())?;
    let wasm = place.join("component.wasm");
    let mut node = Command::new("node");
    node.current_dir(directory).arg(COMPILER).arg(main).arg("--wit").arg(&wit);
    node.args(["--world-name", &described.world, "--disable"]).args(FEATURES);
    node.arg("--out").arg(&wasm);
    match compiler::run(&mut node, name, progress) {
        Err(Error::Run { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Err(missing(name, "Node.js", directory));
        }
        ran => ran?,
    }
    let wasm =
        fs::read(&wasm).map_err(|source| Error::File { action: "read", path: wasm, source })?;
    Component::of_component(name, wasm)
}

fn missing(name: &str, what: &str, directory: &Path) -> Error {
    Error::NoTools {
        package: name.to_owned(),
        missing: what.to_owned(),
        remedy: format!(
            "install Node.js and npm (on Debian, `apt-get install nodejs npm`), then type `npm ci` \
             in {}",
            directory.display()
        ),
    }
}

/// The file that exports the recipe's interface.
fn main_of(directory: &Path) -> Result<String, Error> {
    let path = directory.join("package.json");
    let text = fs::read_to_string(&path).map_err(|source| Error::File {
        action: "read",
        path: path.clone(),
        source,
    })?;
    match serde_json::from_str(&text) {
        Ok(Manifest { main }) => Ok(main),
        Err(error) => Err(Error::NoRecipe {
            path: directory.to_owned(),
            reason: format!("package.json: {error}"),
        }),
    }
}
