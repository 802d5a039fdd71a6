use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

const SOON: Duration = Duration::from_secs(20);

/// Whether a process with this number exists and is not a zombie.
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
}

#[test]
fn every_line_is_seen_also_the_last_without_an_end() {
    let mut seen = Vec::new();
    let status = run("echo", &mut shell("echo one; printf two"), SOON, |line| {
        seen.push(line.to_owned());
    });
    assert!(status.unwrap().success());
    assert_eq!(seen, ["one", "two"]);
}

#[test]
fn a_run_past_its_limit_is_killed_with_its_children() {
    let mut child = String::new();
    let script = "sleep 600 & echo $!; wait";
    let error = run("slow", &mut shell(script), Duration::from_millis(300), |line| {
        line.clone_into(&mut child);
    });
    assert_eq!(error.unwrap_err().to_string(), "slow: killed after 0.3 s");
    stop::until("the grandchild ends", SOON, || Ok((!lives(&child)).then_some(()))).unwrap();
}

#[test]
fn what_a_leader_leaves_behind_is_killed() {
    let output = output("left", &mut shell("sleep 600 & echo $!"), SOON).unwrap();
    let child = String::from_utf8(output.stdout).unwrap();
    stop::until("the orphan ends", SOON, || Ok((!lives(child.trim())).then_some(()))).unwrap();
}

#[test]
fn dropping_a_group_that_ignores_the_polite_signal_kills_it() {
    let mut group = Group::start(
        "deaf",
        shell("trap '' TERM; echo ready; while :; do sleep 1; done").stdout(Stdio::piped()),
    )
    .unwrap();
    let lines = lines(group.child().stdout.take().unwrap()).unwrap();
    assert_eq!(lines.recv_timeout(SOON).unwrap(), "ready");
    let leader = group.leader.as_raw_nonzero().to_string();
    drop(group);
    assert!(!lives(&leader));
}

#[test]
fn a_failure_carries_what_the_command_said() {
    let error = capture("grumble", &mut shell("echo no >&2; exit 3"), SOON).unwrap_err();
    assert_eq!(error.to_string(), "grumble: exit code 3: no");
}
