//! What people and programs read.

use super::*;

const TEXT: &str = "[zookeeper]
conect = \"zk1:2181\"
session-timeout = \"10x\"

[recipes.orders]
module = \"lock\"
mount = \"/locks/orders\"
config = { revocable = 1, formats = [\"a\", \"b\"] }
";

#[track_caller]
fn errors(text: &str) -> ConfigErrors {
    Config::parse(text, Path::new("wok.toml")).map(|_| ()).unwrap_err()
}

#[test]
fn errors_show_the_line_and_the_remedy() {
    assert_eq!(
        errors(TEXT).to_string(),
        "error: unknown key `conect` in `[zookeeper]`
 --> wok.toml:2:1
  |
2 | conect
  | ^^^^^^
  = help: did you mean `connect`?

error: `zookeeper.session-timeout`: \"10x\" is not a duration
 --> wok.toml:3:19
  |
3 | session-timeout = \"10x\"
  |                   ^^^^^
  = help: write a whole number and a unit, as in \"500ms\", \"10s\", \"2m\" or \"1h\"

2 errors"
    );
}

#[test]
fn one_error_is_not_counted() {
    let text = errors("a = \n").to_string();
    assert_eq!(
        text,
        "error: string values must be quoted, expected literal string
 --> wok.toml:1:5
  |
1 | a = 
  |     ^
  = help: write \"…\" around it"
    );
}

#[test]
fn programs_get_fields() {
    assert_eq!(
        serde_json::to_value(errors(TEXT)).unwrap()[0],
        serde_json::json!({
            "severity": "error",
            "file": "wok.toml",
            "line": 2,
            "column": 1,
            "message": "unknown key `conect` in `[zookeeper]`",
            "remedy": "did you mean `connect`?",
        })
    );
}

#[test]
fn other_rooms_point_at_values_too() {
    let text = TEXT.replace("conect", "connect").replace("10x", "10s");
    let loaded = Config::parse(&text, Path::new("wok.toml")).unwrap();
    let place = |key_path: &[&str]| {
        let error = loaded.places.error_at(key_path, "m", "r");
        (error.line, error.column)
    };
    assert_eq!(place(&["recipes", "orders", "module"]), (6, 10));
    assert_eq!(place(&["recipes", "orders", "config", "revocable"]), (8, 24));
    assert_eq!(place(&["recipes", "orders", "config", "formats", "1"]), (8, 43));
    // What is not there is looked for around it.
    assert_eq!(place(&["recipes", "orders", "config", "format"]), (8, 10));
    assert_eq!(place(&["recipes", "orders", "run", "call"]), (5, 1));
    assert_eq!(place(&["nowhere"]), (1, 1));

    let errors = ConfigErrors::from(vec![
        loaded.places.error_at(
            &["recipes", "orders", "config", "formats", "1"],
            "unknown format",
            "use a",
        ),
        loaded.places.error_at(&["recipes", "orders", "module"], "no such module", "use lock"),
    ]);
    assert_eq!(
        errors.to_string(),
        "error: no such module
 --> wok.toml:6:10
  |
6 | module = \"lock\"
  |          ^^^^^^
  = help: use lock

error: unknown format
 --> wok.toml:8:43
  |
8 | config = { revocable = 1, formats = [\"a\", \"b\"] }
  |                                           ^^^
  = help: use a

2 errors"
    );
}

#[test]
fn columns_are_characters_and_carets_stand_below_tabs() {
    let text =
        "zookeeper = { connect = \"a\" }\n[recipes.r]\nmodule = \"lock\"\n\tmount\t=\t\"/é/\"\n";
    let told = errors(text).to_string();
    let lines: Vec<_> = told.lines().skip(1).take(4).collect();
    assert_eq!(
        lines,
        [" --> wok.toml:4:10", "  |", "4 | \tmount\t=\t\"/é/\"", "  | \t     \t \t^^^^^"]
    );
}

#[test]
fn long_lines_are_shown_in_part() {
    let servers = "zookeeper-server,".repeat(20);
    let text = format!("[zookeeper]\nconnect = \"{servers}zk1:port\" # {}\n", "x".repeat(1000));
    let error = errors(&text);
    let [first, ..] = error.findings() else { panic!("none") };
    // The servers are the same, so the second is what is wrong.
    assert_eq!((first.line, first.column), (2, 29));
    let text = text.replace(&servers, &" ".repeat(400));
    let told = errors(&text).to_string();
    let lines: Vec<_> = told.lines().collect();
    assert!(lines[3].chars().count() < 130, "{told}");
    let marked = lines[4].find('^').unwrap();
    assert_eq!(&lines[3][marked..marked + 8], "zk1:port");
    assert_eq!(lines[4].matches('^').count(), 8);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let told = errors("[zookeeper]\nconnect = \u{1b}[2J\n").to_string();
    assert!(!told.contains('\u{1b}') && told.contains('\u{fffd}'), "{told:?}");
}
