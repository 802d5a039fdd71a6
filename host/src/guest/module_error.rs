//! Why a file is no module.

use super::binary::DAMAGED;

/// Why a file is no module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// It is no WebAssembly component, or one of another kind.
    #[error("module {module}: {problem}")]
    NotComponent {
        /// The module.
        module: String,
        /// What it is instead, and what to do.
        problem: String,
    },
    /// It cannot be compiled.
    #[error("module {module}: {source:#}; {DAMAGED}")]
    Invalid {
        /// The module.
        module: String,
        /// What wasmtime said.
        source: wasmtime::Error,
    },
    /// It wants what no recipe is given.
    #[error(
        "module {module}: imports {imports}, and a recipe is given nothing but wok:recipe \
         (no WASI: a tool chain that needs it has stubs for it)"
    )]
    ForeignImports {
        /// The module.
        module: String,
        /// The imports, by name.
        imports: String,
    },
    /// It was built for another contract.
    #[error(
        "module {module}: imports {import}: built for contract {built_for}, this host serves \
         {served}; build it with the wok-sdk of this host"
    )]
    WrongContract {
        /// The module.
        module: String,
        /// The import.
        import: String,
        /// Its version.
        built_for: String,
        /// The versions served.
        served: String,
    },
    /// Its imports have the right names and other types.
    #[error("module {module}: does not fit the contract: {source:#}")]
    Contract {
        /// The module.
        module: String,
        /// What wasmtime said.
        source: wasmtime::Error,
    },
    /// It has more than one memory.
    #[error(
        "module {module}: composed of parts with {memories} memories, and a recipe has one: link the \
         parts into one core module instead of composing components"
    )]
    Memories {
        /// The module.
        module: String,
        /// How many.
        memories: u32,
    },
    /// It does not export exactly one interface.
    #[error("module {module}: {problem}; a recipe exports exactly one interface of its own")]
    Exports {
        /// The module.
        module: String,
        /// What it exports.
        problem: String,
    },
    /// An item of its interface is not allowed.
    #[error("module {module}: {item}: {problem}")]
    Item {
        /// The module.
        module: String,
        /// Which, as `acquire.request.deadline`.
        item: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
}
