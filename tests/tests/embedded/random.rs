//! Random scripts: three sessions, eight nodes, two thousand operations; every second one with a
//! quota of so many nodes and bytes that they are now and then too many.
//!
//! `WOK_RANDOM_SEEDS` says how many scripts, `WOK_RANDOM_FIRST_SEED` with which to begin.

use std::env;

use anyhow::{Context, Result, anyhow};
use wok_tests::frames::{Fields, Opcode};
use wok_tests::wire::message::{
    Acl, Message, Rearmed, Watch, add_watch, check as check_version, check_watches, close_session,
    create, delete, exists, get_acl, get_all_children_number, get_children2, get_data,
    get_ephemerals, multi, multi_read, ping, remove_watches, set_acl, set_data, set_watches,
    set_watches2, sync,
};
use wok_tests::wire::{ExtendedTypes, Hello, Pair, Run, Seeded, Who};

const SESSIONS: usize = 3;
const OPERATIONS: usize = 2_000;
const SEEDS: u64 = 20;

/// Beneath a root of the script's own, so that the servers' root stays as it is.
const NODES: [&str; 8] = ["", "/a", "/b", "/a/x", "/a/y", "/b/z", "/c", "/a/x/q"];

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().expect(name))
}

#[test]
fn random_scripts_are_answered_alike() {
    let first = setting("WOK_RANDOM_FIRST_SEED", 1);
    let pair = Pair::start(ExtendedTypes::On).unwrap();
    for seed in first..first + setting("WOK_RANDOM_SEEDS", SEEDS) {
        let outcome = pair.compare(|run| script(run, seed));
        outcome.unwrap_or_else(|error| {
            panic!(
                "seed {seed}: {error:#}\nagain: WOK_RANDOM_FIRST_SEED={seed} WOK_RANDOM_SEEDS=1 \
                 cargo test --profile ci -p wok-tests --test embedded random_scripts"
            )
        });
    }
}

fn script(run: &mut Run, seed: u64) -> Result<()> {
    let mut seeded = Seeded::new(seed);
    let root = format!("/random-{seed}");
    let name = |count: &mut usize| {
        *count += 1;
        format!("s{count}")
    };
    let mut count = 0;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(run.connect(&name(&mut count))?);
    }
    run.call(sessions[0], create(&root))?;
    let quota = format!("/zookeeper/quota{root}");
    if seed.is_multiple_of(2) {
        run.call(sessions[0], create(&quota))?;
        let limits = Some(&b"count=4,bytes=9=;countHardLimit=12;byteHardLimit=14"[..]);
        run.call(sessions[0], create(&format!("{quota}/zookeeper_limits")).data(limits))?;
        let nothing = Some(&b"count=0,bytes=0"[..]);
        run.call(sessions[0], create(&format!("{quota}/zookeeper_stats")).data(nothing))?;
    }
    for _ in 0..OPERATIONS {
        let index = seeded.below(SESSIONS);
        let who = sessions[index];
        match seeded.below(100) {
            0 | 1 => {
                run.unordered();
                run.call(who, close_session())?;
                run.end(who)?;
                sessions[index] = run.connect(&name(&mut count))?;
            }
            2 => {
                let hello = Hello { session: Some(run.key(who)?), ..Hello::default() };
                let again = run.greet(&format!("again {index}"), &hello)?;
                run.aside(|run| run.end(who))?;
                sessions[index] = again.context("no answer")?;
            }
            _ => {
                let current = run.last_zxid(who)?;
                run.call(who, operation(&mut seeded, &root, current))?;
            }
        }
    }
    for who in &sessions {
        run.call(*who, ping())?;
    }
    dump(run, sessions[0], &root)?;
    dump(run, sessions[0], &quota)?;
    for who in &sessions[1..] {
        run.unordered();
        run.call(*who, close_session())?;
    }
    dump(run, sessions[0], &quota)?;
    dump(run, sessions[0], &root)
}

