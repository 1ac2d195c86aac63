//! Runs the commands in README.md, ARCHITECTURE.md and docs/*.md.
//!
//! A block fenced as `sh` is one shell session in an empty folder, with the `ferry` that was just built first on PATH
//! and no standard input. Each line must exit 0; a backslash at its end continues it. `sh checkout` runs in the
//! checkout instead, and builds what it needs, as a newcomer does. `sh no-run REASON` is not run. Other names for a
//! shell (`bash`, `console`, ...) are refused, so that no command stays unchecked because of its tag. Output of
//! commands is fenced as `text`.

#[cfg(test)]
mod tests;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::scratch::Scratch;
use crate::{install, workspace};

/// Tags that would hide commands from this check.
const OTHER_SHELLS: [&str; 6] = ["bash", "shell", "zsh", "console", "shell-session", "terminal"];

/// Seconds after which a block counts as hanging. A block may build everything.
const LIMIT_SECONDS: &str = "1200";

#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The text behind the opening fence.
    tag: String,
    /// Line of the opening fence, counted from one.
    line: usize,
    lines: Vec<String>,
}

/// Results of the blocks of all documents.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    commands_run: usize,
    /// `PATH:LINE: REASON`, one a block.
    not_run: Vec<String>,
    /// `PATH:LINE: BREACH`, with the output beneath.
    breaches: Vec<String>,
}

/// Builds `ferry` and runs every document.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    check_with(root, &workspace::programs(root)?, true)
}

/// Runs every document with the programs in `binaries`, and prints the failed blocks and those that were not run.
/// Blocks that build in the checkout run only if `builds`.
pub(crate) fn check_with(root: &Path, binaries: &Path, builds: bool) -> Result<(), Failure> {
    let outcome = run_all(root, binaries, builds)?;
    for block in &outcome.not_run {
        println!("not run: {block}");
    }
    for breach in &outcome.breaches {
        println!("{breach}");
    }
    if outcome.breaches.is_empty() {
        let Outcome { commands_run, not_run, .. } = &outcome;
        println!("check-documents: ok; {commands_run} commands run, {} blocks not run", not_run.len());
        Ok(())
    } else {
        Err(Failure::Breaches { check: "check-documents", count: outcome.breaches.len() })
    }
}

fn run_all(root: &Path, binaries: &Path, builds: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let places = Places { checkout: builds.then_some(root), binaries };
    for path in workspace::documents(root)? {
        let name = workspace::shown(root, &path);
        if path.is_file() {
            for block in blocks(&workspace::read(&path)?) {
                take(&mut outcome, &name, &block, &places)?;
            }
        } else {
            outcome.breaches.push(format!("{name}: missing"));
        }
    }
    Ok(outcome)
}

/// Folders in which the blocks of all documents run.
struct Places<'a> {
    /// The checkout, if blocks may build there.
    checkout: Option<&'a Path>,
    /// The folder with `ferry`, for blocks in folders of their own.
    binaries: &'a Path,
}

fn take(outcome: &mut Outcome, document: &str, block: &Block, places: &Places<'_>) -> Result<(), Failure> {
    let place = format!("{document}:{}", block.line);
    let (shell, rest) = block.tag.split_once(char::is_whitespace).unwrap_or((&block.tag, ""));
    if OTHER_SHELLS.contains(&shell) {
        let advice = "tag commands `sh` or `sh no-run REASON`, their output `text`";
        outcome.breaches.push(format!("{place}: block tagged `{shell}`; {advice}"));
    } else if shell == "sh" {
        match rest.trim().strip_prefix("no-run").map(str::trim) {
            None if rest.trim() == "checkout" => match places.checkout {
                Some(root) => take_run(outcome, run_block(document, block, Place::Checkout { root })?),
                None => outcome.not_run.push(format!("{place}: builds in the checkout")),
            },
            Some("") => outcome.breaches.push(format!("{place}: `sh no-run` without a reason")),
            Some(reason) => outcome.not_run.push(format!("{place}: {reason}")),
            None if !rest.trim().is_empty() => {
                outcome.breaches.push(format!("{place}: unknown tag `{}`", block.tag));
            }
            None => {
                take_run(outcome, run_block(document, block, Place::Scratch { binaries: places.binaries })?)
            }
        }
    }
    Ok(())
}

