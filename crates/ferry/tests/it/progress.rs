//! `--progress`: the line fits the terminal, knows the total early, and agrees with the line after an interruption.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::interrupted::{shown_on, terminal};
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, text};

/// Makes 600 files of 10 kB in 31 folders.
fn make(place: &Path) {
    for folder in 0..30 {
        let folder = place.join(format!("source/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..20 {
            fs::write(folder.join(file.to_string()), [b'x'; 10_000]).unwrap();
        }
    }
}

/// Returns the lines that a terminal has shown, without control sequences.
fn lines(shown: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut characters = shown.chars();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => drop(characters.find(|end| end.is_ascii_alphabetic())),
            '\r' | '\n' => lines.push(String::new()),
            character => lines.last_mut().unwrap().push(character),
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Returns the percentage that a line begins with.
fn percentage(line: &str) -> Option<u64> {
    line.split_once(" %").and_then(|(number, _)| number.parse().ok())
}

#[test]
fn the_line_fits_the_terminal() {
    let memory = Filesystem::memory();
    make(memory.path());
    for (columns, part) in [(10, "%"), (40, "/6.0 MB"), (80, "/631 entries"), (120, "[=")] {
        let Some((controller, user)) = terminal() else { return };
        tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        for command in ["cp -rT", "sync"] {
            let line = format!("exec '{FERRY}' {command} --progress=always --bwlimit=4M source target");
            let mut copy = Command::new("sh");
            copy.args(["-c", &line]).current_dir(memory.path()).stderr(user.try_clone().unwrap());
            assert!(copy.status().unwrap().success());
            fs::remove_dir_all(memory.path().join("target")).unwrap();
            let shown = shown_on(&controller);
            let mut lines = lines(text(&shown));
            // The last ones are the summary.
            let begin =
                lines.iter().position(|line| line.starts_with("copied") || line.starts_with("created"));
            let summary = lines.split_off(begin.unwrap());
            // Words longer than 10 columns are not broken.
            let most = usize::from(columns.max(40));
            assert!(summary.iter().all(|line| line.chars().count() <= most), "{summary:#?}");
            let summary =
                summary.iter().flat_map(|line| line.split_whitespace()).collect::<Vec<_>>().join(" ");
            assert!(summary.starts_with("copied 631 entries, 6.0 MB") || command == "sync", "{summary}");
            let longest = lines.iter().max_by_key(|line| line.chars().count()).unwrap();
            assert!(longest.chars().count() < usize::from(columns), "{columns} columns: {longest}");
            let found: Vec<&String> = lines.iter().filter(|line| percentage(line).is_some()).collect();
            assert!(found.iter().any(|line| line.contains(part)), "{columns} columns, {command}: {lines:#?}");
            let percentages: Vec<u64> = found.iter().filter_map(|line| percentage(line)).collect();
            assert!(percentages.is_sorted() && percentages.iter().all(|&it| it <= 100), "{percentages:?}");
        }
    }
}

#[test]
fn all_work_is_known_after_a_tenth_of_the_time() {
    let memory = Filesystem::memory();
    make(memory.path());
    let mut command = Command::new(FERRY);
    // It takes ten seconds, and the first line comes after one.
    command.args(["cp", "-r", "--progress=always", "--bwlimit=600K", "source", "target"]);
    let output = command.current_dir(memory.path()).stdout(Stdio::null()).output().unwrap();
    assert!(output.status.success());
    let lines: Vec<&str> = text(&output.stderr).lines().collect();
    assert!(lines.len() >= 8, "{lines:#?}");
    // On a busy machine the thread that counts may come a moment too late for the first line.
    let known = lines.iter().position(|line| line.contains("/6.0 MB") && line.contains("/631 entries"));
    assert!(known.is_some_and(|known| known <= 1), "{lines:#?}");
    assert!(percentage(lines[1]).is_some_and(|percentage| percentage <= 35), "{lines:#?}");
    let last = percentage(lines[lines.len() - 2]);
    assert!(last.is_some_and(|last| last >= 75), "{lines:#?}");
}

#[test]
fn the_line_after_an_interruption_says_what_was_removed() {
    let memory = Filesystem::memory();
    fs::write(memory.path().join("large"), vec![b'x'; 8 << 20]).unwrap();
    let mut command = Command::new(FERRY);
    command.args(["cp", "--progress=always", "--bwlimit=1M", "large", "target"]).current_dir(memory.path());
    let copy = command.stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2300));
    kill_process(Pid::from_child(&copy), Signal::INT).unwrap();
    let output = copy.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()));
    let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, last) = said.split_once("interrupted after ").unwrap();
    let (figures, removed) = last.split_once("; ").unwrap();
    let reached = figures.strip_prefix("0/1 entries, ").and_then(|rest| rest.split_once("/8.4 MB in "));
    let (reached, _) = reached.unwrap_or_else(|| panic!("{said}"));
    assert_eq!(removed, format!("{reached} MB of incomplete files were removed"));
    assert!(!memory.path().join("target").exists());
}

#[test]
fn the_line_after_an_interruption_has_the_figures_of_the_bar() {
    let memory = Filesystem::memory();
    make(memory.path());
    for command in ["cp -rT", "sync"] {
        let Some((controller, user)) = terminal() else { return };
        tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let line = format!("exec '{FERRY}' {command} --progress=always --bwlimit=2M source target");
        let mut copy = Command::new("sh");
        copy.args(["-c", &line]).current_dir(memory.path()).stderr(user.try_clone().unwrap());
        let mut copy = copy.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(2000));
        kill_process(Pid::from_child(&copy), Signal::INT).unwrap();
        assert_eq!(copy.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
        fs::remove_dir_all(memory.path().join("target")).unwrap();
        let shown = shown_on(&controller);
        let lines = lines(text(&shown));
        let (bars, after): (Vec<&String>, Vec<&String>) =
            lines.iter().partition(|line| percentage(line).is_some());
        // `24 %  1.5/6.0 MB  2.0 MB/s  0:02 left  150/631 entries`
        let parts: Vec<&str> = bars.last().unwrap().split("  ").collect();
        let figures = format!("interrupted after {}, {}", parts[4], parts[1]);
        assert!(after.iter().any(|line| line.starts_with(&figures)), "{figures}: {lines:#?}");
    }
}
