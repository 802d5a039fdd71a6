//! The guest room: components in their sandboxes. The only room that imports wasmtime.
//!
//! [`Engine`] is made once; [`Module::load`] compiles and checks a component; [`Instance::start`]
//! makes a participant of it. The host knows no recipe: what a component exports is found by
//! reflection ([`Interface`]), and JSON becomes its values by [`values`].
//!
//! Code map:
//! - `engine`, `cache`: wasmtime's settings, the pool, the compile cache
//! - `binary`: what is seen of a file before it is compiled
//! - `module`, `module_error`, `reflect`, `interface`, `value_type`, `wit_docs`: a module's checks
//!   and its types
//! - `values`: JSON to component values and back
//! - `instance`, `fault`: calls, and how they end
//! - `refusal`: whether a module takes its config, asked before there is a session
//! - `scheduler`: the calls' turns and processor time, and what is done for them meanwhile
//! - `state`, `host_*`, `giving_up`, `convert`, `answer`, `mount`: host calls
//! - `child_list`: the names that a component takes in batches, and the line of contenders in them
//! - `limits`, `bucket`, `voice_box`: what a component may use
//! - `judge`: components that judge what others did
//! - `witness`: how a simulation sees and cuts short what a component asks, and how a module's own look at
//!   its config is cut short
//!
//! Invariants:
//! - A component names nothing outside its mount (`mount`).
//! - A store whose call trapped or was dropped is never entered again (`instance`).
//! - No code of a component runs once its session is known to be lost (`answer`).
//! - A component's processor time, memory, handles, calls, log and events are bounded (`limits`).

mod answer;
mod binary;
mod bindings;
mod bucket;
mod cache;
mod child_list;
mod convert;
mod engine;
mod fault;
mod giving_up;
mod host_batches;
mod host_participant;
mod host_resources;
mod host_time;
mod host_zookeeper;
mod instance;
mod interface;
#[cfg(feature = "simulation")]
mod judge;
mod limits;
mod module;
mod module_error;
mod mount;
mod reflect;
mod refusal;
mod remedy;
mod scheduler;
mod scope;
mod sections;
mod slab;
mod state;
mod surroundings;
mod value_type;
pub mod values;
mod voice_box;
mod wit_docs;
mod witness;

pub use cache::CacheError;
pub use engine::{CompileCache, Engine, EngineError, EngineOptions, Pace};
pub use fault::Fault;
pub(crate) use instance::in_words;
pub use instance::{Answer, Instance};
pub use interface::{Interface, Operation, Parameter};
#[cfg(feature = "simulation")]
pub(crate) use judge::history as judged;
#[cfg(feature = "simulation")]
pub use judge::{Judge, JudgeError, carried_judge};
pub use limits::Limits;
pub use module::{Arguments, Configuration, Module};
pub use module_error::ModuleError;
pub use mount::{Mount, PathError};
pub use refusal::config_refusal;
pub use scope::OperationScope;
pub use sections::custom_section;
pub use surroundings::{HostTimeAndChance, LogLevel, Surroundings, TimeAndChance, Voice};
pub use value_type::{Case, Field, Label, Labels, RecordType, TypeName, ValueType, VariantType};
pub use wit_docs::DocState;
#[cfg(feature = "simulation")]
pub(crate) use wit_docs::{describes, own_name_of};
pub use witness::Witness;
#[cfg(feature = "simulation")]
pub(crate) use witness::{HOST_CALLS, KILLED};
