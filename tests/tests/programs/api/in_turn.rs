//! Every operation of every stock recipe, called in such an order that each of them is answered.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use wok_tests::api::Client;
use wok_tests::openapi::Exchange;
use wok_tests::patience::eventually;

use super::every_recipe::ask;

/// Those who call the operations of one recipe.
pub(super) struct Company<'a> {
    client: &'a Client,
    recipe: &'a str,
    exchanges: &'a mut Vec<Exchange>,
    /// The paths of those who have joined.
    members: BTreeMap<&'static str, String>,
    answered: BTreeSet<String>,
}

/// Calls all operations of a recipe; answers which of them answered with 200.
pub(super) async fn call_all(
    client: &Client,
    recipe: &str,
    exchanges: &mut Vec<Exchange>,
) -> Result<BTreeSet<String>> {
    let (members, answered) = (BTreeMap::new(), BTreeSet::new());
    let mut company = Company { client, recipe, exchanges, members, answered };
    match recipe {
        "barrier" | "count-down-latch" | "counter" | "configuration" => company.write().await?,
        "lock" | "multi-lock" | "read-write-lock" | "semaphore" => company.hold().await?,
        "queue" | "priority-queue" => company.work().await?,
        "double-barrier" | "group-membership" | "name-service" => company.gather().await?,
        "leader-election" => company.elect().await?,
        "two-phase-commit" => company.decide().await?,
        _ => bail!("nothing calls the operations of {recipe} in an order: say here which"),
    }
    for participant in company.members.values() {
        let ended = ask(client, company.exchanges, "DELETE", participant, None).await?;
        ensure!(ended.status == 204, "{recipe}: {ended:?}");
    }
    Ok(company.answered)
}