/// Folder in which one block runs.
enum Place<'a> {
    /// An empty folder, with `ferry` on PATH.
    Scratch { binaries: &'a Path },
    /// The checkout. `/tmp` stands for a folder that is removed afterwards.
    Checkout { root: &'a Path },
}

fn take_run(outcome: &mut Outcome, run: Result<usize, String>) {
    match run {
        Ok(count) => outcome.commands_run += count,
        Err(breach) => outcome.breaches.push(breach),
    }
}

/// Returns the number of commands that ran, or the breach.
fn run_block(document: &str, block: &Block, at: Place<'_>) -> Result<Result<usize, String>, Failure> {
    let scratch = Scratch::open()?;
    let folder = scratch.path().join("here");
    let end = scratch.path().join("end");
    fs::create_dir(&folder).map_err(Failure::path("create", &folder))?;
    let mut commands = commands(block);
    let mut search = env::var_os("PATH").unwrap_or_default();
    let mut settings = None;
    let place = match at {
        Place::Scratch { binaries } => {
            search = [binaries.as_os_str(), ":".as_ref(), &search].into_iter().collect::<OsString>();
            &folder
        }
        Place::Checkout { root } => {
            for (_, command) in &mut commands {
                *command = command.replace("/tmp/", &format!("{}/", folder.display()));
            }
            // CI has built a release for the package, and needs no other.
            if env::var("CI").is_ok_and(|value| value == "true") {
                settings = Some(install::settings(root)?);
            }
            root
        }
    };
    let output = Command::new("timeout")
        .args(["--kill-after=10", LIMIT_SECONDS, "sh", "-c", &script(document, &commands)])
        .current_dir(place)
        .envs(settings.into_iter().flatten())
        .env("PATH", search)
        .env("XTASK_DOCUMENT_END", &end)
        .stdin(Stdio::null())
        .output()
        .map_err(Failure::start("timeout sh"))?;
    if output.status.success() && end.exists() {
        return Ok(Ok(commands.len()));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    let what = match output.status.code() {
        Some(0) => "ended before its last line".to_owned(),
        Some(124) => format!("took longer than {LIMIT_SECONDS} s"),
        _ => "failed".to_owned(),
    };
    Ok(Err(format!("{document}:{}: block {what}\n{printed}{said}", block.line)))
}

/// Returns line number and text of each command: joined at backslashes, without comments and empty lines.
fn commands(block: &Block) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_continued = false;
    for (index, line) in block.lines.iter().enumerate() {
        let is_command = !line.trim().is_empty() && !line.trim_start().starts_with('#');
        match found.last_mut() {
            Some((_, command)) if is_continued => {
                command.push('\n');
                command.push_str(line);
            }
            _ if is_command => found.push((block.line + 1 + index, line.clone())),
            _ => {}
        }
        is_continued = line.ends_with('\\') && (is_command || is_continued);
    }
    found
}

/// Returns a shell script of a block. `eval` parses each command alone, so that an open quote does not swallow the next
/// commands. A file marks the end, so that a command that leaves the shell with status 0 does not pass for the whole
/// block.
fn script(document: &str, commands: &[(usize, String)]) -> String {
    let mut script = String::new();
    for (line, command) in commands {
        let quoted = command.replace('\'', r"'\''");
        script.push_str(&format!(
            "eval '{quoted}'\nset -- $?\n\
             [ \"$1\" -eq 0 ] || {{ echo '{document}:{line}: exit status' \"$1\" >&2; exit 1; }}\n"
        ));
    }
    script.push_str(": > \"$XTASK_DOCUMENT_END\"\n");
    script
}

/// Returns the fenced blocks of a Markdown text. The closing fence has at least as many marks as the opening one.
fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<(&str, Block)> = None;
    for (index, line) in text.lines().enumerate() {
        let (fence, tag) = fence(line);
        match open.take() {
            Some((opening, block)) if fence.starts_with(opening) && tag.is_empty() => found.push(block),
            Some((opening, mut block)) => {
                block.lines.push(line.to_owned());
                open = Some((opening, block));
            }
            None if !fence.is_empty() => {
                let block = Block { tag: tag.to_owned(), line: index + 1, lines: Vec::new() };
                open = Some((fence, block));
            }
            None => {}
        }
    }
    found.extend(open.map(|(_, block)| block));
    found
}

/// Returns the marks that a line begins with, if they make a fence, and the text behind them.
fn fence(line: &str) -> (&str, &str) {
    let line = line.trim();
    for mark in ['`', '~'] {
        let tag = line.trim_start_matches(mark);
        let length = line.len() - tag.len();
        if length >= 3 {
            return (&line[..length], tag.trim());
        }
    }
    ("", "")
}
