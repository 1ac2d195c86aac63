//! `ferry trace show` and `export`: text, timeline and files for other programs.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::interrupted::{end_of, terminal};
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, ferry, text};

/// Records the copy of files, one of which has an escape sequence in its name.
fn record(folder: &Path, options: &[&str]) {
    fs::create_dir(folder.join("s")).unwrap();
    for index in 0..40 {
        fs::write(folder.join(format!("s/file {index}")), vec![7; 3_000]).unwrap();
    }
    fs::write(folder.join("s/\x1b[31mred"), vec![7; 2 << 20]).unwrap();
    let arguments = [&["cp", "-r", "--trace", "recording", "s", "t"], options].concat();
    let output = ferry(folder, &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[track_caller]
fn told(output: &Output) -> &str {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_recorded_copy_is_told_in_lines_of_eighty_characters() {
    let memory = Filesystem::memory();
    record(memory.path(), &["--route=inline"]);
    for (locale, full) in [("C", '@'), ("C.UTF-8", '█')] {
        let mut command = Command::new(FERRY);
        command.current_dir(memory.path()).args(["trace", "show", "recording"]).env("LC_ALL", locale);
        let output = command.output().unwrap();
        let shown = told(&output);
        for line in [
            "cp -r --trace recording s t --route=inline",
            "Time by route, from request to result",
            "Time by phase",
            "Time by kind of operation",
            "Longest operations",
            "In flight or in use, over time",
            "Threads",
        ] {
            assert!(shown.lines().any(|shown| shown.ends_with(line)), "'{line}' is not in:\n{shown}");
        }
        let [answer, depth, head] = [0, 1, 2].map(|index| shown.split("\n\n").nth(index).unwrap());
        let answer = answer.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            answer.starts_with("A ") && answer.contains(" busy ") && answer.contains("longest"),
            "{answer}"
        );
        assert!(depth.starts_with("Operations in flight over ") && depth.contains(full), "{depth}");
        assert!(head.contains("operations, "), "{head}");
        let is_wide = |line: &&str| line.chars().count() > 80 && !line.contains("cp -r");
        let wide: Vec<&str> = shown.lines().filter(is_wide).collect();
        assert!(wide.is_empty(), "{}", wide.join("\n"));
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
}

#[test]
fn the_longest_operations_have_their_files_folder_and_size() {
    let memory = Filesystem::memory();
    record(memory.path(), &["--route=ring"]);
    let shown: Value =
        serde_json::from_str(told(&ferry(memory.path(), &["trace", "show", "--json", "recording"]))).unwrap();
    let longest = shown["longest"].as_array().unwrap();
    let of_file = |its: &Value| its["path"].as_str().unwrap().starts_with("s/");
    assert!(longest.iter().any(of_file), "{longest:#?}");
    let mut moving = longest.iter().filter(|its| its["kind"] == "read" || its["kind"] == "write");
    assert!(moving.all(|its| its["size"].as_u64() > Some(0)), "{longest:#?}");
}

#[test]
fn the_summary_in_json_counts_what_the_copy_s_own_statistics_count() {
    let memory = Filesystem::memory();
    record(memory.path(), &[]);
    let again = ["cp", "-r", "--stats=json", "--trace", "recording", "s", "u"];
    let counted: Value = serde_json::from_str(told(&ferry(memory.path(), &again))).unwrap();
    let output = ferry(memory.path(), &["trace", "show", "--json", "recording"]);
    let shown: Value = serde_json::from_str(told(&output)).unwrap();
    assert_eq!(shown["lost"], serde_json::json!({ "program": 0, "kernel": 0 }));
    let routes = shown["routes"].as_array().unwrap();
    for route in routes {
        let name = route["route"].as_str().unwrap();
        assert_eq!(route["count"], counted["operations_by_route"][name], "{name}: {shown}");
    }
    assert_eq!(shown["operations"], counted["operations"]);
    assert!(!text(&output.stdout).trim_end().chars().any(char::is_control), "{shown}");
}

#[test]
fn a_recording_becomes_a_page_a_picture_and_a_perfetto_trace() {
    let memory = Filesystem::memory();
    record(memory.path(), &[]);
    let formats = [
        ("html", "html", &b"<!doctype html>"[..]),
        ("svg", "svg", b"<svg"),
        ("perfetto", "perfetto-trace", b"\x0a"),
    ];
    for (format, extension, begin) in formats {
        let piped = ferry(memory.path(), &["trace", "export", "--format", format, "recording"]);
        assert!(piped.status.success(), "{}", text(&piped.stderr));
        let head = piped.stdout.get(..begin.len()).unwrap().to_ascii_lowercase();
        assert_eq!(head, begin, "{format}");
        let named = ferry(memory.path(), &["trace", "export", "-f", format, "-o", "out", "recording"]);
        assert!(named.status.success() && named.stdout.is_empty(), "{}", text(&named.stderr));
        assert!(fs::read(memory.path().join("out")).unwrap() == piped.stdout, "{format}");
        let name = format!("out.{extension}");
        let named = ferry(memory.path(), &["trace", "export", "-o", &name, "recording"]);
        assert!(named.status.success(), "{}", text(&named.stderr));
        assert!(fs::read(memory.path().join(name)).unwrap() == piped.stdout, "{format}");
    }
}

#[test]
fn a_summary_is_written_to_a_file_in_the_format_of_its_extension() {
    let memory = Filesystem::memory();
    record(memory.path(), &[]);
    for (name, options) in [("out.txt", &[][..]), ("out.json", &["--json"]), ("out", &["--json"])] {
        let printed = ferry(memory.path(), &[&["trace", "show", "recording"], options].concat());
        // Without an extension, the option selects the format.
        let options = if name == "out" { options } else { &[] };
        let named = ferry(memory.path(), &[&["trace", "show", "recording", "-o", name], options].concat());
        assert_eq!(told(&named), "", "{name}");
        assert_eq!(fs::read_to_string(memory.path().join(name)).unwrap(), told(&printed), "{name}");
    }
}

#[test]
fn what_is_wrong_is_told_in_a_line() {
    let memory = Filesystem::memory();
    record(memory.path(), &[]);
    let whole = fs::read(memory.path().join("recording")).unwrap();
    fs::write(memory.path().join("empty"), "").unwrap();
    fs::write(memory.path().join("foreign"), "#!/bin/sh\n").unwrap();
    fs::write(memory.path().join("cut"), &whole[..whole.len() - 1]).unwrap();
    for (arguments, code, line) in [
        ("show empty", 1, "ferry trace show: cannot read 'empty': it is empty"),
        ("show foreign", 1, "ferry trace show: cannot read 'foreign': it is no recording"),
        ("show cut", 1, "ferry trace show: cannot read 'cut': it is truncated"),
        ("show missing", 1, "ferry trace show: cannot read 'missing': No such file or directory"),
        ("show --tui recording", 1, "ferry trace show: --tui needs a terminal as standard input and output"),
        ("export -f svg -o s recording", 1, "ferry trace export: cannot write 's': Is a directory"),
        (
            "export -f svg -o recording recording",
            2,
            "ferry trace export: cannot write 'recording': it is the recording",
        ),
        ("export -f svg cut", 1, "ferry trace export: cannot read 'cut': it is truncated"),
        ("export recording", 2, "ferry trace export: missing '--format FORMAT'"),
        (
            "export -o out.txt recording",
            2,
            "ferry trace export: the extension of 'out.txt' selects no format; choose one of .html, .svg, \
             .perfetto-trace, .pftrace; or add '--format FORMAT'",
        ),
        ("export -f svg", 2, "ferry trace export: missing operand"),
        ("show --json", 2, "ferry trace show: missing operand"),
        ("show a b", 2, "ferry trace show: extra operand 'b'"),
        ("show -o recording recording", 2, "ferry trace show: cannot write 'recording': it is the recording"),
        ("show -o s recording", 1, "ferry trace show: cannot write 's': Is a directory"),
        ("show --tui -o out recording", 2, "ferry trace show: --tui can't be combined with --output"),
        ("show .", 1, "ferry trace show: cannot read '.': Is a directory"),
        ("play a", 2, "ferry trace: 'play' is not a command; choose one of "),
    ] {
        let arguments: Vec<&str> = ["trace"].into_iter().chain(arguments.split(' ')).collect();
        let output = ferry(memory.path(), &arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.starts_with(line), "{arguments:?}: {said}");
        let others = said.lines().skip(1).filter(|line| !line.starts_with("Try 'ferry trace"));
        assert_eq!(others.count(), 0, "{said}");
    }
    assert!(fs::read(memory.path().join("recording")).unwrap() == whole);
}

/// The timeline on the test's own terminal.
struct Shown {
    child: Child,
    controller: rustix::fd::OwnedFd,
    user: rustix::fd::OwnedFd,
    modes: String,
    screen: Vec<u8>,
}

impl Shown {
    fn start(folder: &Path) -> Option<Self> {
        let (controller, user) = terminal()?;
        tcsetwinsize(&user, Winsize { ws_row: 24, ws_col: 90, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let modes = modes(&user);
        let mut command = Command::new(FERRY);
        command.current_dir(folder).args(["trace", "show", "--tui", "recording"]);
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        command.stdin(user.try_clone().unwrap()).stdout(user.try_clone().unwrap()).stderr(Stdio::inherit());
        let child = command.spawn().unwrap();
        rustix::io::ioctl_fionbio(&controller, true).unwrap();
        Some(Self { child, controller, user, modes, screen: Vec::new() })
    }

    /// Reads the screen until `text` appears.
    fn wait_for(&mut self, text: &str) {
        let begun = Instant::now();
        while !String::from_utf8_lossy(&self.screen).contains(text) {
            let late = begun.elapsed() > Duration::from_secs(20);
            assert!(!late, "no {text:?} in {}", String::from_utf8_lossy(&self.screen));
            self.take();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn take(&mut self) {
        let mut buffer = [0; 1 << 14];
        while let Ok(count @ 1..) = rustix::io::read(self.controller.as_fd(), &mut buffer) {
            self.screen.extend_from_slice(&buffer[..count]);
        }
    }

    fn press(&mut self, keys: &str) {
        let mut controller = fs::File::from(self.controller.try_clone().unwrap());
        controller.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the exit status after checking that the terminal was restored.
    fn end(mut self) -> std::process::ExitStatus {
        let begun = Instant::now();
        // The terminal's output must be read until the end.
        while self.child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(10) {
            self.take();
            std::thread::sleep(Duration::from_millis(1));
        }
        let status = end_of(&mut self.child, "the timeline");
        self.take();
        assert_eq!(modes(&self.user), self.modes);
        let screen = String::from_utf8_lossy(&self.screen);
        let (entered, left) = (screen.find("\x1b[?1049h"), screen.rfind("\x1b[?1049l"));
        assert!(entered.is_some() && left > entered, "the other screen stays: {screen:?}");
        let (hidden, back) = (screen.rfind("\x1b[?25l"), screen.rfind("\x1b[?25h"));
        assert!(back > hidden, "the cursor stays hidden: {screen:?}");
        status
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // A failed test leaves it running.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn modes(user: &rustix::fd::OwnedFd) -> String {
    format!("{:?}", rustix::termios::tcgetattr(user).unwrap())
}

#[test]
fn the_timeline_is_moved_about_in_and_left() {
    let memory = Filesystem::memory();
    record(memory.path(), &[]);
    let Some(mut shown) = Shown::start(memory.path()) else { return };
    shown.wait_for("worker 0");
    shown.wait_for("q quit");
    shown.press("/file 17\r");
    // Only changed cells are drawn, without the spaces between words.
    shown.wait_for("17',");
    tcsetwinsize(&shown.user, Winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    rustix::process::kill_process(Pid::from_child(&shown.child), Signal::WINCH).unwrap();
    shown.wait_for(&"─".repeat(120));
    shown.press("?");
    shown.wait_for("Shift-Tab");
    shown.press("xq");
    assert!(shown.end().success());
}

#[test]
fn an_interrupted_timeline_leaves_the_terminal_as_it_was() {
    let memory = Filesystem::memory();
    record(memory.path(), &[]);
    for signal in [Signal::INT, Signal::TERM] {
        let Some(mut shown) = Shown::start(memory.path()) else { return };
        shown.wait_for("q quit");
        rustix::process::kill_process(Pid::from_child(&shown.child), signal).unwrap();
        assert_eq!(shown.end().signal(), Some(signal.as_raw()));
    }
    let Some(mut shown) = Shown::start(memory.path()) else { return };
    shown.wait_for("q quit");
    shown.press("\x03");
    assert_eq!(shown.end().signal(), Some(Signal::INT.as_raw()));
}
