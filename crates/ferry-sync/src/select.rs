//! Which entries take part: patterns as in gitignore(5), sizes and times.
//!
//! Patterns are matched by the crate `ignore`. Those of the command line decide first; the last that matches wins. Then
//! the `.gitignore` files of the source decide, the nearest first. An excluded folder is not entered, so that nothing
//! beneath it can be included again.

use std::path::{Path, PathBuf};

use ferry_io::{FileKind, Stat, Time};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};

#[cfg(test)]
mod tests;

/// Name of the files with patterns that git reads, too.
pub(crate) const GITIGNORE: &[u8] = b".gitignore";

/// Choice of entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent option of the command")]
pub struct Selection {
    /// Patterns in the order in which they were given.
    pub rules: Vec<Rule>,
    /// Set if the `.gitignore` files of the source exclude entries, too.
    pub gitignore: bool,
    /// Smallest size of a file in bytes.
    pub min_size: Option<u64>,
    /// Largest size of a file in bytes.
    pub max_size: Option<u64>,
    /// Files that were modified later than this.
    pub newer_than: Option<Time>,
    /// Set if folders on other filesystems than the source are not entered.
    pub one_file_system: bool,
    /// Set if excluded entries of the target are deleted like others that the source lacks.
    pub deletes_excluded: bool,
}

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The pattern, as a line of a `.gitignore` file.
    pub pattern: String,
    /// Where it was given, for `--explain`: `--exclude`, or `list:3`.
    pub origin: String,
}

/// A pattern that can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: the pattern {:?}: {problem}", rule.origin, rule.pattern)]
pub struct BadPattern {
    /// The pattern.
    pub rule: Rule,
    /// What is wrong with it.
    pub problem: String,
}

impl Selection {
    /// Checks the patterns.
    ///
    /// # Errors
    /// The first that can't be understood.
    pub fn check(&self) -> Result<(), BadPattern> {
        self.given().map(drop)
    }

    fn given(&self) -> Result<Gitignore, BadPattern> {
        let mut builder = builder();
        let bad =
            |rule: &Rule, error: &ignore::Error| BadPattern { rule: rule.clone(), problem: problem(error) };
        for rule in &self.rules {
            if matches_nothing(&rule.pattern) {
                return Err(BadPattern { rule: rule.clone(), problem: "it matches nothing".into() });
            }
            builder
                .add_line(Some(PathBuf::from(named(rule))), &adapted(&rule.pattern))
                .map_err(|error| bad(rule, &error))?;
        }
        builder.build().map_err(|error| {
            let unnamed = Rule { pattern: String::new(), origin: String::new() };
            bad(self.rules.last().unwrap_or(&unnamed), &error)
        })
    }
}

/// Returns what is wrong with a pattern, without the pattern.
fn problem(error: &ignore::Error) -> String {
    if let ignore::Error::Glob { err, .. } = error { err.clone() } else { error.to_string() }
}

/// A selection with its patterns compiled.
pub(crate) struct Selector {
    choice: Selection,
    given: Gitignore,
}

/// Patterns of one `.gitignore` file.
#[derive(Debug)]
pub(crate) struct FolderRules(Gitignore);

impl FolderRules {
    /// Compiles the bytes of a `.gitignore` file. As with git, a pattern that can't be understood matches nothing.
    ///
    /// # Errors
    /// The number of the first line that is not UTF-8: what it excludes is unknown.
    pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Self, usize> {
        let mut builder = builder();
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        for (number, line) in (1_usize..).zip(bytes.split(|&byte| byte == b'\n')) {
            let line = std::str::from_utf8(line).map_err(|_| number)?;
            let origin = format!("{}:{number}", path.display());
            let rule = Rule { pattern: line.to_owned(), origin };
            if !matches_nothing(line) {
                builder.add_line(Some(PathBuf::from(named(&rule))), &adapted(line)).ok();
            }
        }
        Ok(Self(builder.build().unwrap_or_else(|_| Gitignore::empty())))
    }
}

/// A folder with patterns of its own on the way to an entry.
pub(crate) struct Folder<'a> {
    /// Path below the roots.
    pub(crate) path: &'a Path,
    pub(crate) rules: &'a FolderRules,
}

impl Selector {
    /// # Errors
    /// The first pattern that can't be understood.
    pub(crate) fn new(choice: Selection) -> Result<Self, BadPattern> {
        let given = choice.given()?;
        Ok(Self { choice, given })
    }

    /// Returns a selector that leaves nothing out.
    pub(crate) fn of_everything() -> Self {
        Self { choice: Selection::default(), given: Gitignore::empty() }
    }

