//! The programs of `examples/clients`: apps in several languages that all behave the same.

#![allow(
    clippy::indexing_slicing,
    reason = "all of it is test code, where a panic is a failed test"
)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use wok_tests::admin::Admin;
use wok_tests::api::{Serving, Setting, serve, serve_as};
use wok_tests::guide::play_example;
use wok_tests::patience::eventually;
use wok_tests::process::{self, Program, Running, Signal};
use wok_tests::zookeeper;

const RECIPES: &str = "[recipes.orders]\nmodule = \"lock\"\nmount = \"/locks/orders\"\n\n\
                       [recipes.jobs]\nmodule = \"queue\"\nmount = \"/queues/jobs\"\n";

/// A program holds a lock that is lost, or an item that is.
const LOST: Option<i32> = Some(76);

/// A language, with its programs.
#[derive(Debug, Clone)]
struct Language {
    name: &'static str,
    lock: PathBuf,
    jobs: PathBuf,
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/clients")
}

/// All of them.
async fn languages(directory: &Path) -> Result<Vec<Language>> {
    let scripts = [
        ("Python", "lock.py", "jobs.py"),
        ("asyncio", "lock_asyncio.py", "jobs_asyncio.py"),
        ("Node", "lock.mjs", "jobs.mjs"),
        ("bash", "lock.sh", "jobs.sh"),
    ];
    let mut languages: Vec<Language> = (scripts.into_iter())
        .map(|(name, lock, jobs)| Language {
            name,
            lock: examples().join(lock),
            jobs: examples().join(jobs),
        })
        .collect();
    languages.push(Language {
        name: "Rust",
        lock: env!("CARGO_BIN_EXE_client-lock").into(),
        jobs: env!("CARGO_BIN_EXE_client-jobs").into(),
    });
    languages.push(build_go(directory).await?);
    Ok(languages)
}

/// Go's programs, which `go run` would not hand a signal to.
async fn build_go(directory: &Path) -> Result<Language> {
    let mut built = Vec::new();
    for name in ["lock", "jobs"] {
        let program = directory.join(format!("{name}-in-go"));
        let source = examples().join(format!("{name}.go"));
        let build = Program::new("go").args(["build", "-o"]).arg(&program).arg(source);
        let told = build.env("GOCACHE", directory.join("go-cache")).run().await?;
        ensure!(told.code() == Some(0), "{told:?}");
        built.push(program);
    }
    let [lock, jobs] = <[PathBuf; 2]>::try_from(built).ok().context("two programs")?;
    Ok(Language { name: "Go", lock, jobs })
}

fn start(serving: &Serving, program: &Path, words: &[&str]) -> Result<Running> {
    Program::new(program).args(words).env("WOK_SOCKET", serving.socket()).start()
}

/// The fence that a program says it holds the lock with.
async fn fence(app: &Running) -> Result<u64> {
    let told = app.wait_for_text("held with fence ").await?.text;
    told.rsplit(' ').next().context("a fence")?.parse().context(told.clone())
}

#[tokio::test]
async fn an_app_of_each_language_hands_a_lock_over_and_stops_when_it_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", RECIPES).await?;
    let admin = Admin::connect(server.address()).await?;
    for language in languages(serving.directory()).await? {
        let played = hand_over_and_lose(&serving, &admin, &language.lock).await;
        played.with_context(|| language.name)?;
    }
    Ok(())
}

async fn hand_over_and_lose(serving: &Serving, admin: &Admin, program: &Path) -> Result<()> {
    let first = start(serving, program, &["orders"])?;
    let earlier = fence(&first).await?;
    first.wait_for_text(&format!("step 2 with fence {earlier}")).await?;
    let second = start(serving, program, &["orders"])?;
    second.wait_for_text("waiting").await?;
    ensure!(!second.lines().iter().any(|line| line.text.starts_with("held")), "both hold it");
    first.signal(Signal::KILL)?;
    let later = fence(&second).await?;
    ensure!(later > earlier, "fence {later} after {earlier}");
    second.wait_for_text(&format!("step 1 with fence {later}")).await?;
    admin.delete(&holder(serving).await?).await?;
    let ended = second.ended().await?;
    ensure!(ended.code() == LOST, "{ended:?}");
    let last = ended.stdout.lines().last().unwrap_or_default();
    ensure!(last.starts_with("lost: "), "it goes on: {ended:?}");
    // One that ends by itself gives the lock back.
    let third = start(serving, program, &["orders", "2"])?.ended().await?;
    ensure!(third.code() == Some(0), "{third:?}");
    ensure!(third.stdout.contains("step 2 ") && !third.stdout.contains("step 3 "), "{third:?}");
    let line = format!("{}/locks/orders", serving.root);
    admin.wait_children(&line, "nobody in line", <[_]>::is_empty).await?;
    Ok(())
}

