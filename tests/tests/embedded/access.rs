//! Who may do what.

use wok_tests::wire::message::{
    Acl, Watch::Leave, Watch::No, add_watch, auth, check as check_version, create, delete, exists,
    get_acl, get_children, get_data, multi, ping, set_acl, set_data, who_am_i,
};

use crate::check;

/// `u` with the password `p`.
const OWNER: &str = "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=";

#[test]
fn proofs_are_taken_alike_and_add_up() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, who_am_i())?;
        let proofs = [("digest", "u:p"), ("digest", "u:q"), ("digest", "nocolon"), ("ip", "")];
        for (scheme, proof) in proofs {
            run.call(a, auth(scheme, proof))?;
        }
        run.call(a, who_am_i())?;
        // The ids stand in the list in any order, so it is not read but tried.
        run.call(a, create("/proofs").acls(&[Acl::new(31, "auth", "")]))?;
        for (scheme, proof) in proofs {
            let b = run.connect("b")?;
            run.call(b, auth(scheme, proof))?;
            run.call(b, get_data("/proofs", No))?;
        }
        for (scheme, proof) in [("no", "x"), ("world", "anyone"), ("", "")] {
            let b = run.connect("b")?;
            run.call(b, auth(scheme, proof))?;
            run.end(b)?;
        }
        Ok(())
    });
}

#[test]
fn access_lists_are_checked_and_completed_alike() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/lists"))?;
        let lists = [
            vec![],
            vec![("world", "anyone"), ("world", "anyone")],
            vec![("world", "someone")],
            vec![("auth", "")],
            vec![("auth", "x"), ("world", "anyone")],
            vec![("digest", OWNER)],
            vec![("digest", "u")],
            vec![("digest", "u:p:q")],
            vec![("ip", "127.0.0.1")],
            vec![("ip", "10.0.0.0/8"), ("digest", OWNER)],
            vec![("ip", "10.0.0.0/33")],
            vec![("ip", "10.0.0")],
            vec![("ip", "::1")],
            vec![("super", "")],
            vec![("no", "x")],
        ];
        for proven in ["before", "after"] {
            for (index, list) in lists.iter().enumerate() {
                let list: Vec<_> =
                    list.iter().map(|(scheme, id)| Acl::new(31, scheme, id)).collect();
                let path = format!("/lists/{proven}-{index}");
                run.call(a, create(&path).acls(&list))?;
                run.call(a, get_acl(&path))?;
                run.call(a, set_acl("/lists", &list, -1))?;
                run.call(a, get_acl("/lists"))?;
                run.call(a, set_acl("/lists", &[Acl::anyone(31)], -1))?;
            }
            run.call(a, auth("digest", "u:p"))?;
        }
        Ok(())
    });
}

#[test]
fn each_permission_opens_what_it_names() {
    check(|run| {
        let (owner, other) = (run.connect("owner")?, run.connect("other")?);
        run.call(owner, auth("digest", "u:p"))?;
        run.call(owner, create("/may"))?;
        for permissions in 0..32 {
            let path = format!("/may/{permissions}");
            let acls = [Acl::anyone(permissions), Acl::new(31, "digest", OWNER)];
            run.call(owner, create(&path))?;
            run.call(owner, create(&format!("{path}/child")))?;
            run.call(owner, set_acl(&path, &acls, -1))?;
            run.call(other, get_data(&path, No))?;
            run.call(other, get_children(&path, No))?;
            run.call(other, exists(&path, No))?;
            run.call(other, get_acl(&path))?;
            run.call(other, set_data(&path, None, -1))?;
            run.call(other, create(&format!("{path}/new")))?;
            run.call(other, delete(&format!("{path}/child"), -1))?;
            run.call(other, delete(&format!("{path}/no"), -1))?;
            run.call(other, multi(&[check_version(&path, 1)]))?;
            run.call(other, set_acl(&path, &[Acl::anyone(31)], -1))?;
            run.call(other, delete(&path, -1))?;
        }
        Ok(())
    });
}

#[test]
fn who_may_not_read_is_not_told() {
    check(|run| {
        let (owner, other) = (run.connect("owner")?, run.connect("other")?);
        run.call(owner, auth("digest", "u:p"))?;
        run.call(owner, create("/hidden"))?;
        for who in [owner, other] {
            run.call(who, add_watch("/hidden", 1))?;
        }
        for path in ["/hidden", "/hidden/x"] {
            run.call(owner, create(path))?;
            for who in [owner, other] {
                run.call(who, get_data(path, Leave))?;
                run.call(who, get_children(path, Leave))?;
            }
            run.call(owner, set_acl(path, &[Acl::new(31, "digest", OWNER)], -1))?;
            run.call(owner, set_data(path, None, -1))?;
            run.call(owner, create(&format!("{path}/x")))?;
            run.call(other, ping())?;
        }
        for path in ["/hidden/x/x", "/hidden/x", "/hidden"] {
            run.call(owner, delete(path, -1))?;
            run.call(other, ping())?;
        }
        Ok(())
    });
}

#[test]
fn the_super_user_may_do_everything() {
    check(|run| {
        let (owner, boss) = (run.connect("owner")?, run.connect("boss")?);
        run.call(owner, auth("digest", "u:p"))?;
        run.call(owner, create("/own").acls(&[Acl::new(31, "digest", OWNER)]))?;
        run.call(boss, get_data("/own", No))?;
        run.call(boss, auth("digest", "super:wrong"))?;
        run.call(boss, get_data("/own", No))?;
        run.call(boss, auth("digest", "super:test"))?;
        run.call(boss, who_am_i())?;
        run.call(boss, get_data("/own", No))?;
        run.call(boss, create("/own/x").acls(&[Acl::new(31, "auth", "")]))?;
        run.call(boss, get_acl("/own/x"))?;
        run.call(boss, set_acl("/own", &[Acl::new(31, "super", "")], -1))?;
        run.call(owner, get_acl("/own"))?;
        run.call(boss, delete("/own/x", -1))?;
        Ok(())
    });
}
