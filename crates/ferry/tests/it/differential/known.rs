//! The differences that are meant: each has its reason in `docs/cp-differences.md`, by the same name.

use ferry_tree::attributes::{EntryKind, Time};
use ferry_tree::compare::{Difference, Holes, Options, What, snapshots};

use super::Outcome;
use crate::scene::OLD;

/// What the two programs did with one command line.
pub(crate) struct Compared<'a> {
    pub(crate) arguments: &'a [String],
    pub(crate) expected: &'a Outcome,
    pub(crate) actual: &'a Outcome,
}

impl Compared<'_> {
    /// What differs for no known reason.
    pub(crate) fn unexplained(&self) -> Vec<String> {
        let (expected, actual) = (self.expected, self.actual);
        if self.is_into_itself() || self.is_made_before() {
            return Vec::new();
        }
        let mut found = Vec::new();
        if expected.code != actual.code {
            found.push(format!("exit code is {:?}, should be {:?}", actual.code, expected.code));
        }
        let is_told = |line: &&String| !self.is_told_at_once(line);
        let lacking: Vec<&String> = expected.messages.difference(&actual.messages).filter(is_told).collect();
        let added = actual.messages.difference(&expected.messages);
        let added: Vec<&String> = added.filter(|line| !self.is_told_in_addition(line)).collect();
        let is_one_of_two = lacking.len() == added.len()
            && lacking.iter().zip(&added).all(|(lacking, added)| is_of_two_faults(lacking, added));
        if !is_one_of_two {
            found.extend(added.iter().map(|line| format!("says {line}")));
            found.extend(lacking.iter().map(|line| format!("does not say {line}")));
        }
        let added = actual.lines.difference(&expected.lines).filter(|line| !self.is_of_the_way(line));
        found.extend(added.map(|line| format!("prints {line}")));
        let lacking = expected.lines.difference(&actual.lines).filter(|line| !self.was_only_tried(line));
        found.extend(lacking.map(|line| format!("does not print {line}")));
        let options = Options { threads: 1, holes: Holes::Ignore, ..Options::all() };
        let trees = snapshots(&expected.tree, &actual.tree, &options);
        found.extend(trees.iter().filter(|difference| !self.is_meant(difference)).map(ToString::to_string));
        found
    }

    /// *Into itself*: how much of a folder is copied into itself before that is noticed.
    fn is_into_itself(&self) -> bool {
        let tells = |outcome: &Outcome| outcome.messages.iter().any(|line| line.contains(", into itself, "));
        tells(self.expected) || tells(self.actual)
    }

    /// *Parents made before*: `--parents` with a folder that the way to another operand was made through.
    fn is_made_before(&self) -> bool {
        let is_refused = |outcome: &Outcome| {
            let mut lines = outcome.messages.iter();
            lines.any(|line| line.contains("cannot create directory") && line.ends_with(": File exists"))
        };
        self.arguments.iter().any(|word| word == "--parents")
            && is_refused(self.expected)
            && !is_refused(self.actual)
    }

    /// *Told when done*: what failed is no line of `-v`.
    fn was_only_tried(&self, line: &str) -> bool {
        let removed = line.strip_prefix("removed ").map(|target| (target, target));
        let Some((source, target)) = removed.or_else(|| line.split_once(" -> ")) else { return false };
        let target = target.split(" (").next().unwrap_or(target);
        self.actual.code == Some(1) && (self.is_told_of(source) || self.is_told_of(target))
    }

    fn is_meant(&self, difference: &Difference) -> bool {
        let is_now = |time: &Time| time.seconds > OLD + 100_000;
        let failed = self.actual.code == Some(1);
        // *Devices*: what is written into one is not given to it, but for its bytes.
        if self.is_kind(&difference.path, EntryKind::CharacterDevice) {
            return matches!(&difference.what, What::Mode { .. } | What::Owner { .. } | What::Mtime { .. });
        }
        if self.is_unsearchable() && self.is_folder(&difference.path) {
            return matches!(&difference.what, What::Mode { .. } | What::Acl { .. } | What::Mtime { .. });
        }
        match &difference.what {
            // What was not kept is of today.
            What::Mtime { source, target } if is_now(source) && is_now(target) => true,
            // *Tried and taken back*: a folder in which a backup was made and undone has changed, too.
            What::Mtime { source, .. } => failed && is_now(source) && self.is_folder(&difference.path),
            // *Special bits*: an existing target gets the source's, also if that has none.
            What::Mode { source, target } => {
                source & 0o777 == target & 0o777 && target & 0o6000 & !source == 0
            }
            // *A failure costs nothing*: what is at the target is removed only for what can be made.
            What::ExtraInTarget(_) => failed && self.is_told_of(&String::from_utf8_lossy(&difference.path)),
            What::MissingInTarget(_)
            | What::Kind { .. }
            | What::Content { .. }
            | What::Size { .. }
            | What::Owner { .. }
            | What::Xattr { .. }
            | What::Acl { .. }
            | What::SymlinkTarget { .. }
            | What::Device { .. }
            | What::HardLink { .. }
            | What::Holes { .. }
            | What::Unreadable { .. } => false,
        }
    }

    fn is_folder(&self, path: &[u8]) -> bool {
        self.is_kind(path, EntryKind::Directory)
    }

    fn is_kind(&self, path: &[u8], kind: EntryKind) -> bool {
        self.actual.tree.entries.get(path).is_some_and(|facts| facts.attributes.kind == kind)
    }

    /// Whether a message is about a file of that name.
    fn is_told_of(&self, path: &str) -> bool {
        let name = plain(path.rsplit('/').next().unwrap_or(path));
        self.actual.messages.iter().any(|line| plain(line).contains(&name))
    }

    /// *Unsearchable operand*: `SOURCE/.` that may not be looked at, where `SOURCE` may be.
    fn is_unsearchable(&self) -> bool {
        let is_refused = |line: &String| {
            line.ends_with("/.': Permission denied") || line.ends_with("/.\": Permission denied")
        };
        self.expected.messages.iter().any(|line| line.starts_with("cp: cannot ") && is_refused(line))
    }

    /// *Unsearchable operand*, of the target.
    fn is_told_at_once(&self, line: &str) -> bool {
        let is_refused = |start: &str| line.starts_with(start) && line.ends_with(": Permission denied");
        let is_left_out = line.starts_with("cp: -r not specified; omitting directory ");
        self.is_unsearchable()
            && (is_refused("cp: cannot stat ") || is_refused("cp: cannot access ") || is_left_out)
    }

    /// *Quotes*: of `--parents` GNU cp tells folders on the way without.
    fn is_of_the_way(&self, line: &str) -> bool {
        self.arguments.iter().any(|word| word == "--parents")
            && self.expected.lines.iter().any(|expected| plain(expected) == plain(line))
    }

    /// *Every attribute*: the others are set, and told of, where one can't be.
    fn is_told_in_addition(&self, line: &str) -> bool {
        if self.is_told_at_once(line) {
            return true;
        }
        let starts = ["cp: preserving permissions for ", "cp: setting permissions for "];
        let Some(rest) = starts.iter().find_map(|start| line.strip_prefix(start)) else { return false };
        let path = rest.split(": ").next().unwrap_or(rest);
        if self.is_unsearchable() {
            return true;
        }
        let told = |what| {
            self.expected.messages.contains(&format!("cp: {what} for {path}: Operation not permitted"))
        };
        told("preserving times") || told("preserving permissions")
    }
}