/// The znode of the lock's holder.
async fn holder(serving: &Serving) -> Result<String> {
    let listed = serving.client().get("/v1/participants").await?.body;
    let participants = listed["participants"].as_array().context("participants")?.iter();
    let path = participants.filter_map(|it| it["held"]["path"].as_str()).next();
    Ok(path.with_context(|| format!("nobody holds it: {listed}"))?.to_owned())
}

#[tokio::test]
async fn an_app_of_each_language_stops_when_the_daemon_is_stopped_or_killed() -> Result<()> {
    let server = zookeeper::shared().await;
    let directory = wok_tests::scratch::dir()?;
    let languages = languages(directory.path()).await?;
    for signal in [Signal::STOP, Signal::KILL] {
        let mut apps = Vec::new();
        for language in &languages {
            // One daemon for each, because they would wait for each other.
            let serving = serve(server.address(), "", RECIPES).await?;
            let app = start(&serving, &language.lock, &["orders"])?;
            let fence = fence(&app).await?;
            app.wait_for_text(&format!("step 1 with fence {fence}")).await?;
            serving.daemon.signal(signal)?;
            apps.push((language, app, serving));
        }
        for (language, app, _serving) in &apps {
            let status = app.exit().await.context(language.name)?;
            let lines = app.lines();
            ensure!(status.code() == LOST, "{signal:?}, {}: {lines:?}", language.name);
        }
    }
    Ok(())
}

/// As a user that is not root, whose daemon listens elsewhere. A variable that is empty is not set.
#[tokio::test]
async fn an_app_of_each_language_looks_where_a_daemon_listens_by_default() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", RECIPES).await?;
    let directory = serving.directory();
    let (temporary, own) = (directory.join("temporary"), format!("wok-{USER}"));
    std::fs::create_dir_all(temporary.join(&own))?;
    symlink(serving.socket(), temporary.join(&own).join("wok.sock"))?;
    let ways = [("TMPDIR", temporary.as_path()), ("XDG_RUNTIME_DIR", directory)];
    let script =
        format!(". '{}'; with_lock orders echo part", examples().join("with-lock.sh").display());
    let mut plays = vec![(PathBuf::from("bash"), vec!["-c", &script], "part\n".to_owned())];
    for Language { lock, jobs, .. } in languages(directory).await? {
        plays.push((jobs, vec!["put", "jobs", "cat"], "put cat\n".to_owned()));
        plays.push((lock, vec!["orders", "1"], String::new()));
    }
    for (program, words, told) in plays {
        for (name, value) in ways {
            let user = format!("--map-user={USER}");
            let app = Program::new(&program).args(&words).by_way_of("unshare", ["--user", &user]);
            let unset = ["WOK_SOCKET", "XDG_RUNTIME_DIR", "TMPDIR"];
            let app = unset.into_iter().fold(app, |app, name| app.env(name, ""));
            let ended = app.env(name, value).run().await?;
            let is_well = ended.code() == Some(0) && ended.stdout.ends_with(&told);
            ensure!(is_well, "{}, by {name}: {ended:?}", program.display());
        }
    }
    Ok(())
}

/// The number of a user in a namespace of its own, who is the user of these tests outside.
const USER: u32 = 12_345;

/// What becomes of an app while its daemon is told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    ItRuns,
    /// It hears nothing before the next one holds, and goes on then.
    ItIsStopped,
}

/// A script of bash with which a function works under the lock, and says what the programs say.
fn part_of_a_script() -> String {
    format!(
        ". '{}'\npart() {{ local step; for ((step = 1; ; step++)); do \
         echo \"step $step with fence $WOK_FENCE\"; sleep 0.05; done; }}\nwith_lock orders part",
        examples().join("with-lock.sh").display()
    )
}

