//! Runs the commands that the documents show: `README.md`, `ARCHITECTURE.md` and `docs/*.md`.
//!
//! A block fenced as `sh` is one shell session in a fresh, empty folder, with the `ferry` that Cargo just
//! built first on PATH and no standard input. Each line must exit 0 (a line that ends in a backslash goes
//! on in the next), so a block makes the files it needs. `sh checkout` is run where the sources are instead, with
//! nothing built: what a stranger does first. A block that cannot be run here is fenced as `sh no-run` followed
//! by the reason. Other names for a shell (`bash`, `console`, ...) are refused, so that
//! no command goes unchecked by its tag; what a command prints stands in a block of `text`.

#[cfg(test)]
mod tests;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::scratch::Scratch;
use crate::workspace;

/// Documents that every clone has.
const REQUIRED: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

/// Tags that would hide a command from this check.
const OTHER_SHELLS: [&str; 6] = ["bash", "shell", "zsh", "console", "shell-session", "terminal"];

/// A block that takes longer is taken for hanging. One may build everything.
const LIMIT_SECONDS: &str = "1200";

/// A fenced block of one document.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// What stands after the opening fence.
    tag: String,
    /// The opening fence's line, counted from one.
    line: usize,
    lines: Vec<String>,
}

/// What became of one document's blocks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    commands_run: usize,
    /// `PATH:LINE: reason`, one a block.
    not_run: Vec<String>,
    /// `PATH:LINE: what`, with the output beneath.
    breaches: Vec<String>,
}

/// Builds `ferry`, runs every document, and prints what failed and what was left out.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    let outcome = run_all(root, &build(root)?)?;
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

/// Builds `ferry` as this task was built; answers the folder that it is in.
fn build(root: &Path) -> Result<PathBuf, Failure> {
    let mut command = workspace::cargo(root);
    command.args(["build", "--quiet", "--package", "ferry"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let status = command.status().map_err(Failure::start("cargo build"))?;
    if !status.success() {
        return Err(Failure::Command { command: "cargo build --package ferry" });
    }
    let own = env::current_exe().map_err(Failure::start("cargo build"))?;
    own.parent().map(Path::to_owned).ok_or(Failure::WithoutCargo)
}

fn run_all(root: &Path, binaries: &Path) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    let mut documents: Vec<PathBuf> = REQUIRED.iter().map(|name| root.join(name)).collect();
    let folder = root.join("docs");
    if folder.is_dir() {
        documents.extend(workspace::children(&folder)?);
        documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    }
    for path in documents {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if path.is_file() {
            for block in blocks(&workspace::read(&path)?) {
                take(&mut outcome, &name, &block, root, binaries)?;
            }
        } else {
            outcome.breaches.push(format!("{name}: missing"));
        }
    }
    Ok(outcome)
}

fn take(
    outcome: &mut Outcome,
    document: &str,
    block: &Block,
    root: &Path,
    binaries: &Path,
) -> Result<(), Failure> {
    let place = format!("{document}:{}", block.line);
    let (shell, rest) = block.tag.split_once(char::is_whitespace).unwrap_or((&block.tag, ""));
    if OTHER_SHELLS.contains(&shell) {
        let advice = "tag commands `sh` or `sh no-run REASON`, their output `text`";
        outcome.breaches.push(format!("{place}: block tagged `{shell}`; {advice}"));
    } else if shell == "sh" {
        match rest.trim().strip_prefix("no-run").map(str::trim) {
            None if rest.trim() == "checkout" => {
                take_run(outcome, run_block(document, block, Where::Checkout { root })?);
            }
            Some("") => outcome.breaches.push(format!("{place}: `sh no-run` without a reason")),
            Some(reason) => outcome.not_run.push(format!("{place}: {reason}")),
            None if !rest.trim().is_empty() => {
                outcome.breaches.push(format!("{place}: unknown tag `{}`", block.tag));
            }
            None => take_run(outcome, run_block(document, block, Where::Scratch { binaries })?),
        }
    }
    Ok(())
}

/// Where a block is run.
enum Where<'a> {
    /// In an empty folder, with `ferry` on PATH.
    Scratch { binaries: &'a Path },
    /// Where the sources are; `/tmp` in it stands for a folder that is removed afterwards.
    Checkout { root: &'a Path },
}

fn take_run(outcome: &mut Outcome, run: Result<usize, String>) {
    match run {
        Ok(count) => outcome.commands_run += count,
        Err(breach) => outcome.breaches.push(breach),
    }
}

/// The number of commands that ran, or what went wrong.
fn run_block(document: &str, block: &Block, at: Where<'_>) -> Result<Result<usize, String>, Failure> {
    let scratch = Scratch::open()?;
    let folder = scratch.path().join("here");
    let end = scratch.path().join("end");
    fs::create_dir(&folder).map_err(Failure::path("create", &folder))?;
    let mut commands = commands(block);
    let mut search = env::var_os("PATH").unwrap_or_default();
    let place = match at {
        Where::Scratch { binaries } => {
            search = [binaries.as_os_str(), ":".as_ref(), &search].into_iter().collect::<OsString>();
            &folder
        }
        Where::Checkout { root } => {
            for (_, command) in &mut commands {
                *command = command.replace("/tmp/", &format!("{}/", folder.display()));
            }
            root
        }
    };
    let output = Command::new("timeout")
        .args(["--kill-after=10", LIMIT_SECONDS, "sh", "-c", &script(document, &commands)])
        .current_dir(place)
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

/// Line number and text of each command: lines joined at backslashes, without comments and empty lines.
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

/// `eval` parses each command alone, so an open quote cannot swallow the commands after it; the end is
/// marked by a file, so a command that leaves the shell with status 0 does not pass for the whole block.
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

/// The fenced blocks of a Markdown text. A fence ends with as many marks as it began with, or more.
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

/// The marks that a line starts with, if they make a fence, and what follows them.
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
