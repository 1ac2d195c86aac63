//! SIGINT ends a run in order, in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use ferry_io::{Backend, Options, StopHandle, protect, run, sleep};
use rustix::process::Signal;

const CHILD: &str = "FERRY_IO_SIGNAL_CHILD";

/// The child process; without the variable this test does nothing.
#[test]
fn the_child_waits_for_a_signal() {
    let Ok(part) = std::env::var(CHILD) else { return };
    let backend = if part == "uring" { Backend::Uring } else { Backend::Posix };
    let embedded = (part == "embedded").then(StopHandle::new);
    let options = Options { backend, embedded, ..Options::default() };
    let ran = run(&options, async |io| {
        io.stop_on_signals().expect("signals can be caught");
        match part.as_str() {
            "over" => return false,
            "stopping" => io.stop(),
            _waiting => {}
        }
        println!("ready");
        if part == "stopping" {
            return protect(sleep(Duration::from_millis(500))).await.is_ok();
        }
        let limit = if part == "ignoring" { Duration::from_millis(500) } else { Duration::from_secs(60) };
        sleep(limit).await.is_ok()
    });
    match ran {
        Ok((slept, stats)) => println!("slept {slept} signal {:?}", stats.signal),
        Err(error) => println!("SKIP {error}"),
    }
    if part == "over" {
        println!("ready");
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// Starts the child and sends it a signal; returns its output after that and its exit status.
fn signalled(part: &str, signal: Signal) -> Option<(String, ExitStatus)> {
    let test = std::env::current_exe().expect("this test");
    let script = if part == "ignoring" { "trap '' INT; exec \"$@\"" } else { "exec \"$@\"" };
    let mut child = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(test)
        .args(["--exact", "signals::the_child_waits_for_a_signal", "--nocapture"])
        .env(CHILD, part)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut is_there = false;
    for line in lines.by_ref() {
        let line = line.expect("text");
        is_there = line.contains("ready");
        if is_there || line.contains("SKIP") {
            break;
        }
    }
    if is_there {
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("it is ours");
    }
    let said: Vec<String> = lines.map_while(|line| line.ok()).collect();
    let ended = child.wait().expect("its end");
    if !is_there {
        println!("SKIP {part}");
    }
    is_there.then(|| (said.concat(), ended))
}

#[test]
fn a_signal_cancels_what_runs() {
    for backend in ["posix", "uring"] {
        for (signal, number) in [(Signal::INT, libc::SIGINT), (Signal::TERM, libc::SIGTERM)] {
            let Some((said, ended)) = signalled(backend, signal) else { continue };
            assert!(said.contains(&format!("slept false signal Some({number})")), "{said}");
            assert!(ended.success());
        }
    }
}

#[test]
fn a_signal_after_the_run_kills() {
    let (_, ended) = signalled("over", Signal::INT).expect("the backend is there");
    assert_eq!(ended.signal(), Some(libc::SIGINT));
}

#[test]
fn the_first_signal_while_the_run_stops_by_itself_is_not_a_second() {
    let (said, ended) = signalled("stopping", Signal::INT).expect("the backend is there");
    assert!(said.contains("slept true signal Some(2)") && ended.success(), "{said} {ended}");
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let (said, ended) = signalled("ignoring", Signal::INT).expect("the backend is there");
    assert!(said.contains("slept true signal None") && ended.success(), "{said} {ended}");
}

#[test]
fn a_run_that_is_a_part_of_a_program_leaves_it_its_signals_and_its_umask() {
    let (_, ended) = signalled("embedded", Signal::INT).expect("the backend is there");
    assert_eq!(ended.signal(), Some(libc::SIGINT));
    let options = Options { embedded: Some(StopHandle::new()), ..Options::default() };
    let (umask, _) = run(&options, async |io| io.umask()).expect("the backend is there");
    let (other, _) = run(&Options::default(), async |io| io.umask()).expect("the backend is there");
    assert_eq!(umask, other);
}

#[test]
fn a_stop_handle_cancels_a_run_from_another_thread() {
    let stop = StopHandle::new();
    let options = Options { embedded: Some(stop.clone()), ..Options::default() };
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        stop.stop();
    });
    let (slept, _) =
        run(&options, async |_| sleep(Duration::from_secs(60)).await).expect("the backend is there");
    assert!(slept.is_err_and(|error| error.is_cancelled()));
    stopper.join().expect("it only stops");
}
