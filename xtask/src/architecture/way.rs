//! The way of a regular file: a fenced block marked `way`, one function a line: `CRATE/FILE FUNCTION text`.
//!
//! The file lies in `crates/CRATE/src`; the function is `name` or `Type::name`. The nearest line above with less
//! indentation is the caller, whose body must name the function. A line that begins with `~` is exempt: that function
//! is reached by a job, a queue or a closure. A line whose caller is in another file enters its file, and no file may
//! be entered twice.

#[cfg(test)]
mod tests;

use std::path::Path;

use super::block::{Breach, block};
use crate::failure::Failure;
use crate::tokens::{Token, tokens};
use crate::workspace;

const FENCE: &str = "```way";

struct Step<'a> {
    line: usize,
    indent: usize,
    is_handed_over: bool,
    file: &'a str,
    /// The type or trait, if it is named.
    owner: Option<&'a str>,
    function: &'a str,
}

pub(super) fn breaches(root: &Path, document: &str) -> Result<Vec<Breach>, Failure> {
    let Some(lines) = block(document, |line| line.trim_end() == FENCE) else {
        return Ok(vec![(1, format!("no fenced block that begins with '{FENCE}'"))]);
    };
    let mut found = Vec::new();
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut entered: Vec<&str> = Vec::new();
    for (line, text) in lines {
        let Some(step) = step(line, text) else {
            found.push((line, "this is not CRATE/FILE FUNCTION".to_owned()));
            continue;
        };
        let caller = steps.iter().rev().find(|caller| caller.indent < step.indent);
        found.extend(step_breaches(root, &step, caller)?.map(|breach| (line, breach)));
        if caller.is_none_or(|caller| caller.file != step.file) {
            if entered.contains(&step.file) {
                found.push((line, format!("{} is entered twice", step.file)));
            }
            entered.push(step.file);
        }
        steps.push(step);
    }
    Ok(found)
}

fn step(line: usize, text: &str) -> Option<Step<'_>> {
    let unmarked = text.trim_start();
    let indent = text.len() - unmarked.len();
    let mut words = unmarked.split_whitespace().peekable();
    let is_handed_over = words.next_if_eq(&"~").is_some();
    let (file, name) = (words.next()?, words.next()?);
    let (owner, function) = name.rsplit_once("::").map_or((None, name), |(owner, name)| (Some(owner), name));
    file.contains('/').then_some(Step { line, indent, is_handed_over, file, owner, function })
}

/// Returns the breach of one line, if any.
fn step_breaches(root: &Path, step: &Step<'_>, caller: Option<&Step<'_>>) -> Result<Option<String>, Failure> {
    if bodies(root, step)?.is_none_or(|bodies| bodies.is_empty()) {
        let owner = step.owner.map(|owner| format!("{owner}::")).unwrap_or_default();
        return Ok(Some(format!("{} has no function {owner}{}", step.file, step.function)));
    }
    let Some(caller) = caller.filter(|_| !step.is_handed_over) else { return Ok(None) };
    let bodies = bodies(root, caller)?.unwrap_or_default();
    let is_named = bodies.iter().any(|body| body.iter().any(|word| word == step.function));
    let breach = || format!("{} of line {} does not name {}", caller.function, caller.line, step.function);
    Ok((!is_named).then(breach))
}

/// Returns the words in the bodies of all functions that a line can mean; `None` if there is no such file.
fn bodies(root: &Path, step: &Step<'_>) -> Result<Option<Vec<Vec<String>>>, Failure> {
    let Some((name, file)) = step.file.split_once('/') else { return Ok(None) };
    let path = root.join("crates").join(name).join("src").join(file);
    if !path.is_file() {
        return Ok(None);
    }
    let source = workspace::read(&path)?;
    let tokens = tokens(&source);
    let mut found = Vec::new();
    let mut depth = 0_usize;
    // Headers of the enclosing `impl` and `trait` blocks, each with the depth inside of it.
    let mut owners: Vec<(Vec<&str>, usize)> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).map_or("", |before| tokens[before].text);
        match token.text {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                owners.retain(|(_, inside)| *inside <= depth);
            }
            // Not a type such as `impl Future`.
            "impl" | "trait" if ["", ";", "}", "{", "]", "unsafe", "pub", ")"].contains(&before) => {
                let header = tokens[index..].iter().map(|token| token.text).take_while(|text| *text != "{");
                owners.push((header.collect(), depth + 1));
            }
            "fn" if tokens.get(index + 1).is_some_and(|name| name.text == step.function) => {
                let is_owner = |owner| owners.iter().any(|(header, _)| header.contains(owner));
                if step.owner.as_ref().is_none_or(is_owner) {
                    found.extend(body(&tokens[index + 2..]));
                }
            }
            _ => {}
        }
    }
    Ok(Some(found))
}

/// Returns the words between a function's braces; `None` for a declaration. `rest` begins behind the function's name.
fn body(rest: &[Token<'_>]) -> Option<Vec<String>> {
    let mut depth = 0_usize;
    let mut start = None;
    for (index, token) in rest.iter().enumerate() {
        match token.text {
            ";" if depth == 0 => return None,
            "{" if depth == 0 => {
                start = Some(index);
                depth = 1;
            }
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(start) = start
            && depth == 0
        {
            return Some(rest[start..index].iter().map(|token| token.text.to_owned()).collect());
        }
    }
    None
}
