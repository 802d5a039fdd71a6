//! Every operation of every stock recipe through the API, judged by a validator that is not ours.

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use wok_tests::api::{Answer, Client, serve};
use wok_tests::openapi::{Exchange, config_of_stock_recipes, document_problems, exchange_problems};
use wok_tests::zookeeper;

use super::in_turn;

/// How long an operation may wait for somebody who never comes.
const TIMEOUT: &str = "300ms";

#[tokio::test]
async fn every_operation_answers_as_the_document_says() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", &config_of_stock_recipes()?).await?;
    let client = serving.client();
    let document = client.get("/v1/openapi.json").await?.body;
    assert_eq!(document_problems(&document)?, Vec::<String>::new());
    let mut exchanges = Vec::new();
    let recipes = ask(&client, &mut exchanges, "GET", "/v1/recipes", None).await?;
    let names = recipes.body["recipes"].as_array().context("recipes")?.iter();
    let names = names.map(|it| it["recipe"].as_str().unwrap_or_default());
    // All recipes at a time: most of the time somebody waits for somebody who never comes.
    for of_recipe in try_join_all(names.map(|name| of_recipe(&client, name))).await? {
        exchanges.extend(of_recipe);
    }
    assert!(exchanges.len() > 500, "only {} exchanges", exchanges.len());
    others(&client, &mut exchanges).await?;
    let problems: Vec<String> =
        exchange_problems(&document, &exchanges)?.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{problems:#?}");
    // The judge is not blind: an answer of another shape is told.
    let wrong = Exchange::new("GET", "/v1/participants", 200).answered(json!({ "people": [] }));
    assert_ne!(exchange_problems(&document, &[wrong])?, [Vec::<String>::new()]);
    Ok(())
}

/// Every operation of a recipe: in an order in which each is answered, and then, whatever comes of it, by
/// a call of its own, by a participant, and on a stream.
async fn of_recipe(client: &Client, name: &str) -> Result<Vec<Exchange>> {
    let mut exchanges = Vec::new();
    let path = format!("/v1/recipes/{name}");
    let recipe = ask(client, &mut exchanges, "GET", &path, None).await?.body;
    let answered = in_turn::call_all(client, name, &mut exchanges).await?;
    for operation in recipe["operations"].as_array().context("operations")? {
        let called = operation["operation"].as_str().context("a name")?;
        assert!(answered.contains(called), "{name}: {called} has never been answered");
        let schema = &operation["arguments"];
        let arguments = Some(sample(schema, schema)).filter(|it| *it != json!({}));
        let path = format!("/v1/recipes/{name}/call/{called}?timeout={TIMEOUT}");
        ask(client, &mut exchanges, "POST", &path, arguments.as_ref()).await?;
        by_participant(client, &mut exchanges, name, called, arguments.as_ref()).await?;
        on_a_stream(client, &mut exchanges, name, called, arguments.as_ref()).await?;
        if arguments.is_none() {
            // What nobody has to say anything for may be called by its name or with an empty object.
            on_a_stream(client, &mut exchanges, name, called, Some(&json!({}))).await?;
        }
    }
    Ok(exchanges)
}

