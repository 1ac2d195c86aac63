//! Completions in bash, zsh and fish at a terminal.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::help::options_of_sync;
use crate::scene::{FERRY, is_installed, skip};

/// Typed text, and the resulting arguments. The directory holds `alpha.txt` and `folder`.
const TYPED: &[(&str, &str)] = &[
    ("ferry v\t", "verify"),
    ("ferry cp --pre\t x", "cp --preserve x"),
    ("ferry cp --archive al\t", "cp --archive alpha.txt"),
    ("ferry lab str\t --se\t 3", "lab strategies --seed 3"),
    ("ferry verify --ig\t x", "verify --ignore x"),
    ("ferry sync --delete=n\t x", "sync --delete=now x"),
    ("ferry cp al\t --no-t\t x", "cp alpha.txt --no-target-directory x"),
    ("ferry cp --backup=nu\t x", "cp --backup=numbered x"),
    ("ferry completions z\t", "completions zsh"),
    ("ferry trace ex\t --form\t pe\t x", "trace export --format perfetto x"),
];

/// Makes a directory for the scripts and one to work in.
fn scripts(shell: &str, file: &str) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("here/folder")).unwrap();
    std::fs::write(place.path().join("here/alpha.txt"), "").unwrap();
    let output = Command::new(FERRY).args(["completions", shell]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(place.path().join(file), output.stdout).unwrap();
    place
}

/// Returns true if the shell that `command` starts can be used at a terminal.
fn can_type_in(command: &str) -> bool {
    let shell = command.split(' ').next().unwrap_or_default();
    let missing = [shell, "script"].into_iter().find(|program| !is_installed(program));
    missing.is_none_or(|program| skip::<()>(&format!("{program} is not installed")).is_some())
}

