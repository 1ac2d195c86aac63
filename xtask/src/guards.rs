//! Checks that the tests exist which documents and comments name as guards.
//!
//! In ARCHITECTURE.md and docs/*.md, guards are the names in backquotes after `Guard:` and in a table's column `guard`:
//! test functions (`walk::name` lies in a file or folder `walk`), or files and folders of sources. In comments of
//! sources they are functions after `guard:`. A name that begins with `cargo` is a command and not checked.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::workspace;

/// Names that exist.
#[derive(Default)]
struct Known {
    files: Vec<String>,
    functions: Vec<Function>,
}

struct Function {
    file: String,
    name: String,
}

/// Prints each guard that does not exist on a line of its own, and fails if there is one.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    let mut known = Known::default();
    let mut named = Vec::new();
    for path in sources(root)? {
        let file = workspace::shown(root, &path);
        let source = workspace::read(&path)?;
        known.add(&file, &source);
        named.extend(in_source(&source).into_iter().map(|(line, name)| (format!("{file}:{line}"), name)));
    }
    for path in workspace::documents(root)? {
        let file = workspace::shown(root, &path);
        let guards = in_document(&workspace::read(&path)?);
        named.extend(guards.into_iter().map(|(line, name)| (format!("{file}:{line}"), name)));
    }
    let lost: Vec<_> = named.iter().filter(|(_, name)| !known.has(name)).collect();
    for (place, name) in &lost {
        println!("{place}: no test, file or folder is called {name}");
    }
    if lost.is_empty() {
        println!("check-guards: ok; {} guards named", named.len());
        Ok(())
    } else {
        Err(Failure::Breaches { check: "check-guards", count: lost.len() })
    }
}

fn sources(root: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for folder in workspace::crate_folders(root)? {
        let mut files = workspace::files(&folder)?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "rs" || extension == "py"));
        found.extend(files);
    }
    Ok(found)
}

impl Known {
    fn add(&mut self, file: &str, source: &str) {
        self.files.push(file.to_owned());
        for line in source.lines() {
            // Python's tests are guards, too.
            let definition = line.split_once("fn ").or_else(|| line.trim_start().split_once("def "));
            if let Some((_, rest)) = definition
                && let Some((name, _)) = rest.split_once(['(', '<'])
            {
                self.functions.push(Function { file: file.to_owned(), name: name.to_owned() });
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        if name.starts_with("cargo ") {
            return true;
        }
        if name.contains('/') || name.ends_with(".rs") {
            let (file, folder) = (format!("/{name}"), format!("{name}/"));
            let is_meant = |known: &String| {
                known == name
                    || known.ends_with(&file)
                    || known.starts_with(&folder)
                    || known.contains(&format!("/{folder}"))
            };
            return self.files.iter().any(is_meant);
        }
        let mut segments: Vec<&str> = name.split("::").collect();
        let function = segments.pop().unwrap_or_default();
        self.functions.iter().any(|known| {
            let is_in = |module: &&str| known.file.split(['/', '.']).any(|part| part == *module);
            known.name == function && segments.iter().all(is_in)
        })
    }
}

/// Returns line and name of each guard of a Markdown document.
fn in_document(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // `is_after` is set behind `Guard:`, up to the paragraph's end; `column` is that of a table with guards.
    let (mut is_after, mut column) = (false, None);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('|') {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            column = column.or_else(|| cells.iter().position(|cell| cell.eq_ignore_ascii_case("guard")));
            let cell = column.and_then(|column: usize| cells.get(column)).unwrap_or(&"");
            found.extend(backquoted(cell).map(|name| (index + 1, name.to_owned())));
            continue;
        }
        column = None;
        let starts_anew = line.trim().is_empty() || line.starts_with(['-', '#']);
        is_after = is_after && !starts_anew;
        let guards = if is_after { Some(line) } else { line.split_once("Guard:").map(|(_, guards)| guards) };
        if let Some(guards) = guards {
            is_after = true;
            found.extend(backquoted(guards).map(|name| (index + 1, name.to_owned())));
        }
    }
    found
}

/// Returns line and name of each guard in a source's comments, if the name can be a function's.
fn in_source(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in source.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//")) {
        for mark in ["(guard: `", "Guard: `"] {
            let name = line.split_once(mark).and_then(|(_, rest)| rest.split_once('`')).map(|(name, _)| name);
            let is_name =
                |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            found.extend(name.filter(is_name).map(|name| (index + 1, name.to_owned())));
        }
    }
    found
}

/// Returns the pieces of text between backquotes.
fn backquoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
