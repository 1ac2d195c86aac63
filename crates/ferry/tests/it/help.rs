//! The help at several widths, in a pipe and on a terminal, without a command, and its examples.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::scene::{FERRY, skip, text};

/// Help in a pipe; `columns` is the value of COLUMNS.
fn piped(arguments: &[&str], columns: Option<&str>) -> String {
    let mut command = Command::new(FERRY);
    command.args(arguments).env_remove("COLUMNS");
    let output = command.envs(columns.map(|columns| ("COLUMNS", columns))).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}");
    text(&output.stdout).to_owned()
}

/// Returns the long options of `ferry sync`, taken from its help.
pub(crate) fn options_of_sync() -> BTreeSet<String> {
    let help = piped(&["sync", "--help"], None);
    let list = help.split_once("\nOptions:\n").unwrap().1.split("\n\n").next().unwrap();
    // A letter stands before some options.
    let lines = list.lines().filter(|line| line.trim_start().starts_with('-'));
    let names = lines.filter_map(|line| line.split([' ', '[']).find(|word| word.starts_with("--")));
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    assert!(names.len() >= 39 && names.contains("--max-load") && names.contains("--trash"), "{names:?}");
    names
}

#[test]
fn a_help_is_as_wide_as_the_terminal_and_at_most_80_columns() {
    for arguments in [&["cp", "-h"][..], &["cp", "--help"], &["sync", "-h"], &["trace", "export", "--help"]] {
        let usual = piped(arguments, Some("80"));
        assert_eq!(piped(arguments, None), usual, "{arguments:?}");
        assert_eq!(piped(arguments, Some("200")), usual, "{arguments:?}");
        let narrow = piped(arguments, Some("40"));
        assert!(narrow.lines().count() > usual.lines().count(), "{arguments:?}: {narrow}");
        assert!(!usual.contains('\x1b') && !narrow.contains('\x1b'), "{arguments:?}");
        let long = usual.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{arguments:?}");
    }
}

#[test]
fn a_short_help_is_short() {
    for command in ["cp", "sync", "verify", "tune"] {
        let (short, long) = (piped(&[command, "-h"], None), piped(&[command, "--help"], None));
        assert!(short.lines().count() <= 45 && short.len() < long.len(), "{command}: {short}");
        for help in [&short, &long] {
            let before = help.split("\nExamples:\n").next().unwrap_or_default();
            assert!(before.lines().count() <= 5, "{command}: {help}");
            assert_eq!(examples(help).len(), 3, "{command}: {help}");
        }
        let hint = format!("\nRun `ferry {command} --help` for all options and details.\n");
        assert!(short.ends_with(&hint) && !long.contains(&hint), "{command}: {short}");
    }
}

#[test]
fn each_line_of_a_short_help_says_what_its_option_does() {
    for command in ["cp", "sync", "verify", "plan", "tune"] {
        let short = piped(&[command, "-h"], None);
        let condition = short.lines().find(|line| line.contains("  With --"));
        assert_eq!(condition, None, "{command}: {short}");
    }
}

#[test]
fn the_help_of_sync_says_first_that_contents_go_into_target() {
    let first = "Update TARGET with the contents of SOURCE, with or without a trailing slash\n";
    for option in ["-h", "--help"] {
        let help = piped(&["sync", option], None);
        assert!(help.starts_with(first), "{option}: {help}");
    }
}

#[test]
fn a_help_is_coloured_only_on_a_terminal_that_wants_it() {
    let shown = |variable: &str| {
        let line = format!("stty rows 24 columns 60; exec env {variable} {FERRY} verify -h");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("COLUMNS");
        let output = command.stdin(Stdio::null()).output().ok()?;
        assert!(output.status.success(), "{output:?}");
        Some(text(&output.stdout).replace('\r', ""))
    };
    let Some(coloured) = shown("SHOWN=1") else { return skip("there is no script(1)").unwrap_or_default() };
    assert!(coloured.contains("\x1b[1m"), "{coloured:?}");
    assert_eq!(shown("NO_COLOR=1"), Some(piped(&["verify", "-h"], Some("60"))));
}

#[test]
fn without_a_command_the_short_help_is_an_error() {
    for above in [&[][..], &["lab"], &["trace"]] {
        let output = Command::new(FERRY).args(above).env_remove("COLUMNS").output().unwrap();
        let short = piped(&[above, &["-h"]].concat(), None);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{above:?}");
        assert_eq!(text(&output.stderr), short, "{above:?}");
    }
}

#[test]
fn a_command_without_arguments_tells_what_is_missing_and_shows_its_short_help() {
    for (command, missing) in [
        ("sync", "missing operand"),
        ("verify", "missing operand"),
        ("plan", "name a step: --split, --open, --part or --close"),
        ("tune", "missing operand"),
        ("trace record", "missing '-- COMMAND'"),
        ("trace show", "missing operand"),
        ("trace diff", "missing operands"),
        ("trace export", "missing operand"),
        ("lab report", "missing record"),
        ("lab tree", "missing operand"),
        ("lab run", "two commands are needed: '-- COMMAND -- COMMAND'"),
        ("completions", "missing shell"),
        ("man", "missing directory"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let output = Command::new(FERRY).args(&words).env_remove("COLUMNS").output().unwrap();
        let short = piped(&[&words[..], &["-h"]].concat(), None);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{command}");
        assert_eq!(text(&output.stderr), format!("ferry {command}: {missing}\n\n{short}"));
    }
    // With an argument, one line tells where the help is.
    let output = Command::new(FERRY).args(["verify", "a"]).output().unwrap();
    let hint = "Try 'ferry verify --help' for more information.";
    assert_eq!(text(&output.stderr), format!("ferry verify: missing operand after 'a'\n{hint}\n"));
    // GNU cp's words.
    let output = Command::new(FERRY).arg("cp").output().unwrap();
    let expected = "ferry cp: missing file operand\nTry 'ferry cp --help' for more information.\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected));
}

/// Command lines of the examples in a help.
fn examples(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("      "));
    lines.map(str::trim).collect()
}

/// Those of `tune`, `lab` and `trace record` would take minutes, or need root.
#[test]
fn examples_run_as_they_stand() {
    // The commands of a row run in one directory, one after another.
    for row in [&[""][..], &["cp", "verify"], &["sync"], &["trace", "trace export"]] {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("photos")).unwrap();
        std::fs::write(place.path().join("photos/one"), "sea").unwrap();
        let mut path = Path::new(FERRY).parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        for words in row {
            let arguments: Vec<&str> = words.split_whitespace().chain(["-h"]).collect();
            for line in examples(&piped(&arguments, None)) {
                let mut command = Command::new("sh");
                command.args(["-c", line]).current_dir(place.path()).env("PATH", &path);
                let output = command.output().unwrap();
                assert!(output.status.success(), "{line}: {}", text(&output.stderr));
            }
        }
    }
}
