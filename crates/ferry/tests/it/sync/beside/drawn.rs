//! Options for one pair, drawn from its seed: those of ferry, and those of rsync that mean the same.

use std::collections::BTreeSet;

use ferry_tree::Tree;
use ferry_tree::describe::NodeKind;
use ferry_tree::fill::SplitMix64;

use super::judge::Given;

/// Options of both programs, and the files that they name.
#[derive(Default)]
pub(super) struct Drawn {
    /// Options by which ferry decides.
    pub(super) ours: Vec<String>,
    pub(super) theirs: Vec<String>,
    /// Options that change how ferry acts. A plan takes none of them.
    pub(super) our_acts: Vec<String>,
    pub(super) their_acts: Vec<String>,
    pub(super) deletes: bool,
    /// Set if both programs keep replaced and deleted files.
    pub(super) keeps: bool,
    /// Set if the lists of actions are compared, too.
    pub(super) plans: bool,
    /// Files in the folder of the pair that options name.
    pub(super) files: Vec<(&'static str, Vec<u8>)>,
    /// Names of the options for the figures.
    pub(super) names: BTreeSet<&'static str>,
}

impl Drawn {
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the options with which the programs differ.
    pub(super) fn given(&self) -> Given {
        Given {
            newer: self.has("newer"),
            list: self.has("files_from"),
            folder_patterns: self.has("folder_pattern") && !self.has("delete_excluded"),
        }
    }

    /// An option by which both programs decide.
    fn decide(&mut self, name: &'static str, ours: &str, theirs: &str) {
        self.names.insert(name);
        self.ours.push(ours.to_owned());
        self.theirs.push(theirs.to_owned());
    }

    /// An option that changes how both programs act.
    fn act(&mut self, name: &'static str, word: &str) {
        self.names.insert(name);
        self.our_acts.push(word.to_owned());
        self.their_acts.push(word.to_owned());
    }
}

/// Draws the options of a seed. Patterns and lists have names of both trees.
pub(super) fn drawn(seed: u64, source: &Tree, target: &Tree) -> Drawn {
    let mut numbers = SplitMix64::new(seed ^ 0x6265_7369_6465);
    let mut drawn = Drawn::default();
    comparison(&mut drawn, &mut numbers);
    actions(&mut drawn, &mut numbers);
    deletion(&mut drawn, &mut numbers);
    // ferry refuses a largest size below the smallest.
    let mut least = 0;
    for (name, word) in [("min_size", "--min-size"), ("max_size", "--max-size")] {
        if numbers.percent(15) {
            least = numbers.index(6).max(least);
            let option = format!("{word}={}", ["0", "1", "2000", "2K", "4096", "1M"][least]);
            drawn.decide(name, &option, &option);
        }
    }
    if numbers.percent(15) {
        let word = ["--one-file-system", "-x"][numbers.index(2)];
        drawn.decide("one_file_system", word, word);
    }
    match numbers.below(10) {
        0..4 => patterns(&mut drawn, &mut numbers, source, target),
        4 | 5 => list(&mut drawn, &mut numbers, source, target),
        _ => {}
    }
    drawn.plans = numbers.percent(30);
    if drawn.plans {
        drawn.names.insert("plan");
    }
    drawn
}

fn comparison(drawn: &mut Drawn, numbers: &mut SplitMix64) {
    match numbers.below(5) {
        0 => drawn.decide("checksum", ["--checksum", "-c"][numbers.index(2)], "--checksum"),
        1 => drawn.decide("size_only", "--size-only", "--size-only"),
        _ => {}
    }
    if numbers.percent(25) {
        drawn.decide("newer", ["--newer", "-u"][numbers.index(2)], "--update");
    }
}

fn actions(drawn: &mut Drawn, numbers: &mut SplitMix64) {
    if numbers.percent(20) {
        drawn.act("inplace", "--inplace");
    }
    if numbers.percent(5) {
        drawn.act("fsync", "--fsync");
    }
    if numbers.percent(5) {
        drawn.act("bwlimit", "--bwlimit=500M");
    }
}

fn deletion(drawn: &mut Drawn, numbers: &mut SplitMix64) {
    drawn.deletes = numbers.percent(70);
    drawn.keeps = numbers.percent(30);
    if drawn.deletes {
        drawn.names.insert("delete");
        drawn.theirs.push("--delete".to_owned());
        // A plan has no word for it.
        drawn.our_acts.push(if drawn.keeps { "--delete" } else { "--delete=now" }.to_owned());
        if numbers.percent(10) {
            drawn.decide("max_delete", "--max-delete=5000", "--max-delete=5000");
        }
    } else if drawn.keeps {
        drawn.our_acts.push("--trash".to_owned());
    }
    if drawn.keeps {
        drawn.names.insert("backup");
        drawn.their_acts.extend(["--backup", "--backup-dir=../saved"].map(str::to_owned));
    }
}

/// Patterns that gitignore(5) and rsync(1) read alike. The last match decides in ferry, the first one in rsync.
fn patterns(drawn: &mut Drawn, numbers: &mut SplitMix64, source: &Tree, target: &Tree) {
    let paths: Vec<&str> = source.nodes().chain(target.nodes()).filter_map(|(path, _)| plain(path)).collect();
    let mut rules = Vec::new();
    for _ in 0..=numbers.below(4) {
        let path = if paths.is_empty() { "own" } else { paths[numbers.index(paths.len())] };
        rules.push((numbers.percent(30), pattern(numbers, path)));
    }
    if rules.iter().any(|(_, pattern)| pattern.ends_with('/')) {
        drawn.names.insert("folder_pattern");
    }
    for (name, is_there) in [("include", true), ("exclude", false)] {
        if rules.iter().any(|(is_kept, _)| *is_kept == is_there) {
            drawn.names.insert(name);
        }
    }
    let word = |is_kept: bool| if is_kept { "include" } else { "exclude" };
    if numbers.percent(30) {
        drawn.decide("exclude_from", "--exclude-from=our-rules", "--exclude-from=their-rules");
        let line = |is_kept: bool, pattern: &str, keep: &str, leave: &str| {
            format!("{}{pattern}\n", if is_kept { keep } else { leave })
        };
        let ours: String = rules.iter().map(|(kept, pattern)| line(*kept, pattern, "!", "")).collect();
        let theirs: String =
            rules.iter().rev().map(|(kept, pattern)| line(*kept, pattern, "+ ", "- ")).collect();
        drawn.files.push(("our-rules", format!("# a comment\n\n{ours}").into_bytes()));
        drawn.files.push(("their-rules", format!("# a comment\n\n{theirs}").into_bytes()));
    } else {
        let option = |(is_kept, pattern): &(bool, String)| format!("--{}={pattern}", word(*is_kept));
        drawn.ours.extend(rules.iter().map(option));
        drawn.theirs.extend(rules.iter().rev().map(option));
    }
    if drawn.deletes && numbers.percent(40) {
        drawn.decide("delete_excluded", "--delete-excluded", "--delete-excluded");
    }
}

fn pattern(numbers: &mut SplitMix64, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    match numbers.below(10) {
        0..3 => name.to_owned(),
        3 => format!("{name}/"),
        4 => format!("/{path}"),
        5 => format!("/{path}/"),
        6 => format!("{}*", &name[..1]),
        7 => format!("*{}", &name[name.len() - 1..]),
        8 => format!("[a-m]{}", "?".repeat(name.len() - 1)),
        _ => format!("/{path}/{}", ["*", "**"][numbers.index(2)]),
    }
}

/// Returns a path of names that are patterns without wildcards to both programs.
fn plain(path: &[u8]) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name =
        |name: &str| !name.is_empty() && !name.starts_with(['-', '.']) && name.bytes().all(is_plain);
    std::str::from_utf8(path).ok().filter(|path| path.split('/').all(is_name))
}

