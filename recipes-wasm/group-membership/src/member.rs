//! A member: its place in the group, and what it says of itself.

use wok_sdk::participant::Fence;
use wok_sdk::zookeeper::{
    CreateMode, Error, MultiError, SetDataRequest, Write, Written, ensure, get_data, multi,
};
use wok_sdk::{Named, child, wait_until_gone};

use crate::DIRECTORY;
use crate::decide::{Taken, taken};

/// The parts of an update: the own znode's, and the directory's.
const OF_MEMBER: Option<u32> = Some(0);

/// Somebody who has joined.
#[derive(Debug)]
pub(crate) struct Member {
    own: Named,
    name: String,
    fence: Fence,
    /// The version of its data. An update names it, so that the host can say what became of one whose
    /// reply was lost.
    version: i32,
}

impl Member {
    /// Joins as soon as nobody has that name.
    pub(crate) fn join(name: &str, data: &[u8]) -> Result<Self, Error> {
        let path = child(DIRECTORY, name);
        loop {
            // 1
            match multi(&[Named::write(&path, data)], std::slice::from_ref(&path)) {
                Ok(committed) => {
                    let own = Named::of(path);
                    let fence = committed.fence;
                    let fence = fence.ok_or_else(|| Error::Other("multi: no fence".to_owned()))?;
                    return Ok(Member { own, name: name.to_owned(), fence, version: 0 });
                }
                Err(MultiError { index: Some(_), error: Error::NoNode }) => {
                    ensure(&[DIRECTORY.to_owned()], CreateMode::Container)?; // 2
                }
                Err(MultiError { index: Some(_), error: Error::NodeExists }) => {
                    wait_for_name(&path)?; // 3
                }
                Err(MultiError { error, .. }) => {
                    // It may have happened. Dropped, and so released.
                    drop(Named::of(path));
                    return Err(error);
                }
            }
        }
    }

    /// Its znode.
    pub(crate) fn path(&self) -> &str {
        self.own.path()
    }

    /// Its fencing token.
    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    /// Says something else of itself, in a way that those who follow the group see. Answers the
    /// revision by that.
    pub(crate) fn update(&mut self, data: &[u8]) -> Result<u64, Error> {
        loop {
            let of_member = set_data(self.path(), data, Some(self.version));
            let touch = set_data(DIRECTORY, self.name.as_bytes(), None);
            match multi(&[of_member, touch], &[]) {
                Ok(committed) => {
                    let Some(Written::DataSet(stat)) = committed.written.first() else {
                        return Err(Error::Other("multi: another reply".to_owned()));
                    };
                    self.version = stat.version;
                    return Ok(stat.mzxid);
                }
                // Somebody else has set it, or an update did that its caller withdrew.
                Err(MultiError { index: OF_MEMBER, error: Error::BadVersion }) => {
                    self.version = get_data(self.path())?.stat.version;
                }
                Err(MultiError { error, .. }) => return Err(error),
            }
        }
    }

    /// Leaves.
    ///
    /// # Errors
    /// As `participant.release`. Where the server refuses, it is still a member.
    pub(crate) fn leave(&mut self) -> Result<(), Error> {
        self.own.try_release()
    }

    /// Whether it has left.
    pub(crate) fn has_left(&self) -> bool {
        self.own.is_over()
    }
}

/// Waits until the znode that has the name is gone.
fn wait_for_name(path: &str) -> Result<(), Error> {
    match get_data(path) {
        Ok(there) => match taken(there.stat.owner) {
            Taken::Wait => wait_until_gone(path).map(|_| ()),
            Taken::Refuse => Err(Error::Invalid(format!(
                "join: {path} is not ephemeral, so no member's: take another name, or delete it"
            ))),
        },
        Err(Error::NoNode) => Ok(()),
        Err(error) => Err(error),
    }
}

fn set_data(path: &str, data: &[u8], version: Option<i32>) -> Write {
    let (path, data) = (path.to_owned(), data.to_vec());
    Write::SetData(SetDataRequest { path, data, version })
}
