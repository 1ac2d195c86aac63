//! SIGINT ends a run in order: in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use ferry_io::{Backend, Options, run, sleep};

const CHILD: &str = "FERRY_IO_SIGNAL_CHILD";

/// What the child process runs; without the variable it is not one.
#[test]
fn the_child_waits_to_be_interrupted() {
    let Ok(backend) = std::env::var(CHILD) else { return };
    let backend = if backend == "uring" { Backend::Uring } else { Backend::Posix };
    let options = Options { backend, ..Options::default() };
    let ran = run(&options, async |io| {
        io.stop_on_signals().expect("signals can be caught");
        println!("ready");
        let slept = sleep(Duration::from_secs(60)).await;
        (slept.is_err_and(|error| error.is_cancelled()), io.is_stopped())
    });
    match ran {
        Ok((told, _)) => println!("cancelled {} stopped {}", told.0, told.1),
        Err(error) => println!("SKIP {error}"),
    }
}

#[test]
fn an_interrupt_cancels_what_runs() {
    for backend in ["posix", "uring"] {
        let test = std::env::current_exe().expect("this test");
        let mut child = Command::new(test)
            .args(["--exact", "signals::the_child_waits_to_be_interrupted", "--nocapture"])
            .env(CHILD, backend)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut wait_for = |wanted: &[&str]| loop {
            let line = lines.next().expect("it says more").expect("text");
            if let Some(found) = wanted.iter().find(|wanted| line.contains(**wanted)) {
                return (*found).to_owned();
            }
        };
        if wait_for(&["ready", "SKIP"]) == "SKIP" {
            println!("SKIP {backend}");
        } else {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is ours");
            wait_for(&["cancelled true stopped true"]);
        }
        assert!(child.wait().expect("its end").success());
    }
}
