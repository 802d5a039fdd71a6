use super::*;
use crate::guest::CompileCache;
use crate::modules::ModuleSource;
use crate::simulation::history::{Change, What};
use crate::simulation::scenario::Scenario;
use crate::simulation::servers::FOREIGN_SESSION;
use crate::simulation::subject::{Given, SubjectError};
use crate::simulation::world;

fn stock(name: &str) -> Subject {
    let bytes = ModuleSource::Stock(name.to_owned()).read(None).unwrap();
    Subject::new(name, &bytes, None, CompileCache::Off).unwrap()
}

#[track_caller]
fn refused(subject: &Subject, text: &str, expected: &str) {
    let error = Workload::declared(&subject.module, "w.toml", text).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error:?} is not {expected:?}");
}

/// A workload of the election with these steps in its round.
fn round(steps: &str) -> String {
    format!("[[roles]]\nname = \"a\"\nround = [\n{steps}\n]\n")
}

#[test]
fn what_is_wrong_with_a_workload_is_told_with_its_line_and_column() {
    let subject = stock("leader-election");
    let call = |inner: &str| round(&format!("  {{ call = {{ {inner} }} }},"));
    for (text, expected) in [
        ("roles = [".to_owned(), "w.toml:1:10: "),
        ("rolls = []".to_owned(), "w.toml:1:1: unknown field `rolls`"),
        ("roles = []".to_owned(), "w.toml:1:9: nobody does anything"),
        (round("").replace("\n]", "]"), "w.toml:2:8: a round of a has no steps"),
        (round("  { cal = {} },"), "w.toml:4:5: unknown variant `cal`"),
        (
            call("operation = \"volunter\""),
            "w.toml:4:26: leader-election has no operation volunter",
        ),
        (call("operation = \"announce\""), "w.toml:4:26: "),
        (call("operation = \"announce\", arguments = { dat = \"a\" }"), "w.toml:4:50: "),
        (
            call("operation = \"announce\", arguments = { data = 100000000000000000000 }"),
            "w.toml:4:59: 100000000000000000000: numbers go from -9223372036854775808 to",
        ),
        (call("operation = \"announce\", draw = { data = { between = [1, 2] } }"), "w.toml:4:54: "),
        (
            call("operation = \"announce\", arguments = { data = \"$item.path\" }"),
            "w.toml:4:50: $item: no call of this role has bind = \"item\"",
        ),
        (
            call("operation = \"resign\", bind = \"it\""),
            "w.toml:4:43: resign answers nothing, so that there is nothing to bind",
        ),
        (call("operation = \"leader\", bind = \"It\""), "w.toml:4:43: \"It\" is no name"),
        (
            call("operation = \"leader\", deadline-ms = [5, 1]"),
            "w.toml:4:50: [low, high]: low is not above high",
        ),
        (
            call("operation = \"leader\", deadline-percent = 50"),
            "w.toml:4:26: deadline-percent without deadline-ms",
        ),
        (
            round("  { do = \"x\" },"),
            "w.toml:4:10: no steps are called x; there is no table [steps]",
        ),
        (format!("{}[steps]\nx = []\n", round("  { do = \"x\" },")), "w.toml:4:10: x has no steps"),
        (
            round("  { repeat = { times = 5, steps = [] } }, \"leave\","),
            "w.toml:4:24: repeat: it has no steps",
        ),
        (
            format!("{}[steps]\nx = [{{ do = \"x\" }}]\n", round("  { do = \"x\" },")),
            "w.toml:7:13: x leads back to itself",
        ),
        (round("  { sometimes = { percent = 101, steps = [] } },"), "w.toml:4:29: 101: from 0"),
        (round("  { one-of = [] },"), "w.toml:4:14: one-of: there is nothing with a weight"),
        (
            round("  { repeat = { times = 500, steps = [\"leave\"] } },"),
            "w.toml:2:8: a round of a has up to 500 steps",
        ),
        (round("  { work = { ms = 5, long-ms = 9 } },"), "w.toml:4:12: long-ms and long-percent"),
        (
            format!("live = [\"lead\"]\n{}", round("  \"leave\",")),
            "w.toml:1:9: leader-election has no",
        ),
        (format!("foreign = [\"/a\", \"b\"]\n{}", round("  \"leave\",")), "w.toml:1:18: \"b\": "),
        (
            format!("applications = 25\n{}", round("  \"leave\",")),
            "w.toml:1:16: applications: from",
        ),
    ] {
        refused(&subject, &text, expected);
    }
}

