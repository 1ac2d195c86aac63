use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use ferry_tree::fill::SplitMix64;

use super::*;

fn selector(patterns: &[&str]) -> Selector {
    let rule = |pattern: &&str| Rule { pattern: (*pattern).into(), origin: "--exclude".into() };
    Selector::new(Selection { rules: patterns.iter().map(rule).collect(), ..Selection::default() }).unwrap()
}

fn excluded(selector: &Selector, path: &str, is_folder: bool) -> bool {
    selector.excluded(Path::new(path), is_folder, std::iter::empty()).is_some()
}

#[test]
fn the_last_pattern_that_matches_decides() {
    let some = selector(&["*.o", "!kept.o", "/top", "build/", "a/**/z"]);
    for (path, is_folder, expected) in [
        ("x.o", false, true),
        ("deep/x.o", false, true),
        ("kept.o", false, false),
        ("deep/kept.o", false, false),
        ("top", false, true),
        ("deep/top", false, false),
        ("build", true, true),
        ("build", false, false),
        ("a/b/c/z", false, true),
        ("a/z", false, true),
        ("other", false, false),
    ] {
        assert_eq!(excluded(&some, path, is_folder), expected, "{path}");
    }
    assert!(excluded(&selector(&["!kept.o", "*.o"]), "kept.o", false));
}

#[test]
fn the_rule_that_excludes_is_named() {
    let some = selector(&["*.o"]);
    let found = some.excluded(Path::new("x.o"), false, std::iter::empty());
    assert_eq!(found.as_deref(), Some("--exclude '*.o'"));
}

#[test]
fn a_pattern_that_can_not_be_understood_is_refused() {
    for (pattern, start) in
        [("a[", "--exclude: the pattern \"a[\": "), ("!", "--exclude: the pattern \"!\": it")]
    {
        let rule = Rule { pattern: pattern.into(), origin: "--exclude".into() };
        let bad = Selection { rules: vec![rule], ..Selection::default() }.check().unwrap_err();
        assert!(bad.to_string().starts_with(start), "{bad}");
    }
}

#[test]
fn patterns_are_adapted_to_the_crate() {
    for (pattern, expected) in [
        ("a[!b]c", "**/a[!/b]c"),
        ("!/[!b]/", "!/[!/b]/"),
        ("[^]b]", "**/[!]b/]"),
        ("[a]", "[a]"),
        ("{a,b}", "\\{a,b\\}"),
        ("\\{[{]é", "\\{[{]é"),
        ("end\\", "end\\"),
    ] {
        assert_eq!(adapted(pattern), expected, "{pattern}");
    }
}

#[test]
fn a_line_that_is_not_utf_8_is_named() {
    assert_eq!(FolderRules::parse(b"ok\nbad\xff\n", Path::new("f")).unwrap_err(), 2);
}

/// Random patterns of a few letters and of everything that is special.
fn pattern(numbers: &mut SplitMix64) -> String {
    const PARTS: [&str; 22] = [
        "a", "b", "c", "a", "b", "*", "?", "/", "/", "**", "**/", "/**", "[ab]", "[!a]", "[a-c]", "\\a",
        "\\*", ".", " ", "#", "{a,b}", "{",
    ];
    let mut text = String::new();
    if numbers.percent(20) {
        text.push('!');
    }
    if numbers.percent(20) {
        text.push('/');
    }
    for _ in 0..=numbers.index(5) {
        text.push_str(PARTS[numbers.index(PARTS.len())]);
    }
    if numbers.percent(20) {
        text.push('/');
    }
    text
}

/// Returns true for patterns that git and the crate are known to read differently: those with an empty component, and
/// `**` beside other characters.
fn is_odd(pattern: &str) -> bool {
    let components = pattern.trim_start_matches('!').trim_start_matches('/').trim_end_matches('/').split('/');
    pattern.contains("//")
        || components.into_iter().any(|part| part.is_empty() || part.contains("**") && part != "**")
}

/// Returns each path of a small tree, folders before what is in them.
fn tree() -> Vec<(String, bool)> {
    let names = ["a", "b", "c", "ab", "a.b", "*", "a c"];
    let mut paths = Vec::new();
    for outer in names {
        paths.push((outer.to_owned(), true));
        for inner in names {
            paths.push((format!("{outer}/{inner}"), inner != "c" && inner != "ab"));
            if inner == "a" || inner == "b" {
                paths.extend(names.iter().map(|deep| (format!("{outer}/{inner}/{deep}"), false)));
            }
        }
    }
    paths
}

/// A folder with the tree, and with git.
struct Scene {
    place: tempfile::TempDir,
    paths: Vec<(String, bool)>,
}

