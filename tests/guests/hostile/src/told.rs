//! What goes on for ever, from the moment at which a test has looked at all that it wants to compare.

use wok_sdk::participant::{ContenderName, Level, UuidForm, contend, log};
use wok_sdk::time_and_chance::alarm;
use wok_sdk::zookeeper::{
    CreateMode, Error, Request, create, pipeline, set_data, wait, watch_exists,
};

use crate::attacks::{spin, trap};
use crate::bindings::exports::wok::hostile::hostile::{Attack, OnWake};
use crate::floods::pairs;
use crate::wake::{FLOOD, wake_when};

/// What wok's own limits let through, or let through once.
const NAME: usize = 100 * 1024;
const STEP: usize = 64;
const PAUSE_MS: u64 = 10;
const LISTS: usize = 16;
const READS: usize = 128;
const READ: usize = 900_000;
const WRITTEN: usize = 800_000;

pub(crate) fn attack_when_told(attack: Attack) -> Result<(), Error> {
    let (go, watch) = watch_exists("/go", 0)?;
    if go.is_none() {
        wait(&[&watch])?;
    }
    drop(watch);
    match attack {
        Attack::EmptyPairs => pairs(u32::MAX, FLOOD),
        Attack::EmptyPairsInWake => wake_when(None, Some(0), OnWake::Flood)?,
        Attack::Logs => {
            let message = "x".repeat(1000);
            for_ever(|| log(Level::Error, &message))
        }
        Attack::LongNames => long_names()?,
        Attack::Lists => {
            let lists = vec![Request::GetChildren("/".to_owned()); LISTS];
            for_ever(|| drop(pipeline(&lists)))
        }
        Attack::Reads => {
            drop(create("/big", &vec![0; READ], CreateMode::Persistent));
            let reads = vec![Request::GetData("/big".to_owned()); READS];
            for_ever(|| drop(pipeline(&reads)))
        }
        Attack::Writes => {
            drop(create("/big", b"", CreateMode::Persistent));
            let data = vec![0; WRITTEN];
            for_ever(|| drop(set_data("/big", &data, None)))
        }
        Attack::Spin => spin(),
        Attack::Trap => trap(),
        Attack::PersistThenTrap => {
            while create("/left-", b"", CreateMode::PersistentSequential).is_ok() {}
            trap();
        }
    }
    Ok(())
}

fn long_names() -> Result<(), Error> {
    let mut length = NAME;
    loop {
        let before = "x".repeat(length);
        let name = ContenderName { before, uuid: UuidForm::Simple, after: String::new() };
        length = match contend("/", &name, b"") {
            Ok(_) => length.saturating_add(STEP),
            Err(_) => length.saturating_sub(STEP),
        };
        wait(&[&alarm(PAUSE_MS, 0)])?;
    }
}

fn for_ever(mut attack: impl FnMut()) {
    loop {
        attack();
    }
}
