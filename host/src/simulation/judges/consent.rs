//! V1: an ephemeral znode goes by its own session, or with it. A session that deletes another's
//! znode takes away what the other one still believes in.

use std::collections::BTreeMap;

use wok_judge::{Case, Violation};

use crate::simulation::history::{Change, What};

pub(super) fn check(case: &Case<'_>, id: &'static str, found: &mut Vec<Violation>) {
    let mut owners: BTreeMap<&str, (i64, usize)> = BTreeMap::new();
    for (at, entry) in case.history.iter().enumerate() {
        let What::Txn { session, changes, .. } = &entry.what else { continue };
        for change in changes {
            match change {
                Change::Created { path, ephemeral_owner, .. } if *ephemeral_owner != 0 => {
                    owners.insert(path, (*ephemeral_owner, at));
                }
                Change::Deleted { path } => match owners.remove(path.as_str()) {
                    Some((owner, created)) if owner != *session => {
                        let sentence = format!(
                            "session {session:#x} deleted {path}, which belonged to session \
                             {owner:#x}"
                        );
                        found.push(Violation::new(id, at, sentence).involving([created]));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }
}