/// The znodes that a run creates for another program, with what they hold, as a scenario has it.
fn created(foreign: &str) -> Vec<(String, Vec<u8>)> {
    let bytes = ModuleSource::Stock("lock".to_owned()).read(None).unwrap();
    let text = format!(
        "seed = 1\nforeign = [{foreign}]\n[[applications]]\nhost = 0\n\
         steps = [{{ call = {{ operation = \"acquire\" }} }}, {{ work = {{ ms = 5000 }} }}]\n"
    );
    let scenario = Scenario::read("s.toml", &text).unwrap();
    let subject = Subject::new("lock", &bytes, None, CompileCache::Off).unwrap();
    let run = world::run(&subject, scenario.plan()).unwrap();
    let changes = run.history.into_iter().filter_map(|entry| match entry.what {
        What::Txn { session: FOREIGN_SESSION, changes, .. } => Some(changes),
        _ => None,
    });
    let created = changes.flatten().filter_map(|change| match change {
        Change::Created { path, data, .. } => Some((path, data.bytes().to_vec())),
        _ => None,
    });
    created.collect()
}

#[test]
fn another_program_creates_what_it_can_among_the_recipes_znodes() {
    let there = "{ path = \"/by-hand\", data = [255, 0], at-ms = 3000 }";
    let nowhere = "{ path = \"/a/b\", at-ms = 3000 }";
    let again = "{ path = \"/by-hand\", data = \"text\", at-ms = 4000 }";
    let all = [there, nowhere, again].join(", ");
    assert_eq!(created(&all), [("/wok/recipe/by-hand".to_owned(), vec![255, 0])]);
}

/// What is said of a workload's settings, given those of the run.
fn checked(workload: &str, of_run: Option<Value>) -> String {
    let bytes = ModuleSource::Stock("semaphore".to_owned()).read(None).unwrap();
    let given = Given::File { name: "w.toml".to_owned(), text: workload.to_owned() };
    let subject = Subject::with("semaphore", &bytes, of_run, CompileCache::Off, given).unwrap();
    subject.check_config().unwrap_err().to_string()
}

#[test]
fn settings_that_a_module_does_not_take_are_told_with_their_place_if_they_have_one() {
    let role = |name: &str, config: &str| {
        format!(
            "[[roles]]\nname = \"{name}\"\nconfig = {{ {config} }}\n\
             round = [{{ call = {{ operation = \"acquire\" }} }}]\n"
        )
    };
    let text = role("a", "permits = 3") + &role("b", "permits = true");
    let told = "w.toml:7:10: the config of the role b does not fit the module: config.permits: \
                expected a number, got true or false";
    assert_eq!(checked(&text, None), told);
    // Its types take it, and the module itself does not.
    let text = role("a", "permits = 0");
    let told = "w.toml:3:10: the config of the role a does not fit the module: ";
    assert!(checked(&text, None).starts_with(told), "{}", checked(&text, None));
    // That of the run lies over it, and is wrong.
    let text = role("a", "permits = 3");
    let told = checked(&text, Some(serde_json::json!({ "permits": "x" })));
    assert!(told.starts_with("the config does not fit the module: config.permits: "), "{told}");
}

#[test]
fn the_config_of_an_application_of_a_scenario_is_told_with_its_number() {
    let bytes = ModuleSource::Stock("semaphore".to_owned()).read(None).unwrap();
    let text = "seed = 1\n[[applications]]\nhost = 0\nsteps = []\n\
                [[applications]]\nhost = 0\nconfig = { permits = 0 }\nsteps = []\n";
    let scenario = Scenario::read("s.toml", text).unwrap();
    let plan = Box::new(scenario.plan().clone());
    let given = Given::Scenario { name: "s.toml".to_owned(), plan };
    let subject = Subject::with("semaphore", &bytes, None, CompileCache::Off, given).unwrap();
    let error = subject.check_config().unwrap_err();
    let SubjectError::Scenario { error, .. } = error else { panic!("{error}") };
    let told = scenario.wrong(&error).to_string();
    let place = "s.toml:7:1: applications[1].config: the config does not fit the module: ";
    assert!(told.starts_with(place), "{told}");
}

/// A name for each number, which leads to the next one so many times; the last one leaves.
fn chain(length: usize, times: usize) -> String {
    let mut text = round("  { do = \"x0\" },") + "[steps]\n";
    for number in 0..length {
        let next = format!("{{ do = \"x{}\" }}, ", number + 1).repeat(times);
        text += &format!("x{number} = [{next}]\n");
    }
    text + &format!("x{length} = [\"leave\"]\n")
}

/// The test ends, and that on a thread's stack.
#[test]
fn steps_that_lead_into_each_other_without_end_are_refused() {
    let subject = stock("leader-election");
    refused(&subject, &chain(40, 2), "w.toml:2:8: a round of a has up to 1099511627776 steps");
    refused(&subject, &chain(100_000, 1), "w.toml:56:15: more than 50 lists lead here");
    Workload::declared(&subject.module, "w.toml", &chain(40, 1)).unwrap();

    // Of several one is drawn, so that they are few steps, whichever it is.
    let mut text = round("  { do = \"x0\" },") + "[steps]\n";
    for number in 0..40 {
        let choice = format!("{{ steps = [{{ do = \"x{}\" }}] }}", number + 1);
        text += &format!("x{number} = [{{ one-of = [{choice}, {choice}] }}]\n");
    }
    text += "x40 = [{ call = { operation = \"leader\" } }]\n";
    let workload = Workload::declared(&subject.module, "w.toml", &text).unwrap();
    let called = subject.clone().used_as(workload);
    assert!(!called.left_out().contains(&"leader"), "{:?}", called.left_out());
}