impl Company<'_> {
    /// Calls an operation without joining first. It must be answered.
    async fn once(&mut self, operation: &str, arguments: Value) -> Result<Value> {
        let path = format!("/v1/recipes/{}/call/{operation}", self.recipe);
        self.call(&path, operation, arguments).await
    }

    /// Has somebody call an operation, who joins if that has not happened yet. It must be answered.
    async fn by(&mut self, who: &'static str, operation: &str, arguments: Value) -> Result<Value> {
        if !self.members.contains_key(who) {
            let join = json!({ "detached": true, "lease": "10m", "app": who });
            let path = format!("/v1/recipes/{}/join", self.recipe);
            let joined = ask(self.client, self.exchanges, "POST", &path, Some(&join)).await?;
            let id = joined.body["participant"].as_str().context("an id")?;
            self.members.insert(who, format!("/v1/participants/{id}"));
        }
        let path = format!("{}/{operation}", self.members[who]);
        self.call(&path, operation, arguments).await
    }

    async fn call(&mut self, path: &str, operation: &str, arguments: Value) -> Result<Value> {
        let arguments = Some(&arguments).filter(|arguments| !arguments.is_null());
        let answer = ask(self.client, self.exchanges, "POST", path, arguments).await?;
        ensure!(answer.status == 200, "{} {operation}: {answer:?}", self.recipe);
        self.answered.insert(operation.to_owned());
        Ok(answer.body)
    }

    /// Recipes without claims: what is written stays.
    async fn write(&mut self) -> Result<()> {
        let calls = match self.recipe {
            "barrier" => {
                vec![("raise", Value::Null), ("lower", Value::Null), ("wait", Value::Null)]
            }
            "count-down-latch" => vec![
                ("remaining", Value::Null),
                ("count-down", json!({ "id": "one" })),
                ("wait", Value::Null),
            ],
            "counter" => vec![
                ("get", Value::Null),
                ("add", json!({ "by": 1 })),
                ("compare-and-set", json!({ "expected": 1, "value": 2 })),
            ],
            _ => vec![
                ("set", json!({ "key": "limit", "data": "low", "expected": "absent" })),
                ("get", json!({ "key": "limit" })),
                ("snapshot", Value::Null),
                ("wait", json!({ "after": 0 })),
                ("observe", Value::Null),
                ("remove", json!({ "key": "limit", "expected": "any" })),
            ],
        };
        for (operation, arguments) in calls {
            self.by("one", operation, arguments).await?;
        }
        Ok(())
    }

    async fn hold(&mut self) -> Result<()> {
        let names = json!({ "names": ["one", "other"] });
        let (ways, contenders) = match self.recipe {
            "lock" => (vec![("acquire", Value::Null), ("try-acquire", Value::Null)], Value::Null),
            "multi-lock" => {
                (vec![("acquire", names.clone()), ("try-acquire", names)], json!({ "name": "one" }))
            }
            "semaphore" => {
                self.by("one", "resize", json!({ "permits": 2 })).await?;
                (vec![("acquire", json!({ "permits": 2 }))], Value::Null)
            }
            _ => (
                ["acquire-read", "try-acquire-read", "acquire-write", "try-acquire-write"]
                    .map(|it| (it, Value::Null))
                    .into(),
                Value::Null,
            ),
        };
        for (operation, arguments) in ways {
            let granted = self.by("one", operation, arguments).await?;
            ensure!(!granted.is_null(), "{operation}: somebody else has it");
            match self.recipe {
                "semaphore" => {
                    self.once("available", Value::Null).await?;
                }
                "read-write-lock" => {
                    self.by("one", "downgrade", Value::Null).await?;
                }
                _ => {}
            }
            let line = self.once("contenders", contenders.clone()).await?;
            if self.recipe == "lock" || self.recipe == "read-write-lock" {
                self.once("revoke", json!({ "path": line[0]["path"] })).await?;
            }
            self.by("one", "release", Value::Null).await?;
        }
        Ok(())
    }

    async fn work(&mut self) -> Result<()> {
        self.once("put", json!({ "data": "one" })).await?;
        self.once("put-all", json!({ "items": ["two", "three"] })).await?;
        self.once("length", Value::Null).await?;
        self.once("peek", json!({})).await?;
        let taken = self.by("worker", "take", Value::Null).await?;
        let item = json!({ "item": taken["path"], "fence": taken["fence"] });
        self.once("ack-item", item).await?;
        self.by("worker", "ack", Value::Null).await?;
        self.by("worker", "take", Value::Null).await?;
        self.by("worker", "reject", Value::Null).await?;
        self.by("worker", "take-many", json!({})).await?;
        self.by("worker", "ack", Value::Null).await?;
        Ok(())
    }

    /// Those who are there, and see who is.
    async fn gather(&mut self) -> Result<()> {
        let name = json!({ "name": "shop" });
        let since_ever = json!({ "name": "shop", "after": 0 });
        let calls = match self.recipe {
            "double-barrier" => vec![("enter", Value::Null), ("leave", Value::Null)],
            "group-membership" => vec![
                ("join", json!({ "name": "one", "data": "here" })),
                ("update", json!({ "data": "still here" })),
                ("members", Value::Null),
                ("observe", Value::Null),
                ("wait", json!({ "after": 0 })),
                ("leave", Value::Null),
            ],
            _ => vec![
                (
                    "register",
                    json!({ "name": "shop", "address": "here:80", "metadata": [["zone", "a"]] }),
                ),
                ("resolve", name.clone()),
                ("list", Value::Null),
                ("observe", name),
                ("wait", since_ever),
                ("deregister", Value::Null),
            ],
        };
        for (operation, arguments) in calls {
            self.by("one", operation, arguments).await?;
        }
        Ok(())
    }

    async fn elect(&mut self) -> Result<()> {
        self.by("candidate", "volunteer", Value::Null).await?;
        let (client, path) = (self.client, self.members["candidate"].clone());
        eventually("the candidate to lead", async || {
            Ok((client.get(&path).await?.body["state"] == "held").then_some(()))
        })
        .await?;
        self.by("candidate", "announce", json!({ "data": "at your service" })).await?;
        self.once("leader", Value::Null).await?;
        self.by("voter", "observe", Value::Null).await?;
        self.by("candidate", "resign", Value::Null).await?;
        Ok(())
    }

    async fn decide(&mut self) -> Result<()> {
        let begin = json!({ "sites": ["site"], "payload": "pay", "within-ms": 600_000 });
        let transaction = self.by("coordinator", "begin", begin).await?;
        let by_site = json!({ "transaction": transaction, "site": "site" });
        let vote = json!({ "transaction": transaction, "site": "site", "choice": "commit" });
        let transaction = json!({ "transaction": transaction });
        self.by("site", "transactions", json!({ "site": "site" })).await?;
        self.by("site", "register", by_site).await?;
        self.by("site", "vote", vote).await?;
        self.by("site", "outcome", transaction.clone()).await?;
        self.once("status", transaction.clone()).await?;
        self.once("forget", transaction).await?;
        Ok(())
    }
}
