//! Recipe modules: compiled, checked and ready to be started.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use wasmtime::ResourcesRequired;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Val};

use super::binary::{is_judge, no_component};
use super::engine::Engine;
use super::interface::{Interface, Parameter};
use super::module_error::ModuleError;
use super::reflect::{self, Unfit};
use super::state::State;
use super::value_type::{RecordType, ValueType};
use super::values::{self, Segment, ValueError, ValueErrors};
use super::wit_docs;
use crate::digest::hex;
use crate::near::near;
use crate::session::Kin;

/// The versions of the contract that this host serves.
const SERVED: &[&str] = &["0.1.0"];

/// The package of the contract.
const CONTRACT: &str = "wok:recipe/";

/// A recipe's component, compiled and checked. Clones are the same module.
#[derive(Clone)]
pub struct Module {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    interface: Interface,
    imports: Vec<String>,
    digest: String,
    kin: Kin,
    size: usize,
    engine: Engine,
    pre: InstancePre<State>,
    functions: BTreeMap<String, Arc<Function>>,
}

/// What of a component can be called: an operation, or one of the reserved functions.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) index: ComponentExportIndex,
    /// What it answers, if anything.
    pub(super) result: Option<ValueType>,
}

/// Checked arguments of one operation of one module.
#[derive(Debug, Clone)]
pub struct Arguments {
    pub(super) function: Arc<Function>,
    pub(super) values: Arc<[Val]>,
}

impl Arguments {
    /// The operation they are for.
    pub fn operation(&self) -> &str {
        &self.function.name
    }
}

/// A checked config of one module.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// None for a module that has no `configure`.
    pub(super) value: Option<Val>,
}

impl Module {
    /// Largest module: compiling takes memory and time in proportion.
    pub(crate) const MAX_BYTES: usize = 32 << 20;

    /// Compiles and checks a component. Takes up to seconds of processor time where it is not in
    /// the compile cache, so not on a thread that others wait for.
    ///
    /// # Errors
    /// The bytes are no recipe for this host; the error names the item and the remedy.
    pub fn load(engine: &Engine, name: &str, bytes: &[u8]) -> Result<Self, ModuleError> {
        let loading = Loading { engine, name };
        loading.check_binary(bytes)?;
        let component = Component::from_binary(engine.wasmtime(), bytes)
            .map_err(|source| ModuleError::Invalid { module: name.to_owned(), source })?;
        loading.check_kind(&component)?;
        let imports = loading.imports(&component)?;
        loading.check_memories(&component)?;
        let pre = engine
            .linker()
            .instantiate_pre(&component)
            .map_err(|source| ModuleError::Contract { module: name.to_owned(), source })?;
        let interface = wit_docs::documented(bytes, loading.interface(&component)?);
        let functions = functions(&component, &interface);
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let inner = Inner {
            name: name.to_owned(),
            interface,
            imports,
            digest: hex(&digest),
            kin: Kin::of(&digest),
            size: bytes.len(),
            engine: engine.clone(),
            pre,
            functions,
        };
        Ok(Module { inner: Arc::new(inner) })
    }

    /// The name it was loaded under.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What it offers.
    pub fn interface(&self) -> &Interface {
        &self.inner.interface
    }

    /// The interfaces of the contract that it imports, in the component's order.
    pub fn imports(&self) -> &[String] {
        &self.inner.imports
    }

    /// The version of the contract that it was built for; none if it imports nothing.
    pub fn contract_version(&self) -> Option<&str> {
        self.imports().first().and_then(|import| version_of(import))
    }

    /// The SHA-256 of its bytes, in lowercase hexadecimal.
    pub fn digest(&self) -> &str {
        &self.inner.digest
    }

    /// Those whose claims its participants rely on: of the very same component.
    pub(crate) fn kin(&self) -> Kin {
        self.inner.kin
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.inner.size
    }

    /// Checks the body of a call against an operation. Null is as an empty object.
    ///
    /// # Errors
    /// There is no such operation, or the arguments are not of its types; all that is wrong is
    /// told.
    pub fn arguments(&self, operation: &str, body: &Value) -> Result<Arguments, ValueErrors> {
        let known = self.interface().operation(operation).zip(self.function(operation));
        let Some((found, function)) = known else {
            let names = self.interface().operations.iter().map(|known| known.name.as_str());
            let hint = near(operation, names.clone())
                .map(|near| format!("; did you mean {near}?"))
                .unwrap_or_else(|| format!("; there are {}", names.collect::<Vec<_>>().join(", ")));
            let problem = format!("{} has no operation {operation}{hint}", self.name());
            return Err(ValueError::at_top(problem).into());
        };
        let empty = empty();
        let body = if body.is_null() { &empty } else { body };
        let values = match found.body() {
            Some(record) => vec![values::read_record(record, body)?],
            None => {
                let parameters = found.parameters.iter();
                let fields = parameters.map(|Parameter { name, ty }| (name.as_str(), ty));
                values::read_fields(fields, body)?
            }
        };
        Ok(Arguments { function: Arc::clone(function), values: values.into() })
    }