#[test]
fn a_reference_leads_only_to_what_is_answered() {
    let subject = stock("leader-election");
    let text = |reference: &str| {
        round(&format!(
            "  {{ call = {{ operation = \"volunteer\", bind = \"it\" }} }},\n  \
             {{ call = {{ operation = \"announce\", arguments = {{ data = \"{reference}\" }} }} }},"
        ))
    };
    Workload::declared(&subject.module, "w.toml", &text("$it.path")).unwrap();
    Workload::declared(&subject.module, "w.toml", &text("$$it.size")).unwrap();
    refused(&subject, &text("$it.size"), "w.toml:5:50: $it: what volunteer answers has no size");
}

/// The first plan of a workload.
fn planned(subject: &Subject, text: &str) -> Plan {
    let workload = Workload::declared(&subject.module, "w.toml", text).unwrap();
    let subject = subject.clone().used_as(workload);
    let plan = plan(&subject, 1);
    world::check(&subject, &plan).unwrap();
    plan
}

#[test]
fn roles_are_dealt_by_their_shares_and_have_settings_of_their_own() {
    let role = |name: &str, share: u32, format: &str| {
        format!(
            "[[roles]]\nname = \"{name}\"\nshare = {share}\nconfig = {{ format = \"{format}\" }}\n\
             round = [{{ call = {{ operation = \"{name}\" }} }}]\n"
        )
    };
    let text = "applications = 6\n".to_owned()
        + &role("leader", 2, "kazoo")
        + &role("observe", 1, "curator");
    let plan = planned(&stock("leader-election"), &text);
    let operation =
        |it: &Application| it.steps.iter().find_map(Step::operation).unwrap().to_owned();
    let operations: Vec<String> = plan.applications.iter().map(operation).collect();
    assert_eq!(operations, ["leader", "leader", "observe", "leader", "leader", "observe"]);
    let format = |it: &Application| it.config.clone().unwrap()["format"].clone();
    let formats: Vec<Value> = plan.applications.iter().map(format).collect();
    assert_eq!(formats, ["kazoo", "kazoo", "curator", "kazoo", "kazoo", "curator"]);
}

#[test]
fn arguments_are_drawn_within_what_is_said_and_say_which_application_it_is() {
    let text = "applications = 2\nrounds = 40\n".to_owned()
        + &round(
            "  { call = { operation = \"announce\", draw = { data = { one-of = [\"x\", \"y\"] } } } },\n  \
             { call = { operation = \"announce\", draw = { data = { text = [2, 4] } } } },\n  \
             { call = { operation = \"announce\", arguments = { data = \"by $application\" } } },",
        );
    let plan = planned(&stock("leader-election"), &text);
    let mut texts = std::collections::BTreeSet::new();
    for (number, application) in plan.applications.iter().enumerate() {
        let calls = application.steps.iter().filter_map(|step| match step {
            Step::Call { arguments, .. } => Some(arguments["data"].as_str().unwrap()),
            _ => None,
        });
        for (nth, data) in calls.enumerate() {
            match nth % 3 {
                0 => assert!(data == "x" || data == "y", "{data}"),
                1 => assert!((2..=4).contains(&data.len()), "{data}"),
                _ => assert_eq!(data, format!("by {number}")),
            }
            texts.insert(data.to_owned());
        }
    }
    assert!(texts.contains("x") && texts.contains("y") && texts.len() > 20, "{texts:?}");
}

/// What breaks an invariant is written down, and is run again from there.
#[test]
fn a_plan_that_is_drawn_is_the_same_when_it_was_written_and_read() {
    let subject = stock("leader-election");
    for seed in 1..=50 {
        let plan = plan(&subject, seed);
        let text = toml::to_string(&plan).unwrap();
        let read =
            Scenario::read("s.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(*read.plan(), plan, "seed {seed}");
    }
}

#[test]
fn only_what_is_live_is_waited_for() {
    let text = "live = [\"leader\"]\n".to_owned()
        + &round(
            "  { call = { operation = \"leader\" } },\n  { call = { operation = \"observe\" } },",
        );
    let plan = planned(&stock("leader-election"), &text);
    for step in plan.applications.iter().flat_map(|it| &it.steps) {
        if let Step::Call { operation, deadline_ms, .. } = step {
            assert_eq!(deadline_ms.is_none(), operation == "leader", "{step:?}");
        }
    }
}
