//! Too much of what is allowed.

use wok_sdk::participant::{Level, emit, id, log};
use wok_sdk::time_and_chance::{alarm, now_ms};
use wok_sdk::zookeeper::{
    Children, CreateMode, CreateRequest, Error, Request, VersionRequest, Watch, Write, create,
    exists, get_children, multi, pipeline, set_data, wait, watch_children, watch_data,
    watch_exists,
};

use crate::attacks::NEVER_MS;
use crate::bindings::exports::wok::hostile::hostile::{Call, Handle, Hoarded};

/// A handle that is kept for being kept.
pub(crate) enum Hoard {
    Watch { _kept: Watch },
    Children { _kept: Children },
}

pub(crate) fn length(hoard: &[Hoard]) -> u32 {
    u32::try_from(hoard.len()).unwrap_or(u32::MAX)
}

pub(crate) fn hoard(hoard: &mut Vec<Hoard>, handle: Handle, count: u32) -> Hoarded {
    until_refused(count, |number| {
        hoard.push(one(handle, number)?);
        Ok(())
    })
}

fn one(handle: Handle, number: u32) -> Result<Hoard, Error> {
    let tag = u64::from(number);
    Ok(match handle {
        Handle::WatchData => Hoard::Watch { _kept: watch_data("/", tag)?.1 },
        Handle::WatchExists => Hoard::Watch { _kept: watch_exists(&absent(number), tag)?.1 },
        Handle::WatchChildren => Hoard::Watch { _kept: watch_children("/", tag)?.1 },
        Handle::Children => Hoard::Children { _kept: get_children("/")? },
        Handle::Alarm => Hoard::Watch { _kept: alarm(NEVER_MS, tag) },
    })
}

pub(crate) fn calls(call: Call, count: u32) -> u32 {
    let answered = (0..count).filter(|_| match call {
        Call::Id => !id().is_empty(),
        Call::Now => now_ms() < u64::MAX,
        Call::Exists => exists("/").is_ok(),
    });
    u32::try_from(answered.count()).unwrap_or(u32::MAX)
}

pub(crate) fn alarms(count: u32) -> Hoarded {
    until_refused(count, |number| wait(&[&alarm(0, u64::from(number))]).map(|_| ()))
}

pub(crate) fn logs(count: u32, bytes: u32) {
    let message = text(bytes);
    for _ in 0..count {
        log(Level::Error, &message);
    }
}

pub(crate) fn events(count: u32, bytes: u32) {
    let detail = [("text".to_owned(), text(bytes))];
    for _ in 0..count {
        emit("flood", &detail);
    }
}

pub(crate) fn pairs(count: u32, pairs: u32) {
    let pairs = vec![(String::new(), String::new()); usize::try_from(pairs).unwrap_or(usize::MAX)];
    for _ in 0..count {
        emit("flood", &pairs);
    }
}

pub(crate) fn persist(count: u32) -> Hoarded {
    drop(create("/items", b"", CreateMode::Persistent));
    until_refused(count, |number| {
        create(&format!("/items/{number}"), b"", CreateMode::Persistent).map(|_| ())
    })
}

pub(crate) fn reads(path: &str, count: u32) -> u32 {
    let read = Request::GetData(path.to_owned());
    let reads = vec![read; usize::try_from(count).unwrap_or(usize::MAX)];
    let read = pipeline(&reads).into_iter().filter(|reply| reply.is_ok());
    u32::try_from(read.count()).unwrap_or(u32::MAX)
}

pub(crate) fn writes(count: u32, bytes: u32) -> Result<(), Error> {
    drop(create("/written", b"", CreateMode::Persistent));
    let data = text(bytes);
    (0..count).try_for_each(|_| set_data("/written", data.as_bytes(), None).map(|_| ()))
}

pub(crate) fn big_create(bytes: u32) -> Result<(), Error> {
    create("/big", text(bytes).as_bytes(), CreateMode::Persistent).map(|_| ())
}

pub(crate) fn creates(count: u32) -> Hoarded {
    until_refused(count, |number| {
        create(&format!("/flood-{number}"), b"", CreateMode::Ephemeral).map(|_| ())
    })
}

pub(crate) fn claims(count: u32) -> Result<(), Error> {
    let paths: Vec<String> = (0..count).map(|number| format!("/claim-{number}")).collect();
    wok_sdk::participant::claim_all(&paths).map(|_| ())
}

pub(crate) fn big_multi(count: u32) -> Result<(), Error> {
    let check = Write::Check(VersionRequest { path: "/".to_owned(), version: None });
    let create = Write::Create(CreateRequest {
        path: "/multi".to_owned(),
        data: Vec::new(),
        mode: CreateMode::Persistent,
    });
    let mut writes = vec![check; usize::try_from(count).unwrap_or(usize::MAX)];
    writes.push(create);
    multi(&writes, &[]).map(|_| ()).map_err(|failed| failed.error)
}

pub(crate) fn big_pipeline(count: u32) -> u32 {
    let reads: Vec<_> = (0..count).map(|_| Request::Exists("/".to_owned())).collect();
    let answered = pipeline(&reads).into_iter().filter(|reply| reply.is_ok());
    u32::try_from(answered.count()).unwrap_or(u32::MAX)
}

pub(crate) fn big_list() -> Result<u32, Error> {
    let children = get_children("/")?;
    Ok(u32::try_from(children.next(u32::MAX).len()).unwrap_or(u32::MAX))
}

pub(crate) fn order_flood(lines: u8, infixes: u32, bytes: u32) -> Result<(), Error> {
    let children = get_children("/")?;
    for line in 0..lines {
        let infix = char::from(b'a'.wrapping_add(line)).to_string().repeat(bytes as usize);
        let infixes: Vec<String> = (0..infixes).map(|_| infix.clone()).collect();
        children.order(&infixes);
    }
    Ok(())
}

fn until_refused(count: u32, mut attempt: impl FnMut(u32) -> Result<(), Error>) -> Hoarded {
    for number in 0..count {
        if let Err(error) = attempt(number) {
            return Hoarded { count: number, error: Some(error) };
        }
    }
    Hoarded { count, error: None }
}

fn absent(number: u32) -> String {
    format!("/absent-{number}")
}

fn text(bytes: u32) -> String {
    "x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX))
}
