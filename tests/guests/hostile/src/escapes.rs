//! Paths that should not be named.

use wok_sdk::participant::{self, ContenderName, UuidForm, contend as contend_in};
use wok_sdk::zookeeper::{self, CreateMode, CreateRequest, Error, Stat, Write};

use crate::bindings::exports::wok::hostile::hostile::Line;

pub(crate) fn exists(path: &str) -> Result<Option<Stat>, Error> {
    zookeeper::exists(path)
}

pub(crate) fn get_data(path: &str) -> Result<Vec<u8>, Error> {
    zookeeper::get_data(path).map(|contents| contents.data)
}

pub(crate) fn get_children(path: &str) -> Result<Vec<String>, Error> {
    zookeeper::get_children(path).map(|children| wok_sdk::names(&children).collect())
}

pub(crate) fn create(path: &str) -> Result<String, Error> {
    zookeeper::create(path, b"escaped", CreateMode::Persistent).map(|created| created.path)
}

pub(crate) fn create_numbered(path: &str, in_multi: bool) -> Result<String, Error> {
    let mode = CreateMode::PersistentSequential;
    if !in_multi {
        return zookeeper::create(path, b"escaped", mode).map(|created| created.path);
    }
    let create = CreateRequest { path: path.to_owned(), data: b"escaped".to_vec(), mode };
    let made = zookeeper::multi(&[Write::Create(create)], &[]);
    made.map(|_| path.to_owned()).map_err(|failed| failed.error)
}

pub(crate) fn delete(path: &str) -> Result<(), Error> {
    zookeeper::delete(path, None)
}

pub(crate) fn multi(path: &str) -> Result<(), Error> {
    let create = Write::Create(CreateRequest {
        path: path.to_owned(),
        data: b"escaped".to_vec(),
        mode: CreateMode::Persistent,
    });
    zookeeper::multi(&[create], &[]).map(|_| ()).map_err(|failed| failed.error)
}

pub(crate) fn contend(parent: &str, before: String, after: String) -> Result<String, Error> {
    let name = ContenderName { before, uuid: UuidForm::Hyphenated, after };
    contend_in(parent, &name, b"escaped").map(|created| created.path)
}

pub(crate) fn contend_and_list(parent: &str, before: String, after: String) -> Result<Line, Error> {
    let name = ContenderName { before, uuid: UuidForm::Hyphenated, after };
    let (created, children) = participant::contend_and_list(parent, &name, b"escaped")?;
    Ok(Line { path: created.path, names: wok_sdk::names(&children).collect() })
}