#[tokio::test]
async fn an_app_of_each_language_stops_before_another_holds_when_its_daemon_is_told_to_end()
-> Result<()> {
    let server = zookeeper::shared().await;
    let directory = wok_tests::scratch::dir()?;
    let mut plays = vec![("with_lock", part_of_a_script(), Meanwhile::ItRuns)];
    for Language { name, lock, .. } in languages(directory.path()).await? {
        let command = format!("exec '{}' orders", lock.display());
        plays.push((name, command.clone(), Meanwhile::ItRuns));
        // In bash the work is a process of its own, and goes on while the script is stopped.
        if name != "bash" {
            plays.push((name, command, Meanwhile::ItIsStopped));
        }
    }
    for (name, command, meanwhile) in plays {
        let log = directory.path().join(format!("{name}-{meanwhile:?}"));
        let played = told_to_end(server.address(), &command, &log, meanwhile).await;
        played.with_context(|| format!("{name}, {meanwhile:?}"))?;
    }
    Ok(())
}

/// An app holds through a daemon that is told to end, and another one waits through another daemon. Both
/// append to one file, whose lines are in the order in which they were written.
async fn told_to_end(server: &str, command: &str, log: &Path, meanwhile: Meanwhile) -> Result<()> {
    let root = zookeeper::unique_path();
    let setting = || Setting { connect: server, root: Some(&root), api: "" };
    let (stopped, other) =
        tokio::try_join!(serve_as(setting(), RECIPES), serve_as(setting(), RECIPES))?;
    std::fs::write(log, "")?;
    let app = |serving: &Serving| {
        let script = format!("exec >> '{}'\n{command}", log.display());
        Program::new("bash").args(["-c", &script]).env("WOK_SOCKET", serving.socket()).start()
    };
    let lines = || -> Result<Vec<String>> {
        Ok(std::fs::read_to_string(log)?.lines().map(str::to_owned).collect())
    };
    let first = app(&stopped)?;
    let earlier = eventually("a step", async || Ok(fence_of_a_step(&lines()?, None))).await?;
    let second = app(&other)?;
    eventually("another one to wait", async || {
        let listed = other.client().get("/v1/participants").await?.body;
        Ok((listed["participants"][0]["state"] == "waiting").then_some(()))
    })
    .await?;
    if meanwhile == Meanwhile::ItIsStopped {
        let steps = lines()?.len();
        // Between two steps, so that none was allowed before and is printed after.
        eventually("one more step", async || Ok((lines()?.len() > steps).then_some(()))).await?;
        first.pause().await.with_context(|| format!("{:?}", lines()))?;
    }
    stopped.daemon.signal(Signal::TERM)?;
    let later = eventually("a step of the next holder", async || {
        ensure!(second.status().is_none(), "it ended: {:?}", second.lines());
        Ok(fence_of_a_step(&lines()?, Some(&earlier)))
    })
    .await?;
    if meanwhile == Meanwhile::ItIsStopped {
        first.signal(Signal::CONT).with_context(|| format!("{:?}", lines()))?;
    }
    let ended = first.exit().await?;
    let lines = lines()?;
    ensure!(ended.code() == LOST, "{ended:?}: {lines:#?}");
    let with =
        |fence: &str| lines.iter().position(|line| line.ends_with(&format!("fence {fence}")));
    let last = lines.iter().rposition(|line| line.ends_with(&format!("fence {earlier}")));
    ensure!(last < with(&later), "{later} holds, and {earlier} goes on: {lines:#?}");
    Ok(())
}

/// The fence of the first step that was not done with that one.
fn fence_of_a_step(lines: &[String], other: Option<&str>) -> Option<String> {
    let steps = lines.iter().filter(|line| line.starts_with("step "));
    let mut fences = steps.filter_map(|line| line.rsplit(' ').next());
    fences.find(|fence| Some(*fence) != other).map(str::to_owned)
}

