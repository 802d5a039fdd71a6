//! Where the queue's znodes are.

use std::cell::Cell;

use wok_sdk::names;
use wok_sdk::participant::{Level, log};
use wok_sdk::zookeeper::{CreateMode, Error, ensure, get_children};

use crate::decide::Layout;

/// The mount itself, where nothing but the directories has to stand.
const MOUNT: &str = "/";

/// The items, and nothing else: clients of other kinds take whatever stands here.
pub(crate) const ITEMS: &str = "/items";

/// For each item that is taken and not acknowledged, an ephemeral znode of its name.
pub(crate) const CLAIMS: &str = "/claims";

/// The line of consumers that wait.
pub(crate) const CONSUMERS: &str = "/consumers";

/// The items that were taken as often as they may be.
pub(crate) const DEAD_LETTERS: &str = "/dead-letters";

/// The participants' markers.
pub(crate) const MARKERS: &str = "/markers";

/// The path of an item.
pub(crate) fn item(name: &str) -> String {
    [ITEMS, "/", name].concat()
}

/// Adds the item's name to an error of the server's that keeps the item from being taken: an operator has
/// to know which item keeps consumers from all the others.
pub(crate) fn in_the_way(name: &str, error: Error) -> Error {
    cannot("be taken", name, error)
}

/// The same for one that was taken, and is not done because it stays.
pub(crate) fn stays(name: &str, error: Error) -> Error {
    cannot("be removed", name, error)
}

/// Says in the log that an item which was taken too often stays where it is, and why. That keeps nobody from
/// the others: the next list shows it again.
///
/// # Errors
/// Those that have another cause than the item or the directory of dead letters.
pub(crate) fn unburied(name: &str, error: Error) -> Result<(), Error> {
    let why = match error {
        Error::NoAuth => {
            "an ACL, its own or that of the dead letters, does not let this participant move it"
        }
        Error::QuotaExceeded => "the quota of the dead letters is used up: delete some",
        Error::NotEmpty => "it has children, and an item has none: delete them",
        Error::OverLimit(ref text) => text,
        other => return Err(other),
    };
    let text = [&item(name), " cannot become a dead letter, and stays: ", why].concat();
    log(Level::Warn, &text);
    Ok(())
}

fn cannot(what: &str, name: &str, error: Error) -> Error {
    let why = match error {
        Error::NoAuth => {
            "its ACL does not let this participant take it: change the ACL, or delete it"
        }
        Error::NotEmpty => "it has children, and an item has none: delete them",
        Error::OverLimit(text) => {
            return Error::OverLimit([&item(name), " cannot ", what, ": ", &text].concat());
        }
        other => return other,
    };
    Error::Other([&item(name), " cannot ", what, ": ", why].concat())
}

/// The path of its claim.
pub(crate) fn claim(name: &str) -> String {
    [CLAIMS, "/", name].concat()
}

/// Its path once it is a dead letter.
pub(crate) fn dead_letter(name: &str) -> String {
    [DEAD_LETTERS, "/", name].concat()
}

thread_local! {
    /// How the items are named, for those who make directories without a look at the settings.
    static LAYOUT: Cell<Layout> = const { Cell::new(Layout::Own) };
}

/// Says how the items are named.
pub(crate) fn set_layout(layout: Layout) {
    LAYOUT.set(layout);
}

/// Refuses a mount that is by itself a queue of other clients, whose items stand in the mount. Nobody here
/// would see those items, and kazoo would take the directories of this recipe for items. So `furnish` looks
/// before it makes the directories, and `list` looks where there is no directory of items.
///
/// Costs a request, but for wok's own layout, which no other client uses.
pub(crate) fn check_mount() -> Result<(), Error> {
    let layout = LAYOUT.get();
    if layout == Layout::Own {
        return Ok(());
    }
    let children = match get_children(MOUNT) {
        Ok(children) => children,
        // Nothing is there yet, or this participant may not list what is there.
        Err(Error::NoNode | Error::NoAuth) => return Ok(()),
        Err(error) => return Err(error),
    };
    match names(&children).find(|name| layout.turn(name).is_some()) {
        None => Ok(()),
        Some(item) => Err(Error::Invalid(misplaced(&item))),
    }
}

fn misplaced(item: &str) -> String {
    let why = " is an item of this layout and stands in the mount itself: to other clients the \
               mount is the queue, and to this recipe `<mount>/items` is; if the last name of the \
               mount's path is `items`, mount at its parent, and if not, have those clients use \
               `<mount>/items`";
    [MOUNT, item, why].concat()
}

/// Makes the directories that are missing, so that the server removes them again when nobody has used
/// them for some time.
///
/// # Errors
/// `invalid` where the mount is a queue of other clients by itself.
pub(crate) fn furnish() -> Result<(), Error> {
    check_mount()?;
    let all = [ITEMS, CLAIMS, MARKERS].map(str::to_owned);
    ensure(&all, CreateMode::Container)
}

/// Makes the directory of dead letters.
pub(crate) fn furnish_cemetery() -> Result<(), Error> {
    ensure(&[DEAD_LETTERS.to_owned()], CreateMode::Container)
}
