//! Producers and consumers that are killed, over an ensemble whose leader is killed.
//!
//! All that they do stands in one file, in order, and so does who was killed. An item may be taken more often
//! than once only if something was killed between: a process of the consumer that had it, or the leader.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, kill_process};
use serde_json::Value;
use tokio::time::MissedTickBehavior;
use wok_tests::admin::Admin;
use wok_tests::patience::eventually;
use wok_tests::process::{OrderFile, Program, Running, Signal, wok_binary};
use wok_tests::wire::Seeded;
use wok_tests::zookeeper::{Ensemble, unique_path};

/// How many of each take part.
const EACH: usize = 4;

/// How many processes are killed, one each second, unless `WOK_QUEUE_KILLS` says otherwise.
const KILLS: usize = 10;

/// How often one is killed.
const PERIOD: Duration = Duration::from_secs(1);

/// Puts numbered items in until there is a file `stop`, and writes down what was asked and acknowledged.
const PRODUCER: &str = r#"
number=0
until [ -e "$STOP" ]; do
    number=$((number + 1)) data=$NAME.$number
    eval "$ASKED"
    $CALL put data=$data > /dev/null 2>&1 && eval "$PUT"
done
"#;

/// Takes items until there is a file `stop`.
const CONSUMER: &str = r#"
until [ -e "$STOP" ]; do
    eval "$TRIES"
    $HOLD --wait 1s take -- sh -c "$WORK" > /dev/null 2>&1
done
"#;

/// The work on one: to write down what it is, and that it is done. Where the one who tells what it is has been
/// killed, the item goes back.
const WORK: &str = r#"
data=$($CALL --output json peek item=$WOK_CLAIM_PATH | sed 's/.*"data":"\([^"]*\)".*/\1/')
[ -n "$data" ] || exit 1
eval "$TAKEN"
$CALL ack-item item=$WOK_CLAIM_PATH fence=$WOK_FENCE > /dev/null 2>&1 && eval "$DONE"
"#;

/// A queue with those who use it.
struct Scene<'a> {
    servers: String,
    order: &'a OrderFile,
}

impl Scene<'_> {
    fn stop(&self) -> Result<()> {
        Ok(std::fs::write(self.order.path().with_extension("stop"), "")?)
    }

    fn member(&self, name: &str, script: &str, path: &str) -> Result<Running> {
        let (wok, servers, order) = (wok_binary()?, &self.servers, self.order);
        let with = |command: &str| {
            let wok = wok.display();
            format!("{wok} {command} queue --mount {path} --connect {servers} --session-timeout 6s")
        };
        Program::shell(script)
            .env("NAME", name)
            .env("STOP", order.path().with_extension("stop"))
            .env("CALL", with("call"))
            .env("HOLD", with("hold"))
            .env("WORK", WORK)
            .env("ASKED", order.append("asked $data"))
            .env("PUT", order.append("put $data"))
            .env("TRIES", order.append("tries $NAME"))
            .env("TAKEN", order.append("taken $data by $NAME"))
            .env("DONE", order.append("done $data by $NAME"))
            .start()
    }

    /// Takes what is left, the oldest first, and answers it. Nobody else takes any more.
    async fn drain(&self, admin: &Admin, path: &str) -> Result<Vec<String>> {
        let mut left = Vec::new();
        while !admin.children(&format!("{path}/items")).await?.is_empty() {
            let taken = Program::wok()?
                .args(["call", "queue", "--mount", path, "--connect", &self.servers])
                .args(["--output", "json", "--config", "delivery=at-most-once"])
                .args(["--wait", "10s", "take-many"])
                .run()
                .await?;
            // The server that was asked for the list may have been behind.
            if taken.code() == Some(75) {
                continue;
            }
            ensure!(taken.code() == Some(0), "{taken:?}");
            let items: Vec<Value> = serde_json::from_str(&taken.stdout)?;
            for item in &items {
                left.push(item["data"].as_str().context("the data of an item")?.to_owned());
            }
        }
        Ok(left)
    }
}

