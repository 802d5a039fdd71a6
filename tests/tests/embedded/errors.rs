//! Which error comes first where there are several.

use wok_tests::frames::Opcode;
use wok_tests::wire::message::{
    Acl, Body, Message, Watch::No, check as check_version, create, delete, exists, get_acl,
    get_children, get_data, set_acl, set_data,
};

use crate::check;

/// Names that may not be, and some that look so and may.
const NAMES: [&str; 18] = [
    "", ".", "..", "...", "./x", "../x", "/x", "x/", "\u{0}", "\u{1}", "\u{1f}", "\u{7f}",
    "\u{85}", "\u{e000}", "\u{f8ff}", "\u{fff0}", "😀", "é",
];

fn closed() -> [Acl; 1] {
    [Acl::new(Acl::ALL, "digest", "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=")]
}

#[test]
fn a_creation_fails_for_the_same_reason() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/why"))?;
        run.call(a, create("/why/e").flags(1))?;
        run.call(a, create("/why/closed").acls(&closed()))?;
        for parent in ["/why", "/why/no", "/why/e", "/why/closed"] {
            for name in NAMES {
                for flags in [0, 2, 9] {
                    run.call(a, create(&format!("{parent}/{name}")).flags(flags))?;
                }
            }
            for acls in [&[][..], &[Acl::new(31, "auth", "")], &[Acl::new(31, "no", "x")]] {
                run.call(a, create(&format!("{parent}/acl")).acls(acls))?;
            }
        }
        for path in ["", "why", "/", "/why", "/zookeeper", "/zookeeper/x"] {
            for flags in [0, 1, -1, 4, 7] {
                run.call(a, create(path).flags(flags))?;
            }
        }
        Ok(())
    });
}

#[test]
fn kinds_and_flags_that_do_not_fit_are_refused_alike() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/kinds"))?;
        let kinds = [Opcode::Create, Opcode::Create2, Opcode::CreateContainer];
        for kind in kinds {
            for flags in 0..8 {
                run.call(a, create(&format!("/kinds/{kind:?}-{flags}")).by(kind).flags(flags))?;
            }
        }
        for ttl_ms in [0, -2, 1_000_000, 0xff_ffff_ffff, 0x100_0000_0000] {
            for flags in [5, 6] {
                run.call(a, create("/kinds/ttl").flags(flags).ttl_ms(ttl_ms))?;
            }
        }
        run.call(a, create("/kinds/ttl-0").flags(0).ttl_ms(100_000))?;
        run.call(a, get_children("/kinds", No))?;
        Ok(())
    });
}

#[test]
fn a_deletion_fails_for_the_same_reason() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/gone"))?;
        run.call(a, create("/gone/parent"))?;
        run.call(a, create("/gone/parent/child"))?;
        run.call(a, create("/gone/kept"))?;
        run.call(a, create("/gone/kept/child"))?;
        run.call(a, create("/gone/kept/child/deep"))?;
        run.call(a, set_acl("/gone/kept", &[Acl::anyone(31 - 8)], -1))?;
        let paths = ["/gone/parent", "/gone/kept/child", "/gone/kept/no", "/gone/no", "/gone/no/x"];
        for path in paths {
            for version in [7, 0, -1, -2] {
                run.call(a, delete(path, version))?;
            }
        }
        for path in ["", "/", "gone", "/gone/", "/zookeeper", "/zookeeper/quota"] {
            run.call(a, delete(path, -1))?;
        }
        Ok(())
    });
}

#[test]
fn other_requests_fail_for_the_same_reason() {
    check(|run| {
        let a = run.connect("a")?;
        run.call(a, create("/other"))?;
        run.call(a, create("/other/closed").acls(&closed()))?;
        let paths =
            ["/other", "/other/closed", "/other/closed/x", "/other/no", "/other/", "other", ""];
        for path in paths.into_iter().chain(NAMES) {
            run.call(a, set_data(path, Some(b""), 7))?;
            run.call(a, set_acl(path, &[], 7))?;
            run.call(a, set_acl(path, &[Acl::anyone(31)], 7))?;
            run.call(a, check_version(path, 7))?;
            run.call(a, exists(path, No))?;
            run.call(a, get_data(path, No))?;
            run.call(a, get_acl(path))?;
            run.call(a, get_children(path, No))?;
        }
        Ok(())
    });
}

#[test]
fn requests_that_end_within_a_field_are_refused_alike() {
    check(|run| {
        for opcode in [Opcode::Create, Opcode::GetData, Opcode::SetData, Opcode::Multi] {
            for body in [Body::new(), Body::new().string("/x"), Body::new().int(-1).int(-1)] {
                let a = run.connect("a")?;
                run.call(a, Message::raw(opcode, body))?;
                run.close(a)?;
            }
        }
        Ok(())
    });
}
