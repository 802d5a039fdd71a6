//! One guest as a component.

use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::WorldKey;

use crate::Error;
use crate::error::causes;

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
        let encode = || ComponentEncoder::default().validate(true).module(module)?.encode();
        let wasm = encode().map_err(|error| Error::Encode {
            package: package.to_owned(),
            reason: causes(&error),
        })?;
        Component::of_component(package, wasm)
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

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What keeps the host from running it, found here because here the author sees it.
fn not_a_recipe(wasm: &[u8]) -> Option<String> {
    let (resolve, world) = match wit_component::decode(wasm) {
        Ok(DecodedWasm::Component(resolve, world)) => (resolve, world),
        Ok(DecodedWasm::WitPackage(..)) => return Some("it holds types and no code".to_owned()),
        Err(error) => return Some(causes(&error)),
    };
    let world = resolve.worlds.get(world)?;
    let foreign: Vec<String> = world
        .imports
        .keys()
        .map(|key| resolve.name_world_key(key))
        .filter(|name| !name.starts_with("wok:recipe/"))
        .collect();
    if !foreign.is_empty() {
        let foreign = foreign.join(", ");
        return Some(format!("it imports {foreign}; a recipe may import wok:recipe/* alone"));
    }
    match world.exports.keys().collect::<Vec<_>>().as_slice() {
        [WorldKey::Interface(_)] => None,
        exports => {
            let names: Vec<String> =
                exports.iter().map(|key| resolve.name_world_key(key)).collect();
            let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            Some(format!("it exports {names}; a recipe exports exactly one interface"))
        }
    }
}
