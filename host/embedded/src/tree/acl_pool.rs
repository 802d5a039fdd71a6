//! One copy of each access list: most trees have two or three.

use std::collections::BTreeSet;

use crate::protocol::{Acl, Acls};

/// Lists in use are shared; lists no longer in use are dropped when the pool has doubled.
#[derive(Debug, Default)]
pub(super) struct AclPool {
    lists: BTreeSet<Acls>,
    purge_at: usize,
}

const LEAST_PURGE: usize = 1024;

impl AclPool {
    pub(super) fn share(&mut self, acl: &[Acl]) -> Acls {
        if let Some(shared) = self.lists.get(acl) {
            return shared.clone();
        }
        if self.lists.len() >= self.purge_at {
            self.lists.retain(|list| Acls::strong_count(list) > 1);
            self.purge_at = (self.lists.len() * 2).max(LEAST_PURGE);
        }
        let shared = Acls::from(acl);
        self.lists.insert(shared.clone());
        shared
    }
}
