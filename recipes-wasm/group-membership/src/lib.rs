//! Group membership, which ZooKeeper's page of recipes names among what the service gives "directly":
//! "the parent node represents the group, members create ephemeral nodes under it". Its steps:
//!
//! Join:
//!
//! 1. Create the own znode, an ephemeral one, and claim it.
//! 2. If there is no directory, make it and go to 1.
//! 3. If a znode of that name is there, it is another member's, also one whose session is about to end:
//!    wait until it is gone and go to 1.
//!
//! Update:
//!
//! 1. In one transaction set the own znode's data and the directory's: a watch on children does not
//!    see the data of a child.
//!
//! Members:
//!
//! 1. List the directory, behind a transaction that says that the list is not from before the call.
//! 2. Read each of them, and the directory once more. If it has changed meanwhile, list it again.
//!
//! Observe and wait:
//!
//! 1. Watch the directory's data and its children, and read its newest change.
//! 2. When a watch has fired, go to 1; tell the change if it is another one.

mod bindings;
mod decide;
mod member;
mod observer;

use std::cell::RefCell;

use bindings::exports::wok::group_membership::group_membership::{
    Guest, Member as Found, Membership, View,
};
use decide::is_member;
use member::Member;
use observer::Observer;
use wok_sdk::zookeeper::Error;
use wok_sdk::{snapshot, wait_for_change};

/// The mount is the group's directory.
const DIRECTORY: &str = "/";

/// One client's part in a group.
#[derive(Debug)]
pub struct GroupMembership;

thread_local! {
    static MEMBER: RefCell<Option<Member>> = const { RefCell::new(None) };
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

impl Guest for GroupMembership {
    fn wake(_fired: Vec<u64>) {
        // Only the observer watches anything while idle.
        OBSERVER.set(OBSERVER.take().map(Observer::wake));
    }

    fn join(name: String, data: Vec<u8>) -> Result<Membership, Error> {
        let fits = decide::check_name(&name).and_then(|()| decide::check_data(&data));
        fits.map_err(|wrong| invalid("join", &wrong))?;
        if let Some(path) = MEMBER.with_borrow(|own| own.as_ref().map(|own| own.path().to_owned()))
        {
            let wrong = format!("this participant is a member already, with {path}");
            return Err(invalid("join", &wrong));
        }
        let member = Member::join(&name, &data)?;
        let membership = Membership { path: member.path().to_owned(), fence: member.fence() };
        MEMBER.set(Some(member));
        Ok(membership)
    }

    fn update(data: Vec<u8>) -> Result<u64, Error> {
        decide::check_data(&data).map_err(|wrong| invalid("update", &wrong))?;
        MEMBER.with_borrow_mut(|member| match member {
            Some(member) => member.update(&data),
            None => Err(invalid("update", "this participant is no member")),
        })
    }

    fn leave() -> Result<(), Error> {
        let Some(mut member) = MEMBER.take() else {
            return Err(invalid("leave", "this participant is no member"));
        };
        let left = member.leave();
        if !member.has_left() {
            MEMBER.set(Some(member));
        }
        left
    }

    fn members() -> Result<View, Error> {
        let Some(found) = snapshot(DIRECTORY, decide::is_name)? else {
            return Ok(View { revision: 0, members: Vec::new() });
        };
        let members = found.children.into_iter().filter(|(_, there)| is_member(there.stat.owner));
        let members =
            members.map(|(name, there)| Found { name, data: there.data, fence: there.stat.czxid });
        Ok(View { revision: found.revision, members: members.collect() })
    }

    fn observe() -> Result<u64, Error> {
        let (revision, observer) = Observer::observe()?;
        OBSERVER.set(Some(observer));
        Ok(revision)
    }

    fn wait(after: u64) -> Result<u64, Error> {
        wait_for_change(DIRECTORY, after)
    }
}

fn invalid(operation: &str, wrong: &str) -> Error {
    Error::Invalid(format!("{operation}: {wrong}"))
}
