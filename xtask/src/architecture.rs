//! Checks ARCHITECTURE.md against the tree: its length, its code map, and its list of the functions that copy a file.

mod map;
mod way;

use std::path::Path;

use crate::failure::Failure;
use crate::workspace;

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Lines that a reader can be asked to read before the code.
const LINES: usize = 200;

/// Line, counted from one, and text of a breach.
type Breach = (usize, String);

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

/// The lines of the first fenced block that begins at or after the line `is_start` accepts, each with its number.
fn block(document: &str, is_start: impl Fn(&str) -> bool) -> Option<Vec<(usize, &str)>> {
    let numbered = document.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut rest =
        numbered.skip_while(|(_, line)| !is_start(line)).skip_while(|(_, line)| !line.starts_with("```"));
    rest.next()?;
    Some(rest.take_while(|(_, line)| !line.starts_with("```")).collect())
}
