//! The published procedure *Enter*.

use wok_sdk::participant::{self, Fence};
use wok_sdk::zookeeper::{
    Children, Error, MultiError, Reply, Request, Watch, Write, get_children, multi, pipeline, wait,
};
use wok_sdk::{Named, confirmed, wait_until_gone};

use crate::decide::{Arrival, Count, Old, Round, arrive, count, earliest};
use crate::generation::{
    check, check_forming, look, member, members, newest, open, path, path_of, read, succeed,
};

/// How many members are looked at in one round trip.
const LOOKED_AT_ONCE: usize = 64;

/// A member that is inside.
#[derive(Debug)]
pub(crate) struct Inside {
    /// Its znode.
    pub(crate) own: Named,
    /// Its name.
    pub(crate) name: String,
    /// Its claim's fence.
    pub(crate) fence: Fence,
    /// The number of its generation.
    pub(crate) number: i32,
    /// Who is in its round.
    pub(crate) round: Round,
}

/// Enters a round of that size. `first` is the generation to look at first, if one is likely.
pub(crate) fn enter(size: u32, first: Option<i32>) -> Result<Inside, Error> {
    let name = member(&participant::id()); // 1
    let mut is_likely = first.is_some();
    let mut made_sure = None;
    let mut number = match first {
        Some(number) => number,
        None => newest()?,
    };
    loop {
        let found = look(number)?; // 2
        if found.is_none() && std::mem::take(&mut is_likely) {
            // The server may be behind: the generation may be there, and others may wait in it.
            number = newest()?;
            continue;
        }
        let arrival = arrive(found.as_ref().map(|(generation, _)| generation), size);
        let attempt = Attempt { number, size, name: &name };
        let tried = match (arrival, found) {
            // The server may be behind, and those who waited there may be gone.
            (Arrival::Refuse { .. }, _) if made_sure != Some(number) => {
                made_sure = Some(number);
                if !is_there(number)? {
                    number = newest()?;
                }
                continue;
            }
            (Arrival::Refuse { size: there }, _) => {
                if has_members(number)? {
                    return Err(refusal(number, size, there));
                }
                // What is no generation's data is left alone: nobody waits there.
                let old = if there.is_some() { Old::Close } else { Old::Keep };
                number = succeed(number, old, size)?;
                continue;
            }
            (Arrival::Succeed { old }, _) => {
                number = succeed(number, old, size)?;
                continue;
            }
            (Arrival::Complete, Some((_, watch))) => attempt.complete(watch)?,
            (_, Some((_, watch))) => attempt.join(watch)?,
            (_, None) => continue,
        };
        match tried {
            Tried::Inside(inside) => return Ok(inside),
            Tried::Again => number = newest()?,
            Tried::Full => (number, is_likely) = (number.wrapping_add(1), true),
        }
    }
}

/// Whether the generation is there, by a transaction: what is read after that is not from before this call.
fn is_there(number: i32) -> Result<bool, Error> {
    let read = Request::GetData(path(number));
    confirmed(&path(number), read).map(|found| found.is_some())
}

/// Whether anybody waits in a generation that has children.
fn has_members(number: i32) -> Result<bool, Error> {
    match get_children(&path(number)) {
        Ok(children) => Ok(members(&children).next().is_some()),
        Err(Error::NoNode) => Ok(false),
        Err(error) => Err(error),
    }
}

/// How an attempt at a generation ended.
enum Tried {
    Inside(Inside),
    /// It has changed since it was read.
    Again,
    /// It has opened with others.
    Full,
}

/// An attempt to enter a generation.
struct Attempt<'a> {
    number: i32,
    size: u32,
    name: &'a str,
}

