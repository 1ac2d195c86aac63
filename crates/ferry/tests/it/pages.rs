//! The manual pages as groff renders them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::scene::{FERRY, is_installed, skip};

/// Renders the page of the command `words` for 80 columns; groff must not warn.
#[track_caller]
fn rendered(folder: &Path, words: &[&str]) -> String {
    let name = ["ferry"].iter().chain(words).copied().collect::<Vec<_>>().join("-");
    let mut groff = Command::new("groff");
    groff.args(["-man", "-Tutf8", "-ww", "-rLL=80n", "-P-cbou"]).arg(folder.join(format!("{name}.1")));
    let output = groff.output().unwrap();
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && warnings.is_empty(), "{name}: {warnings}");
    String::from_utf8(output.stdout).unwrap()
}

fn help(words: &[&str]) -> String {
    let output = Command::new(FERRY).args(words).arg("--help").output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Lines of a help that list options. Lines of the text after them may begin with an option, too.
fn listed(help: &str) -> String {
    let mut is_list = false;
    let lines = help.lines().filter(|line| {
        is_list = line.ends_with("ptions:") || is_list && !line.is_empty();
        is_list
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// Largest indentation of an option's names in helps and pages; further lines of text are indented more.
const NAMES_DEPTH: usize = 7;

/// Options at the start of a line, also after others.
fn options(text: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| line.len() - line.trim_start().len() <= NAMES_DEPTH) {
        let words = line.split(|letter: char| letter.is_whitespace() || letter == ',');
        let options = words.filter(|word| !word.is_empty()).take_while(|word| word.starts_with('-'));
        found.extend(options.map(|word| word.split(['[', '=']).next().unwrap_or_default()));
    }
    found
}

/// Each option's help, by its longest name, with single spaces.
fn helps(text: &str) -> BTreeMap<&str, String> {
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    let mut option = None;
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let mut words = line.split_whitespace().peekable();
        if depth <= NAMES_DEPTH {
            let head = std::iter::from_fn(|| words.next_if(|word| word.starts_with(['-', '<'])));
            let names =
                head.flat_map(|word| word.split([',', '=', '['])).filter(|name| name.starts_with('-'));
            option = names.max_by_key(|name| name.len()).filter(|_| depth > 0);
        }
        if let Some(name) = option {
            let whole = found.entry(name).or_default();
            for word in words {
                // groff's hyphenation uses U+2010; the text has only ASCII hyphens.
                if whole.ends_with('\u{2010}') {
                    whole.pop();
                } else if !whole.is_empty() {
                    *whole += " ";
                }
                *whole += word;
            }
        }
    }
    found
}

fn commands(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    listed
        .filter(|line| !line.starts_with("    "))
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

#[test]
fn every_command_has_a_page_with_every_option() {
    if !is_installed("groff") {
        skip::<()>("groff is not installed");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let output = Command::new(FERRY).arg("man").arg(place.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (overview, lab, trace) = (help(&[]), help(&["lab"]), help(&["trace"]));
    let mut all: Vec<Vec<&str>> = vec![vec![]];
    all.extend(commands(&overview).into_iter().map(|command| vec![command]));
    all.extend(commands(&lab).into_iter().map(|experiment| vec!["lab", experiment]));
    all.extend(commands(&trace).into_iter().map(|command| vec!["trace", command]));
    assert!(all.contains(&vec!["cp"]) && all.contains(&vec!["lab", "tree"]), "{all:?}");
    for words in &all {
        let (page, help) = (rendered(place.path(), words), listed(&help(words)));
        let (shown, wanted) = (options(&page), options(&help));
        let missing: Vec<&&str> = wanted.difference(&shown).collect();
        assert!(
            missing.is_empty() && !wanted.is_empty(),
            "{words:?} lacks {missing:?} of {wanted:?}:\n{page}"
        );
        // The prose before may have options at the start of a line.
        let told = helps(page.split_once("\nOPTIONS\n").unwrap().1);
        for (option, text) in helps(&help) {
            // The page lists aliases with the names, and ends each sentence.
            let text = text.split(" [alias").next().unwrap_or_default();
            let shown = told.get(option).map(|shown| shown.trim_end_matches('.'));
            assert_eq!(shown, Some(text.trim_end_matches('.')), "{words:?} {option}");
        }
        assert!(page.contains("NAME") && page.contains("SYNOPSIS"), "{page}");
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), all.len());
}

/// Needs no groff: the sections are lines of the source.
#[test]
fn every_page_has_at_least_three_examples() {
    let place = tempfile::tempdir().unwrap();
    assert!(Command::new(FERRY).arg("man").arg(place.path()).status().unwrap().success());
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(place.path()).unwrap() {
        let entry = entry.unwrap();
        let page = std::fs::read_to_string(entry.path()).unwrap();
        let section = page.split_once("\n.SH EXAMPLES\n").map(|(_, rest)| rest).unwrap_or_default();
        let lines = section.lines().take_while(|line| !line.starts_with(".SH"));
        let count = lines.filter(|line| *line == ".TP").count();
        assert!(count >= 3, "{}: {count} examples", entry.path().display());
        names.insert(entry.file_name().into_string().unwrap());
    }
    for name in ["ferry.1", "ferry-cp.1", "ferry-sync.1", "ferry-lab-run.1", "ferry-trace-show.1"] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
}

#[test]
fn the_page_of_sync_says_first_that_contents_go_into_target() {
    let place = tempfile::tempdir().unwrap();
    assert!(Command::new(FERRY).arg("man").arg(place.path()).status().unwrap().success());
    let page = std::fs::read_to_string(place.path().join("ferry-sync.1")).unwrap();
    let description = page.split_once("\n.SH DESCRIPTION\n").unwrap().1;
    let first = "Update TARGET with the contents of SOURCE, with or without a trailing slash.\n";
    assert!(description.starts_with(first), "{description}");
}

#[test]
fn the_page_of_cp_says_what_a_reader_looks_for() {
    if !is_installed("groff") {
        skip::<()>("groff is not installed");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    assert!(Command::new(FERRY).arg("man").arg(place.path()).status().unwrap().success());
    let page = rendered(place.path(), &["cp"]);
    for line in [
        "       Copy SOURCE to DEST, or several SOURCEs into DIRECTORY.",
        "       ferry cp [OPTION]... -t DIRECTORY SOURCE...",
        "       -r, -R, --recursive",
        "       --reflink[=WHEN]",
        "       -t, --target-directory=DIRECTORY",
        "       130    interrupted by SIGINT (ferry ends by the signal)",
        "ENVIRONMENT",
        "       VERSION_CONTROL",
        "       none, off",
        "       ferry cp -a photos backup",
        "              Copy a directory with all attributes.",
        "       ferry(1), cp(1)",
    ] {
        assert!(page.lines().any(|shown| shown == line), "'{line}' is not in:\n{page}");
    }
}

#[test]
fn pages_that_can_not_be_written_are_told() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("missing");
    let output = Command::new(FERRY).arg("man").arg(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    let path = folder.join("ferry.1");
    assert_eq!(
        told,
        format!("ferry man: cannot write '{}': No such file or directory (os error 2)\n", path.display())
    );
    let output = Command::new(FERRY).arg("man").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
