//! One guest as a component.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use wasm_encoder::{ComponentSection, CustomSection};
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::WorldKey;

use crate::Error;
use crate::error::causes;

/// The custom section in which a recipe carries the judge of its promise along.
pub const JUDGE_SECTION: &str = "wok:judge";

/// A component that wok can run.
#[derive(Clone, Debug)]
pub struct Component {
    /// The name of the recipe's directory: a stock recipe is known by it.
    pub name: String,
    /// The name of the crate's package; of other languages, the directory's too.
    pub package: String,
    /// The component, with its documented WIT appended.
    pub wasm: Vec<u8>,
}

impl Component {
    /// Makes a component of a module and checks that it could be a recipe.
    pub(crate) fn of_module(package: &str, module: &[u8]) -> Result<Self, Error> {
        Component::of_component(package, encoded(package, module)?)
    }

    /// Makes a component of a module and checks that it could be a judge.
    pub(crate) fn judge_of_module(package: &str, module: &[u8]) -> Result<Self, Error> {
        let wasm = encoded(package, module)?;
        match not_a_judge(&wasm) {
            None => Ok(Component { name: package.to_owned(), package: package.to_owned(), wasm }),
            Some(reason) => Err(Error::NotAJudge { package: package.to_owned(), reason }),
        }
    }

    /// Has the recipe carry the judge of its promise along, as the custom section [`JUDGE_SECTION`].
    pub fn carry_judge(&mut self, judge: &Component) {
        let data = Cow::Borrowed(judge.wasm.as_slice());
        let section = CustomSection { name: Cow::Borrowed(JUDGE_SECTION), data };
        section.append_to_component(&mut self.wasm);
    }

    /// Checks that a component could be a recipe.
    pub(crate) fn of_component(package: &str, wasm: Vec<u8>) -> Result<Self, Error> {
        match not_a_recipe(&wasm) {
            None => Ok(Component { name: package.to_owned(), package: package.to_owned(), wasm }),
            Some(reason) => Err(Error::NotARecipe { package: package.to_owned(), reason }),
        }
    }

    /// Its digest in hexadecimal, as a config's `sha256` pins it.
    pub fn sha256(&self) -> String {
        hexadecimal(&Sha256::digest(&self.wasm))
    }

    /// Writes it to a file.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        fs::write(path, &self.wasm).map_err(|source| Error::File {
            action: "write",
            path: path.to_owned(),
            source,
        })
    }
}

fn encoded(package: &str, module: &[u8]) -> Result<Vec<u8>, Error> {
    let encode = || ComponentEncoder::default().validate(true).module(module)?.encode();
    encode().map_err(|error| Error::Encode { package: package.to_owned(), reason: causes(&error) })
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The names of what a component imports and exports.
struct Surface {
    imports: Vec<String>,
    exports: Vec<String>,
    /// Whether each export is an interface.
    is_interfaces: bool,
}

impl Surface {
    fn of(wasm: &[u8]) -> Result<Self, String> {
        let (resolve, world) = match wit_component::decode(wasm) {
            Ok(DecodedWasm::Component(resolve, world)) => (resolve, world),
            Ok(DecodedWasm::WitPackage(..)) => return Err("it holds types and no code".to_owned()),
            Err(error) => return Err(causes(&error)),
        };
        let world = resolve.worlds.get(world).ok_or("it has no world")?;
        let name = |key: &WorldKey| resolve.name_world_key(key);
        Ok(Surface {
            imports: world.imports.keys().map(name).collect(),
            exports: world.exports.keys().map(name).collect(),
            is_interfaces: world.exports.keys().all(|it| matches!(it, WorldKey::Interface(_))),
        })
    }

    /// What it imports that does not begin like that.
    fn foreign(&self, allowed: &str) -> Option<String> {
        let foreign: Vec<&str> =
            self.imports.iter().map(String::as_str).filter(|it| !it.starts_with(allowed)).collect();
        (!foreign.is_empty()).then(|| foreign.join(", "))
    }

    fn exported(&self) -> String {
        if self.exports.is_empty() { "nothing".to_owned() } else { self.exports.join(", ") }
    }
}

/// What keeps the host from running it, found here because here the author sees it.
fn not_a_recipe(wasm: &[u8]) -> Option<String> {
    let surface = match Surface::of(wasm) {
        Ok(surface) => surface,
        Err(reason) => return Some(reason),
    };
    if let Some(foreign) = surface.foreign("wok:recipe/") {
        return Some(format!("it imports {foreign}; a recipe may import wok:recipe/* alone"));
    }
    if surface.exports.len() == 1 && surface.is_interfaces {
        return None;
    }
    let exported = surface.exported();
    Some(format!("it exports {exported}; a recipe exports exactly one interface"))
}

/// What keeps the host from asking it for a verdict.
fn not_a_judge(wasm: &[u8]) -> Option<String> {
    let surface = match Surface::of(wasm) {
        Ok(surface) => surface,
        Err(reason) => return Some(reason),
    };
    // Types are imported, too, and ask for nothing.
    if let Some(foreign) = surface.foreign("wok:judge/history@") {
        return Some(format!("it imports {foreign}; a judge imports nothing"));
    }
    match surface.exports.as_slice() {
        [only] if only.starts_with("wok:judge/judge@") => None,
        _ => Some(format!("it exports {}; a judge exports wok:judge/judge", surface.exported())),
    }
}