/// *One of two faults*: where the source can't be read and the target can't be made, each tells one.
fn is_of_two_faults(lacking: &str, added: &str) -> bool {
    fn last(line: &str) -> &str {
        line.rsplit("? ").next().unwrap_or(line)
    }
    let of_source = |line: &str| {
        [
            "cp: cannot open ",
            "cp: cannot stat ",
            "cp: -r not specified; omitting directory ",
            "cp: cannot access ",
        ]
        .iter()
        .any(|start| last(line).starts_with(start))
    };
    let of_target = |line: &str| {
        [
            "cp: cannot create ",
            "cp: failed to get attributes of ",
            "cp: not writing through ",
            "cp: cannot remove ",
        ]
        .iter()
        .any(|start| last(line).starts_with(start))
            || [" exists but is not a directory", " are the same file"].iter().any(|end| line.ends_with(end))
    };
    let loops = |line: &str| line.ends_with(": Too many levels of symbolic links");
    of_source(lacking) && (of_target(added) || of_source(added))
        || of_source(added) && of_target(lacking)
        || of_target(added) && of_target(lacking)
        || loops(lacking) && loops(added)
}

/// Without the quotes around names, which some messages leave out.
fn plain(text: &str) -> String {
    text.replace(['\'', '"', '\\'], "").replace("/./", "/").replace("/./", "/")
}
