use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{
    OutputTo, Pid, Stranger, await_end, filled, find_program, line, measure, prepare, time, version, words,
};
use crate::error::Failure;
use crate::stop::Stop;

#[test]
fn words_are_split_as_by_a_shell() {
    let split = |line: &str| words(line).unwrap();
    assert_eq!(split("rsync -a  {source}/ {target}"), ["rsync", "-a", "{source}/", "{target}"]);
    assert_eq!(split(r#"a 'b  c' "d \" \e" f\ g '' "#), ["a", "b  c", "d \" \\e", "f g", ""]);
    assert!(words("a 'b").is_err() && words("a \"b").is_err() && words("a\\").is_err());
}

#[test]
fn a_joined_line_is_split_into_the_same_words() {
    let all = ["sleep", "0.02", "", "it's", "a b", "\"x\"", "\\", "$HOME", "new\nline", "--", "é"];
    let all = all.map(str::to_owned);
    assert_eq!(words(&line(&all)).unwrap(), all);
    assert_eq!(line(&all[..3]), "sleep 0.02 ''");
}

#[test]
fn paths_take_their_places() {
    let fill = |text: &str| filled(text.as_ref(), Path::new("/s s"), Path::new("/t"));
    assert_eq!(fill("{source}/"), "/s s/");
    assert_eq!(fill("{source}:{target}{other}{"), "/s s:/t{other}{");
}

#[test]
fn a_command_is_timed_and_heard() {
    let stop = Stop::on_signals().unwrap();
    let returned = time(Command::new("sh").args(["-c", "sleep 0.05; echo done"]), &stop).unwrap();
    assert!(returned.seconds >= 0.05 && returned.seconds < 5.0);
    assert_eq!(returned.printed, "done\n");
}

#[test]
fn a_measured_command_has_its_time_status_and_use() {
    let stop = Stop::on_signals().unwrap();
    let run =
        |script: &str| measure(Command::new("sh").args(["-c", script]), OutputTo::Nowhere, &stop).unwrap();
    let slept = run("sleep 0.05; echo nobody sees this");
    assert!(slept.seconds >= 0.05 && slept.seconds < 5.0 && slept.failed.is_none(), "{slept:?}");
    assert!(slept.used.peak_bytes > 0, "{slept:?}");
    let failed = run("echo one >&2; echo two >&2; exit 3");
    assert_eq!((failed.status.code(), failed.failed.as_deref()), (Some(3), Some("'sh' failed: two")));
    let missing = measure(&mut Command::new("/no/such/program"), OutputTo::Nowhere, &stop).unwrap_err();
    assert_eq!(missing.to_string(), "'/no/such/program' can't be run: No such file or directory");
}

#[test]
fn a_failed_command_says_why() {
    let stop = Stop::on_signals().unwrap();
    let failed = |script: &str| match time(Command::new("sh").args(["-c", script]), &stop) {
        Err(Failure::Run(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(failed("echo one >&2; echo two >&2; exit 3"), "'sh' failed: two");
    assert_eq!(failed("exit 3"), "'sh' failed: exit status: 3");
    let missing = time(&mut Command::new("/no/such/program"), &stop).unwrap_err().to_string();
    assert_eq!(missing, "'/no/such/program' can't be run: No such file or directory");
}

#[test]
fn a_stopped_command_ends_with_all_of_its_processes() {
    let begun = Instant::now();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' TERM; sleep 60 & trap - TERM; echo ready; wait"]).stdout(Stdio::piped());
    prepare(&mut command);
    let mut child = command.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    await_end(Pid::from_child(&child), &Stop::after_signal().unwrap()).unwrap();
    assert!(!child.wait().unwrap().success());
    // The output ends with the last process that has it open.
    output.read_to_end(&mut Vec::new()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn programs_are_found_on_the_path() {
    assert!(find_program("sh".as_ref()).is_some());
    assert!(find_program("no-such-program-here".as_ref()).is_none());
    assert!(find_program("/bin/sh".as_ref()).is_some());
    let absent = Stranger::parse("no-such-program-here {source}").unwrap().absent();
    assert_eq!(absent.as_deref(), Some("'no-such-program-here' is not found on the PATH"));
    assert_eq!(Stranger::parse("sh {source}").unwrap().absent(), None);
    assert_eq!(Stranger::parse("sh 'x").unwrap_err().exit_code(), 2);
}

#[test]
fn versions_are_one_line() {
    let cp = find_program("cp".as_ref()).unwrap();
    assert!(version(&cp).contains("cp"), "{}", version(&cp));
    assert_eq!(version(Path::new("/no/such/program")), "");
}