#[tokio::test]
async fn an_app_of_each_language_takes_what_was_put_in_its_order() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", RECIPES).await?;
    for language in languages(serving.directory()).await? {
        let put = ["put", "jobs", "cat", "dog", "owl"];
        let put = start(&serving, &language.jobs, &put)?.ended().await?;
        ensure!(put.stdout == "put cat\nput dog\nput owl\n", "{}: {put:?}", language.name);
        let bytes = json!({ "data": { "base64": "/w==" } });
        serving.client().post("/v1/recipes/jobs/call/put", &bytes).await?;
        let take = start(&serving, &language.jobs, &["take", "jobs", "4"])?.ended().await?;
        ensure!(take.code() == Some(0), "{}: {take:?}", language.name);
        let items: Vec<&str> = (take.stdout.lines())
            .map(|line| line.split(" with fence").next().unwrap_or_default())
            .collect();
        let put = ["cat", "dog", "owl", "{\"base64\":\"/w==\"}"];
        let expected = put.map(|item| [format!("took {item}"), format!("done {item}")]);
        ensure!(items == expected.concat(), "{}: {take:?}", language.name);
        let left = serving.client().post("/v1/recipes/jobs/call/length", &Value::Null).await?;
        ensure!(left.body["items"] == 0, "{}: {left:?}", language.name);
    }
    Ok(())
}

/// Nothing is lost with a participant that has taken nothing, so the app takes with another one.
#[tokio::test]
async fn an_app_of_each_language_takes_on_when_the_daemon_is_started_again() -> Result<()> {
    let server = zookeeper::shared().await;
    let directory = wok_tests::scratch::dir()?;
    for language in languages(directory.path()).await? {
        let mut serving = serve(server.address(), "", RECIPES).await?;
        let app = start(&serving, &language.jobs, &["take", "jobs", "2"])?;
        for (signal, item) in [(Signal::KILL, "cat"), (Signal::TERM, "dog")] {
            let name = language.name;
            until_taking(&serving).await.context(name)?;
            serving.daemon.signal(signal)?;
            serving.daemon.exit().await?;
            serving.restart().await?;
            let put = start(&serving, &language.jobs, &["put", "jobs", item])?.ended().await?;
            ensure!(put.code() == Some(0), "{name}: {put:?}");
            app.wait_for_text(&format!("done {item}")).await.context(name)?;
        }
        let ended = app.ended().await?;
        ensure!(ended.code() == Some(0), "{}: {ended:?}", language.name);
        ensure!(ended.stderr.contains("joining again"), "{}: {ended:?}", language.name);
    }
    Ok(())
}

/// A participant that is of no use is not kept beside the next one: it would keep what it has taken, too.
#[tokio::test]
async fn an_app_of_each_language_leaves_before_it_joins_again() -> Result<()> {
    let server = zookeeper::shared().await;
    let sealed = "\n[recipes.sealed]\nmodule = \"queue\"\nmount = \"/queues/sealed\"\n";
    let serving = serve(server.address(), "", &format!("{RECIPES}{sealed}")).await?;
    let admin = Admin::connect(server.address()).await?;
    admin.create_unreadable(&format!("{}/queues/sealed/items", serving.root), b"").await?;
    let client = serving.client();
    for language in languages(serving.directory()).await? {
        // Its call is part of the join, which is refused.
        if language.name == "bash" {
            continue;
        }
        let app = start(&serving, &language.jobs, &["take", "sealed"])?;
        eventually("three attempts", async || {
            let lines = app.lines();
            let again = lines.iter().filter(|line| line.text.starts_with("joining again"));
            Ok((again.count() >= 3).then_some(()))
        })
        .await
        .context(language.name)?;
        eventually("no participant but the last one", async || {
            let listed = client.get("/v1/participants").await?.body;
            let participants = listed["participants"].as_array().context("participants")?;
            Ok((participants.len() <= 1).then_some(()))
        })
        .await
        .context(language.name)?;
        app.signal(Signal::KILL)?;
        app.ended().await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_app_of_each_language_ends_where_the_recipe_is_no_queue() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", RECIPES).await?;
    for language in languages(serving.directory()).await? {
        let ended = start(&serving, &language.jobs, &["take", "orders"])?.ended().await?;
        ensure!(ended.code() == Some(1), "{}: {ended:?}", language.name);
        ensure!(ended.stderr.contains("has no operation take"), "{}: {ended:?}", language.name);
    }
    Ok(())
}

/// Waits until somebody waits for an item.
async fn until_taking(serving: &Serving) -> Result<()> {
    let client = serving.client();
    eventually("an app that takes", async || {
        let listed = client.get("/v1/participants").await?.body;
        let participants = listed["participants"].as_array().context("participants")?;
        let is_taking = |it: &Value| it["operation"] == "take";
        Ok(participants.iter().any(is_taking).then_some(()))
    })
    .await
}

/// Starts a script whose function works under the lock until it is killed.
fn start_script(serving: &Serving, beats: &Path) -> Result<Running> {
    let script = format!(
        ". '{}'\npart() {{ echo \"part $WOK_FENCE\"; while :; do echo beat >> '{}'; sleep 0.05; done; }}\n\
         with_lock orders part\necho code $?",
        examples().join("with-lock.sh").display(),
        beats.display()
    );
    Program::new("bash").args(["-c", &script]).env("WOK_SOCKET", serving.socket()).start()
}

/// The same, and waits until the function works.
async fn start_part(serving: &Serving, beats: &Path) -> Result<Running> {
    let part = start_script(serving, beats)?;
    part.wait_for_text("part ").await?;
    Ok(part)
}

#[tokio::test]
async fn a_part_of_a_script_is_killed_with_its_script_and_when_the_lock_is_lost() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", RECIPES).await?;
    let admin = Admin::connect(server.address()).await?;
    let beats = serving.directory().join("beats");
    let line = format!("{}/locks/orders", serving.root);
    let part = start_part(&serving, &beats).await?;
    admin.delete(&holder(&serving).await?).await?;
    part.wait_for_text("code 76").await?;
    part.tree_gone().await?;
    // The script is killed: its part must not go on, and the lock comes back.
    let part = start_part(&serving, &beats).await?;
    part.signal(Signal::KILL)?;
    admin.wait_children(&line, "nobody in line", <[_]>::is_empty).await?;
    part.tree_gone().await?;
    // The daemon is stopped, and so answers nothing: the part is killed before the session can end.
    let part = start_part(&serving, &beats).await?;
    serving.daemon.pause().await?;
    part.wait_for_text("code 76").await?;
    part.tree_gone().await?;
    serving.daemon.signal(Signal::CONT)?;
    eventually("the lease to pass", async || {
        let listed = serving.client().get("/v1/participants").await?.body;
        Ok((listed["participants"] == json!([])).then_some(()))
    })
    .await
}