    /// Returns true if some entries may not take part.
    pub(crate) fn is_active(&self) -> bool {
        let Selection { rules, gitignore, min_size, max_size, newer_than, one_file_system, .. } =
            &self.choice;
        !rules.is_empty()
            || *gitignore
            || min_size.is_some()
            || max_size.is_some()
            || newer_than.is_some()
            || *one_file_system
    }

    pub(crate) fn reads_gitignore(&self) -> bool {
        self.choice.gitignore
    }

    pub(crate) fn stays_on_filesystem(&self) -> bool {
        self.choice.one_file_system
    }

    pub(crate) fn deletes_excluded(&self) -> bool {
        self.choice.deletes_excluded
    }

    /// Returns the pattern that excludes a path below the roots; `None` if it takes part. The folders are those on the
    /// way to it, the nearest first.
    pub(crate) fn excluded<'a>(
        &self,
        path: &Path,
        is_folder: bool,
        folders: impl Iterator<Item = Folder<'a>>,
    ) -> Option<String> {
        match self.given.matched(path, is_folder) {
            Match::Ignore(glob) => return Some(name_of(glob)),
            Match::Whitelist(_) => return None,
            Match::None => {}
        }
        for Folder { path: above, rules } in folders {
            let Ok(below) = path.strip_prefix(above) else { continue };
            match rules.0.matched(below, is_folder) {
                Match::Ignore(glob) => return Some(name_of(glob)),
                Match::Whitelist(_) => return None,
                Match::None => {}
            }
        }
        None
    }

    /// Returns the option that leaves out a file of the source because of its size or time.
    pub(crate) fn left_out(&self, source: &Stat) -> Option<&'static str> {
        if source.kind == FileKind::Regular {
            self.by_size_or_time(source.size, source.times.modified)
        } else {
            None
        }
    }

    /// Returns the option that leaves out a regular file of this size and modification time.
    pub(crate) fn by_size_or_time(&self, size: u64, modified: Time) -> Option<&'static str> {
        let Selection { min_size, max_size, newer_than, .. } = &self.choice;
        if min_size.is_some_and(|least| size < least) {
            return Some("--min-size");
        }
        if max_size.is_some_and(|most| size > most) {
            return Some("--max-size");
        }
        newer_than.is_some_and(|time| modified <= time).then_some("--newer-than")
    }
}

/// Formats a pattern and where it was given: `--exclude '*.o'`, `photos/.gitignore:3 '*.o'`.
fn named(rule: &Rule) -> String {
    format!("{} '{}'", rule.origin, rule.pattern.trim_end())
}

/// Returns the name of the pattern that has matched.
fn name_of(glob: &Glob) -> String {
    glob.from().map(|name| name.display().to_string()).unwrap_or_default()
}

fn builder() -> GitignoreBuilder {
    let mut builder = GitignoreBuilder::new("");
    // With git a class without its end matches nothing.
    builder.allow_unclosed_class(false);
    builder
}

/// Returns true for a pattern that has no name in it.
fn matches_nothing(pattern: &str) -> bool {
    matches!(pattern.trim_end().trim_start_matches('!'), "" | "/")
}

/// Returns a pattern that means to the crate what `pattern` means to git: braces are plain characters, and a negated class
/// does not match a slash.
fn adapted(pattern: &str) -> String {
    let (sign, pattern) = pattern.strip_prefix('!').map_or(("", pattern), |rest| ("!", rest));
    // To the crate, a slash in a class is one in the path, too.
    let matches_names = !pattern.trim_end().trim_end_matches('/').contains('/');
    let mut adapted = String::new();
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_length(rest).unwrap_or(1),
            other => other.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        match part.strip_prefix("[!").or_else(|| part.strip_prefix("[^")) {
            // A bracket is a member of the class only in the first place.
            Some(members) if members.starts_with(']') => {
                adapted += &format!("[!{}/]", &members[..members.len() - 1]);
            }
            Some(members) => adapted += &format!("[!/{members}"),
            None if part == "{" || part == "}" => adapted += &format!("\\{part}"),
            None => adapted += part,
        }
        rest = behind;
    }
    let anywhere = if matches_names && adapted.contains("[!") { "**/" } else { "" };
    format!("{sign}{anywhere}{adapted}")
}

/// Returns the length of the class that a text starts with; `None` if it has no end.
fn class_length(text: &str) -> Option<usize> {
    let members = text.strip_prefix("[!").or_else(|| text.strip_prefix("[^")).unwrap_or(&text[1..]);
    let start = text.len() - members.len();
    let first = members.chars().next()?.len_utf8();
    members[first..].find(']').map(|end| start + first + end + 1)
}
