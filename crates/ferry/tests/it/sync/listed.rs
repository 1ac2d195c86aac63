//! `--files-from`: only listed names take part.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ferry_tree::fill::SplitMix64;
use ferry_tree::{Node, Tree};

use super::{Pair, said, seeds, sync};
use crate::random::filesystem::Filesystem;
use crate::scene::FERRY;

/// Content of each file; `None` for a folder.
type Files = BTreeMap<String, Option<&'static str>>;

fn is_beneath(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn random(numbers: &mut SplitMix64) -> Files {
    let mut files = Files::from([("always".to_owned(), Some("here"))]);
    for _ in 0..40 {
        let names: Vec<&str> =
            (0..=numbers.index(4)).map(|_| ["a", "b", "c!", "c", "d"][numbers.index(5)]).collect();
        let path = names.join("/");
        let blocked =
            (1..names.len()).any(|end| files.get(&names[..end].join("/")).is_some_and(Option::is_some));
        if blocked || files.contains_key(&path) {
            continue;
        }
        for end in 1..names.len() {
            files.insert(names[..end].join("/"), None);
        }
        let content = [None, Some("one"), Some("two")][numbers.index(3)];
        files.insert(path, content);
    }
    files
}

fn tree(files: &Files) -> Tree {
    let node = |content: &Option<&str>| {
        content
            .map_or_else(Node::directory, |text| Node::file(text).mtime(if text == "one" { 1 } else { 2 }, 0))
    };
    files.iter().fold(Tree::new(), |tree, (path, content)| tree.with(path, node(content)))
}

fn found(root: &Path) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).unwrap().flatten().filter(|entry| entry.file_name() != ".ferry-trash")
        {
            let path = entry.path();
            let relative = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                found.insert(relative, None);
                folders.push(path);
            } else {
                found.insert(relative, Some(fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

/// What is expected of a run.
struct Expected {
    target: Files,
    /// True if something could not be done as it was asked for.
    fails: bool,
}

fn expected(source: &Files, target: &Files, list: &[String], deletes: bool) -> Expected {
    let asked: Vec<&str> = list.iter().map(|name| name.trim_end_matches('/')).collect();
    let whole: Vec<&str> = list.iter().filter_map(|name| name.strip_suffix('/')).collect();
    let takes_part = |path: &str| {
        asked.iter().any(|asked| *asked == path || is_beneath(asked, path))
            || whole.iter().any(|folder| is_beneath(path, folder))
    };
    let mut fails = !deletes && asked.iter().any(|path| !source.contains_key(*path));
    let mut result = target.clone();
    if deletes {
        // Those beneath a folder come before it.
        for path in target.keys().rev().filter(|path| takes_part(path) && !source.contains_key(*path)) {
            if !result.keys().any(|other| is_beneath(other, path)) {
                result.remove(path);
            }
        }
    }
    let mut blocked = BTreeSet::new();
    for (path, content) in source.iter().filter(|(path, _)| takes_part(path)) {
        let has_content = result.keys().any(|other| is_beneath(other, path));
        if content.is_some() && result.get(path) == Some(&None) && has_content {
            fails = true;
            blocked.insert(path);
        } else {
            result.insert(path.clone(), *content);
        }
    }
    Expected { target: result, fails }
}

/// 300 random lists beside a model of what takes part.
#[test]
fn only_listed_names_take_part() {
    let memory = Filesystem::memory();
    for seed in seeds(300) {
        let mut numbers = SplitMix64::new(seed);
        let (source, target) = (random(&mut numbers), random(&mut numbers));
        let known: Vec<&String> = source.keys().chain(target.keys()).collect();
        let list: Vec<String> = (0..=numbers.index(8))
            .map(|_| {
                let name = known[numbers.index(known.len())];
                let slash = if numbers.percent(30) { "/" } else { "" };
                let missing = if numbers.percent(10) { "x" } else { "" };
                format!("{name}{missing}{slash}")
            })
            .collect();
        let deletes = numbers.percent(50);
        let pair = Pair::new(memory.path(), seed, &tree(&source), &tree(&target));
        fs::write(pair.path().join("list"), list.join("\n")).unwrap();
        let words = if deletes { &["--delete", "--files-from=list"][..] } else { &["--files-from=list"] };
        let output = pair.sync(words);
        let Expected { target: wanted, fails } = expected(&source, &target, &list, deletes);
        let what =
            || format!("FERRY_SEED={seed} {words:?} {list:?}\n{source:#?}\n{target:#?}\n{}", said(&output));
        assert_eq!(output.status.code(), Some(i32::from(fails)), "{}", what());
        let wanted: BTreeMap<_, _> =
            wanted.into_iter().map(|(path, text)| (path, text.map(str::to_owned))).collect();
        assert_eq!(found(&pair.path().join("target")), wanted, "{}", what());
        let again = pair.sync(&[words, &["-v"]].concat());
        assert!(again.stdout.is_empty(), "{}\n{}", said(&again), what());
    }
}

fn some_files() -> Tree {
    ["a/one", "a/two", "b/deep/three", "line\nbreak"]
        .iter()
        .fold(Tree::new(), |tree, path| tree.with(*path, Node::file(*path)))
}

#[test]
fn a_list_can_come_from_standard_input_and_have_names_with_line_breaks() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &some_files(), &Tree::new());
    let mut command = Command::new(FERRY);
    command.args(["sync", "--files-from=-", "-0", "source", "target"]).current_dir(pair.path());
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"line\nbreak\0./a/two\0").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let found: Vec<String> = found(&pair.path().join("target")).into_keys().collect();
    assert_eq!(found, ["a", "a/two", "line\nbreak"]);
}

