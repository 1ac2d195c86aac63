use std::process::{Command, Stdio};
use std::time::Duration;

use super::wait;

fn shell(script: &str) -> std::process::Child {
    Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().expect("a shell starts")
}

#[test]
fn a_child_is_waited_for_and_its_status_returned() {
    assert_eq!(wait(shell("exit 3")).unwrap().0.code(), Some(3));
    let (status, _) = wait(shell("kill -TERM $$")).unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
}

#[test]
fn the_usage_is_that_of_this_child_and_its_children() {
    let (_, idle) = wait(shell("sleep 0.05")).unwrap();
    let (_, busy) = wait(shell("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done'")).unwrap();
    assert!(idle.user + idle.system < Duration::from_millis(50), "{idle:?}");
    assert!(busy.user > idle.user, "{busy:?} {idle:?}");
    assert!(idle.peak_bytes > 100_000, "{idle:?}");
}