/// Stops all processes of a script where they stand.
async fn pause_tree(script: &Running) -> Result<()> {
    for process in script.tree() {
        process::pause(process).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_part_of_a_script_is_not_begun_without_its_script_or_after_its_deadline() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", RECIPES).await?;
    let (admin, client) = (Admin::connect(server.address()).await?, serving.client());
    let beats = serving.directory().join("beats");
    let line = format!("{}/locks/orders", serving.root);
    for signal in [Signal::KILL, Signal::STOP] {
        let acquire = json!({ "call": "acquire" });
        let mut holder = client.stream("/v1/recipes/orders/join", &acquire).await?;
        holder.until("held").await?;
        let script = start_script(&serving, &beats)?;
        admin.wait_children(&line, "the script in line", |names| names.len() == 2).await?;
        // It waits for the answer to its join. Its turn comes when nobody is there to look.
        match signal {
            Signal::KILL => script.signal(signal)?,
            _ => pause_tree(&script).await?,
        }
        drop(holder);
        admin.wait_children(&line, "nobody in line", <[_]>::is_empty).await?;
        if signal == Signal::STOP {
            let mut tree = script.tree().into_iter();
            tree.try_for_each(|process| process::signal(process, Signal::CONT))?;
            script.wait_for_text("code 76").await?;
        }
        script.tree_gone().await?;
        ensure!(!beats.exists(), "{signal:?}: it was begun: {:?}", script.lines());
    }
    Ok(())
}

#[tokio::test]
async fn the_app_in_bash_stops_where_it_cannot_read_its_deadline() -> Result<()> {
    let server = zookeeper::shared().await;
    let serving = serve(server.address(), "", RECIPES).await?;
    let temporary = serving.directory().join("temporary");
    std::fs::create_dir(&temporary)?;
    let app = Program::new(examples().join("lock.sh")).arg("orders");
    let app = app.env("WOK_SOCKET", serving.socket()).env("TMPDIR", &temporary).start()?;
    app.wait_for_text("step 1 with fence ").await?;
    std::fs::rename(&temporary, serving.directory().join("elsewhere"))?;
    let ended = app.ended().await?;
    ensure!(ended.code() == LOST && ended.stdout.contains("lost: "), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn the_apps_do_what_their_page_says() -> Result<()> {
    play_example("clients", &["lock.py", "jobs.py", "with-lock.sh"]).await
}