/// Asks, and keeps what was asked and answered.
pub(super) async fn ask(
    client: &Client,
    exchanges: &mut Vec<Exchange>,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Answer> {
    let answer = client.ask(method, path, body.unwrap_or(&Value::Null)).await?;
    assert!(answer.status < 500 || answer.status == 504, "{method} {path}: {answer:?}");
    let path = path.split('?').next().unwrap_or(path);
    let mut exchange = Exchange::new(method, path, answer.status);
    if let Some(body) = body {
        exchange = exchange.asked(body.clone());
    }
    if answer.status != 204 {
        exchange = exchange.answered(answer.body.clone());
    }
    exchanges.push(exchange);
    Ok(answer)
}

async fn by_participant(
    client: &Client,
    exchanges: &mut Vec<Exchange>,
    recipe: &str,
    operation: &str,
    arguments: Option<&Value>,
) -> Result<()> {
    let join = json!({ "detached": true, "lease": "1m", "app": "judge" });
    let path = format!("/v1/recipes/{recipe}/join");
    let joined = ask(client, exchanges, "POST", &path, Some(&join)).await?;
    let id = joined.body["participant"].as_str().context("an id")?;
    let participant = format!("/v1/participants/{id}");
    let path = format!("{participant}/{operation}?timeout={TIMEOUT}");
    ask(client, exchanges, "POST", &path, arguments).await?;
    // A module that gave up too late has taken its participant along, which is then not found.
    for (method, part) in [("GET", ""), ("PUT", "/lease"), ("DELETE", "/operation"), ("DELETE", "")]
    {
        ask(client, exchanges, method, &format!("{participant}{part}"), None).await?;
    }
    Ok(())
}

/// Until the call is over, whatever comes of it.
async fn on_a_stream(
    client: &Client,
    exchanges: &mut Vec<Exchange>,
    recipe: &str,
    operation: &str,
    arguments: Option<&Value>,
) -> Result<()> {
    let path = format!("/v1/recipes/{recipe}/join");
    let call = match arguments {
        Some(arguments) => json!({ operation: arguments }),
        None => json!(operation),
    };
    let join = json!({ "call": call, "timeout": TIMEOUT });
    let mut events = client.stream(&path, &join).await?;
    while let Some(line) = events.next().await? {
        exchanges
            .push(Exchange::new("POST", &path, 200).asked(join.clone()).answered(line.clone()));
        if line["event"] == "answered" {
            break;
        }
    }
    Ok(())
}

/// What is not of a recipe.
async fn others(client: &Client, exchanges: &mut Vec<Exchange>) -> Result<()> {
    for path in ["/healthz", "/readyz", "/v1/host", "/v1/participants", "/v1/recipes/nothing"] {
        ask(client, exchanges, "GET", path, None).await?;
    }
    let mut events =
        client.stream("/v1/recipes/lock/join?alive=100ms", &json!({ "call": "acquire" })).await?;
    let id = events.until("joined").await?["participant"].as_str().context("an id")?.to_owned();
    for event in ["held", "alive"] {
        let line = events.until(event).await?;
        exchanges.push(Exchange::new("POST", "/v1/recipes/lock/join", 200).answered(line));
    }
    ask(client, exchanges, "GET", &format!("/v1/participants/{id}"), None).await?;
    let path = format!("/v1/participants/{id}/events");
    let mut beside = client.follow("GET", &path, &Value::Null).await?;
    exchanges.push(Exchange::new("GET", &path, 200).answered(beside.until("held").await?));
    let mut log = client.follow("GET", "/v1/logs?lines=3", &Value::Null).await?;
    while let Some(line) = log.next().await? {
        exchanges.push(Exchange::new("GET", "/v1/logs", 200).answered(line));
    }
    Ok(())
}

/// A value that a schema takes: the smallest, with all that is required.
fn sample(schema: &Value, root: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return sample(root.pointer(pointer).unwrap_or(&Value::Null), root);
    }
    if let Some(first) = schema["anyOf"].as_array().and_then(|any| any.first()) {
        return sample(first, root);
    }
    if let Some(constant) = schema.get("const").or(schema["enum"].get(0)) {
        return constant.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten();
            let fields = required.filter_map(Value::as_str);
            fields.map(|it| (it.to_owned(), sample(&schema["properties"][it], root))).collect()
        }
        Some("array") => match schema["items"].is_null() {
            true => schema["prefixItems"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| sample(it, root))
                .collect(),
            false => json!([sample(&schema["items"], root)]),
        },
        Some("integer" | "number") => {
            schema["minimum"].as_i64().map_or(json!(1), |it| json!(it.max(1)))
        }
        Some("boolean") => json!(false),
        Some("string") => json!("a"),
        _ => Value::Null,
    }
}
