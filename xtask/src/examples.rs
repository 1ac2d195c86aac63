//! Checks that every public function, method and type of `ferry-io` is used in an example that is run.
//!
//! The rule: a function's name stands in the code of an example. A method's name stands in an example together with its
//! type's name; an example in the documentation of a type, or of one of its methods, counts as naming the type. A type's name
//! stands in an example. So a getter needs no example of its own, and a file of examples may show a whole type. Fields,
//! variants and constants are left out. The compiler refuses `pub` where a user cannot reach it (`unreachable_pub`), so
//! `pub` in a source file is the interface.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use crate::failure::Failure;
use crate::workspace;

const CRATE: &str = "crates/ferry-io";
/// Modules that only fuzz targets or builds without a feature see, and code of tests.
const LEFT_OUT: [&str; 4] = ["absent.rs", "fuzzing.rs", "modelled.rs", "tests.rs"];

/// A public item.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    line: usize,
    /// Type of a method.
    owner: Option<String>,
    name: String,
}

/// The words of one example, and of what it documents.
type Example = BTreeSet<String>;

/// The items and the examples of one source file.
#[derive(Debug, Default)]
struct Found {
    items: Vec<Item>,
    examples: Vec<Example>,
}

/// Prints each item without an example on a line of its own, and fails if there is one.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    let (mut items, mut examples) = (Vec::new(), Vec::new());
    for path in workspace::sources(&root.join(CRATE).join("src"))? {
        let is_left_out = path.file_name().is_some_and(|name| LEFT_OUT.iter().any(|other| name == *other));
        if is_left_out {
            continue;
        }
        let folder = path.parent().unwrap_or(root).to_owned();
        let include = |name: &str| workspace::read(&folder.join(name));
        let found = read(&workspace::read(&path)?, include)?;
        let place = workspace::shown(root, &path);
        items.extend(found.items.into_iter().map(|item| (place.clone(), item)));
        examples.extend(found.examples);
    }
    let bare: Vec<_> = items.iter().filter(|(_, item)| !is_shown(item, &examples)).collect();
    for (place, Item { line, owner, name }) in &bare {
        let owner = owner.as_ref().map_or(String::new(), |owner| format!("{owner}::"));
        println!("{place}:{line}: no example uses {owner}{name}");
    }
    if items.is_empty() {
        Err(Failure::NoTests)
    } else if bare.is_empty() {
        println!("check-examples: ok; {} items in {} examples", items.len(), examples.len());
        Ok(())
    } else {
        Err(Failure::Breaches { check: "check-examples", count: bare.len() })
    }
}

fn is_shown(item: &Item, examples: &[Example]) -> bool {
    let names = |example: &Example, name: &String| example.contains(name);
    examples.iter().any(|example| {
        names(example, &item.name) && item.owner.as_ref().is_none_or(|owner| names(example, owner))
    })
}

/// Reads a source file; `include` returns the text of a file that its documentation includes.
fn read(source: &str, include: impl Fn(&str) -> Result<String, Failure>) -> Result<Found, Failure> {
    let mut found = Found::default();
    let (mut pending, mut document): (Vec<Example>, Vec<String>) = (Vec::new(), Vec::new());
    let mut implemented = None;
    for (index, line) in source.lines().enumerate() {
        let text = line.trim();
        let comment = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
        if let Some(comment) = comment {
            document.push(comment.strip_prefix(' ').unwrap_or(comment).to_owned());
            continue;
        }
        pending.extend(examples_in(&document.join("\n")));
        document.clear();
        if let Some((_, name)) = text.split_once("include_str!(\"").filter(|_| text.starts_with("#")) {
            let name = name.split('"').next().unwrap_or_default();
            pending.extend(examples_in(&include(name)?));
        }
        if text.starts_with("#![") || text.is_empty() {
            // The end of a module's own documentation.
            found.examples.append(&mut pending);
        }
        if line.starts_with("impl") {
            implemented = implemented_type(line);
        } else if line.starts_with('}') {
            implemented = None;
        }
        let Some(Declared { name, is_type, is_public }) = declared(text) else { continue };
        let owner = implemented.clone().filter(|_| line.starts_with(' '));
        for mut example in pending.drain(..) {
            // Documentation of a type names it.
            example.extend(owner.clone().or_else(|| is_type.then(|| name.clone())));
            found.examples.push(example);
        }
        if is_public {
            found.items.push(Item { line: index + 1, owner, name });
        }
    }
    Ok(found)
}

/// A function or a type, as the line that begins it declares it.
struct Declared {
    name: String,
    is_type: bool,
    is_public: bool,
}

fn declared(line: &str) -> Option<Declared> {
    let (line, is_public) = match line.strip_prefix("pub ") {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    let mut words = line.split_whitespace();
    let keyword = words.find(|word| !["async", "const", "unsafe"].contains(word))?;
    let is_type = ["struct", "enum", "trait", "type"].contains(&keyword);
    if !is_type && keyword != "fn" {
        return None;
    }
    let name = words.next()?.split(|end: char| !is_part(end)).next()?.to_owned();
    Some(Declared { name, is_type, is_public })
}

/// Returns the type that a line `impl<…> Type<…> {` or `impl Trait for Type {` implements something for.
fn implemented_type(line: &str) -> Option<String> {
    let mut depth = 0_usize;
    let rest = line.strip_prefix("impl")?.trim_start_matches(|letter| {
        match letter {
            '<' => depth += 1,
            '>' => {
                depth = depth.saturating_sub(1);
                return true;
            }
            _ => {}
        }
        depth > 0
    });
    let named = rest.split(" for ").last()?.trim();
    let path = named.split(['<', ' ', '{']).next()?;
    path.rsplit("::").next().map(str::to_owned)
}

/// Returns the words of each example that rustdoc runs.
fn examples_in(document: &str) -> Vec<Example> {
    let (mut found, mut code): (Vec<Example>, Option<Example>) = (Vec::new(), None);
    let mut is_text = false;
    for line in document.lines() {
        match (line.trim().strip_prefix("```"), &mut code) {
            (Some(_), Some(_)) => found.extend(code.take()),
            (Some(_), None) if is_text => is_text = false,
            (Some("" | "rust" | "should_panic"), None) => code = Some(Example::new()),
            (Some(_), None) => is_text = true,
            (None, Some(words)) => {
                let line = line.split("//").next().unwrap_or_default();
                let parts = line.split(|end: char| !is_part(end)).filter(|word| !word.is_empty());
                words.extend(parts.map(str::to_owned));
            }
            (None, None) => {}
        }
    }
    found
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
