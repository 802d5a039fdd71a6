//! A transaction's znodes.

use wok_sdk::Named;
use wok_sdk::zookeeper::{
    Contents, CreateMode, CreateRequest, Error, MultiError, Owner, Request, SetDataRequest, Stat,
    VersionRequest, Watch, WatchRequest, Write, ensure, multi,
};

use crate::decide::{Choice, Ground, Site, Verdict};
use crate::replies::Replies;
use crate::terms::Terms;

/// The mount is the directory of all transactions.
pub(crate) const DIRECTORY: &str = "/";

/// What a transaction's name begins with. Other children are none of this recipe's.
const PREFIX: &str = "/tx-";

/// What was written once has this version, and what was not has the one before.
const WRITTEN: i32 = 1;
const UNWRITTEN: i32 = 0;

/// The znodes of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Paths(String);

impl Paths {
    /// Of a new transaction.
    pub(crate) fn new(participant: &str, number: u64) -> Self {
        Paths(format!("{PREFIX}{participant}-{number}"))
    }

    /// Of the transaction that an operation is asked about.
    ///
    /// # Errors
    /// `invalid` if that is none.
    pub(crate) fn of(transaction: &str) -> Result<Self, Error> {
        match transaction.strip_prefix(PREFIX) {
            Some(rest) if !rest.is_empty() && !rest.contains('/') => {
                Ok(Paths(transaction.to_owned()))
            }
            _ => Err(invalid(&[
                "\"",
                transaction,
                "\" is no transaction: give what `begin` answered, such as ",
                PREFIX,
                "...",
            ])),
        }
    }

    /// Of a child of the directory; none if that is no transaction.
    pub(crate) fn of_child(name: &str) -> Option<Self> {
        Paths::of(&[DIRECTORY, name].concat()).ok()
    }

    /// What the operations call the transaction by.
    pub(crate) fn transaction(&self) -> &str {
        &self.0
    }

    pub(crate) fn payload(&self) -> String {
        self.below("payload")
    }

    /// Empty at version 0, the decision at version 1.
    pub(crate) fn decision(&self) -> String {
        self.below("decision")
    }

    /// Ephemeral: the participant that began the transaction is there.
    pub(crate) fn coordinator(&self) -> String {
        self.below("coordinator")
    }

    /// Empty at version 0, the site's vote at version 1.
    pub(crate) fn vote(&self, site: &str) -> String {
        [&self.sites(), "/", site].concat()
    }

    /// Ephemeral: the participant that has registered for the site is there, and it has not voted.
    pub(crate) fn presence(&self, site: &str) -> String {
        [&self.present(), "/", site].concat()
    }

    /// Persistent: somebody has registered for the site. So everybody can tell a site that has died
    /// from one that has not started.
    pub(crate) fn registration(&self, site: &str) -> String {
        [&self.registered(), "/", site].concat()
    }

    fn sites(&self) -> String {
        self.below("sites")
    }

    fn present(&self) -> String {
        self.below("present")
    }

    fn registered(&self) -> String {
        self.below("registered")
    }

    fn below(&self, name: &str) -> String {
        [&self.0, "/", name].concat()
    }
}

/// Creates a transaction, in one `multi`: nobody sees a part of it. The coordinator's own znode settles
/// a lost reply.
pub(crate) fn create(paths: &Paths, terms: &Terms, payload: &[u8]) -> Result<Named, Error> {
    let mut writes = vec![
        persistent(paths.transaction().to_owned(), terms.data()),
        persistent(paths.payload(), payload.to_vec()),
        persistent(paths.decision(), Vec::new()),
        persistent(paths.sites(), Vec::new()),
        persistent(paths.registered(), Vec::new()),
        persistent(paths.present(), Vec::new()),
        Named::write(&paths.coordinator(), b""),
    ];
    // The content of a site's znode is left undefined: it is written by the vote.
    writes.extend(terms.sites.iter().map(|site| persistent(paths.vote(site), Vec::new())));
    // Guarded from before the request: whatever becomes of this call, the znode goes.
    let own = Named::of(paths.coordinator());
    loop {
        match multi(&writes, &[]) {
            Ok(_) => return Ok(own),
            Err(MultiError { error: Error::NoNode, .. }) => {
                ensure(&[DIRECTORY.to_owned()], CreateMode::Container)?;
            }
            Err(failed) => return Err(failed.error),
        }
    }
}

/// What the server's clock says of a transaction's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// When it is over.
    pub(crate) deadline_ms: u64,
    /// How much of it had passed when somebody voted last.
    pub(crate) passed_ms: u64,
}

impl Stamps {
    fn of(terms: &Terms, own: Stat) -> Self {
        Stamps {
            deadline_ms: own.ctime_ms.saturating_add(terms.within_ms),
            passed_ms: own.mtime_ms.saturating_sub(own.ctime_ms),
        }
    }
}

