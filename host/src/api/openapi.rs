//! The API as an OpenAPI document, with the operations of the recipes that are loaded.
//!
//! The document is for programs that make clients, and for people who read. Its types are those of the
//! modules, and so are most of its words: they come from the modules' WIT.
//!
//! | question | file |
//! |---|---|
//! | what can be asked of a recipe? | `recipes.rs` |
//! | what can be asked of a participant? | `participants.rs` |
//! | what can be asked of the host? | `daemon.rs` |
//! | which lines does a stream have? | `events.rs` |
//! | how does the host say no? | `errors.rs` |
//! | which types do a module's operations have? | `modules.rs` |
//! | how is one thing that can be asked written down? | `endpoint.rs` |
//! | which schema has which name? | `components.rs` |
//!
//! Invariants: a name of a schema and an `operationId` stand for one thing in a document; a recipe more
//! or less does not change the names of another recipe's, unless the two claim the same ones.

mod components;
mod daemon;
mod endpoint;
mod errors;
mod events;
mod modules;
mod participants;
mod recipes;

use serde_json::{Value, json};

use crate::guest::Interface;
use crate::participant::Join;
use components::Components;
use endpoint::Paths;
use modules::Module;

/// What the document says of itself.
const ABOUT: &str = "\
ZooKeeper recipes for the programs of this machine. A program joins a recipe, calls its operations \
and follows what becomes of them; the host keeps the ZooKeeper session.

The host listens on a Unix socket, and on TCP if its config says so. Every key is in kebab-case. \
A fence, or another number of 64 bits, is a number up to 2^53 and a decimal string beyond. \
A stream is `application/x-ndjson`: its schema is that of a line, and each line is one JSON object.

An answer with status 409 is the error of the operation itself, in `error`. All other errors are the \
host's: `error` is their kind, and `message` says to people what happened and what to do. Two answers \
have no body: 431, and 400 to what is no HTTP.";

/// A recipe that can be joined, as far as the document tells of it.
#[derive(Debug, Clone, Copy)]
struct Recipe<'a> {
    /// Its name in the config.
    name: &'a str,
    /// The mount's absolute path.
    mount: &'a str,
    /// What its module offers.
    interface: &'a Interface,
}

/// The OpenAPI document of the API with these recipes.
pub fn document<'a>(recipes: impl Iterator<Item = &'a Join>) -> Value {
    let recipes = recipes.map(|it| Recipe {
        name: &it.recipe,
        mount: it.mount.path(),
        interface: it.module.interface(),
    });
    describe(&recipes.collect::<Vec<_>>())
}

fn describe(recipes: &[Recipe<'_>]) -> Value {
    let mut components = Components::default();
    // The host's own names first: no recipe changes them.
    errors::add(&mut components);
    events::add(&mut components);
    participants::add_schemas(&mut components);
    daemon::add_schemas(&mut components);
    let modules = modules::read(recipes, &mut components);
    let mut paths = Paths::default();
    daemon::add(&mut paths);
    participants::add(&mut paths);
    recipes::add(&modules, &mut components, &mut paths);
    participants::add_operations(&modules, &mut components, &mut paths);
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "wok",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
        },
        "servers": [{ "url": "/", "description": "The host that this document is from." }],
        // Either none, as on the Unix socket, or the token.
        "security": [{}, { "token": [] }],
        "tags": tags(&modules),
        "paths": paths.into_json(),
        "components": {
            "schemas": components.into_json(),
            "responses": errors::responses(),
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Over TCP only: the text of the host's `token-file`.",
                },
            },
        },
    })
}

fn tags(modules: &[Module<'_>]) -> Vec<Value> {
    let own = [
        (daemon::TAG, "The host itself, the recipes that it has loaded, and what it tells."),
        (participants::TAG, "Those who take part in a recipe through this host."),
    ];
    let own = own.into_iter().map(|(name, about)| json!({ "name": name, "description": about }));
    // A recipe's name is in lower case, so that it is never one of the host's own tags.
    let theirs = modules.iter().map(|module| {
        let Recipe { name, mount, interface } = module.recipe;
        let about = format!("`{}` at `{mount}`.", interface.name);
        let about = endpoint::paragraphs([Some(about.as_str()), interface.docs.as_deref()]);
        json!({ "name": name, "description": about })
    });
    own.chain(theirs).collect()
}

#[cfg(test)]
mod tests;