impl Attempt<'_> {
    /// Steps 3 and 6 at once, for the one who is missing: its znode is created, the generation opens,
    /// and it is inside, if all others are still there.
    fn complete(&self, watch: Watch) -> Result<Tried, Error> {
        let children = match get_children(&path(self.number)) {
            Ok(children) => children,
            Err(Error::NoNode) => return Ok(Tried::Again),
            Err(error) => return Err(error),
        };
        let mut inside: Vec<String> = members(&children).collect();
        inside.retain(|name| name != self.name);
        let mut writes = self.creation();
        writes.extend(inside.iter().map(|name| check(path_of(self.number, name))));
        inside.push(self.name.to_owned());
        if count(&inside, self.size) != Count::Enough {
            // Some of the children were no members; or the last member has yet to open it.
            return self.join(watch);
        }
        let round = Round { size: self.size, inside };
        writes.push(open(self.number, &round));
        let own = Named::of(path_of(self.number, self.name));
        match multi(&writes, &[]) {
            Ok(_) => self.opened(own, round),
            Err(failed) => self.not_created(own, failed),
        }
    }

    /// Steps 3 to 5, for those who come early.
    fn join(&self, watch: Watch) -> Result<Tried, Error> {
        let requests = [Request::Multi(self.creation()), Request::GetChildren(path(self.number))];
        // Before the request: its caller may withdraw while it is under way.
        let own = Named::of(path_of(self.number, self.name));
        let mut replies = pipeline(&requests).into_iter();
        match replies.next() {
            Some(Ok(Reply::Multi(Ok(_)))) => {}
            Some(Ok(Reply::Multi(Err(failed)))) => return self.not_created(own, failed),
            Some(Err(error)) => return Err(error),
            _ => return Err(Error::Other("multi: another reply".to_owned())),
        }
        let children = match replies.next() {
            Some(Ok(Reply::Children(children))) => children,
            // The connection was lost behind the create.
            _ => get_children(&path(self.number))?,
        };
        self.wait(own, children, watch)
    }

    /// Step 3.
    fn creation(&self) -> Vec<Write> {
        let own = path_of(self.number, self.name);
        let owner = participant::owner();
        vec![check_forming(self.number), Named::write(&own, owner.as_bytes())]
    }

    /// The own znode was not created.
    fn not_created(&self, own: Named, failed: MultiError) -> Result<Tried, Error> {
        match failed {
            // Created, and gone by now: somebody has deleted it.
            MultiError { index: Some(1), error: Error::NoNode } => Err(Error::NoNode),
            // That of an earlier attempt, which this host is about to delete.
            MultiError { index: Some(1), error: Error::NodeExists } => {
                wait_until_gone(&own.gone())?;
                Ok(Tried::Again)
            }
            // It has opened, or is gone; or one of the others is.
            MultiError { error: Error::BadVersion | Error::NoNode, .. } => {
                own.gone();
                Ok(Tried::Again)
            }
            MultiError { error, .. } => Err(error),
        }
    }

    /// Steps 4 to 6, with a znode there: opens the generation if all are there, and waits until
    /// somebody has.
    ///
    /// The member that comes last of those who make a round sees all of them, and goes on until the
    /// generation has opened or some of them have gone. So the others need not count again.
    fn wait(&self, own: Named, children: Children, mut watch: Watch) -> Result<Tried, Error> {
        let mut members: Vec<String> = members(&children).collect();
        loop {
            match self.settle(&members)? {
                Settled::Opened(round) => return self.opened(own, round),
                Settled::Waits => wait(&[&watch])?, // 5
                Settled::Changed => 0,
            };
            // Mostly it has opened, and nobody needs to watch it any more.
            let mut generation = read(self.number)?.ok_or(Error::NoNode)?;
            if !generation.is_open() {
                (generation, watch) = look(self.number)?.ok_or(Error::NoNode)?;
            }
            if generation.is_open() {
                return match generation.round {
                    Some(round) => self.opened(own, round),
                    None => Err(refusal(self.number, self.size, None)),
                };
            }
            if count(&members, self.size) != Count::Few {
                members = self.members()?;
            }
        }
    }

    /// Step 6: the generation opens, if all who make a round are there in that very moment.
    fn settle(&self, members: &[String]) -> Result<Settled, Error> {
        let inside = match count(members, self.size) {
            Count::Few => return Ok(Settled::Waits),
            Count::Enough => members.to_vec(),
            Count::TooMany => match self.first_of(members)? {
                Some(first) => first,
                None => return Ok(Settled::Changed),
            },
        };
        let round = Round { size: self.size, inside };
        let mut writes: Vec<_> =
            round.inside.iter().map(|name| check(path_of(self.number, name))).collect();
        writes.push(open(self.number, &round));
        match multi(&writes, &[]) {
            Ok(_) => Ok(Settled::Opened(round)),
            // Somebody has opened it or has gone; or its reply was lost, and a look tells.
            Err(MultiError {
                error: Error::BadVersion | Error::NoNode | Error::OutcomeUnknown,
                ..
            }) => Ok(Settled::Changed),
            Err(failed) => Err(failed.error),
        }
    }

    /// Those of the members who came first; none if fewer are left than make a round.
    fn first_of(&self, members: &[String]) -> Result<Option<Vec<String>>, Error> {
        let mut there = Vec::with_capacity(members.len());
        for some in members.chunks(LOOKED_AT_ONCE) {
            let looks: Vec<_> =
                some.iter().map(|name| Request::Exists(path_of(self.number, name))).collect();
            for (name, reply) in some.iter().zip(pipeline(&looks)) {
                match reply {
                    Ok(Reply::Exists(Some(stat))) => there.push((stat.czxid, name.clone())),
                    Ok(Reply::Exists(None)) => {}
                    // The connection was lost.
                    Err(Error::OutcomeUnknown) => return Ok(None),
                    Ok(_) => return Err(Error::Other("exists: another reply".to_owned())),
                    Err(error) => return Err(error),
                }
            }
        }
        let first = earliest(there, self.size);
        Ok((count(&first, self.size) == Count::Enough).then_some(first))
    }

    /// The generation has opened, with this member or without it.
    fn opened(&self, own: Named, round: Round) -> Result<Tried, Error> {
        if round.has(self.name) {
            let fence = own.claim()?;
            return Ok(Tried::Inside(self.inside(own, fence, round)));
        }
        match own.release() {
            Ok(()) | Err(Error::NoNode) => Ok(Tried::Full),
            Err(error) => Err(error),
        }
    }

    fn inside(&self, own: Named, fence: Fence, round: Round) -> Inside {
        Inside { own, name: self.name.to_owned(), fence, number: self.number, round }
    }

    /// Step 4, once more.
    fn members(&self) -> Result<Vec<String>, Error> {
        get_children(&path(self.number)).map(|children| members(&children).collect())
    }
}

/// What came of a look at the members.
enum Settled {
    /// The generation has opened with these.
    Opened(Round),
    /// Some are missing.
    Waits,
    /// They have changed, or the generation has.
    Changed,
}

fn refusal(number: i32, size: u32, there: Option<u32>) -> Error {
    let path = path(number);
    Error::Invalid(match there {
        Some(there) => format!(
            "enter: {path} is for {there} members, and others wait there, but `size` is {size} \
             here: give all who use this barrier the same size"
        ),
        None => format!("enter: the data of {path} are none of a double barrier's: delete it"),
    })
}
