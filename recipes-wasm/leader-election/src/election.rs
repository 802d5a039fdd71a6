//! Reading the election's directory.

use std::iter;

use wok_sdk::zookeeper::{
    Contents, Error, Reply, Request, Watch, get_children, watch_children, watch_data, watch_exists,
};
use wok_sdk::{Line, Naming, line_up, reads};

use crate::bindings::exports::wok::leader_election::leader_election::Term;

/// The mount is the election's directory.
pub(crate) const DIRECTORY: &str = "/";

/// The znode in which a leader says that it has taken up its office.
pub(crate) const ANNOUNCEMENT: &str = "/announcement";

/// The path of a child.
pub(crate) fn path(name: &str) -> String {
    [DIRECTORY, name].concat()
}

/// Who leads.
pub(crate) fn leader(naming: Naming) -> Result<Option<Term>, Error> {
    loop {
        let children = match get_children(DIRECTORY) {
            Ok(children) => children,
            // The directory comes with the first candidate.
            Err(Error::NoNode) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(leader) = line_up(&children, naming).contenders().next() else {
            return Ok(None);
        };
        let both =
            [Request::GetData(path(&leader.name)), Request::GetData(ANNOUNCEMENT.to_owned())];
        let mut replies = reads(&both).into_iter();
        // Gone since the list was read: there is another leader by now.
        let Some(latch) = data(replies.next())? else {
            continue;
        };
        let announcement = data(replies.next())?;
        let announced = announcement.and_then(|contents| of_leader(&leader.name, contents.data));
        return Ok(Some(Term { announcement: announced, ..unannounced(&leader.name, &latch) }));
    }
}

/// Who leads, and a watch that fires when that may be over.
pub(crate) fn watch_leader(naming: Naming, tag: u64) -> Result<(Option<Term>, Watch), Error> {
    loop {
        let leader = match get_children(DIRECTORY) {
            Ok(children) => line_up(&children, naming).contenders().next(),
            Err(Error::NoNode) => None,
            Err(error) => return Err(error),
        };
        let Some(leader) = leader else {
            match watch_arrival(naming, tag)? {
                Some(watch) => return Ok((None, watch)),
                None => continue,
            }
        };
        match watch_data(&path(&leader.name), tag) {
            Ok((latch, watch)) => return Ok((Some(unannounced(&leader.name, &latch)), watch)),
            // Gone since the list was read.
            Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A watch on a directory without candidates; none if one has come by now.
fn watch_arrival(naming: Naming, tag: u64) -> Result<Option<Watch>, Error> {
    match watch_children(DIRECTORY, tag) {
        Ok((children, watch)) => {
            let is_empty = line_up(&children, naming).contenders().next().is_none();
            Ok(is_empty.then_some(watch))
        }
        Err(Error::NoNode) => {
            let (stat, watch) = watch_exists(DIRECTORY, tag)?;
            Ok(stat.is_none().then_some(watch))
        }
        Err(error) => Err(error),
    }
}

/// The data of an announcement: the leader's name before the announced bytes, because a look at the
/// leader and at the announcement is two reads, and an earlier leader's may still be there.
pub(crate) fn announcement(leader: &str, data: &[u8]) -> Vec<u8> {
    leader.bytes().chain(iter::once(b'\n')).chain(data.iter().copied()).collect()
}

fn of_leader(leader: &str, announcement: Vec<u8>) -> Option<Vec<u8>> {
    announcement.strip_prefix(leader.as_bytes())?.strip_prefix(b"\n").map(<[u8]>::to_vec)
}

fn unannounced(name: &str, latch: &Contents) -> Term {
    Term {
        path: path(name),
        fence: latch.stat.czxid,
        owner: String::from_utf8_lossy(&latch.data).into_owned(),
        announcement: None,
    }
}

/// The data of a reply; none if there is no such znode.
fn data(reply: Option<Result<Reply, Error>>) -> Result<Option<Contents>, Error> {
    match reply {
        Some(Ok(Reply::Data(contents))) => Ok(Some(contents)),
        Some(Err(Error::NoNode)) => Ok(None),
        Some(Err(error)) => Err(error),
        _ => Err(Error::Other("get-data: another reply".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_announcement_is_read_as_its_own_leaders_alone() {
        let made = announcement("a-latch-0000000001", b"http://a:80\nsince noon");
        assert_eq!(
            of_leader("a-latch-0000000001", made.clone()),
            Some(b"http://a:80\nsince noon".to_vec())
        );
        assert_eq!(of_leader("b-latch-0000000002", made.clone()), None);
        assert_eq!(of_leader("a-latch-000000000", made), None);
    }
}
