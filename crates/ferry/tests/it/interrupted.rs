//! Interruption by a signal at any moment: every file is complete or absent, and no process is left.

use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use rustix::termios::{LocalModes, OptionalActions};

use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, scaled, skip, text};

const ROUNDS: u64 = 20;

/// Makes files of many sizes with content that depends on the size.
fn make(folder: &Path) {
    for index in 0..120_usize {
        let folder = folder.join(format!("d{}", index % 5));
        fs::create_dir_all(&folder).unwrap();
        let size = [10, 5_000, 100_000, 400_000, 3 << 20][index % 5];
        fs::write(folder.join(format!("f{index}")), vec![u8::try_from(index).unwrap(); size]).unwrap();
    }
}

/// Expects complete files only; returns their names.
fn assert_whole(source: &Path, target: &Path, what: &str) -> usize {
    let mut count = 0;
    let Ok(folders) = fs::read_dir(target) else { return 0 };
    for folder in folders {
        let folder = folder.unwrap().path();
        for file in fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let original = source.join(path.strip_prefix(target).unwrap());
            assert!(original.exists(), "{what}: {} is left", path.display());
            assert!(fs::read(&path).unwrap() == fs::read(original).unwrap(), "{what}: {}", path.display());
            count += 1;
        }
    }
    count
}

pub(crate) fn end_of(child: &mut Child, what: &str) -> std::process::ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > Duration::from_secs(10) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{what}: it does not end");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns true if no other process of the group is left.
fn is_alone(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group) == Err(rustix::io::Errno::SRCH)
}

#[test]
fn an_interrupted_copy_ends_by_its_signal_with_nothing_in_pieces() {
    let memory = Filesystem::memory();
    let (source, target) = (memory.path().join("s"), memory.path().join("t"));
    make(&source);
    let (mut caught, rounds) = (0, u32::try_from(scaled(ROUNDS)).unwrap());
    for options in [&["-r"][..], &["-a", "--atomic"]] {
        for backend in ["--backend=uring", "--backend=posix"] {
            let command = || {
                let mut command = Command::new(FERRY);
                command.current_dir(memory.path()).arg("cp").args(options).args([backend, "s", "t"]);
                command.stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
                command
            };
            let begun = Instant::now();
            assert!(command().status().unwrap().success());
            let took = begun.elapsed();
            for round in 0..rounds {
                ferry_tree::remove::remove(&target).unwrap();
                let signal = [Signal::INT, Signal::TERM, Signal::HUP][round as usize % 3];
                let moment = took * (2 * round + 1) / (2 * rounds);
                let what = format!("{options:?} {backend} {signal:?} after {moment:?}");
                let mut child = command().spawn().unwrap();
                std::thread::sleep(moment);
                let process = Pid::from_child(&child);
                // The process may have ended.
                rustix::process::kill_process(process, signal).ok();
                let status = end_of(&mut child, &what);
                assert!(is_alone(process), "{what}: something runs on");
                let is_caught = status.signal() == Some(signal.as_raw());
                assert!(is_caught || status.success(), "{what}: {status}");
                caught += u32::from(is_caught);
                let mut said = String::new();
                child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                // Before it catches signals, it prints nothing, like any program.
                assert!(said.is_empty() || said.contains("interrupted after "), "{what}: {said}");
                let left = assert_whole(&source, &target, &what);
                assert!(is_caught || left == 120, "{what}: {left} files");
                if !target.exists() {
                    fs::create_dir(&target).unwrap();
                }
            }
        }
    }
    assert!(caught > rounds, "only {caught} were interrupted before they ended");
}

/// Invoked as cp, it prints nothing about the interruption unless a ferry option asks for it.
#[test]
fn an_interrupted_copy_is_silent_where_ferry_is_called_as_cp() {
    let memory = Filesystem::memory();
    make(&memory.path().join("s"));
    for (asked, is_told) in [(&[][..], false), (&["--stats"], true), (&["--progress=always"], true)] {
        let mut command = Command::new(FERRY);
        command.arg0("cp").current_dir(memory.path()).args(["-r", "--bwlimit=1M"]).args(asked);
        command.args(["s", "t"]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let begun = Instant::now();
        // By then, signals are caught and the drawing thread runs.
        while !memory.path().join("t").exists() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(200));
        rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(end_of(&mut child, "as cp").signal(), Some(Signal::TERM.as_raw()));
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said.contains("interrupted after "), is_told, "{asked:?}: {said}");
        assert!(is_told || said.is_empty(), "{said}");
        ferry_tree::remove::remove(&memory.path().join("t")).unwrap();
    }
}

pub(crate) fn terminal() -> Option<(rustix::fd::OwnedFd, rustix::fd::OwnedFd)> {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let opened = openpt(flags).and_then(|controller| {
        grantpt(&controller)?;
        unlockpt(&controller)?;
        let user = ioctl_tiocgptpeer(&controller, flags)?;
        Ok((controller, user))
    });
    match opened {
        Ok(ends) => Some(ends),
        Err(errno) => skip(&format!("no terminal can be made: {errno}")),
    }
}

/// Reads everything shown; one read(2) returns at most 4 KiB.
pub(crate) fn shown_on(controller: &rustix::fd::OwnedFd) -> Vec<u8> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let patience = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
    let mut shown = Vec::new();
    while poll(&mut [PollFd::new(controller, PollFlags::IN)], Some(&patience)).unwrap() > 0 {
        let mut part = [0; 4096];
        let count = rustix::io::read(controller, &mut part).unwrap();
        shown.extend_from_slice(&part[..count]);
    }
    shown
}

#[test]
fn an_interrupted_copy_leaves_the_terminal_as_it_was() {
    let memory = Filesystem::memory();
    make(&memory.path().join("s"));
    let Some((controller, user)) = terminal() else { return };
    let modes = rustix::termios::tcgetattr(&user).unwrap();
    rustix::termios::tcsetattr(&user, OptionalActions::Now, &modes).unwrap();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let before = rustix::termios::tcgetattr(&user).unwrap();
        let mut command = Command::new(FERRY);
        command.current_dir(memory.path());
        command.args(["cp", "-r", "--progress=always", "--bwlimit=4M", "s", "t"]);
        command.stdout(Stdio::null()).stderr(user.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1200));
        rustix::process::kill_process(Pid::from_child(&child), signal).unwrap();
        let status = end_of(&mut child, "on a terminal");
        assert_eq!(status.signal(), Some(signal.as_raw()));
        let after = rustix::termios::tcgetattr(&user).unwrap();
        assert_eq!(format!("{before:?}"), format!("{after:?}"));
        assert!(after.local_modes.contains(LocalModes::ECHO | LocalModes::ICANON));
        let shown = shown_on(&controller);
        let shown = text(&shown);
        // The bar is erased, the cursor is visible, and the last line is complete.
        assert!(shown.contains("interrupted after "), "{shown:?}");
        assert!(shown.ends_with('\n'), "{shown:?}");
        let (hidden, back) = (shown.rfind("\x1b[?25l"), shown.rfind("\x1b[?25h"));
        assert!(hidden.is_none() || back > hidden, "the cursor stays hidden: {shown:?}");
        ferry_tree::remove::remove(&memory.path().join("t")).unwrap();
    }
}
