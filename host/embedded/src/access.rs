//! Who may do what: ZooKeeper's schemes `world`, `auth`, `digest`, `ip` and `super`.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

use crate::protocol::{Acl, ErrorCode, Id, Permissions, Write};

/// The names that a credential proves, or `None` if it proves none.
///
/// `super_digest` is `super:` and the digest of `super:<password>`, if there is such a user.
pub fn authenticate(
    scheme: &str,
    credential: &[u8],
    host: &str,
    super_digest: Option<&str>,
) -> Option<Vec<Id>> {
    match scheme {
        "digest" => {
            let digest = digest(&String::from_utf8_lossy(credential));
            let mut ids = Vec::new();
            if super_digest == Some(digest.as_str()) {
                ids.push(Id::new("super", ""));
            }
            ids.push(Id::new("digest", &digest));
            Some(ids)
        }
        "ip" => Some(vec![Id::new("ip", host)]),
        _ => None,
    }
}

/// The id that scheme `digest` makes of `user:password`.
pub fn digest(credential: &str) -> String {
    let user = credential.split(':').next().unwrap_or_default();
    format!("{user}:{}", STANDARD.encode(Sha1::digest(credential)))
}

/// The name of an id as the request whoAmI tells it.
pub fn user_name(id: &Id) -> &str {
    match id.scheme.as_str() {
        "digest" => id.id.split(':').next().unwrap_or_default(),
        _ => &id.id,
    }
}

/// Whether a list grants any of the permissions to any of the ids. An empty list grants all.
pub fn allows(acl: &[Acl], permissions: i32, ids: &[Id]) -> bool {
    if acl.is_empty() || ids.iter().any(|id| id.scheme == "super") {
        return true;
    }
    acl.iter().filter(|acl| acl.permissions & permissions != 0).any(|acl| {
        (acl.id.scheme == "world" && acl.id.id == "anyone")
            || ids.iter().any(|id| id.scheme == acl.id.scheme && matches(id, &acl.id.id))
    })
}

/// # Errors
/// [`ErrorCode::NoAuth`] if [`allows`] says no.
pub fn check(acl: &[Acl], permissions: i32, ids: &[Id]) -> Result<(), ErrorCode> {
    if allows(acl, permissions, ids) { Ok(()) } else { Err(ErrorCode::NoAuth) }
}