impl Scene {
    /// Makes the folder; `None` without git.
    fn new() -> Option<Self> {
        if Command::new("git").arg("--version").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "SKIP: git is not installed");
            println!("SKIP: git is not installed");
            return None;
        }
        let scene = Self { place: tempfile::tempdir().unwrap(), paths: tree() };
        assert!(scene.git(&["init", "-q"]).status().unwrap().success());
        for (path, is_folder) in &scene.paths {
            let path = scene.place.path().join(path);
            match is_folder {
                true => std::fs::create_dir(path).unwrap(),
                false => std::fs::write(path, "").unwrap(),
            }
        }
        Some(scene)
    }

    fn git(&self, words: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.current_dir(self.place.path()).args(["-c", "core.excludesFile=/dev/null"]).args(words);
        command
    }

    /// Writes random `.gitignore` files. Returns each folder that has one, its text and its rules.
    fn write_files(&self, numbers: &mut SplitMix64) -> Vec<(&'static str, String, FolderRules)> {
        let files = [("", 4), ("a", 2), ("a/b", 2)];
        let write = |(folder, most): (&'static str, usize)| {
            let text =
                patterns(numbers, most).iter().map(|pattern| pattern.clone() + "\n").collect::<String>();
            std::fs::write(self.place.path().join(folder).join(".gitignore"), &text).unwrap();
            let rules = FolderRules::parse(text.as_bytes(), Path::new(folder)).unwrap();
            (folder, text, rules)
        };
        files.map(write).into()
    }

    /// Returns the paths that a selector and the rules of folders exclude, and what is in them.
    fn excluded(&self, selector: &Selector, files: &[(&str, String, FolderRules)]) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for (path, is_folder) in &self.paths {
            let is_beneath = path.rsplit_once('/').is_some_and(|(above, _)| found.contains(above));
            let folders = files
                .iter()
                .rev()
                .filter(|(folder, ..)| Path::new(path).starts_with(folder) && path != folder)
                .map(|(folder, _, rules)| Folder { path: Path::new(folder), rules });
            if is_beneath || selector.excluded(Path::new(path), *is_folder, folders).is_some() {
                found.insert(path.as_str());
            }
        }
        found
    }
}

/// Returns patterns that git and the crate read alike.
fn patterns(numbers: &mut SplitMix64, most: usize) -> Vec<String> {
    let count = 1 + numbers.index(most);
    std::iter::repeat_with(|| pattern(numbers)).filter(|pattern| !is_odd(pattern)).take(count).collect()
}

/// Factor of the number of scenes: `FERRY_SEEDS`.
fn scale() -> u64 {
    std::env::var("FERRY_SEEDS").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(1).max(1)
}

/// 500 scenes here, 5,000 with `FERRY_SEEDS=10`.
#[test]
fn the_same_paths_are_excluded_as_by_git() {
    let Some(scene) = Scene::new() else { return };
    let mut excluded_in_all = 0;
    for seed in 0..500 * scale() {
        let files = scene.write_files(&mut SplitMix64::new(seed));
        let mut check = scene
            .git(&["check-ignore", "--no-index", "-z", "--stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = scene.paths.iter().map(|(path, _)| format!("{path}\0")).collect::<String>();
        check.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let found = check.wait_with_output().unwrap().stdout;
        let theirs: BTreeSet<_> = found.split(|&byte| byte == 0).collect();
        let ours = scene.excluded(&selector(&[]), &files);
        for (path, _) in &scene.paths {
            let (ours, theirs) = (ours.contains(path.as_str()), theirs.contains(path.as_bytes()));
            assert_eq!(ours, theirs, "seed {seed}: {path} with {files:#?}");
        }
        excluded_in_all += ours.len();
    }
    assert!(excluded_in_all > 1_000, "{excluded_in_all} paths were excluded");
}

/// Patterns of the command line decide before those of `.gitignore` files, as with `git ls-files --exclude`. That takes `#`
/// at the start and spaces at the end as they are. 200 scenes here, 5,000 with `FERRY_SEEDS=25`.
#[test]
fn the_same_files_are_excluded_by_options_as_by_git() {
    let Some(scene) = Scene::new() else { return };
    let is_plain = |pattern: &String| {
        !pattern.starts_with('#') && pattern.trim_end() == pattern && !matches_nothing(pattern)
    };
    let (mut excluded_in_all, mut by_options) = (0, 0);
    for seed in 0..200 * scale() {
        let mut numbers = SplitMix64::new(seed);
        let files = scene.write_files(&mut numbers);
        let options: Vec<String> = patterns(&mut numbers, 4).into_iter().filter(is_plain).collect();
        let mut list = scene.git(&["ls-files", "-z", "-o", "-i", "--exclude-per-directory=.gitignore"]);
        list.args(options.iter().map(|pattern| format!("--exclude={pattern}")));
        let found = list.output().unwrap().stdout;
        let theirs: BTreeSet<_> = found.split(|&byte| byte == 0).collect();
        let given: Vec<_> = options.iter().map(String::as_str).collect();
        let ours = scene.excluded(&selector(&given), &files);
        for (path, _) in scene.paths.iter().filter(|(_, is_folder)| !is_folder) {
            let (ours, theirs) = (ours.contains(path.as_str()), theirs.contains(path.as_bytes()));
            assert_eq!(ours, theirs, "seed {seed}: {path} with {options:?} and {files:#?}");
        }
        excluded_in_all += ours.len();
        by_options += scene.excluded(&selector(&given), &[]).len();
    }
    assert!(excluded_in_all > 1_000 && by_options > 500, "{excluded_in_all} paths, {by_options} by options");
}
