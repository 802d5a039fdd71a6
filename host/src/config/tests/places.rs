//! Every kind of error that needs no file, with its exact place.

use super::*;

const A_DURATION: &str =
    "write a whole number and a unit, as in \"500ms\", \"10s\", \"2m\" or \"1h\"";
const LIST_SERVERS: &str = "list servers as \"host:port\", separated by commas";

#[test]
fn six_errors_in_one_file_are_reported_in_one_pass() {
    check(
        "[zookeeper]
»conect = \"zk1:2181\"
session-timeout = »10

»[recipes.orders]
mount = »\"locks\"
limits = { memory = »\"16MB\", »watch = 1 }
",
        &[
            ("unknown key `conect` in `[zookeeper]`", "did you mean `connect`?"),
            (
                "`zookeeper.session-timeout` is an integer, not a string",
                "write it as `session-timeout = \"10s\"`",
            ),
            ("`module` is missing in `[recipes.orders]`", "write it as `module = \"lock\"`"),
            ("`recipes.orders.mount`: the path is not absolute", "begin it with `/`"),
            (
                "`recipes.orders.limits.memory`: \"16MB\" is not a size",
                "write a whole number and a unit, as in \"64KiB\", \"16MiB\" or \"1GiB\"",
            ),
            ("unknown key `watch` in `[recipes.orders.limits]`", "did you mean `watches`?"),
        ],
    );
}

#[test]
fn every_syntax_error_is_reported_and_nothing_else() {
    check(
        "[zookeeper]\nconnect = »zk1\nconnect2 = »\n",
        &[
            ("string values must be quoted, expected literal string", "write \"…\" around it"),
            ("string values must be quoted, expected literal string", "write \"…\" around it"),
        ],
    );
    check(
        "[zookeeper]\nconnect = \"a\"\n»connect = \"b\"\n",
        &[("duplicate key", "leave one of them out")],
    );
}

#[test]
fn missing_tables_and_keys() {
    check(
        "»recipes = {}\n",
        &[(
            "the table `[zookeeper]` is missing",
            "write it as `zookeeper = { connect = \"zk1:2181\" }`",
        )],
    );
    check(
        "»[zookeeper]\n»[recipes.r]\nmount = \"/r\"\n",
        &[
            (
                "`connect` is missing in `[zookeeper]`",
                "write it as `connect = \"zk1:2181,zk2:2181,zk3:2181\"`",
            ),
            ("`module` is missing in `[recipes.r]`", "write it as `module = \"lock\"`"),
        ],
    );
    check_recipe(
        "run = »{}",
        "`call` is missing in `[recipes.r.run]`",
        "write it as `call = \"volunteer\"`",
    );
    check_recipe(
        "run = { call = \"volunteer\" }\nwhile-held = »{}",
        "`exec` is missing in `[recipes.r.while-held]`",
        "write it as `exec = [\"./scheduler\", \"--active\"]`",
    );
}

#[test]
fn unknown_keys_are_told_what_they_may_have_meant() {
    let far = "leave it out; the keys here are `zookeeper`, `engine`, `api`, `recipes`";
    check("zookeeper.connect = \"a\"\n»colour = 1\n[recipes]\n", &[("unknown key `colour`", far)]);
    check(
        "zookeeper.connect = \"a\"\nrecipes = {}\n»\"a b\" = 1\n",
        &[("unknown key `\"a b\"`", far)],
    );
    check(
        "zookeeper.connect = \"a\"\nrecipes = {}\nengine = { »Participant = 2 }\n",
        &[("unknown key `Participant` in `[engine]`", "did you mean `participants`?")],
    );
    check_session(
        "connect = \"a\"\n»session_timeout = \"10s\"",
        "unknown key `session_timeout` in `[zookeeper]`",
        "did you mean `session-timeout`?",
    );
    check_recipe(
        "»while-hold = 1",
        "unknown key `while-hold` in `[recipes.r]`",
        "did you mean `while-held`?",
    );
    check_session(
        "connect = \"a\"\nacl = \"open\"\n»tsl = 1",
        "unknown key `tsl` in `[zookeeper]`",
        "did you mean `tls`?",
    );
    // Half of the word is another: this is not `auth`.
    check_session(
        "connect = \"a\"\n»oath = 1",
        "unknown key `oath` in `[zookeeper]`",
        "leave it out; the keys here are `connect`, `session-timeout`, `sessions`, `root`, `auth`, `sasl`, \
         `tls`, `acl`, `contact`",
    );
    // The key that is nearest is there already, so it cannot be what was meant.
    check_recipe(
        "»mounts = 1",
        "unknown key `mounts` in `[recipes.r]`",
        "leave it out; the keys here are `module`, `sha256`, `mount`, `config`, `limits`, `allow`, \
         `run`, `while-held`",
    );
}

#[test]
fn the_embedded_server_has_neither_tls_nor_sasl() {
    let remedy = "leave it out, or name the servers of an ensemble in `connect`";
    check(
        "[zookeeper]\nconnect = \"embedded\"\nsasl = »{ credentials-file = \"c\" }\n\
         tls = »{ ca-file = \"ca\" }\n[recipes]\n",
        &[
            ("`zookeeper.sasl`: the embedded server has no SASL", remedy),
            ("`zookeeper.tls`: the embedded server has no TLS", remedy),
        ],
    );
}

#[test]
fn wrong_types() {
    let cases = [
        ("config = »1", "`recipes.r.config` is an integer, not a table", "{ key = \"value\" }"),
        ("limits = »[]", "`recipes.r.limits` is an array, not a table", "{ memory = \"16MiB\" }"),
        (
            "sha256 = »1.5",
            "`recipes.r.sha256` is a float, not a string",
            "\"<64 hexadecimal digits>\"",
        ),
        ("run = »true", "`recipes.r.run` is a boolean, not a table", "{ call = \"volunteer\" }"),
        (
            "limits.watches = »1979-05-27",
            "`recipes.r.limits.watches` is a datetime, not an integer",
            "64",
        ),
        ("limits.watches = »\"1\"", "`recipes.r.limits.watches` is a string, not an integer", "64"),
    ];
    for (line, message, example) in cases {
        let key = line.split(" =").next().and_then(|key| key.split('.').next_back()).unwrap();
        check_recipe(line, message, &format!("write it as `{key} = {example}`"));
    }
    check(
        "zookeeper.connect = \"a\"\n[recipes]\nr = »\"lock\"\n",
        &[("`recipes.r` is a string, not a table", "write it as a table")],
    );
}

#[test]
fn servers_are_marked_within_the_list() {
    check_session(
        "connect = \"zk1:2181, »zk2:port\"",
        "`zookeeper.connect`: \"zk2:port\" has no valid port",
        "write a port from 1 to 65535 after one colon",
    );
    check_session(
        "connect = \"zk1,»,zk2\"",
        "`zookeeper.connect`: a server's name is empty",
        LIST_SERVERS,
    );
    check_session(
        "connect = \"»zk1/wok\"",
        "`zookeeper.connect`: \"zk1/wok\" has a chroot",
        "give it as `root = \"/wok\"` in a config, and on the command line begin each path with it",
    );
    check_session("connect = »\"\"", "`zookeeper.connect`: no server is named", LIST_SERVERS);
    // With escapes the text is not what the file shows, so the whole string is marked.
    check_session(
        "connect = »\"zk1,\\u0020,zk2\"",
        "`zookeeper.connect`: a server's name is empty",
        LIST_SERVERS,
    );
}

#[test]
fn durations_and_their_bounds() {
    check_session(
        "connect = \"a\"\nsession-timeout = »\"10 s\"",
        "`zookeeper.session-timeout`: \"10 s\" is not a duration",
        A_DURATION,
    );
    for text in ["999ms", "3601s"] {
        check_session(
            &format!("connect = \"a\"\nsession-timeout = »\"{text}\""),
            &format!("`zookeeper.session-timeout`: {text} is out of range"),
            "choose from \"1s\" to \"1h\"; a server with default settings grants \"4s\" to \"40s\"",
        );
    }
    for text in ["0ms", "11s"] {
        check_recipe(
            &format!("limits = {{ cpu-per-call = »\"{text}\" }}"),
            &format!("`recipes.r.limits.cpu-per-call`: {text} is out of range"),
            "choose from \"1ms\" to \"10s\"",
        );
    }
}

#[test]
fn sizes_and_counts_and_their_bounds() {
    for text in ["63KiB", "5GiB"] {
        check_recipe(
            &format!("limits.memory = »\"{text}\""),
            &format!("`recipes.r.limits.memory`: {text} is out of range"),
            "choose from \"64KiB\" to \"4GiB\"",
        );
    }
    for text in ["0KiB", "2GiB"] {
        check_recipe(
            &format!("limits.written-per-second = »\"{text}\""),
            &format!("`recipes.r.limits.written-per-second`: {text} is out of range"),
            "choose from \"1KiB\" to \"1GiB\"",
        );
    }
    for sizes in ["33KiB", "1GiB"] {
        check_recipe(
            &format!("limits.watched-paths = »\"{sizes}\""),
            &format!("`recipes.r.limits.watched-paths`: {sizes} is out of range"),
            "choose at most \"32KiB\"",
        );
    }
    for number in ["0", "-1", "101", "99999999999999999999"] {
        check_session(
            &format!("connect = \"zk1\"\nsessions = »{number}"),
            &format!("`zookeeper.sessions`: {number} is out of range"),
            "choose a number from 1 to 100",
        );
    }
    check_session(
        "connect = \"zk1\"\nsessions = »\"2\"",
        "`zookeeper.sessions` is a string, not an integer",
        "write it as `sessions = 16`",
    );
    for (key, most) in [
        ("watches", 10_000),
        ("znodes", 100_000),
        ("persistent-znodes", 1_000_000),
        ("calls-per-second", 1_000_000),
    ] {
        for number in ["0", "-1", "1000001", "99999999999999999999"] {
            check_recipe(
                &format!("limits.{key} = »{number}"),
                &format!("`recipes.r.limits.{key}`: {number} is out of range"),
                &format!("choose a number from 1 to {most}"),
            );
        }
    }
    check(
        "zookeeper.connect = \"a\"\nrecipes = {}\n[engine]\nparticipants = »0\n",
        &[("`engine.participants`: 0 is out of range", "choose a number from 1 to 10000")],
    );
}

#[test]
fn paths_are_judged_by_zookeepers_rules() {
    let mount = |path: &str, message: &str, remedy: &str| {
        check(
            &format!("zookeeper.connect = \"a\"\n[recipes.r]\nmodule = \"lock\"\nmount = {path}\n"),
            &[(&format!("`recipes.r.mount`: {message}"), remedy)],
        );
    };
    mount("»\"/a/\"", "the path ends with `/`", "leave the last slash out");
    mount("»'/a//b'", "the path has an empty component", "write one `/` where there are two");
    mount(
        "»\"/a/../b\"",
        "the path has a component `..`",
        "write the whole path: ZooKeeper has no relative ones",
    );
    mount("\"/é/»😀\"", "ZooKeeper does not allow U+1F600 in a path", "leave the character out");
    mount("»\"/a\\u0000\"", "ZooKeeper does not allow U+0000 in a path", "leave the character out");
    mount(
        "»\"/zookeeper/quota\"",
        "`/zookeeper` belongs to the ensemble itself",
        "choose another path",
    );
    mount(
        "»\"/\"",
        "a recipe cannot have the whole ensemble",
        "name a subtree such as \"/locks/orders\"",
    );
    mount(&format!("»\"/{}\"", "a".repeat(512)), "the path has 513 bytes", "use at most 512");
    check(
        &format!(
            "[zookeeper]\nconnect = \"a\"\nroot = \"/wok\"\n[recipes.r]\nmodule = \"lock\"\n\
             mount = »\"/{}\"\n",
            "a".repeat(508)
        ),
        &[("`recipes.r.mount`: with its root it has 513 bytes", "use at most 512")],
    );
    check_session(
        "connect = \"a\"\nroot = »\"/zookeeper\"",
        "`zookeeper.root`: `/zookeeper` belongs to the ensemble itself",
        "choose another path",
    );
}

#[test]
fn a_bad_root_hides_no_bad_mount_and_invents_none() {
    check(
        "[zookeeper]\nconnect = \"a\"\nroot = »\"wok\"
[recipes.a]\nmodule = \"lock\"\nmount = \"/\"
[recipes.b]\nmodule = \"lock\"\nmount = »\"b\"\n",
        &[
            ("`zookeeper.root`: the path is not absolute", "begin it with `/`"),
            ("`recipes.b.mount`: the path is not absolute", "begin it with `/`"),
        ],
    );
    check(
        "»[zookeeper]\nroot = \"/wok\"\n[recipes.a]\nmodule = \"lock\"\nmount = \"/\"\n",
        &[(
            "`connect` is missing in `[zookeeper]`",
            "write it as `connect = \"zk1:2181,zk2:2181,zk3:2181\"`",
        )],
    );
}

#[test]
fn recipes_never_share_a_znode() {
    check(
        "zookeeper.connect = \"a\"
[recipes.z]\nmodule = \"lock\"\nmount = \"/a/b\"
[recipes.a]\nmodule = \"queue\"\nmount = »\"/a/b\"
[recipes.c]\nmodule = \"queue\"\nmount = »\"/a/b/c/d\"
[recipes.sibling]\nmodule = \"queue\"\nmount = \"/a/b-c\"\n",
        &[
            (
                "recipes `z` and `a` have the same mount /a/b, given in line 4 already",
                "give each recipe a mount of its own",
            ),
            (
                "the mount /a/b/c/d of recipe `c` is inside /a/b, the mount of recipe `z` in line 4",
                "move one of them out of the other",
            ),
        ],
    );
}

#[test]
fn names_of_recipes_modules_and_operations() {
    for name in ["Orders", "a_b", "-a", "a--b", "1a", "é"] {
        check(
            &format!(
                "zookeeper.connect = \"a\"\n[recipes.»\"{name}\"]\nmodule = \"lock\"\nmount = \"/a\"\n"
            ),
            &[(
                &format!("{name:?} is not a name for a recipe"),
                "use lower case letters, digits and hyphens, a letter first, at most 64 in all",
            )],
        );
    }
    check(
        "zookeeper.connect = \"a\"\n[recipes.a]\nmodule = »\"Lock!\"\nmount = \"/a\"\n",
        &[(
            "`recipes.a.module`: \"Lock!\" is neither a module's name nor a path",
            "write a stock recipe's name such as \"lock\", or a path such as \"./a.wasm\"",
        )],
    );
    check_recipe(
        "run = { call = »\"take over\" }",
        "`recipes.r.run.call`: \"take over\" is not the name of an operation",
        "`wok inspect <module>` lists a module's operations",
    );
    check_recipe(
        &format!("sha256 = \"»z{}\"", "0".repeat(63)),
        "`recipes.r.sha256`: 'z' is not a hexadecimal digit in a SHA-256 digest",
        "give the 64 hexadecimal digits that `wok inspect <module>` prints",
    );
    check_recipe(
        "sha256 = »\"00\"",
        "`recipes.r.sha256`: 2 hexadecimal digits, not 64, in a SHA-256 digest",
        "give the 64 hexadecimal digits that `wok inspect <module>` prints",
    );
}

#[test]
fn values_that_json_cannot_say() {
    let large = "9".repeat(400);
    let text = format!(
        "zookeeper.connect = \"a\"
[recipes.r]
module = \"lock\"
mount = \"/r\"
config = {{ a = [1, »inf, {{ b = »1979-05-27 }}], c = »1e999 }}
run = {{ call = \"x\", arguments = {{ d = »{large} }} }}
"
    );
    check(
        &text,
        &[
            ("inf is not a finite number", "write a finite number"),
            ("recipes know no dates and times", "write it as a string or as a number"),
            ("1e999 is not a finite number", "write a finite number"),
            (
                &format!("{large} is larger than any number that a recipe can take"),
                "write a smaller one",
            ),
        ],
    );
    let deep = format!("{}»{}1{}", "[".repeat(32), "[".repeat(9), "]".repeat(41));
    check_recipe(
        &format!("config = {{ a = {deep} }}"),
        "values are nested deeper than 32",
        "flatten them",
    );
}

#[test]
fn while_held_needs_run_and_time_to_stop() {
    check_recipe(
        "while-held = »{ exec = [\"job\"] }",
        "`recipes.r.while-held`: nothing is ever held, because the recipe has no `run`",
        "add `run = { call = \"…\" }`, or leave `while-held` out",
    );
    let held = |lines: &str, message: &str, remedy: &str| {
        let lines = format!("run = {{ call = \"volunteer\" }}\n[recipes.r.while-held]\n{lines}");
        check_recipe(&lines, &format!("`recipes.r.while-held.{message}"), remedy);
    };
    held(
        "exec = [\"job\"]\nstop-timeout = »\"4251ms\"",
        "stop-timeout`: 4251ms does not fit into a session timeout of 10s: of that, 3750ms are the \
         margin before the session expires and 2s are two heartbeats",
        "give at most \"4250ms\", or raise the session timeout",
    );
    held(
        "exec = [\"job\"]\nstop-timeout = »\"0s\"",
        "stop-timeout`: the command would have no time to stop",
        "leave `stop-timeout` out for the default, or give \"100ms\" or more",
    );
    held(
        "exec = [\"job\"]\nrestart = »\"no\"",
        "restart`: \"no\" does not say when a command is run again",
        "choose one of always, on-failure, never",
    );
    held(
        "exec = [\"job\"]\nstop-signal = »\"STOP\"",
        "stop-signal`: \"STOP\" is not a signal to stop a command with",
        "choose one of TERM, INT, QUIT, HUP, USR1, USR2, WINCH",
    );
    held(
        "exec = [\"job\"]\nstop-signal = »\"SIGKILL\"",
        "stop-signal`: KILL gives the command no chance to stop by itself",
        "leave it out: KILL follows at the deadline anyway",
    );
    held("exec = »[]", "exec`: no program is named", "write `exec = [\"program\", \"argument\"]`");
    held(
        "exec = »[\"\"]",
        "exec`: no program is named",
        "write `exec = [\"program\", \"argument\"]`",
    );
    held(
        "exec = [\"a\", »1]",
        "exec.1` is an integer, not a string",
        "write it as `exec = [\"./scheduler\", \"--active\"]`",
    );
    held("exec = [\"a\", »\"\\u0000\"]", "exec.1`: there is a NUL character in it", "leave it out");
    held(
        "exec = [\"a\"]\nenv = { A = »1 }",
        "env.A` is an integer, not a string",
        "write it in quotes",
    );
}

#[test]
fn environment_variables_of_the_host_are_its_own() {
    check_recipe(
        "run = { call = \"volunteer\" }\nwhile-held = { exec = [\"a\"], env = { »WOK_FENCE = \"1\" } }",
        "variables that begin with `WOK_` are set by the host",
        "give it another name",
    );
    check_recipe(
        "run = { call = \"volunteer\" }\nwhile-held = { exec = [\"a\"], env = { »\"A=B\" = \"1\" } }",
        "a variable's name has no `=` and no NUL",
        "give it another name",
    );
}

#[test]
fn the_creators_acl_needs_a_creator() {
    check_session(
        "connect = \"a\"\nacl = »\"creator\"",
        "`zookeeper.acl`: the session has no identity that znodes could belong to",
        "give `auth`, `sasl` or a certificate in `tls`",
    );
    check_session(
        "connect = \"a\"\nacl = »\"closed\"",
        "`zookeeper.acl`: \"closed\" is not an ACL",
        "write \"creator\" or \"open\"",
    );
}

#[test]
fn contact_is_the_word_of_the_quorum_or_of_the_leader() {
    check_session(
        "connect = \"a\"\nacl = \"open\"\ncontact = »\"follower\"",
        "`zookeeper.contact`: nobody's word for a session is called \"follower\"",
        "write \"quorum\", or \"leader\" to save the heartbeats' transactions at the price that the \
         guide names",
    );
}
