//! The custom section `wok:wit`: a recipe's WIT with its documentation.
//!
//! A component carries its types, but no docs. So the recipe's own WIT package is appended in the
//! binary form that WIT tools share (`wit_component::encode`): a component of types whose section
//! `package-docs` holds the docs. The section is a hint for people and schemas: who reads it checks
//! it against the component's types first, since anybody can write one.

use std::borrow::Cow;
use std::path::Path;

use wasm_encoder::{ComponentSection, CustomSection};
use wasmparser::{Parser, Payload};
use wit_component::{DecodedWasm, WitPrinter};
use wit_parser::{PackageId, Resolve};

use crate::error::causes;
use crate::{CONTRACT, Error};

/// The section's name.
pub const WIT_SECTION: &str = "wok:wit";

/// A recipe's WIT, documented.
#[derive(Debug)]
pub struct Wit {
    /// Everything the package names, itself included.
    pub resolve: Resolve,
    /// The recipe's own package.
    pub package: PackageId,
}

/// Appends the WIT package in `directory`, resolved against the contract.
///
/// # Errors
/// [`Error::Wit`] with the parser's own words and places.
pub fn append_wit(component: &mut Vec<u8>, directory: &Path) -> Result<(), Error> {
    let Wit { resolve, package } = resolve(directory)?;
    let encoded =
        wit_component::encode(&resolve, package).map_err(|error| malformed(directory, &error))?;
    let section = CustomSection { name: Cow::Borrowed(WIT_SECTION), data: Cow::Owned(encoded) };
    section.append_to_component(component);
    Ok(())
}

/// The WIT package in `directory`, resolved against the contract.
///
/// # Errors
/// [`Error::Wit`] with the parser's own words and places.
pub(crate) fn resolve(directory: &Path) -> Result<Wit, Error> {
    let mut resolve = Resolve::default();
    let contract = resolve.push_str("wok:recipe", CONTRACT);
    match contract.and_then(|_| resolve.push_dir(directory)) {
        Ok((package, _)) => Ok(Wit { resolve, package }),
        // Only who has read the sources knows the lines.
        Err(error) => Err(malformed(directory, &resolve.render_error(&error))),
    }
}

/// A recipe's WIT for the compilers of other languages.
pub(crate) struct Described {
    /// The name of the recipe's world.
    pub(crate) world: String,
    /// The recipe's package and all that it uses, the contract included, in one text.
    pub(crate) text: String,
}

impl Described {
    /// The WIT package in `directory`, which must have exactly one world.
    ///
    /// # Errors
    /// [`Error::Wit`] with the parser's own words and places.
    pub(crate) fn in_directory(directory: &Path) -> Result<Self, Error> {
        let Wit { resolve, package } = resolve(directory)?;
        let world =
            resolve.select_world(&[package], None).map_err(|error| malformed(directory, &error))?;
        let used: Vec<_> =
            resolve.packages.iter().map(|(id, _)| id).filter(|id| *id != package).collect();
        let mut printer = WitPrinter::default();
        printer.print(&resolve, package, &used).map_err(|error| malformed(directory, &error))?;
        let world = resolve.worlds.get(world).map(|world| world.name.clone()).unwrap_or_default();
        Ok(Described { world, text: printer.output.to_string() })
    }
}

fn malformed(directory: &Path, error: &impl std::fmt::Display) -> Error {
    Error::Wit { place: directory.display().to_string(), reason: causes(error) }
}

/// Reads the WIT back; none if the component brings none.
///
/// # Errors
/// [`Error::Wit`] if the component or the section is malformed.
pub fn wit_of(component: &[u8]) -> Result<Option<Wit>, Error> {
    let error = |reason| Error::Wit { place: format!("section {WIT_SECTION}"), reason };
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(|failure| error(causes(&failure)))? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            // Only the outermost component's own: a nested one is somebody else's.
            Payload::CustomSection(section) if depth == 0 && section.name() == WIT_SECTION => {
                let decoded = wit_component::decode(section.data());
                return match decoded.map_err(|failure| error(causes(&failure)))? {
                    DecodedWasm::WitPackage(resolve, package) => Ok(Some(Wit { resolve, package })),
                    DecodedWasm::Component(..) => Err(error("it holds code".to_owned())),
                };
            }
            _ => {}
        }
    }
    Ok(None)
}
