//! The document of the stock recipes, and of recipes that claim the same names.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::*;
use crate::guest::{
    CompileCache, Engine, EngineOptions, Limits, Module as Component, Pace, ValueType,
};
use crate::modules::{ModuleSource, stock_names};

/// The stock recipes, each of the name of its module. Compiling them takes its time.
static STOCK: LazyLock<Vec<(&str, Interface)>> = LazyLock::new(|| {
    let limits = Limits::default();
    let engine = Engine::new(&EngineOptions {
        participants: 1,
        memory: limits.memory,
        table_elements: limits.table_elements,
        cache: CompileCache::Off,
        pace: Pace::Clock,
    })
    .unwrap();
    let load = |name: &'static str| {
        let bytes = ModuleSource::Stock(name.to_owned()).read(None).unwrap();
        (name, Component::load(&engine, name, &bytes).unwrap().interface().clone())
    };
    stock_names().map(load).collect()
});

fn interface(name: &str) -> &'static Interface {
    STOCK.iter().find(|(known, _)| *known == name).map(|(_, interface)| interface).unwrap()
}

fn document_of(recipes: &[(&str, &Interface)]) -> Value {
    let recipes: Vec<Recipe<'_>> =
        recipes.iter().map(|(name, interface)| Recipe { name, mount: "/a", interface }).collect();
    describe(&recipes)
}

/// What is wrong with a document as such: references to nothing, and names that stand for two things.
fn problems(document: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    dangling(document, document, &mut problems);
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(document) {
        let at = format!("{method} {path}");
        match operation["operationId"].as_str() {
            Some(id) if ids.insert(id.replace('-', "_").to_lowercase()) => {}
            other => problems.push(format!("{at}: the id {other:?}")),
        }
        if operation["responses"].as_object().is_none_or(serde_json::Map::is_empty) {
            problems.push(format!("{at}: no answer"));
        }
        let taken: BTreeSet<_> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| it["in"] == "path")
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect();
        let wanted: BTreeSet<_> = path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .map(str::to_owned)
            .collect();
        if taken != wanted {
            problems.push(format!("{at}: takes {taken:?}"));
        }
    }
    problems
}

fn dangling(document: &Value, part: &Value, problems: &mut Vec<String>) {
    match part {
        Value::Object(object) => {
            let reference = object.get("$ref").and_then(Value::as_str);
            let mapped = object.get("mapping").and_then(Value::as_object);
            let mapped = mapped.into_iter().flatten().filter_map(|(_, it)| it.as_str());
            for reference in reference.into_iter().chain(mapped) {
                let place = reference.strip_prefix('#').unwrap_or("/none");
                if document.pointer(place).is_none() {
                    problems.push(format!("{reference} is nowhere"));
                }
            }
            object.values().for_each(|it| dangling(document, it, problems));
        }
        Value::Array(items) => items.iter().for_each(|it| dangling(document, it, problems)),
        _ => {}
    }
}

fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    document["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().iter();
        methods.map(|(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

fn id_of<'a>(document: &'a Value, path: &str) -> &'a str {
    document["paths"][path]["post"]["operationId"].as_str().unwrap()
}

#[test]
fn every_operation_of_every_stock_recipe_can_be_asked_for_in_every_way() {
    let recipes: Vec<_> = STOCK.iter().map(|(name, interface)| (*name, interface)).collect();
    let document = document_of(&recipes);
    assert_eq!(problems(&document), Vec::<String>::new());
    for (recipe, interface) in &*STOCK {
        let join = &document["paths"][format!("/v1/recipes/{recipe}/join")]["post"];
        assert_eq!(join["operationId"], format!("join-{recipe}"));
        let request = &join["requestBody"]["content"]["application/json"]["schema"]["$ref"];
        let request = document.pointer(&request.as_str().unwrap()[1..]).unwrap();
        let call = request["properties"]["call"].to_string();
        for operation in &interface.operations {
            let name = &operation.name;
            let called = &document["paths"][format!("/v1/recipes/{recipe}/call/{name}")]["post"];
            assert_eq!(called["operationId"], format!("{recipe}-{name}"));
            assert_eq!(called["tags"], json!([recipe]));
            let docs = operation.docs.as_deref().unwrap();
            assert!(called["description"].as_str().unwrap().starts_with(docs), "{recipe} {name}");
            assert_eq!(called["requestBody"].is_object(), !operation.parameters.is_empty());
            let asked = &document["paths"][format!("/v1/participants/{{id}}/{name}")]["post"];
            assert_eq!(asked["operationId"], format!("participant-{name}"));
            assert!(call.contains(&format!("\"{name}\"")), "{recipe}: {call} without {name}");
        }
    }
}

#[test]
fn a_join_calls_one_operation_with_no_more_than_it_has_to_be_told() {
    let document = document_of(&[("jobs", interface("queue"))]);
    let request = &document["components"]["schemas"]["queue-join-request"];
    let alternatives = request["properties"]["call"]["anyOf"].as_array().unwrap();
    let names = alternatives[0]["enum"].as_array().unwrap();
    let given = |name: &str| {
        let mut calls = alternatives.iter().filter(|it| it["title"] == name);
        let (Some(call), None) = (calls.next(), calls.next()) else { panic!("{name}") };
        assert_eq!(call["required"], json!([name]));
        assert_eq!(call["additionalProperties"], json!(false), "one operation is called");
        assert_eq!(call["properties"].as_object().unwrap().len(), 1);
        (call["properties"][name].clone(), names.contains(&json!(name)))
    };
    let refer = |name: &str| components::refer(&format!("queue-{name}-arguments"));
    let nothing = json!({ "type": "object", "additionalProperties": false });
    assert_eq!(given("put"), (refer("put"), false));
    assert_eq!(given("take-many"), (components::or_null(refer("take-many")), true));
    assert_eq!(given("length"), (components::or_null(nothing), true));
}

#[test]
fn what_http_itself_refuses_and_what_is_wrong_with_a_body_is_told_wherever_it_may_be_met() {
    let document = document_of(&[("orders", interface("lock"))]);
    for (path, method, operation) in operations(&document) {
        let has = |status: &str| operation["responses"].get(status).is_some();
        assert!(has("400") && has("431"), "{method} {path}");
        // The host reads the body of each POST and PUT, also where an operation takes no arguments.
        let is_read = ["post", "put"].contains(&method);
        assert_eq!((has("408"), has("413")), (is_read, is_read), "{method} {path}");
    }
    let bodies = document["components"]["responses"].as_object().unwrap();
    let without = bodies.iter().filter(|(_, it)| it.get("content").is_none());
    assert_eq!(without.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["head-too-large"]);
}

#[test]
fn a_host_without_recipes_has_a_document_of_its_own_paths() {
    let document = document_of(&[]);
    assert_eq!(problems(&document), Vec::<String>::new());
    assert!(!operations(&document).any(|(path, ..)| path.ends_with("/join")));
    assert!(operations(&document).any(|(path, ..)| path == "/v1/recipes/{recipe}"));
}

#[test]
fn a_damaged_document_is_told() {
    let lock = interface("lock");
    let good = document_of(&[("orders", lock)]);
    let check = |damage: &dyn Fn(&mut Value), expected: &str| {
        let mut document = good.clone();
        damage(&mut document);
        assert_eq!(problems(&document).first().map(String::as_str), Some(expected));
    };
    check(
        &|it| drop(it["components"]["schemas"].as_object_mut().unwrap().remove("claim")),
        "#/components/schemas/claim is nowhere",
    );
    check(
        &|it| it["paths"]["/v1/host"]["get"]["operationId"] = json!("get_Health"),
        "get /v1/host: the id Some(\"get_Health\")",
    );
    check(&|it| it["paths"]["/v1/host"]["get"]["responses"] = json!({}), "get /v1/host: no answer");
    check(
        &|it| it["paths"]["/v1/recipes/{recipe}"]["get"]["parameters"] = json!([]),
        "get /v1/recipes/{recipe}: takes {}",
    );
}

#[test]
fn an_id_that_two_claim_is_the_joins() {
    let lock = interface("lock");
    let document = document_of(&[("join", lock), ("acquire", lock), ("get", lock)]);
    assert_eq!(problems(&document), Vec::<String>::new());
    assert_eq!(id_of(&document, "/v1/recipes/acquire/join"), "join-acquire");
    assert_eq!(id_of(&document, "/v1/recipes/join/call/acquire"), "join-acquire-2");
}

#[test]
fn recipes_of_one_module_share_its_types() {
    let lock = interface("lock");
    let one = document_of(&[("orders", lock)]);
    let two = document_of(&[("bills", lock), ("orders", lock)]);
    assert_eq!(one["components"]["schemas"], two["components"]["schemas"]);
    assert_eq!(
        one["components"]["schemas"]["lock-grant"]["properties"]["path"]["description"],
        "The znode that holds it."
    );
}

#[test]
fn types_that_differ_in_anything_have_names_of_their_own() {
    let lock = interface("lock");
    let mut fork = lock.clone();
    let acquire = fork.operations.iter_mut().find(|it| it.name == "acquire").unwrap();
    let Some(ValueType::Result { ok: Some(ok), .. }) = &mut acquire.result else { panic!() };
    let ValueType::Record(grant) = &mut **ok else { panic!() };
    grant.docs = Some("Ours.".to_owned());
    let document = document_of(&[("orders", lock), ("bills", &fork)]);
    assert_eq!(problems(&document), Vec::<String>::new());
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["lock-grant"]["description"], "The lock, held.");
    assert_eq!(schemas["bills-grant"]["description"], "Ours.");
    // A participant may be of either.
    let answer = &document["paths"]["/v1/participants/{id}/acquire"]["post"]["responses"]["200"];
    let either =
        json!({ "anyOf": [components::refer("lock-grant"), components::refer("bills-grant")] });
    assert_eq!(answer["content"]["application/json"]["schema"], either);
}