fn matches(id: &Id, pattern: &str) -> bool {
    match id.scheme.as_str() {
        "digest" => id.id == pattern,
        "ip" => {
            let Some((network, bits)) = network(pattern) else { return false };
            let Ok(address) = id.id.parse::<Ipv4Addr>() else { return false };
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            network & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

/// An address with an optional number of leading bits. Only IPv4, as Apache ZooKeeper 3.8.
fn network(pattern: &str) -> Option<(u32, u32)> {
    let (address, bits) = match pattern.split_once('/') {
        None => (pattern, 32),
        Some((address, bits)) => (address, bits.parse().ok().filter(|bits| *bits <= 32)?),
    };
    Some((address.parse::<Ipv4Addr>().ok()?.to_bits(), bits))
}

/// What all `auth` of a request may stand for, in bytes: no more than the request could have said
/// itself in the longest frame that a server takes unless it is told otherwise.
pub const AUTH_LIMIT: usize = 0xf_ffff;
/// What an entry takes beyond its name: its permissions, its scheme and two lengths.
const ACL_COST: usize = 4 + 4 + 6 + 4;

/// What all `auth` of a request stand for, in bytes, if these are who asks. A few bytes of a request
/// may come to a megabyte of each node's list.
pub fn auth_bytes(write: &Write, ids: &[Id]) -> usize {
    let own = names(ids).map(|id| ACL_COST + id.id.len()).sum::<usize>();
    own.saturating_mul(count_auth(write))
}

fn count_auth(write: &Write) -> usize {
    let of_list = |acl: &[Acl]| acl.iter().filter(|acl| acl.id.scheme == "auth").count();
    match write {
        Write::Create(create) => of_list(&create.acl),
        Write::SetAcl { acl, .. } => of_list(acl),
        Write::Multi(writes) => writes.iter().map(count_auth).sum(),
        _ => 0,
    }
}

/// What `auth` stands for.
fn names(ids: &[Id]) -> impl Iterator<Item = &Id> {
    ids.iter().filter(|id| id.scheme == "digest")
}

/// A list as it is stored: without repetitions, and `auth` replaced by the asking client's names.
///
/// # Errors
/// [`ErrorCode::InvalidAcl`] if it is empty, or holds an id that its scheme does not know.
pub fn resolve(list: &[Acl], ids: &[Id]) -> Result<Vec<Acl>, ErrorCode> {
    let mut resolved: Vec<Acl> = Vec::new();
    let mut seen: BTreeSet<&Acl> = BTreeSet::new();
    for acl in list {
        if !seen.insert(acl) {
            continue;
        }
        let id = &acl.id;
        match id.scheme.as_str() {
            "world" if id.id == "anyone" => resolved.push(acl.clone()),
            "auth" => {
                let own = |id: &Id| Acl { permissions: acl.permissions, id: id.clone() };
                let before = resolved.len();
                resolved.extend(names(ids).map(own));
                if resolved.len() == before {
                    return Err(ErrorCode::InvalidAcl);
                }
            }
            "digest" if is_digest(&id.id) => resolved.push(acl.clone()),
            "ip" if network(&id.id).is_some() => resolved.push(acl.clone()),
            _ => return Err(ErrorCode::InvalidAcl),
        }
    }
    if resolved.is_empty() { Err(ErrorCode::InvalidAcl) } else { Ok(resolved) }
}

/// A user and a digest, split as Java does: empty parts at the end are none.
fn is_digest(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

/// A list as those see it who may read but not change it: digests are left out.
pub fn masked(list: &[Acl]) -> Vec<Acl> {
    let mask = |acl: &Acl| match acl.id.scheme.as_str() {
        "digest" => {
            let user = acl.id.id.split(':').next().unwrap_or_default();
            let id = if acl.id.id.contains(':') { format!("{user}:x") } else { acl.id.id.clone() };
            Acl { permissions: acl.permissions, id: Id { scheme: acl.id.scheme.clone(), id } }
        }
        _ => acl.clone(),
    };
    list.iter().map(mask).collect()
}

/// What the answer to getACL shows of a list.
///
/// # Errors
/// [`ErrorCode::NoAuth`] for those who may neither read nor change it.
pub fn shown(list: &[Acl], ids: &[Id]) -> Result<Vec<Acl>, ErrorCode> {
    check(list, Permissions::READ | Permissions::ADMIN, ids)?;
    let may_see_all = allows(list, Permissions::ADMIN, ids);
    Ok(if may_see_all { list.to_vec() } else { masked(list) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(scheme: &str, id: &str) -> Acl {
        Acl { permissions: Permissions::ALL, id: Id::new(scheme, id) }
    }

    #[test]
    fn a_digest_is_the_one_that_zookeeper_documents() {
        assert_eq!(digest("u:p"), "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=");
        assert_eq!(digest("zz"), "zz:19rK4sloOIlgv4lwCAqYDtXF3Lc=");
    }

    #[test]
    fn lists_are_valid_as_apache_finds_them() {
        let ids = [Id::new("ip", "127.0.0.1")];
        for good in [
            acl("digest", "a:b"),
            acl("digest", "a:b:"),
            acl("digest", ":b"),
            acl("ip", "10.0.0.0/8"),
            acl("world", "anyone"),
        ] {
            assert!(resolve(std::slice::from_ref(&good), &ids).is_ok(), "{good:?}");
        }
        let bad = [
            acl("digest", "a"),
            acl("digest", "a:"),
            acl("digest", ":"),
            acl("digest", "a:b:c"),
            acl("ip", "::1"),
            acl("ip", "10.0.0.0/33"),
            acl("ip", "10.0.0"),
            acl("super", ""),
            acl("world", "x"),
            acl("auth", ""),
        ];
        for bad in bad {
            assert_eq!(
                resolve(std::slice::from_ref(&bad), &ids),
                Err(ErrorCode::InvalidAcl),
                "{bad:?}"
            );
        }
        assert_eq!(resolve(&[], &ids), Err(ErrorCode::InvalidAcl));
    }

    #[test]
    fn auth_stands_for_all_names_of_who_asks() {
        let mut ids: Vec<_> = (0..100).map(|n| Id::new("digest", &format!("u{n}:p"))).collect();
        ids.push(Id::new("ip", "127.0.0.1"));
        let auth = |permissions| Acl { permissions, id: Id::new("auth", "") };
        let list: Vec<_> = (0..10).map(auth).collect();
        assert_eq!(resolve(&list, &ids).unwrap().len(), 1_000);
        let set =
            |acl: &[Acl]| Write::SetAcl { path: "/a".to_owned(), acl: acl.to_vec(), version: -1 };
        // Ten names of four bytes and ninety of five, each with 18 more.
        assert_eq!(auth_bytes(&set(&list), &ids), 10 * (10 * 22 + 90 * 23));
        let open = Acl::open();
        let multi = Write::Multi(vec![set(&list), set(&open), set(&list)]);
        assert_eq!(auth_bytes(&multi, &ids), 2 * auth_bytes(&set(&list), &ids));
    }

    #[test]
    fn an_ip_entry_covers_its_network() {
        let ids = [Id::new("ip", "10.1.2.3")];
        assert!(allows(&[acl("ip", "10.0.0.0/8")], Permissions::READ, &ids));
        assert!(allows(&[acl("ip", "0.0.0.0/0")], Permissions::READ, &ids));
        assert!(!allows(&[acl("ip", "10.1.2.4")], Permissions::READ, &ids));
    }

    #[test]
    fn super_may_everything_and_an_empty_list_allows_all() {
        let ids = [Id::new("super", "")];
        assert!(allows(&[acl("ip", "10.0.0.0/8")], Permissions::READ, &ids));
        assert!(allows(&[], Permissions::ADMIN, &[]));
    }
}