/// Returns the output of the shell that `command` starts, at a terminal where `lines` are typed.
fn type_in(place: &Path, command: &str, lines: &str) -> String {
    let mut terminal = Command::new("timeout");
    terminal.args(["60", "script", "--quiet", "--return", "--command", command, "/dev/null"]);
    terminal.current_dir(place.join("here")).env_clear();
    terminal.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", place).env("TERM", "dumb");
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut terminal = terminal.spawn().unwrap();
    let mut keyboard = terminal.stdin.take().unwrap();
    keyboard.write_all(format!("{lines}exit\n").as_bytes()).unwrap();
    drop(keyboard);
    let output = terminal.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Types `start`, all of [`TYPED`] and `more` in the shell that `command` starts.
fn check(place: &Path, command: &str, start: &str, more: &[(&str, &str)]) {
    if !can_type_in(command) {
        return;
    }
    let typed: Vec<&(&str, &str)> = TYPED.iter().chain(more).collect();
    let lines: String = typed.iter().map(|(line, _)| format!("{line}\n")).collect();
    let shown = type_in(place, command, &format!("{start}\n{lines}"));
    // The echoed function text never has a marker and arguments in one piece.
    let given: Vec<&str> =
        shown.split("given<").skip(1).filter_map(|rest| Some(rest.split_once('>')?.0)).collect();
    let given: Vec<&str> = given.into_iter().filter(|words| !words.contains(['%', '$'])).collect();
    let wanted: Vec<&str> = typed.iter().map(|(_, wanted)| *wanted).collect();
    assert_eq!(given, wanted, "{command}:\n{shown}");
}

/// Returns the first word of each line that begins with a long option.
fn long_options(text: &str) -> BTreeSet<String> {
    let first = text.lines().filter_map(|line| line.split_whitespace().next());
    let options = first.filter(|word| word.starts_with("--") && *word != "--");
    options.map(|word| word.trim_end_matches('=').to_owned()).collect()
}

#[test]
fn bash_offers_every_option_of_sync() {
    if !is_installed("bash") {
        return skip("bash is not installed").unwrap_or_default();
    }
    let place = scripts("bash", "ferry");
    let line = "source ./ferry; COMP_WORDS=(ferry sync --); COMP_CWORD=2; _ferry ferry -- sync; \
                printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output =
        Command::new("bash").args(["--norc", "-c", line]).current_dir(place.path()).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(long_options(&shown), options_of_sync());
}

#[test]
fn fish_offers_every_option_of_sync() {
    if !is_installed("fish") {
        return skip("fish is not installed").unwrap_or_default();
    }
    let place = scripts("fish", "ferry.fish");
    let line = "source ./ferry.fish; complete --do-complete 'ferry sync --'";
    let mut fish = Command::new("fish");
    let output = fish.args(["--no-config", "-c", line]).current_dir(place.path()).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(long_options(&shown), options_of_sync());
}

#[test]
fn zsh_offers_every_option_of_sync() {
    const ZSH: &str = "zsh -f -i";
    if !can_type_in(ZSH) {
        return;
    }
    let place = scripts("zsh", "_ferry");
    // In a small window zsh would ask before it prints the list.
    let lines = "stty rows 200 columns 200; LISTMAX=1000; fpath=(${PWD:h} $fpath)\n\
                 autoload -Uz compinit; compinit -u -D; ferry() { true; }\nferry sync --\t\n";
    let shown = type_in(place.path(), ZSH, lines);
    assert_eq!(long_options(&shown), options_of_sync(), "{shown}");
}

#[test]
fn bash_completes() {
    let place = scripts("bash", "ferry");
    let start = "source ../ferry\nferry() { printf 'given<%s>\\n' \"$*\"; }";
    let more = [
        ("ferry cp fol\talpha.txt x", "cp folder/alpha.txt x"),
        ("ferry cp alpha.txt f\t", "cp alpha.txt folder/"),
        ("ferry cp -t f\t", "cp -t folder/"),
        // bash completes only directories, or nothing, for these options.
        ("ferry cp --target-directory=a\t", "cp --target-directory=a"),
        ("ferry cp --workers=al\t", "cp --workers=al"),
        ("ferry cp --sparse=al\t", "cp --sparse=always"),
        ("ferry cp --ring-mode c\t", "cp --ring-mode coop"),
        ("ferry cp --preserve=ti\t x", "cp --preserve=timestamps x"),
        ("ferry cp --reflink al\t", "cp --reflink alpha.txt"),
        ("ferry cp --errors=al\t", "cp --errors=alpha.txt"),
    ];
    check(place.path(), "bash --norc --noprofile -i", start, &more);
}

#[test]
fn zsh_completes() {
    let place = scripts("zsh", "_ferry");
    let start = "fpath=(${PWD:h} $fpath); autoload -Uz compinit; compinit -u -D\n\
                 ferry() { printf 'given<%s>\\n' \"$*\"; }";
    let more = [("ferry cp -t f\t", "cp -t folder"), ("ferry cp --sparse=al\t", "cp --sparse=always")];
    check(place.path(), "zsh -f -i", start, &more);
}

#[test]
fn fish_completes() {
    let place = scripts("fish", "ferry.fish");
    let start = "source ../ferry.fish\nfunction ferry; echo \"given<$argv>\"; end";
    check(
        place.path(),
        "fish --no-config -i",
        start,
        &[("ferry cp -t f\t", "cp -t folder/"), ("ferry cp --sparse=al\t", "cp --sparse=always")],
    );
}

#[test]
fn shells_that_are_not_known_are_refused() {
    let run = |words: &[&str]| {
        let output = Command::new(FERRY).env("LC_ALL", "C").arg("completions").args(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let hint = "Try 'ferry completions --help' for more information.\n";
    let known = "Valid arguments are:\n  - 'bash'\n  - 'zsh'\n  - 'fish'";
    assert_eq!(
        run(&["tcsh"]),
        (Some(2), format!("ferry completions: invalid argument 'tcsh' for 'SHELL'\n{known}\n{hint}"))
    );
    assert!(run(&[]).1.starts_with("ferry completions: missing shell\n"));
    assert_eq!(run(&["zsh", "x"]), (Some(2), format!("ferry completions: extra operand 'x'\n{hint}")));
}

#[test]
fn scripts_that_can_not_be_written_are_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(FERRY).args(["completions", "fish"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "ferry completions: write error: No space left on device (os error 28)\n");
}