#[test]
fn names_that_the_source_lacks_are_reported_one_by_one() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &some_files(), &Tree::new());
    let list = "a/one\na/missing\nnowhere/at/all\na/one/beneath\nz\nb/";
    fs::write(pair.path().join("list"), list).unwrap();
    let output = pair.sync(&["--files-from=list"]);
    assert_eq!(output.status.code(), Some(1));
    for (path, reason) in [
        ("a/missing", "No such file or directory"),
        ("nowhere/at/all", "No such file or directory"),
        ("a/one/beneath", "Not a directory"),
        ("z", "No such file or directory"),
    ] {
        let line = format!("ferry sync: cannot stat 'source/{path}': {reason}\n");
        assert_eq!(said(&output).matches(&line).count(), 1, "{line}: {}", said(&output));
    }
    let found: Vec<String> = found(&pair.path().join("target")).into_keys().collect();
    assert_eq!(found, ["a", "a/one", "b", "b/deep", "b/deep/three"]);
}

#[test]
fn a_listed_name_that_is_left_out_is_not_reported_as_missing() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &some_files(), &Tree::new());
    fs::write(pair.path().join("list"), "a/one\nb/deep/three").unwrap();
    let output = pair.sync(&["--files-from=list", "--exclude=deep", "--explain"]);
    assert!(output.status.success(), "{}", said(&output));
    for line in ["left out    'a/two' (--files-from)", "left out    'b/deep'/ (--exclude 'deep')"] {
        assert!(said(&output).contains(line), "{line}: {}", said(&output));
    }
}

#[test]
fn a_plan_has_listed_names_only() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &some_files(), &Tree::new().with("a/old", Node::file("old")));
    fs::write(pair.path().join("list"), "a/two\na/old\n").unwrap();
    let output = pair.sync(&["--files-from=list", "--delete", "--plan=plan"]);
    assert!(output.status.success(), "{}", said(&output));
    let output = sync(pair.path(), &["--apply=plan"]);
    assert!(output.status.success(), "{}", said(&output));
    let found: Vec<String> = found(&pair.path().join("target")).into_keys().collect();
    assert_eq!(found, ["a", "a/two"]);
}

#[test]
fn lists_that_can_not_be_used_are_refused_before_anything_is_changed() {
    let memory = Filesystem::memory();
    let pair = Pair::new(memory.path(), 0, &some_files(), &Tree::new());
    fs::write(pair.path().join("bad"), "a/one\n../secret\n").unwrap();
    for (words, code, message) in [
        (&["--files-from=bad"][..], 1, "ferry sync: 'bad': name 2: it has a component '..'\n"),
        (&["--files-from=no"], 1, "ferry sync: cannot open 'no': No such file or directory\n"),
        (&["--files-from=source"], 1, "ferry sync: cannot read 'source': Is a directory\n"),
        (&["-0"], 2, "--null needs --files-from"),
        (&["--files-from="], 2, "a file's name is empty"),
    ] {
        let output = pair.sync(words);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(message), "{words:?}: {}", said(&output));
    }
    let output = sync(pair.path(), &["--apply=plan", "--files-from=x"]);
    assert!(said(&output).contains("--apply and --files-from exclude each other"), "{}", said(&output));
    assert!(found(&pair.path().join("target")).is_empty());
}
