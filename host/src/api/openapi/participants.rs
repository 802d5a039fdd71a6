//! What can be asked of a participant.

use std::collections::BTreeMap;

use serde_json::json;

use super::components::{
    Components, any_of, count, described, duration, object, or_null, refer, text,
};
use super::endpoint::{Endpoint, Method, Need, Paths, paragraphs};
use super::errors::Kind;
use super::events::EVENT;
use super::modules::{Described, Module};
use super::recipes::{ALIVE, bounded, refuses, summary};

/// The tag of what is asked of participants.
pub(super) const TAG: &str = "Participants";

/// The schema of a participant.
const PARTICIPANT: &str = "participant";

/// What its state tells.
const STATE: &str = "Where it stands, in one word. `waiting` is one that stands in line, and one whose \
                     operation waits for something else: that one has no place in line.";

/// Where one is found.
const PATH: &str = "/v1/participants/{id}";

/// Adds the schemas of participants.
pub(super) fn add_schemas(components: &mut Components) {
    let behind =
        object([("path", text("Its znode.")), ("owner", or_null(text("Who it says it is.")))]);
    components.keep(&["contender-ahead"], described(behind, "Whom a participant waits for."));
    let waiting = object([
        ("path", text("The participant's contender znode.")),
        ("behind", or_null(refer("contender-ahead"))),
    ]);
    components.keep(&["place-in-line"], described(waiting, "Where a participant stands in line."));
    let states = ["joined", "waiting", "held", "leaving", "suspended", "ended"];
    let participant = object([
        ("participant", text("Its id.")),
        ("recipe", text("The recipe that it takes part in.")),
        ("app", or_null(text("The app that it is of."))),
        ("uid", or_null(count("The user that the app runs as, where the host knows."))),
        ("pid", or_null(count("The app's process, where the host can see it."))),
        ("owner", text("What other contenders are told of it.")),
        ("session", text("The session that it belongs to.")),
        (
            "since",
            json!({ "type": "string", "format": "date-time", "description": "When it joined." }),
        ),
        ("state", json!({ "type": "string", "enum": states, "description": STATE })),
        ("waiting", or_null(refer("place-in-line"))),
        ("held", or_null(refer("claim"))),
        ("operation", or_null(text("The operation that is under way."))),
        ("lease", or_null(duration("How long it lives without a renewal."))),
        (
            "by",
            json!({
                "type": "string",
                "enum": ["daemon", "app"],
                "description": "Whether the config tells the host to, or an app asked.",
            }),
        ),
    ]);
    components.keep(&[PARTICIPANT], described(participant, "One that takes part in a recipe."));
    let list = json!({ "type": "array", "items": refer(PARTICIPANT) });
    components.keep(&["participants"], object([("participants", list)]));
}

/// Adds what can be asked of every participant.
pub(super) fn add(paths: &mut Paths) {
    let list = Endpoint::new("list-participants", TAG, "Who takes part")
        .about("Those of the caller's user; root and the host's own user see all of them.")
        .answers(200, "The participants.", &refer("participants"));
    paths.add(Method::Get, "/v1/participants", list);
    let get = of_one("get-participant", "How a participant stands").answers(
        200,
        "The participant.",
        &refer(PARTICIPANT),
    );
    paths.add(Method::Get, PATH, get);
    let end = of_one("end-participant", "End a participant")
        .acknowledges("Nothing of the participant is left.");
    paths.add(Method::Delete, PATH, end);
    let renew = of_one("renew-lease", "Renew a lease")
        .answers(200, "The lease begins again.", &refer(PARTICIPANT))
        .fails(&Kind::OF_BODIES);
    paths.add(Method::Put, format!("{PATH}/lease"), renew);
    let cancel = of_one("cancel-operation", "Cancel what is under way")
        .about(
            "Withdraws the operation that is under way, and does not wait for it: its own caller is answered \
             when it has ended. Harmless where no operation is under way.",
        )
        .acknowledges("What was under way has been withdrawn, and may still be ending.");
    paths.add(Method::Delete, format!("{PATH}/operation"), cancel);
    let independent = of_one("end-dependence", "Say that nothing depends on the claim")
        .about(
            "For an app that has joined with `dependent`: what it ran under the claim has ended, so the \
             claim can be given up.",
        )
        .acknowledges("The claim is not kept for the app any more.");
    paths.add(Method::Delete, format!("{PATH}/dependent"), independent);
    let follow = of_one("follow-participant", "Follow a participant")
        .about(
            "The first lines say where the participant stands, and the others what happens to it. A \
             follower does not keep the participant alive.",
        )
        .asks("alive", ALIVE, &duration(ALIVE))
        .streams("A stream that ends with the participant.", &refer(EVENT))
        .fails(&[Kind::BadRequest]);
    paths.add(Method::Get, format!("{PATH}/events"), follow);
}