/// Whether the process runs wok. One that has ended runs nothing, though it may not be buried yet.
fn runs_wok(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // `1234 (wok) S …`; Z and X are states of the dead.
    let state = stat.split_once(" (wok) ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Kills a process of wok of a random member, and writes down whose: before it is killed, as the consequences
/// come at once. What writes the lines down is not killed half-way. False if there was none to kill.
fn kill_one(members: &[(String, Running)], order: &OrderFile, chance: &mut Seeded) -> Result<bool> {
    let (name, victim) = chance.pick(members);
    let pids: Vec<u32> = victim.tree().into_iter().filter(|pid| runs_wok(*pid)).collect();
    if pids.is_empty() {
        return Ok(false);
    }
    let pid = Pid::from_raw(i32::try_from(*chance.pick(&pids))?).context("a process")?;
    order.write(&format!("aims {name}"))?;
    // It may have ended by itself.
    let is_killed = kill_process(pid, Signal::KILL).is_ok();
    if !is_killed {
        order.write(&format!("misses {name}"))?;
    }
    Ok(is_killed)
}

/// That an item was taken.
#[derive(Clone, Copy, Debug)]
struct Take<'a> {
    by: &'a str,
    /// The line at which its consumer began to try.
    tried: usize,
    at: usize,
}

/// What stands in the file.
#[derive(Debug, Default)]
struct Journal<'a> {
    asked: BTreeSet<&'a str>,
    put: BTreeSet<&'a str>,
    taken: BTreeMap<&'a str, Vec<Take<'a>>>,
    done: BTreeMap<&'a str, usize>,
    /// The items in the order in which they were taken for the first time.
    first: Vec<&'a str>,
    /// Who was killed, at which lines.
    killed: Vec<(usize, &'a str)>,
    /// From the line at which the leader was about to be killed to the one at which everybody had gone on.
    without_leader: Option<(usize, usize)>,
    lines: usize,
}

impl<'a> Journal<'a> {
    fn read(labels: &'a [String]) -> Result<Self> {
        let (mut journal, mut tries) =
            (Journal { lines: labels.len(), ..Journal::default() }, BTreeMap::new());
        for (at, label) in labels.iter().enumerate() {
            let words: Vec<&str> = label.split(' ').collect();
            match *words.as_slice() {
                ["asked", item] => {
                    journal.asked.insert(item);
                }
                ["put", item] => {
                    journal.put.insert(item);
                }
                ["tries", name] => {
                    tries.insert(name, at);
                }
                ["taken", item, "by", by] => {
                    let tried = *tries.get(by).context("who takes has tried")?;
                    let takes = journal.taken.entry(item).or_default();
                    if takes.is_empty() {
                        journal.first.push(item);
                    }
                    takes.push(Take { by, tried, at });
                }
                ["done", item, "by", _] => *journal.done.entry(item).or_default() += 1,
                ["aims", name] => journal.killed.push((at, name)),
                ["misses", _] => {
                    journal.killed.pop();
                }
                ["leader", "falls"] => journal.without_leader = Some((at, labels.len())),
                ["leader", "followed"] => {
                    let (_, end) = journal.without_leader.as_mut().context("a leader that fell")?;
                    *end = at;
                }
                _ => anyhow::bail!("what is {label:?}?"),
            }
        }
        Ok(journal)
    }

    /// Whether something was killed while the item was taken, which was until that line at the latest.
    fn is_excused(&self, take: Take<'_>, until: usize) -> bool {
        let during = take.tried..until;
        let leader = self.without_leader;
        leader.is_some_and(|(from, to)| from < until && take.tried < to)
            || self.killed.iter().any(|(at, whom)| *whom == take.by && during.contains(at))
    }

    /// Each item was taken once where nothing was killed between, and is gone once it is done; each that was
    /// acknowledged to its producer was taken, then or in the end.
    fn check(&self, left: &[String]) {
        for item in &self.put {
            let is_there = self.taken.contains_key(item) || left.iter().any(|it| it == item);
            assert!(is_there, "{item} is lost");
        }
        let unique: BTreeSet<&String> = left.iter().collect();
        assert_eq!(unique.len(), left.len(), "an item was in the queue twice: {left:?}");
        for item in left.iter().map(String::as_str).chain(self.taken.keys().copied()) {
            assert!(self.asked.contains(item), "{item} was made up");
        }
        for (item, takes) in &self.taken {
            let (times, is_left) = (self.done.get(item).copied(), left.iter().any(|it| it == item));
            assert!(times.is_none_or(|times| times == 1 && !is_left), "{item} was done {times:?}");
            for (index, take) in takes.iter().enumerate() {
                let next = takes.get(index + 1).map(|next| next.at);
                // With the last one it is done.
                if next.is_none() && times.is_some() {
                    continue;
                }
                assert!(
                    self.is_excused(*take, next.unwrap_or(self.lines)),
                    "{item} came back, and nobody had killed {}: taken {takes:?}, done {times:?}, left \
                     {is_left}; killed {:?}, without a leader {:?}",
                    take.by,
                    self.killed,
                    self.without_leader
                );
            }
        }
    }

    /// What one producer put in, one consumer has taken in that order, and what is left is behind it.
    fn check_order(&self, producer: &str, left: &[String]) -> Result<()> {
        let number = |item: &str| -> Option<Result<u32, std::num::ParseIntError>> {
            item.strip_prefix(producer)?.strip_prefix('.').map(str::parse)
        };
        let never_taken =
            left.iter().map(String::as_str).filter(|it| !self.taken.contains_key(*it));
        let numbers = self.first.iter().copied().chain(never_taken).filter_map(number);
        let numbers: Vec<u32> = numbers.collect::<Result<_, _>>()?;
        assert!(numbers.len() > 1, "{producer} has put {numbers:?} in");
        assert!(numbers.is_sorted(), "{producer}: {numbers:?}");
        Ok(())
    }
}

/// Kills the leader, and waits until each consumer has done an item since there is another one.
async fn change_leader(
    ensemble: &mut Ensemble,
    order: &OrderFile,
    consumers: &[String],
) -> Result<()> {
    order.write("leader falls")?;
    ensemble.change_leader().await?;
    let seen = order.labels()?.len();
    eventually("all consumers to go on", async || {
        let labels = order.labels()?;
        let since = labels.get(seen..).unwrap_or_default();
        let is_done_by = |name: &String| {
            let by = format!(" by {name}");
            since.iter().any(|it| it.starts_with("done ") && it.ends_with(&by))
        };
        Ok(consumers.iter().all(is_done_by).then_some(()))
    })
    .await?;
    order.write("leader followed")
}

fn number(variable: &str) -> Result<Option<u64>> {
    match std::env::var(variable) {
        Ok(text) => Ok(Some(text.parse().with_context(|| format!("{variable}={text}"))?)),
        Err(_) => Ok(None),
    }
}

#[tokio::test]
async fn no_item_is_lost_or_done_twice_while_anybody_is_killed() -> Result<()> {
    let kills = number("WOK_QUEUE_KILLS")?.map_or(Ok(KILLS), usize::try_from)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let seed = number("WOK_QUEUE_SEED")?.map_or_else(|| u64::try_from(now), Ok)?;
    println!("WOK_QUEUE_SEED={seed}");
    let mut chance = Seeded::new(seed);
    let mut ensemble = Ensemble::start(3).await?;
    let order = OrderFile::new()?;
    let scene = Scene { servers: ensemble.connect_string(), order: &order };
    let (path, path_of_two) = (unique_path(), unique_path());
    let (mut members, mut consumers) = (Vec::new(), vec!["sole".to_owned()]);
    for number in 0..EACH {
        let (producer, consumer) = (format!("p{number}"), format!("c{number}"));
        consumers.push(consumer.clone());
        members.push((producer.clone(), scene.member(&producer, PRODUCER, &path)?));
        members.push((consumer.clone(), scene.member(&consumer, CONSUMER, &path)?));
    }
    // One producer and one consumer, whom nobody kills: a consumer that is killed keeps its item until its
    // session ends, and is overtaken by itself.
    let two = [
        scene.member("lone", PRODUCER, &path_of_two)?,
        scene.member("sole", CONSUMER, &path_of_two)?,
    ];
    eventually("an item that is done", async || {
        Ok(order.labels()?.iter().any(|it| it.starts_with("done ")).then_some(()))
    })
    .await?;
    let mut seconds = tokio::time::interval(PERIOD);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for kill in 1..=kills {
        seconds.tick().await;
        eventually("somebody to kill", async || {
            Ok(kill_one(&members, &order, &mut chance)?.then_some(()))
        })
        .await?;
        if kill == kills / 2 {
            change_leader(&mut ensemble, &order, &consumers).await?;
        }
    }
    scene.stop()?;
    for member in members.iter().map(|(_, member)| member).chain(&two) {
        member.ended().await?;
    }

    let admin = Admin::connect(&scene.servers).await?;
    let mut left = Vec::new();
    for path in [&path, &path_of_two] {
        for directory in ["claims", "consumers", "markers"] {
            let directory = format!("{path}/{directory}");
            // Those of who was killed go with their sessions.
            admin.wait_children(&directory, "nobody to be left", <[String]>::is_empty).await?;
        }
        left.extend(scene.drain(&admin, path).await?);
    }
    let labels = order.labels()?;
    let journal = Journal::read(&labels)?;
    assert_eq!(journal.killed.len(), kills, "{:?}", journal.killed);
    journal.check(&left);
    journal.check_order("lone", &left)?;
    let again = journal.taken.values().filter(|takes| takes.len() > 1).count();
    println!(
        "figure: {kills} killed, {} items put in, {} done, {} left, {again} taken again",
        journal.asked.len(),
        journal.done.len(),
        left.len()
    );
    Ok(())
}