/// Everything below a node: data, facts, access lists.
fn dump(run: &mut Run, who: Who, path: &str) -> Result<()> {
    run.call(who, get_data(path, Watch::No))?;
    run.call(who, get_acl(path))?;
    let reply = run.call(who, get_children2(path, Watch::No))?.context("the connection ended")?;
    if reply.error != 0 {
        return Ok(());
    }
    let mut fields = Fields::new(&reply.body);
    let count = fields.int()?;
    let names: Result<Vec<_>, _> = (0..count).map(|_| fields.string()).collect();
    let mut names = names.map_err(|error| anyhow!("{error}"))?;
    names.sort();
    for name in names {
        dump(run, who, &format!("{path}/{name}"))?;
    }
    Ok(())
}

fn operation(seeded: &mut Seeded, root: &str, current: i64) -> Message {
    let path = format!("{root}{}", seeded.pick(&NODES));
    let version = *seeded.pick(&[-1, -1, -1, 0, 1, 2]);
    let watch = *seeded.pick(&[Watch::Leave, Watch::No]);
    match seeded.below(100) {
        0..26 => creation(seeded, &path),
        26..40 => delete(&path, version),
        40..52 => set_data(&path, *seeded.pick(&[Some(&b"abc"[..]), Some(b""), None]), version),
        52..59 => get_data(&path, watch),
        59..66 => exists(&path, watch),
        66..73 => get_children2(&path, watch),
        73..76 => add_watch(&path, *seeded.pick(&[0, 1])),
        76..78 => remove_watches(&path, *seeded.pick(&[1, 2, 3])),
        78 => check_watches(&path, *seeded.pick(&[1, 2, 3])),
        79..82 => {
            // Without READ or WRITE at times, never without ADMIN, CREATE and DELETE for long.
            let permissions = *seeded.pick(&[31, 31, 31, 30, 29, 27, 23]);
            set_acl(&path, &[Acl::anyone(permissions)], version)
        }
        82 => get_acl(&path),
        83 => get_all_children_number(&path),
        84 => get_ephemerals(root),
        85 => sync(&path),
        86..89 => {
            let paths: Vec<_> = NODES.map(|node| format!("{root}{node}")).to_vec();
            let mut one = || seeded.pick(&paths).as_str();
            let (data, exist, child) = ([one(), one()], [one()], [one(), one()]);
            let (persistent, recursive) = ([one()], [one()]);
            let since = *seeded.pick(&[0, current, current - 5]);
            let rearmed = Rearmed { data: &data, exist: &exist, child: &child };
            match seeded.below(3) {
                0 => set_watches2(since, rearmed, &persistent, &recursive),
                _ => set_watches(since, rearmed),
            }
        }
        89..91 => {
            let reads: Vec<_> = (0..seeded.below(4))
                .map(|_| get_data(&format!("{root}{}", seeded.pick(&NODES)), watch))
                .collect();
            multi_read(&reads)
        }
        _ => {
            let parts: Vec<_> = (0..=seeded.below(4)).map(|_| part(seeded, root)).collect();
            multi(&parts)
        }
    }
}

fn creation(seeded: &mut Seeded, path: &str) -> Message {
    match seeded.below(8) {
        // Longer than any test: a sweep in between comes at no certain operation. There are no
        // containers, which go at the next one.
        0..2 => create(path).flags(*seeded.pick(&[5, 6])).ttl_ms(1_000_000_000).into(),
        2..4 => create(path).by(Opcode::Create2).flags(*seeded.pick(&[0, 0, 1, 2, 3])).into(),
        _ => create(path).flags(*seeded.pick(&[0, 0, 0, 1, 2, 3])).into(),
    }
}

fn part(seeded: &mut Seeded, root: &str) -> Message {
    let path = format!("{root}{}", seeded.pick(&NODES));
    let version = *seeded.pick(&[-1, -1, 0, 1]);
    match seeded.below(10) {
        0..5 => create(&path).flags(*seeded.pick(&[0, 1, 2])).into(),
        5..7 => delete(&path, -1),
        7..9 => set_data(&path, Some(b""), version),
        _ => check_version(&path, version),
    }
}
