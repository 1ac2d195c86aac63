//! Checks ARCHITECTURE.md against the tree: its length, its code map, and its list of the functions that copy a file.

mod block;
mod map;
mod way;

use std::path::Path;

use crate::failure::Failure;
use crate::workspace;

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Most lines of the document, so that it can be read before the code.
const LINES: usize = 200;

/// Prints each breach on a line of its own, and fails if there is one.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    let document = workspace::read(&root.join(DOCUMENT))?;
    let mut breaches = map::breaches(root, &document)?;
    breaches.extend(way::breaches(root, &document)?);
    let count = document.lines().count();
    if count > LINES {
        breaches.push((count, format!("the document has {count} lines; at most {LINES} may be")));
    }
    for (line, breach) in &breaches {
        println!("{DOCUMENT}:{line}: {breach}");
    }
    if breaches.is_empty() {
        println!("check-architecture: ok; {count} lines");
        Ok(())
    } else {
        Err(Failure::Breaches { check: "check-architecture", count: breaches.len() })
    }
}
