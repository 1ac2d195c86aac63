//! Output of commands on terminals of several widths, without colours, and in a pipe.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::profiles::keep_sample;
use crate::scene::{FERRY, is_installed, skip, text};

/// Width of a terminal in columns. Text is wrapped for up to 120.
const WIDTHS: [usize; 3] = [40, 80, 200];

/// Commands whose output is a text for people, and their exit code. They run one after another in one folder.
const COMMANDS: [(&str, &[i32]); 24] = [
    ("ferry", &[2]),
    ("ferry lab", &[2]),
    ("ferry trace", &[2]),
    ("ferry snyc", &[2]),
    ("ferry cp --progess source copy", &[1]),
    ("ferry cp -a --stats source copy", &[0]),
    ("ferry cp -a --explain source explained", &[0]),
    ("ferry cp -r missing source copies", &[1]),
    ("ferry verify source copy", &[0]),
    ("ferry verify source changed", &[1]),
    ("ferry verify --all source changed", &[1]),
    ("ferry sync --dry-run --delete source changed", &[0]),
    ("ferry sync --delete source changed", &[0]),
    ("ferry cp -r --trace recording source traced", &[0]),
    ("ferry trace show recording", &[0]),
    ("ferry trace diff recording recording", &[0]),
    // Without the right to trace, a message says so.
    ("ferry trace record -o kernel -- ferry cp -r source recorded", &[0, 125]),
    ("ferry trace show kernel", &[0, 1]),
    ("ferry lab tree small made --depth 2", &[0, 3]),
    // Tables of a measurement are tested in tune/text, because one takes long.
    ("ferry tune --show", &[0]),
    // The lab trusts such short runs on some machines only.
    ("ferry lab run --runs 5 -- true -- true", &[0, 3]),
    // Without direct I/O, a message says so.
    ("ferry lab cache --quick --access zipf --file-size 1M --requests 100 --cache-sizes 256K", &[1, 3]),
    ("ferry tune --show missing", &[1]),
    ("ferry lab limits --quick --trees three --states warm", &[3]),
];

fn make(place: &Path) {
    keep_sample(place, &place.join("profiles"));
    for folder in ["source/with a name of two words", "source/b", "changed"] {
        fs::create_dir_all(place.join(folder)).unwrap();
    }
    for (name, content) in
        [("with a name of two words/one", "1"), ("b/two", "2"), ("three", "33"), ("four", "4")]
    {
        fs::write(place.join("source").join(name), content).unwrap();
    }
    for (name, content) in [("three", "changed"), ("five", "5")] {
        fs::write(place.join("changed").join(name), content).unwrap();
    }
}

/// Returns true for commands that print nothing if they succeed.
fn is_silent(line: &str) -> bool {
    line.starts_with("ferry cp -r --trace") || line.starts_with("ferry trace record")
}

/// Returns PATH with the folder of ferry first.
fn search_path() -> OsString {
    let mut path = Path::new(FERRY).parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    path
}

/// Returns what a terminal of this width shows of both streams, and the exit code.
fn on_terminal(place: &Path, line: &str, width: usize, variable: &str) -> (String, Option<i32>) {
    let line = format!("stty rows 50 columns {width}; export {variable}; {line}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(place);
    script.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("COLUMNS").stdin(Stdio::null());
    script.env("PATH", search_path()).env("FERRY_PROFILES", place.join("profiles"));
    let output = script.output().unwrap();
    // A line of progress is drawn again from its beginning.
    (text(&output.stdout).replace("\r\n", "\n").replace('\r', "\n"), output.status.code())
}

/// Returns a text without control sequences, and true if one of them has set a colour or a weight.
fn without_colours(shown: &str) -> (String, bool) {
    let (mut plain, mut is_coloured) = (String::new(), false);
    let mut characters = shown.chars();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => is_coloured |= characters.find(char::is_ascii_alphabetic) == Some('m'),
            character => plain.push(character),
        }
    }
    (plain, is_coloured)
}

/// Returns the lines that are wider than the terminal. Messages and actions have a line for each path, which is never broken; nor
/// is the command of a recording.
fn too_wide(shown: &str, width: usize) -> Vec<&str> {
    let has_path = |line: &str| line.starts_with('\'') || line.contains(" '");
    let is_one = |line: &str| has_path(line) || line == "ferry cp -r --trace recording source traced";
    shown.lines().filter(|line| line.trim_end().chars().count() > width && !is_one(line)).collect()
}

#[test]
fn texts_fit_the_terminal_and_have_no_colours_with_no_color() {
    if !is_installed("script") {
        return skip("there is no script(1)").unwrap_or_default();
    }
    let mut wrong = Vec::new();
    for width in WIDTHS {
        for variable in ["SHOWN=1", "NO_COLOR=1"] {
            let place = tempfile::tempdir().unwrap();
            make(place.path());
            for (line, codes) in COMMANDS {
                let (shown, found) = on_terminal(place.path(), line, width, variable);
                let what = format!("{line:?} in {width} columns, {variable}");
                if !found.is_some_and(|code| codes.contains(&code))
                    || shown.trim().is_empty() && !is_silent(line)
                {
                    wrong.push(format!("{what}: exit code {found:?}\n{shown}"));
                }
                let (plain, is_coloured) = without_colours(&shown);
                if variable == "NO_COLOR=1" && is_coloured {
                    wrong.push(format!("{what}: has colours"));
                }
                wrong.extend(too_wide(&plain, width).into_iter().map(|wide| format!("{what}: {wide}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_pipe_gets_no_control_sequences() {
    let place = tempfile::tempdir().unwrap();
    make(place.path());
    for (line, codes) in COMMANDS {
        let mut words = line.split_whitespace();
        words.next();
        let mut command = Command::new(FERRY);
        command.args(words).current_dir(place.path()).env("TERM", "xterm").env_remove("NO_COLOR");
        command.env("PATH", search_path()).env("FERRY_PROFILES", place.path().join("profiles"));
        let output = command.output().unwrap();
        let is_expected = output.status.code().is_some_and(|code| codes.contains(&code));
        assert!(is_expected, "{line}: {:?}: {}", output.status, text(&output.stderr));
        for stream in [&output.stdout, &output.stderr] {
            assert!(!stream.contains(&b'\x1b') && !stream.contains(&b'\r'), "{line}: {}", text(stream));
        }
    }
}