/// A transaction as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) stamps: Stamps,
    /// Its end, if it is decided, and when that was written.
    pub(crate) end: Option<(Verdict, u64)>,
    /// Its sites, and when each has voted.
    pub(crate) sites: Vec<Site>,
    pub(crate) voted_ms: Vec<u64>,
    /// One that fires when somebody votes or the transaction is decided, and one for who comes and goes.
    pub(crate) watches: Vec<Watch>,
}

/// Reads a transaction, all of it in one round trip, and watches it if there is a tag.
///
/// Whoever has registered is read before who is present: a site that is found registered and then not
/// present has died, or voted in between, which the decision checks.
pub(crate) fn look(paths: &Paths, terms: &Terms, tag: Option<u64>) -> Result<Found, Error> {
    let mut requests = vec![
        match tag {
            Some(tag) => watch_data(paths.transaction().to_owned(), tag),
            None => Request::GetData(paths.transaction().to_owned()),
        },
        Request::GetData(paths.decision()),
    ];
    requests.push(Request::GetChildren(paths.registered()));
    requests.push(match tag {
        Some(tag) => Request::WatchChildren(WatchRequest { path: paths.present(), tag }),
        None => Request::GetChildren(paths.present()),
    });
    // 1. Each site's znode is read. (The transaction's own is watched instead of them.)
    requests.extend(terms.sites.iter().map(|site| Request::GetData(paths.vote(site))));
    let mut replies = Replies::of(&requests);
    let own = replies.data()?;
    let decision = replies.data()?;
    let (registered, present) = (replies.children()?, replies.children()?);
    let stamps = Stamps::of(terms, own.stat);
    let (mut sites, mut voted_ms) = (Vec::new(), Vec::new());
    for name in &terms.sites {
        let vote = replies.data()?;
        voted_ms.push(vote.stat.mtime_ms);
        let read = read_vote(&vote);
        sites.push(Site {
            name: name.clone(),
            is_spoilt: read.is_none(),
            vote: read.flatten(),
            is_late: read.flatten().is_some() && vote.stat.mtime_ms >= stamps.deadline_ms,
            has_registered: registered.contains(name),
            is_present: present.contains(name),
        });
    }
    Ok(Found {
        stamps,
        end: read_decision(paths, &decision)?.map(|verdict| (verdict, decision.stat.mtime_ms)),
        sites,
        voted_ms,
        watches: replies.watches,
    })
}

/// A transaction that is left to its coordinator.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) stamps: Stamps,
    pub(crate) verdict: Option<Verdict>,
    /// Whether the coordinator is there.
    pub(crate) has_coordinator: bool,
    pub(crate) watches: Vec<Watch>,
}

/// Reads whether a transaction is decided, and watches for that and for the coordinator's end.
pub(crate) fn look_for_decision(paths: &Paths, terms: &Terms, tag: u64) -> Result<Left, Error> {
    let mut replies = Replies::of(&[
        Request::GetData(paths.transaction().to_owned()),
        watch_data(paths.coordinator(), tag),
        watch_data(paths.decision(), tag),
    ]);
    let own = replies.data()?;
    let has_coordinator = match replies.data() {
        Ok(_) => true,
        Err(Error::NoNode) => false,
        Err(error) => return Err(error),
    };
    let verdict = read_decision(paths, &replies.data()?)?;
    let stamps = Stamps::of(terms, own.stat);
    Ok(Left { stamps, verdict, has_coordinator, watches: replies.watches })
}

/// Reads whom a transaction asks.
pub(crate) fn terms(paths: &Paths) -> Result<Terms, Error> {
    let (terms, _, _) = begun(paths, &[])?;
    Ok(terms)
}

/// Reads whom a transaction asks, and whether it is decided.
pub(crate) fn is_decided(paths: &Paths) -> Result<(Terms, bool), Error> {
    let decision = [Request::GetData(paths.decision())];
    let (terms, _, mut replies) = begun(paths, &decision)?;
    if read_decision(paths, &replies.data()?)?.is_some() {
        return Ok((terms, true));
    }
    // The server may be behind here, too.
    let decision = Replies::confirmed(&decision)?.data()?;
    Ok((terms, read_decision(paths, &decision)?.is_some()))
}