fn of_one(id: &str, summary: &str) -> Endpoint {
    at_one(Endpoint::new(id, TAG, summary)).fails(&[Kind::NotFound, Kind::Ended])
}

fn at_one(endpoint: Endpoint) -> Endpoint {
    endpoint.at("id", "The participant's id.")
}

/// Adds the operations. A path stands for the operations of this name of all recipes, because it does
/// not tell which recipe the participant takes part in.
pub(super) fn add_operations(
    modules: &[Module<'_>],
    components: &mut Components,
    paths: &mut Paths,
) {
    let mut operations: BTreeMap<&str, Vec<(&Module<'_>, &Described<'_>)>> = BTreeMap::new();
    for module in modules {
        for described in &module.operations {
            operations.entry(&described.operation.name).or_default().push((module, described));
        }
    }
    for (name, of) in operations {
        paths.add(Method::Post, format!("{PATH}/{name}"), operation(name, &of, components));
    }
}

fn operation(
    name: &str,
    of: &[(&Module<'_>, &Described<'_>)],
    components: &mut Components,
) -> Endpoint {
    let (words, short) = words(name, of);
    let endpoint = at_one(Endpoint::new(format!("participant-{name}"), TAG, short)).about(words);
    let answer = any_of(of.iter().map(|(_, it)| it.answer.clone()));
    let endpoint = bounded(endpoint)
        .answers(200, "The answer.", &answer)
        .fails(&Kind::OF_CALLS)
        .fails(&[Kind::Busy]);
    let mut arguments = of.iter().filter_map(|(_, it)| it.arguments.as_ref()).peekable();
    let endpoint = match arguments.peek() {
        Some(_) => {
            let is_needed = |it: &Described<'_>| {
                it.arguments.as_ref().is_some_and(|it| it.need == Need::Needed)
            };
            let all_need = of.iter().all(|(_, it)| is_needed(it));
            let need = if all_need { Need::Needed } else { Need::Optional };
            endpoint.takes(need, &any_of(arguments.map(|it| it.schema.clone())))
        }
        None => endpoint,
    };
    let mut errors = of.iter().filter_map(|(_, it)| it.error.clone()).peekable();
    let error = errors.peek().is_some().then(|| any_of(errors));
    refuses(endpoint, &format!("participant-{name}-refusal"), error.as_ref(), components)
}

/// What is said of the operations of one name, and in short. What several recipes say is said once.
fn words(name: &str, of: &[(&Module<'_>, &Described<'_>)]) -> (String, String) {
    let mut told: Vec<(Option<&str>, Vec<String>)> = Vec::new();
    for (module, described) in of {
        let docs = described.operation.docs.as_deref();
        let recipe = format!("`{}`", module.recipe.name);
        match told.iter_mut().find(|(known, _)| *known == docs) {
            Some((_, recipes)) => recipes.push(recipe),
            None => told.push((docs, vec![recipe])),
        }
    }
    match told.as_slice() {
        [(docs, _)] => (docs.unwrap_or(name).to_owned(), summary(*docs, name)),
        _ => {
            let parts = told.iter().map(|(docs, recipes)| {
                format!("Of {}: {}", recipes.join(", "), docs.unwrap_or(name))
            });
            let parts: Vec<String> = parts.collect();
            let words = paragraphs(parts.iter().map(|it| Some(it.as_str())));
            (words, format!("Call {name}"))
        }
    }
}