    /// Checks a config against the module's `configure`. None is as an empty object. The errors'
    /// paths start with `config`.
    ///
    /// # Errors
    /// The config is not of the module's type, or the module takes none; all that is wrong is told.
    pub fn configuration(&self, config: Option<&Value>) -> Result<Configuration, ValueErrors> {
        let read = match (&self.interface().configure, config) {
            (Some(record), Some(config)) => values::read_record(record, config).map(Some),
            (Some(record), None) => values::read_record(record, &empty()).map(Some),
            (None, None) => Ok(None),
            (None, Some(config)) if *config == empty() => Ok(None),
            (None, Some(_)) => {
                Err(ValueError::at_top(format!("{} takes no config", self.name())).into())
            }
        };
        read.map(|value| Configuration { value })
            .map_err(|errors| errors.under(&Segment::Key("config".to_owned())))
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(super) fn pre(&self) -> &InstancePre<State> {
        &self.inner.pre
    }

    pub(super) fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.inner.functions.get(name)
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Module")
            .field("name", &self.inner.name)
            .field("digest", &self.inner.digest)
            .finish_non_exhaustive()
    }
}

fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

/// The version in an import's name.
fn version_of(import: &str) -> Option<&str> {
    import.split_once('@').map(|(_, version)| version)
}

/// The interface's functions, by name.
fn functions(component: &Component, interface: &Interface) -> BTreeMap<String, Arc<Function>> {
    let names = interface.operations.iter().map(|operation| operation.name.as_str());
    let reserved = [
        interface.configure.as_ref().map(|_: &RecordType| "configure"),
        interface.has_wake.then_some("wake"),
    ];
    let Some(instance) = component.get_export_index(None, &interface.name) else {
        return BTreeMap::new();
    };
    let function = |name: &str| {
        Some(Function {
            name: name.to_owned(),
            index: component.get_export_index(Some(&instance), name)?,
            result: interface.result_of(name).cloned(),
        })
    };
    names
        .chain(reserved.into_iter().flatten())
        .filter_map(|name| Some((name.to_owned(), Arc::new(function(name)?))))
        .collect()
}

/// A module while it is checked.
struct Loading<'a> {
    engine: &'a Engine,
    name: &'a str,
}

impl Loading<'_> {
    fn check_binary(&self, bytes: &[u8]) -> Result<(), ModuleError> {
        match no_component(bytes, Module::MAX_BYTES, "wok build") {
            Some(problem) => Err(self.no_recipe(problem)),
            None => Ok(()),
        }
    }

    fn check_kind(&self, component: &Component) -> Result<(), ModuleError> {
        match is_judge(component, self.engine.wasmtime()) {
            true => Err(self.no_recipe(
                "the judge of a promise, and no recipe: `wok test` takes it with --judge"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn no_recipe(&self, problem: String) -> ModuleError {
        ModuleError::NotComponent { module: self.name.to_owned(), problem }
    }

    fn check_memories(&self, component: &Component) -> Result<(), ModuleError> {
        // None where core modules are imported, which is refused as any foreign import.
        match component.resources_required() {
            Some(ResourcesRequired { num_memories: memories @ 2.., .. }) => {
                Err(ModuleError::Memories { module: self.name.to_owned(), memories })
            }
            _ => Ok(()),
        }
    }

    fn imports(&self, component: &Component) -> Result<Vec<String>, ModuleError> {
        let types = component.component_type();
        let mut foreign = Vec::new();
        let mut imports = Vec::new();
        for (import, _) in types.imports(self.engine.wasmtime()) {
            if !import.starts_with(CONTRACT) {
                foreign.push(import);
                continue;
            }
            let built_for = version_of(import).unwrap_or("no version");
            if !SERVED.contains(&built_for) {
                return Err(ModuleError::WrongContract {
                    module: self.name.to_owned(),
                    import: import.to_owned(),
                    built_for: built_for.to_owned(),
                    served: SERVED.join(", "),
                });
            }
            imports.push(import.to_owned());
        }
        if foreign.is_empty() {
            return Ok(imports);
        }
        let imports = foreign.join(", ");
        Err(ModuleError::ForeignImports { module: self.name.to_owned(), imports })
    }

    fn interface(&self, component: &Component) -> Result<Interface, ModuleError> {
        let exports = |problem| Err(ModuleError::Exports { module: self.name.to_owned(), problem });
        let types = component.component_type();
        let mut instances = Vec::new();
        let mut others = Vec::new();
        for (name, export) in types.exports(self.engine.wasmtime()) {
            match export.ty {
                ComponentItem::ComponentInstance(instance) => instances.push((name, instance)),
                _ => others.push(name),
            }
        }
        if !others.is_empty() {
            return exports(format!("exports {} outside an interface", others.join(", ")));
        }
        match instances.as_slice() {
            [(name, instance)] => reflect::interface(self.engine.wasmtime(), name, instance)
                .map_err(|Unfit { item, problem }| ModuleError::Item {
                    module: self.name.to_owned(),
                    item,
                    problem,
                }),
            [] => exports("exports no interface".to_owned()),
            several => {
                let names: Vec<_> = several.iter().map(|(name, _)| *name).collect();
                exports(format!("exports {}", names.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
