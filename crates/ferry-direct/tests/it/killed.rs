//! A writer killed by SIGKILL at any moment: each byte it leaves is an old one or one that it wrote.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::disk::Mounted;
use crate::place::folder_of_programs;

/// Byte at an offset as written by the `generation`-th writer; never zero. As in `examples/direct_writer.rs`.
fn byte(at: usize, generation: usize) -> u8 {
    u8::try_from((at * 31 + at / 4096 * 7 + generation * 29) % 251 + 1).expect("a byte")
}

const GENERATIONS: usize = 4;
/// Size of the file at first; it ends in the middle of a sector.
const FIRST_SIZE: usize = 300_003;

/// Runs a writer for `time` and kills it; returns the file's size at the last flush that it reported.
fn kill_after(path: &Path, seed: u64, backend: &str, time: Duration) -> usize {
    let program = folder_of_programs().join("examples/direct_writer");
    let mut child = Command::new(&program)
        .arg(path)
        .args([&seed.to_string(), backend])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("{} is built by `cargo test -p ferry-direct`: {error}", program.display())
        });
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    // The writer has opened the file.
    assert_eq!(lines.next().expect("a line").expect("text"), "0");
    std::thread::sleep(time);
    child.kill().expect("it runs");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), None, "it was killed, and had not failed before");
    let flushed = lines.map_while(Result::ok).filter_map(|line| line.parse().ok()).max();
    flushed.unwrap_or(0)
}

fn check(path: &Path, flushed: usize) {
    let bytes = std::fs::read(path).expect("it is there");
    assert!(bytes.len() >= flushed.max(FIRST_SIZE), "{} bytes, of {flushed} flushed", bytes.len());
    let is_known =
        |(at, found): (usize, &u8)| (0..GENERATIONS).any(|generation| byte(at, generation) == *found);
    let wrong = bytes.iter().enumerate().find(|&found| !is_known(found));
    assert_eq!(wrong, None, "of {} bytes, this one was never there or written", bytes.len());
}

#[test]
fn a_killed_writer_leaves_what_was_written_or_what_was_there() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(mounted) = Mounted::new(kind) else { continue };
        let path = mounted.path().join("file");
        let mut grown = 0;
        // A slow machine gets more rounds and longer ones: each doubles the time, 10.8 seconds at the last.
        for round in 0..20 {
            if round >= 12 && grown > 0 {
                break;
            }
            let before: Vec<u8> = (0..FIRST_SIZE).map(|at| byte(at, 0)).collect();
            std::fs::write(&path, before).expect("a file");
            let backend = if round % 2 == 0 { "auto" } else { "posix" };
            let time = Duration::from_millis(7 * (round + 1).min(12)) * (1 << round.saturating_sub(12));
            let flushed = kill_after(&path, round, backend, time);
            check(&path, flushed);
            let size = std::fs::metadata(&path).expect("it is there").len();
            grown += u64::from(size > FIRST_SIZE as u64);
        }
        assert!(grown > 0, "{kind}: no writer made the file longer");
    }
}
