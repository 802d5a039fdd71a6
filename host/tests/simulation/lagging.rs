//! Members of a double barrier on a server that is behind.

use super::stock::played;

/// A member leaves before the others and comes back, on a server that has not heard of the generation in which
/// they wait for it.
#[test]
fn a_member_whose_server_is_behind_joins_those_who_wait() {
    let scenario = r#"
        seed = 4
        hosts = 2
        session-timeout-ms = 6000

        [[applications]]
        host = 0
        config = { size = 2 }
        steps = [
            { rest = { ms = 100 } },
            { call = { operation = "enter", deadline-ms = 20000 } },
            { rest = { ms = 1500 } },
            { call = { operation = "leave", deadline-ms = 20000 } },
            { call = { operation = "enter", deadline-ms = 25000 } },
            "leave",
        ]

        [[applications]]
        host = 1
        config = { size = 2 }
        steps = [
            { rest = { ms = 100 } },
            { call = { operation = "enter", deadline-ms = 20000 } },
            { call = { operation = "leave", deadline-ms = 200 } },
            { rest = { ms = 1700 } },
            { call = { operation = "enter", deadline-ms = 25000 } },
            "leave",
        ]

        [[faults]]
        fault = "lag"
        when = { at = { ms = 1200 } }
        host = 1
        ms = 8000
    "#;
    let verdict = played("double-barrier", scenario);
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.tally.grants, 4, "each member enters twice: {:?}", verdict.tally);
}

/// Somebody with a wrong size has waited, and has left. The next one, with another size, is on a server that
/// has not heard of it.
#[test]
fn a_size_that_nobody_waits_for_any_more_refuses_nobody_on_a_server_that_is_behind() {
    let scenario = r#"
        seed = 4
        hosts = 2
        session-timeout-ms = 6000

        [[applications]]
        host = 0
        config = { size = 2 }
        steps = [
            { rest = { ms = 2500 } },
            { call = { operation = "enter", deadline-ms = 25000 } },
            "leave",
        ]

        [[applications]]
        host = 1
        config = { size = 2 }
        steps = [
            { rest = { ms = 2500 } },
            { call = { operation = "enter", deadline-ms = 25000 } },
            "leave",
        ]

        [[applications]]
        host = 0
        config = { size = 3 }
        steps = [
            { rest = { ms = 100 } },
            { call = { operation = "enter", deadline-ms = 1500 } },
        ]

        [[faults]]
        fault = "lag"
        when = { at = { ms = 1200 } }
        host = 1
        ms = 8000
    "#;
    let verdict = played("double-barrier", scenario);
    assert_eq!(verdict.violations, []);
    assert_eq!(verdict.tally.grants, 2, "both members enter: {:?}", verdict.tally);
}