#[test]
fn a_participant_may_be_asked_what_several_recipes_understand_differently() {
    let (lock, locks) = (interface("lock"), interface("multi-lock"));
    let document = document_of(&[("many", locks), ("one", lock)]);
    let acquire = &document["paths"]["/v1/participants/{id}/acquire"]["post"];
    // The lock of one takes no arguments.
    assert_eq!(acquire["requestBody"]["required"], json!(false));
    let words = acquire["description"].as_str().unwrap();
    assert!(words.contains("Of `many`: Waits for the locks"), "{words}");
    assert!(words.contains("Of `one`: Waits in line"), "{words}");
    // What both say is said once.
    let error = &acquire["responses"]["409"]["content"]["application/json"]["schema"];
    assert_eq!(*error, components::refer("zookeeper-error-refusal"));
}

#[test]
fn the_cases_of_a_variant_are_told_from_those_of_others() {
    let document = document_of(&[("count", interface("counter"))]);
    let compared = document["components"]["schemas"]["counter-compared"]["anyOf"].as_array();
    let titles: Vec<_> = compared.unwrap().iter().filter_map(|it| it["title"].as_str()).collect();
    assert_eq!(titles, ["counter-compared-differs"]);
}

#[test]
fn a_summary_is_the_first_sentence() {
    let check = |docs: Option<&str>, expected: &str| {
        assert_eq!(recipes::summary(docs, "take"), expected);
    };
    check(Some("Takes it.\n\nOr not."), "Takes it");
    check(Some("Takes it, and\nwaits. Then leaves."), "Takes it, and waits");
    check(Some(""), "take");
    check(None, "take");
}
