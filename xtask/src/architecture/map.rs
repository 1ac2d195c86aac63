//! The code map: a fenced block beneath the heading `Code map`.
//!
//! A line that begins in the first column begins an entry with a path of the repository; indented lines belong to it. A
//! word there that looks like a file or a folder must be the end of a path in the entry's folder. Each crate needs an
//! entry. Each top-level module of a crate needs a word: its file, its folder, or something in that.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use super::block::{Breach, block};
use crate::failure::Failure;
use crate::modules::Graph;
use crate::workspace;

const HEADING: &str = "## Code map";

struct Entry<'a> {
    line: usize,
    path: &'a str,
    /// Files and folders named, each with its line.
    names: Vec<(usize, String)>,
}

pub(super) fn breaches(root: &Path, document: &str) -> Result<Vec<Breach>, Failure> {
    let Some(lines) = block(document, |line| line.trim_end() == HEADING) else {
        return Ok(vec![(1, format!("no fenced block beneath '{HEADING}'"))]);
    };
    let start = lines.first().map_or(1, |(line, _)| *line);
    let entries = entries(&lines);
    let mut found = Vec::new();
    for entry in &entries {
        found.extend(lost(root, entry)?);
    }
    for folder in workspace::crate_folders(root)? {
        let path = folder.strip_prefix(root).unwrap_or(&folder).display().to_string();
        match entries.iter().find(|entry| entry.path == path) {
            None => found.push((start, format!("{path} is missing"))),
            // The map names its tasks instead of its files.
            Some(_) if path == "xtask" => {}
            Some(entry) => found.extend(unnamed(&folder, entry)?),
        }
    }
    Ok(found)
}

fn entries<'a>(lines: &[(usize, &'a str)]) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    for &(line, text) in lines {
        if !text.starts_with(char::is_whitespace)
            && let Some(path) = text.split_whitespace().next()
        {
            entries.push(Entry { line, path, names: Vec::new() });
        } else if let Some(entry) = entries.last_mut() {
            entry.names.extend(text.split_whitespace().flat_map(names).map(|name| (line, name)));
        }
    }
    entries
}

/// Returns the files and folders that a word names: `run.rs`, `walk/`, or several as `{run,walk}.rs`.
fn names(word: &str) -> Vec<String> {
    let Some(name) = name(word) else { return Vec::new() };
    let braces = name.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?)));
    match braces {
        Some((start, (several, end))) => several.split(',').map(|one| format!("{start}{one}{end}")).collect(),
        None => vec![name.to_owned()],
    }
}

/// Returns a word that looks like a file or a folder, without the punctuation around it.
fn name(word: &str) -> Option<&str> {
    let word = word.trim_start_matches(['(', '`']).trim_end_matches(['.', ',', ';', ':', ')', '`']);
    let is_file = [".rs", ".js", ".py"].iter().any(|end| word.len() > end.len() && word.ends_with(end));
    let is_folder = word.len() > 1 && word.ends_with('/');
    (is_file || is_folder).then_some(word)
}

/// Returns the paths of an entry that are not in the tree.
fn lost(root: &Path, entry: &Entry<'_>) -> Result<Vec<Breach>, Failure> {
    let folder = root.join(entry.path);
    if !folder.exists() {
        return Ok(vec![(entry.line, format!("there is no {}", entry.path))]);
    }
    if entry.names.is_empty() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for file in workspace::files(&folder)? {
        paths.push(format!("/{}", file.strip_prefix(&folder).unwrap_or(&file).display()));
    }
    let exists = |name: &str| {
        let end = format!("/{name}");
        paths.iter().any(|path| if name.ends_with('/') { path.contains(&end) } else { path.ends_with(&end) })
    };
    let lost = entry.names.iter().filter(|(_, name)| !exists(name));
    Ok(lost.map(|(line, name)| (*line, format!("{} has no {name}", entry.path))).collect())
}

/// Returns the top-level modules that an entry does not name.
fn unnamed(folder: &Path, entry: &Entry<'_>) -> Result<Vec<Breach>, Failure> {
    let files = Graph::read(folder)?.files;
    let modules: BTreeSet<&str> = files.iter().filter_map(|file| file.split(['/', '.']).next()).collect();
    let is_named = |module: &str| {
        let (file, folder) = (format!("{module}.rs"), format!("{module}/"));
        module == "lib"
            || module == "main"
            || entry.names.iter().any(|(_, name)| *name == file || name.starts_with(&folder))
    };
    let unnamed = modules.into_iter().filter(|module| !is_named(module));
    Ok(unnamed
        .map(|module| (entry.line, format!("{} does not name its module {module}", entry.path)))
        .collect())
}