/// Reads whom a transaction asks, and more of it. Another host may have begun it just now, and the server that
/// this one is connected to may be behind: one that does not have the transaction is asked again behind a
/// transaction of the ensemble.
fn begun(paths: &Paths, more: &[Request]) -> Result<(Terms, Stat, Replies), Error> {
    let mut requests = vec![Request::GetData(paths.transaction().to_owned())];
    requests.extend_from_slice(more);
    let mut replies = Replies::of(&requests);
    let own = match replies.data() {
        Err(Error::NoNode) => {
            replies = Replies::confirmed(&requests)?;
            replies.data()?
        }
        own => own?,
    };
    let terms = Terms::parse(&own.data).ok_or_else(|| foreign(paths.transaction()))?;
    Ok((terms, own.stat, replies))
}

/// What a site has to know before it votes.
#[derive(Debug)]
pub(crate) struct Ballot {
    pub(crate) terms: Terms,
    pub(crate) deadline_ms: u64,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) vote: Option<Choice>,
    /// Who has registered for the site, if that participant is there.
    pub(crate) present: Option<Owner>,
    pub(crate) has_registered: bool,
}

/// Reads what a site has to know.
///
/// # Errors
/// `invalid` if the transaction does not ask the site.
pub(crate) fn ballot(paths: &Paths, site: &str) -> Result<Ballot, Error> {
    let more = [
        Request::GetData(paths.decision()),
        Request::Exists(paths.presence(site)),
        Request::Exists(paths.registration(site)),
        Request::GetData(paths.vote(site)),
    ];
    let (terms, own, mut replies) = begun(paths, &more)?;
    if terms.place(site).is_none() {
        let transaction = paths.transaction();
        return Err(invalid(&[transaction, " does not ask the site ", site]));
    }
    let verdict = read_decision(paths, &replies.data()?)?;
    let present = replies.exists()?.map(|stat| stat.owner);
    let has_registered = replies.exists()?.is_some();
    let vote = read_vote(&replies.data()?).ok_or_else(|| foreign(&paths.vote(site)))?;
    let deadline_ms = Stamps::of(&terms, own).deadline_ms;
    Ok(Ballot { terms, deadline_ms, verdict, vote, present, has_registered })
}

/// What became of a write that happens only if the transaction is as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Yes,
    /// It is not any more what was read, or the reply was lost: look again. All that is written here is
    /// written once, so a second attempt finds what the first one did.
    LookAgain,
}

/// Casts a vote: only while nothing is decided, and once. It sets the transaction's own data to what
/// they are, so that one watch tells of all votes and its version counts them, and takes the mark of
/// presence away.
pub(crate) fn cast(
    paths: &Paths,
    site: &str,
    choice: Choice,
    ballot: &Ballot,
) -> Result<Done, Error> {
    let mut writes = vec![
        check(paths.decision(), UNWRITTEN),
        set(paths.vote(site), choice.word().as_bytes().to_vec(), Some(UNWRITTEN)),
        set(paths.transaction().to_owned(), ballot.terms.data(), None),
    ];
    if ballot.present.is_some() {
        writes.push(delete(paths.presence(site), None));
    }
    write(&writes)
}

/// Writes the decision down: only if what it rests on is so, and once. The transaction's own data are
/// set along with it, for those who watch that.
pub(crate) fn decide(
    paths: &Paths,
    terms: &Terms,
    verdict: &Verdict,
    grounds: &[Ground],
) -> Result<Done, Error> {
    let mut writes = Vec::with_capacity(grounds.len() + 2);
    for ground in grounds {
        let (place, version) = match ground {
            Ground::HasVoted(place) => (place, WRITTEN),
            Ground::HasNotVoted(place) => (place, UNWRITTEN),
        };
        let site = terms.sites.get(*place);
        writes.extend(site.map(|site| check(paths.vote(site), version)));
    }
    writes.push(set(paths.decision(), verdict.data(), Some(UNWRITTEN)));
    writes.push(set(paths.transaction().to_owned(), terms.data(), None));
    write(&writes)
}

/// Registers for a site. The znode of its own settles a lost reply.
pub(crate) fn register(paths: &Paths, site: &str, ballot: &Ballot) -> Result<Done, Error> {
    let mut writes = vec![check(paths.decision(), UNWRITTEN), check(paths.vote(site), UNWRITTEN)];
    if !ballot.has_registered {
        writes.push(persistent(paths.registration(site), Vec::new()));
    }
    writes.push(Named::write(&paths.presence(site), b""));
    write(&writes)
}

/// What keeps a decided transaction from being deleted.
#[derive(Debug)]
pub(crate) enum Deleted {
    Yes,
    /// This own znode of a participant is gone, which goes when that hears that it is decided.
    NotBefore(String),
    /// It has changed, or the reply was lost.
    LookAgain,
}

