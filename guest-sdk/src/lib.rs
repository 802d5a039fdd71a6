//! What a recipe author imports.
//!
//! A recipe is a crate that describes its operations in WIT, binds them with [`bind!`] and depends on
//! nothing but this crate:
//!
//! ```text
//! Cargo.toml        [lib] crate-type = ["cdylib"]      [dependencies] wok-sdk
//! wit/my-lock.wit   package my:lock; interface lock {..} world recipe { include wok:recipe/imports@0.1.0; export lock; }
//! src/bindings.rs   wok_sdk::bind!("<path to the contract>", "my:lock/recipe"); export!(super::Lock ..);
//! src/decide.rs     pure: what the children of the mount mean
//! src/lib.rs        impl Guest for Lock: reads, waits, acts
//! ```
//!
//! # Code map
//! * [`zookeeper`], [`participant`], [`time_and_chance`]: the contract itself, from `wit/recipe.wit`.
//! * [`Naming`], [`Sequence`], [`Contender`]: a contender, and how it is named. Pure.
//! * [`Line`], [`Standing`]: who stands where. [`line_up`] has the host put a list in order.
//! * [`Own`], [`Named`]: an own contender znode, and one of a given name, released when dropped.
//! * [`Marker`]: an own znode that tells what became of a `multi`.
//! * [`names`], [`wait_until_gone`]: child lists in batches, and the wait every line needs.
//!   [`reads`]: several reads in one round trip. [`reason`]: an error in words. [`confirmed`], [`confirmed_reads`]: what is not from before the call. [`line()`], [`owners`]: a line for people.
//! * [`snapshot()`], [`Followed`], [`wait_for_change`]: a directory whose children mean something together.
//! * [`RevokeRequest`], [`ask_to_give_way`], [`Listening`]: a contender is asked to give way, and is told.
//! * [`log_panics`]: installed by [`bind!`].
//! * `heap`: the global allocator of every guest.
//!
//! # Invariants
//! * Contenders are ordered by their counters, in serial-number arithmetic. Names are compared only
//!   where counters are equal.
//! * Nothing here polls, and nothing but [`snapshot()`] holds a whole child list.

mod bindings;
mod contender;
mod directory;
#[cfg(target_arch = "wasm32")]
mod heap;
mod line;
mod marker;
mod named;
mod own;
mod panics;
mod reading;
mod reads;
mod reason;
mod revocation;
mod revoke_request;
mod sequence;

/// Host calls made by the macros of this crate, and by nobody else.
#[doc(hidden)]
pub use wit_bindgen;

pub use bindings::wok::recipe::{participant, time_and_chance, zookeeper};
pub use contender::{Contender, Naming, Standing, name_of};
pub use directory::{Followed, Snapshot, child, revision, snapshot, wait_for_change};
pub use line::{Line, line, line_up, owners};
pub use marker::Marker;
pub use named::Named;
pub use own::Own;
pub use panics::log_panics;
pub use reading::{Gone, confirmed, confirmed_reads, names, wait_until_gone};
pub use reads::reads;
pub use reason::reason;
pub use revocation::{Asked, Heard, Listening, ask_to_give_way};
pub use revoke_request::RevokeRequest;
pub use sequence::Sequence;

/// Binds a recipe's WIT, with the contract's types shared with this crate.
///
/// The first argument is the path of the contract (this crate's `wit` directory) from the recipe's
/// manifest, the second the recipe's world in its `wit` directory. Expands to the bindings and to the
/// macro `export!`, and has panics logged. Give it a module of its own:
///
/// ```text
/// #![allow(unsafe_code, missing_docs, reason = "generated")]
/// wok_sdk::bind!("../../guest-sdk/wit", "wok:lock/recipe");
/// use crate::Lock;
/// export!(Lock with_types_in self);
/// ```
#[macro_export]
macro_rules! bind {
    ($contract:literal, $world:literal) => {
        $crate::wit_bindgen::generate!({
            path: [$contract, "wit"],
            world: $world,
            with: {
                "wok:recipe/zookeeper@0.1.0": wok_sdk::zookeeper,
                "wok:recipe/participant@0.1.0": wok_sdk::participant,
                "wok:recipe/time-and-chance@0.1.0": wok_sdk::time_and_chance,
            },
            runtime_path: "wok_sdk::wit_bindgen::rt",
            generate_all,
        });

        // Constructors run before the first exported call, so no recipe has to think of it.
        #[cfg(target_arch = "wasm32")]
        #[used]
        #[unsafe(link_section = ".init_array")]
        static LOG_PANICS: extern "C" fn() = {
            extern "C" fn log_panics() {
                $crate::log_panics();
            }
            log_panics
        };
    };
}
