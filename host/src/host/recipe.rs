//! A named use of a module.

use std::path::PathBuf;

use serde_json::Value;

use super::builder::OpenError;
use crate::base::{Base, owner};
use crate::config::{Limits, MountPath, RecipeName};
use crate::guest::Mount;
use crate::modules::ModuleSource;
use crate::participant::Join;
use crate::znode_path::ZnodePath;

/// A named use of a module, as `[recipes.<name>]` is in a config file.
#[derive(Debug, Clone)]
pub struct Recipe {
    module: ModuleSource,
    mount: String,
    config: Option<Value>,
    limits: Limits,
    sha256: Option<[u8; 32]>,
    owner: Option<String>,
}

impl Recipe {
    /// A module on a part of the tree: a stock recipe's name, or a path to a `.wasm` file; and the znode
    /// that it sees as `/`.
    pub fn new(module: &str, mount: impl Into<String>) -> Self {
        Recipe::of(ModuleSource::parse(module), mount.into())
    }

    /// A component in a file, whatever the file's name.
    pub fn from_file(path: impl Into<PathBuf>, mount: impl Into<String>) -> Self {
        Recipe::of(ModuleSource::File(path.into()), mount.into())
    }

    fn of(module: ModuleSource, mount: String) -> Self {
        let (config, limits, sha256, owner) = (None, Limits::default(), None, None);
        Recipe { module, mount, config, limits, sha256, owner }
    }

    /// With the module's own configuration, a JSON object.
    #[must_use]
    pub fn config(self, config: impl Into<Value>) -> Self {
        Recipe { config: Some(config.into()), ..self }
    }

    /// With these limits for each participant.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Recipe { limits, ..self }
    }

    /// Only if the module has this digest.
    #[must_use]
    pub fn pinned(self, sha256: [u8; 32]) -> Self {
        Recipe { sha256: Some(sha256), ..self }
    }

    /// What other contenders are told of who takes part; the recipe, the machine and the process if
    /// nothing is said.
    #[must_use]
    pub fn owner(self, owner: impl Into<String>) -> Self {
        Recipe { owner: Some(owner.into()), ..self }
    }

    pub(super) fn memory(&self) -> u64 {
        self.limits.memory
    }

    /// Loads the module and checks what it is given.
    pub(super) fn load(self, name: &str, base: &Base) -> Result<Join, OpenError> {
        let recipe = || name.to_owned();
        let wrong = |what: &str| {
            let what = format!("{what} of the recipe {name:?}");
            move |source| OpenError::Setting { what, source }
        };
        RecipeName::parse(name).map_err(wrong("name"))?;
        let limits = self.limits.check().map_err(wrong("limits"))?;
        let mount = MountPath::parse(&self.mount, &ZnodePath::root())
            .map_err(|source| OpenError::Mount { recipe: recipe(), mount: self.mount, source })?;
        let module = base
            .load(&self.module, self.sha256.as_ref())
            .map_err(|source| OpenError::Module { recipe: recipe(), source })?;
        let config = module
            .configuration(self.config.as_ref())
            .map_err(|source| OpenError::Config { recipe: recipe(), source })?;
        Ok(Join {
            recipe: recipe(),
            module,
            mount: Mount::from(mount.path().clone()),
            config,
            limits: limits.of_guest(),
            seat: limits.of_seat(),
            owner: self.owner.unwrap_or_else(|| owner(name)),
            witness: None,
        })
    }
}