/// Deletes a transaction that is decided, in one `multi`, once nobody has a znode of its own in it. With
/// `what_is_there` it looks for what somebody else may have deleted already.
pub(crate) fn delete_all(
    paths: &Paths,
    terms: &Terms,
    what_is_there: bool,
) -> Result<Deleted, Error> {
    let own = paths.transaction().to_owned();
    let mut requests = vec![
        Request::GetChildren(paths.registered()),
        Request::GetChildren(paths.present()),
        Request::Exists(paths.coordinator()),
    ];
    if what_is_there {
        requests.extend([own.clone(), paths.sites()].map(Request::GetChildren));
    }
    let mut replies = Replies::of(&requests);
    let (registered, present) = (or_none(replies.children())?, or_none(replies.children())?);
    if replies.exists()?.is_some() {
        return Ok(Deleted::NotBefore(paths.coordinator()));
    }
    let there = match what_is_there {
        true => Some((replies.children()?, or_none(replies.children())?)),
        false => None,
    };
    let mut writes = vec![delete(paths.decision(), Some(WRITTEN))];
    for site in &terms.sites {
        if present.contains(site) {
            return Ok(Deleted::NotBefore(paths.presence(site)));
        }
        if registered.contains(site) {
            writes.push(delete(paths.registration(site), None));
        }
        if there.as_ref().is_none_or(|(_, votes)| votes.contains(site)) {
            writes.push(delete(paths.vote(site), None));
        }
    }
    let is_there = |path: &String| {
        let all = there.as_ref().map(|(all, _)| all);
        all.is_none_or(|all| all.iter().any(|name| *path == paths.below(name)))
    };
    let parts = [paths.payload(), paths.sites(), paths.registered(), paths.present()];
    writes.extend(parts.into_iter().filter(is_there).chain([own]).map(|path| delete(path, None)));
    Ok(match write(&writes)? {
        Done::Yes => Deleted::Yes,
        Done::LookAgain => Deleted::LookAgain,
    })
}

/// None of them where their directory is missing.
fn or_none(children: Result<Vec<String>, Error>) -> Result<Vec<String>, Error> {
    match children {
        Err(Error::NoNode) => Ok(Vec::new()),
        children => children,
    }
}

fn write(writes: &[Write]) -> Result<Done, Error> {
    let Err(failed) = multi(writes, &[]) else { return Ok(Done::Yes) };
    let part = failed.index.and_then(|part| writes.get(part as usize));
    if let Some(damage) = damage(part, &failed.error) {
        return Err(Error::Other(damage));
    }
    match failed.error {
        Error::BadVersion | Error::NoNode | Error::NodeExists | Error::OutcomeUnknown => {
            Ok(Done::LookAgain)
        }
        error => Err(error),
    }
}

/// What somebody else has done to the transaction, if no other look would find it: a part that comes behind
/// the first was refused, so the transaction is there.
fn damage(part: Option<&Write>, error: &Error) -> Option<String> {
    match (part?, error) {
        (Write::Create(create), Error::NoNode) => {
            Some([&create.path, " cannot be created: its directory is missing"].concat())
        }
        (Write::Delete(delete), Error::NotEmpty) => {
            Some([&delete.path, " has a child that is none of this recipe's: delete that"].concat())
        }
        _ => None,
    }
}

/// A vote counts at the version at which it is written: at any other somebody else has written it, and
/// no decision could rest on it. None if that is so.
pub(crate) fn read_vote(contents: &Contents) -> Option<Option<Choice>> {
    match contents.stat.version {
        UNWRITTEN => Some(None),
        WRITTEN => Choice::parse(&contents.data).map(Some),
        _ => None,
    }
}

pub(crate) fn read_decision(paths: &Paths, contents: &Contents) -> Result<Option<Verdict>, Error> {
    let verdict = match contents.stat.version {
        UNWRITTEN => return Ok(None),
        WRITTEN => Verdict::parse(&contents.data),
        _ => None,
    };
    verdict.map(Some).ok_or_else(|| foreign(&paths.decision()))
}

fn foreign(path: &str) -> Error {
    Error::Other([path, " was written by somebody else than this recipe"].concat())
}

/// The error `invalid` with the text that the parts are. They are put together in one place, which saves
/// code.
#[inline(never)]
pub(crate) fn invalid(parts: &[&str]) -> Error {
    Error::Invalid(parts.concat())
}

fn persistent(path: String, data: Vec<u8>) -> Write {
    Write::Create(CreateRequest { path, data, mode: CreateMode::Persistent })
}

fn set(path: String, data: Vec<u8>, version: Option<i32>) -> Write {
    Write::SetData(SetDataRequest { path, data, version })
}

fn check(path: String, version: i32) -> Write {
    Write::Check(VersionRequest { path, version: Some(version) })
}

fn delete(path: String, version: Option<i32>) -> Write {
    Write::Delete(VersionRequest { path, version })
}

pub(crate) fn watch_data(path: String, tag: u64) -> Request {
    Request::WatchData(WatchRequest { path, tag })
}
