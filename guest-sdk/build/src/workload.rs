//! The custom section `wok:workload`: what a recipe's users do in simulation.
//!
//! It is the text of `promise/workload.toml` as its author wrote it, so that an error in it has the
//! line and column that the author sees. Whether it fits the component is for the host to say, which
//! knows the format.

use std::borrow::Cow;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use wasm_encoder::{ComponentSection, CustomSection};

use crate::Error;

/// The section's name.
pub const WORKLOAD_SECTION: &str = "wok:workload";

/// Where a recipe's workload stands in its directory.
pub const WORKLOAD_FILE: &str = "promise/workload.toml";

/// Appends the workload of the recipe in `directory`, if it has one.
///
/// # Errors
/// [`Error::File`] if the file is there and is no text that can be read.
pub(crate) fn append_workload(component: &mut Vec<u8>, directory: &Path) -> Result<(), Error> {
    let path = directory.join(WORKLOAD_FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::File { action: "read", path, source }),
    };
    let data = Cow::Owned(text.into_bytes());
    CustomSection { name: Cow::Borrowed(WORKLOAD_SECTION), data }.append_to_component(component);
    Ok(())
}
