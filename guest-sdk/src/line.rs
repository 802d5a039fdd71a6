//! A line for people: who is in it, in order, and who they say they are.

use crate::zookeeper::{Error, Reply, Request, get_children, pipeline};
use crate::{Contender, Naming, contenders};

/// How many owners are read in one round trip.
const OWNERS_AT_ONCE: usize = 64;

/// The contenders in `directory`, the first in line first, at most so many. Nobody where there is no
/// such directory: it comes with the first contender.
///
/// Keeps no more of a long list than twice what is answered: a component's memory never shrinks.
///
/// # Errors
/// As `get-children`.
pub fn line(directory: &str, naming: Naming, most: usize) -> Result<Vec<Contender>, Error> {
    let children = match get_children(directory) {
        Ok(children) => children,
        Err(Error::NoNode) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut line = Vec::new();
    for contender in contenders(&children, naming) {
        line.push(contender);
        if line.len() >= most.saturating_mul(2) {
            Contender::sort(&mut line);
            line.truncate(most);
        }
    }
    Contender::sort(&mut line);
    line.truncate(most);
    Ok(line)
}

/// Who the contenders of a line in `directory` say they are: their data as text, in the line's order.
/// None for one that has gone since the line was read.
///
/// # Errors
/// As `get-data`.
pub fn owners(directory: &str, line: &[Contender]) -> Result<Vec<Option<String>>, Error> {
    let mut owners = Vec::with_capacity(line.len());
    for batch in line.chunks(OWNERS_AT_ONCE) {
        let read = |contender: &Contender| Request::GetData(contender.path(directory));
        let reads: Vec<_> = batch.iter().map(read).collect();
        for reply in pipeline(&reads) {
            owners.push(match reply {
                Ok(Reply::Data(read)) => Some(String::from_utf8_lossy(&read.data).into_owned()),
                Err(Error::NoNode) => None,
                Ok(_) => return Err(Error::Other("get-data: another reply".to_owned())),
                Err(error) => return Err(error),
            });
        }
    }
    Ok(owners)
}
