//! Actions that both programs announce: ferry's plan, and the lines of rsync's `--dry-run`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

/// Names that a program would change, and those that it would delete.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Actions {
    pub(super) changed: BTreeSet<Vec<u8>>,
    pub(super) deleted: BTreeSet<Vec<u8>>,
}

impl Actions {
    /// Reads a plan. A further name of a file that stays is no change.
    pub(super) fn of_plan(plan: &Path) -> Self {
        let mut actions = Self::default();
        for line in std::fs::read_to_string(plan).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let Some(action) = line.get("action") else { continue };
            let path = match action["path"].as_str() {
                Some(path) => path.to_owned().into_bytes(),
                None => serde_json::from_value(action["path"]["bytes"].clone()).unwrap(),
            };
            match action["verb"].as_str().unwrap() {
                "delete" => actions.deleted.insert(path),
                "keep" => continue,
                _ => actions.changed.insert(path),
            };
        }
        actions
    }

    /// Reads lines of `rsync --out-format='%i %n'`.
    pub(super) fn of_rsync(output: &[u8]) -> Self {
        let mut actions = Self::default();
        for line in output.split(|&byte| byte == b'\n').filter(|line| line.get(11) == Some(&b' ')) {
            let path = named(&line[12..]);
            match line.starts_with(b"*deleting") {
                true => actions.deleted.insert(path),
                false => actions.changed.insert(path),
            };
        }
        // An entry of another type is first deleted by rsync.
        let changed = &actions.changed;
        actions.deleted.retain(|path| !changed.contains(path));
        actions
    }

    /// Returns the names of which only one program announces something, as lines.
    pub(super) fn differences(&self, ours: &Self, is_told: impl Fn(&[u8]) -> bool) -> Vec<String> {
        let lines = |what: &str, theirs: &BTreeSet<Vec<u8>>, ours: &BTreeSet<Vec<u8>>| {
            let line = |path: &Vec<u8>| {
                let program = if theirs.contains(path) { "rsync" } else { "ferry" };
                format!("only {program} announces: {what} {}", path.escape_ascii())
            };
            theirs.symmetric_difference(ours).filter(|path| is_told(path)).map(line).collect::<Vec<_>>()
        };
        let changed = lines("change", &self.changed, &ours.changed);
        [changed, lines("delete", &self.deleted, &ours.deleted)].concat()
    }
}

/// Returns the path that rsync prints; that of the root is empty.
pub(super) fn named(text: &[u8]) -> Vec<u8> {
    let path = unescaped(text.strip_suffix(b"/").unwrap_or(text));
    if path == b"." { Vec::new() } else { path }
}

/// Replaces rsync's `\#ooo` by the byte that it stands for.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let code = rest.strip_prefix(b"\\#").and_then(|code| code.get(..3));
        let value = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        bytes.push(value.unwrap_or(*first));
        rest = if value.is_some() { &rest[5..] } else { tail };
    }
    bytes
}

#[test]
fn names_of_rsync_are_read_back() {
    assert_eq!(unescaped(b"a\\#012b\\#377\\#"), b"a\nb\xff\\#");
}