/// A list of names: folders alone, or with all that is in them. With deletion, it also has names that the source lacks.
fn list(drawn: &mut Drawn, numbers: &mut SplitMix64, source: &Tree, target: &Tree) {
    let recursive = numbers.percent(50);
    let ends_with_nul = numbers.percent(50);
    // A name that begins so is a comment to rsync.
    let is_comment = |path: &[u8]| path.starts_with(b"#") || path.starts_with(b";");
    let is_listable =
        |path: &[u8]| !path.is_empty() && !is_comment(path) && (ends_with_nul || plain(path).is_some());
    let mut names = BTreeSet::new();
    let is_folder =
        |tree: &Tree, path: &[u8]| tree.get(path).is_some_and(|node| node.kind == NodeKind::Directory);
    for (path, node) in source.nodes().filter(|(path, _)| is_listable(path)) {
        // In the way of a listed file, ferry replaces only an empty folder.
        let is_in_the_way = is_folder(target, path) && !is_folder(source, path);
        if numbers.percent(20) && !is_in_the_way {
            let slash: &[u8] = if recursive && node.kind == NodeKind::Directory { b"/" } else { b"" };
            names.insert([path, slash].concat());
        }
    }
    // ferry also deletes the folders on the way that the source lacks.
    let is_gone = |path: &[u8]| {
        let parent = path.iter().rposition(|&byte| byte == b'/').map_or(&b""[..], |cut| &path[..cut]);
        source.get(path).is_none() && is_folder(source, parent)
    };
    let lacks = |(path, node): &(&[u8], &ferry_tree::Node)| {
        is_listable(path) && is_gone(path) && (recursive || node.kind != NodeKind::Directory)
    };
    if drawn.deletes {
        drawn.theirs.push("--delete-missing-args".to_owned());
        for (path, node) in target.nodes().filter(lacks).take(3) {
            let slash: &[u8] = if node.kind == NodeKind::Directory { b"/" } else { b"" };
            names.insert([path, slash].concat());
        }
    }
    if recursive {
        drawn.theirs.push("--recursive".to_owned());
    }
    let end: &[u8] = if ends_with_nul { b"\0" } else { b"\n" };
    let bytes = names.iter().flat_map(|name| [name.as_slice(), end].concat()).collect();
    drawn.files.push(("list", bytes));
    drawn.decide("files_from", "--files-from=list", "--files-from=list");
    if ends_with_nul {
        drawn.decide("null", ["--null", "-0"][numbers.index(2)], "--from0");
    }
}
