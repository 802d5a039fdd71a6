//! A line of contenders: where one of them stands, and who all of them are.

use std::cell::Cell;
use std::iter;

use crate::participant::{Level, log};
use crate::reading::BATCH;
use crate::reads::reads;
use crate::zookeeper::{Children, Error, Place, Reply, Request, get_children};
use crate::{Contender, Naming, Standing};

/// Contenders in the order of their counters.
///
/// [`line_up`] makes one of a list that the host has read. A `Vec` of contenders that
/// [`Naming::line`] has read is one too, so that decisions can be tested without a host.
pub trait Line {
    /// All of them, the first in line first. A component that asks for a long line whole reads every
    /// name; one that asks for a standing does not.
    fn contenders(&self) -> impl Iterator<Item = Contender>;

    /// Where `own` stands.
    fn standing(&self, own: &Contender) -> Standing;

    /// Where `own` stands if only those ahead count that are of `kind`'s own kind, which is one of the
    /// line's. `own` may be of any kind of the line.
    fn standing_among(&self, own: &Contender, kind: Naming) -> Standing;
}

impl Line for Vec<Contender> {
    fn contenders(&self) -> impl Iterator<Item = Contender> {
        self.iter().cloned()
    }

    fn standing(&self, own: &Contender) -> Standing {
        Standing::of(own, self.contenders())
    }

    fn standing_among(&self, own: &Contender, kind: Naming) -> Standing {
        let counts = |it: &Contender| it.name == own.name || kind.is_own(it);
        Standing::of(own, self.contenders().filter(counts))
    }
}

/// The contenders among the children, put in order by the host: for one place in a long line the
/// component reads one name. Names that were taken from the list before are not among them.
///
/// Warns, once in a participant's life, of a contender of another naming: the clients that use that
/// naming stand in another line, and so the first of both lines hold at once. Costs no request.
pub fn line_up(children: &Children, naming: Naming) -> impl Line {
    if let Some(stranger) = children.order(&naming.infixes()).stranger {
        warn_of(&stranger);
    }
    LinedUp { children, naming }
}

/// A line that the host keeps.
struct LinedUp<'a> {
    children: &'a Children,
    naming: Naming,
}

impl LinedUp<'_> {
    /// Puts those of a naming in order, and finds `own` among them.
    fn place(&self, naming: Naming, own: &Contender) -> Place {
        self.children.order(&naming.infixes());
        self.children.position(&own.name, own.sequence.number())
    }

    /// Where one stands that has so many ahead in the line that was made last.
    fn behind(&self, ahead: u32) -> Standing {
        let Some(between) = ahead.checked_sub(1) else { return Standing::First };
        self.children.skip(between);
        let nearest = self.children.next(1).pop().and_then(|name| self.naming.read(name));
        match nearest {
            Some(predecessor) => Standing::Behind { predecessor, ahead: ahead as usize },
            // The host and this naming do not agree on who is a contender: nothing is held.
            None => Standing::Gone,
        }
    }
}

impl Line for LinedUp<'_> {
    fn contenders(&self) -> impl Iterator<Item = Contender> {
        let mut passed = 0;
        let batch = move || {
            // From the first again: meanwhile the line may have been asked for somebody's standing.
            self.children.order(&self.naming.infixes());
            self.children.skip(passed);
            let names = self.children.next(BATCH);
            passed = passed.saturating_add(BATCH);
            names
        };
        let names = iter::repeat_with(batch).take_while(|names| !names.is_empty()).flatten();
        names.filter_map(|name| self.naming.read(name))
    }

    fn standing(&self, own: &Contender) -> Standing {
        match self.place(self.naming, own) {
            Place { is_there: false, .. } => Standing::Gone,
            Place { ahead, .. } => self.behind(ahead),
        }
    }

    fn standing_among(&self, own: &Contender, kind: Naming) -> Standing {
        if !self.place(self.naming, own).is_there {
            return Standing::Gone;
        }
        self.behind(self.place(kind.alone(), own).ahead)
    }
}

fn warn_of(stranger: &str) {
    if HAS_WARNED.replace(true) {
        return;
    }
    let warning = [
        "/",
        stranger,
        " is no contender of the naming in use here: clients of another naming do not see each \
         other's turns, and may hold at the same time; give all of them the same naming (`format` \
         of a stock recipe), or other directories",
    ];
    log(Level::Warn, &warning.concat());
}

thread_local! {
    /// Whether this participant, which has its component's memory for itself, has warned.
    static HAS_WARNED: Cell<bool> = const { Cell::new(false) };
}

/// How many owners are read in one round trip.
const OWNERS_AT_ONCE: usize = 64;

/// The contenders in `directory`, the first in line first, at most so many. Nobody where there is no
/// such directory: it comes with the first contender.
///
/// # Errors
/// As `get-children`.
pub fn line(directory: &str, naming: Naming, most: usize) -> Result<Vec<Contender>, Error> {
    let children = match get_children(directory) {
        Ok(children) => children,
        Err(Error::NoNode) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(line_up(&children, naming).contenders().take(most).collect())
}

/// Who the contenders of a line in `directory` say they are: their data as text, in the line's order.
/// None for one that has gone since the line was read, nothing for one that may not be read.
///
/// # Errors
/// As `get-data`.
pub fn owners(directory: &str, line: &[Contender]) -> Result<Vec<Option<String>>, Error> {
    let mut owners = Vec::with_capacity(line.len());
    for batch in line.chunks(OWNERS_AT_ONCE) {
        let read = |contender: &Contender| Request::GetData(contender.path(directory));
        let asks: Vec<_> = batch.iter().map(read).collect();
        for reply in reads(&asks) {
            owners.push(match reply {
                Ok(Reply::Data(read)) => Some(String::from_utf8_lossy(&read.data).into_owned()),
                Err(Error::NoNode) => None,
                // It stands in line all the same.
                Err(Error::NoAuth) => Some(String::new()),
                Ok(_) => return Err(Error::Other("get-data: another reply".to_owned())),
                Err(error) => return Err(error),
            });
        }
    }
    Ok(owners)
}
