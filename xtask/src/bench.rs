//! Writes the table of speeds in docs/performance.md, and README's chart of it, from records of `ferry lab copy`, and takes these records first.
//!
//! The records say what was measured; `ferry lab speeds` makes the table and the chart of them. A row is never left
//! out: without a finished record of each cell, nothing is written.

mod cells;
mod document;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::failure::Failure;
use crate::{install, workspace};
use cells::{CELLS, Cell};

#[cfg(test)]
mod tests;

/// The document with the table, beneath the root.
const DOCUMENT: &str = "docs/performance.md";
/// The chart, beneath the root.
const CHART: &str = "docs/speeds.svg";
/// Exit code of `ferry lab copy` if its figures are doubted; the table marks them.
const DOUBTED: i32 = 3;
/// Exit code after an interruption.
const INTERRUPTED: i32 = 130;

/// Line of a record of which no run is missing.
const COMPLETE: &str = "  \"complete\": true,";
/// First line of a warning about a failed cell; the second one names the cell.
const FAILED: &str = "      \"kind\": \"failed\",";
/// First line of the warning about an interruption.
const INTERRUPTION: &str = "      \"kind\": \"incomplete\",";

/// Measures the cells without a finished record, then writes the table and the chart.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let folder = own_folder(root)?;
    print!("{}", plan(CELLS, &folder)?);
    let binary = install::build(root)?;
    check_age(CELLS, &folder, &binary)?;
    let mut failed = 0;
    for cell in CELLS {
        match measure(&binary, cell, &folder) {
            Err(failure @ Failure::Command { .. }) => {
                eprintln!("{}: {failure}", cell.name);
                failed += 1;
            }
            outcome => outcome?,
        }
    }
    if failed > 0 {
        return Err(Failure::Parts { count: failed });
    }
    write(root, &binary, &folder)
}

/// Measures one cell, unless its record is finished.
pub(crate) fn one(root: &Path, name: &str) -> Result<(), Failure> {
    let cell = CELLS.iter().find(|cell| cell.name == name).ok_or_else(|| Failure::NoCell {
        name: name.to_owned(),
        known: CELLS.iter().map(|cell| cell.name).collect(),
    })?;
    let folder = own_folder(root)?;
    print!("{}", plan(std::slice::from_ref(cell), &folder)?);
    let binary = install::build(root)?;
    check_age(std::slice::from_ref(cell), &folder, &binary)?;
    measure(&binary, cell, &folder)
}

/// Writes the table and the chart from the records in `folder`.
pub(crate) fn of_records(root: &Path, folder: &Path) -> Result<(), Failure> {
    let folder = folder.canonicalize().map_err(Failure::path("enter", folder))?;
    // Before the build, which takes minutes.
    records(CELLS, &folder)?;
    write(root, &install::build(root)?, &folder)
}

/// Creates the folder of records that are taken here, and the mount point for filesystems in RAM.
fn own_folder(root: &Path) -> Result<PathBuf, Failure> {
    let folder = workspace::target(root).join("bench");
    install::make_folder(&room(&folder))?;
    folder.canonicalize().map_err(Failure::path("enter", &folder))
}

fn room(folder: &Path) -> PathBuf {
    folder.join("room")
}

/// Lists the cells, their state and the time that they will take.
fn plan(cells: &[Cell], folder: &Path) -> Result<String, Failure> {
    let mut out = String::new();
    let mut minutes = 0;
    for cell in cells {
        let state = if is_finished(&cell.record(folder))? {
            "finished before".to_owned()
        } else {
            minutes += cell.minutes;
            format!("about {} min", cell.minutes)
        };
        out += &format!("{:24} {state}\n", cell.name);
    }
    let folder = folder.display();
    Ok(out + &format!("about {minutes} min in all, on two processors; records are kept in '{folder}'\n"))
}

/// Takes a cell's record, or the runs that it lacks.
fn measure(binary: &Path, cell: &Cell, folder: &Path) -> Result<(), Failure> {
    const NAME: &str = "ferry lab copy";
    let record = cell.record(folder);
    if is_finished(&record)? {
        return Ok(());
    }
    println!("{}", cell.name);
    let start = Instant::now();
    let mut command = cell.command(binary, &record, folder, &room(folder));
    let status = command.status().map_err(Failure::start(NAME))?;
    match status.code() {
        Some(0 | DOUBTED) => {}
        Some(INTERRUPTED) | None => return Err(Failure::Interrupted),
        Some(_) => return Err(Failure::Command { command: NAME }),
    }
    println!("{}: {} s", cell.name, start.elapsed().as_secs());
    Ok(())
}

/// Returns true if a record exists and lacks no run but those of other copiers that failed. `ferry lab speeds` reads it
/// completely.
fn is_finished(record: &Path) -> Result<bool, Failure> {
    Ok(record.exists() && lacks_nothing(&workspace::read(record)?))
}

/// Looks for `complete`, and for the warnings that `ferry lab copy` adds once no more runs follow: about failed copiers,
/// and about an interruption. They are lines of their own, because it indents its records and escapes line breaks.
fn lacks_nothing(record: &str) -> bool {
    let lines: Vec<&str> = record.lines().collect();
    let is_there = |line: &str| lines.contains(&line);
    let failed: Vec<&str> = lines.windows(2).filter(|pair| pair[0] == FAILED).map(|pair| pair[1]).collect();
    // A row needs both.
    let is_own = |cell: &&str| cell.ends_with("/cp\",") || cell.ends_with("/ferry\",");
    is_there(COMPLETE) || (!failed.is_empty() && !failed.iter().any(is_own) && !is_there(INTERRUPTION))
}

/// Returns the cells' records. Fails if one does not exist or is not finished.
fn records(cells: &[Cell], folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for cell in cells {
        let record = cell.record(folder);
        if is_finished(&record)? {
            found.push(record);
        } else {
            missing.push(cell.name);
        }
    }
    if missing.is_empty() {
        Ok(found)
    } else {
        Err(Failure::NoRecords { folder: folder.to_owned(), cells: missing })
    }
}

/// Fails if a record is older than the program, because figures of different builds do not belong into one table.
fn check_age(cells: &[Cell], folder: &Path, binary: &Path) -> Result<(), Failure> {
    let modified = |path: &Path| {
        let found = fs::metadata(path).and_then(|found| found.modified());
        found.map_err(Failure::path("read", path))
    };
    let built = modified(binary)?;
    let mut old = Vec::new();
    for cell in cells {
        let record = cell.record(folder);
        if record.exists() && modified(&record)? < built {
            old.push(cell.name);
        }
    }
    if old.is_empty() { Ok(()) } else { Err(Failure::OldRecords { folder: folder.to_owned(), cells: old }) }
}

/// Writes the table into its document, and the chart.
fn write(root: &Path, binary: &Path, folder: &Path) -> Result<(), Failure> {
    let path = root.join(DOCUMENT);
    let document = workspace::read(&path)?;
    // Before the chart is replaced.
    document::with_speeds(&document, "").ok_or(Failure::Markers { document: path.clone() })?;
    let chart = root.join(CHART);
    let mut command = Command::new(binary);
    command.args(["lab", "speeds", "--svg"]).arg(&chart).args(records(CELLS, folder)?);
    let table = install::text(&mut command, "ferry lab speeds")?;
    let written =
        document::with_speeds(&document, &table).ok_or(Failure::Markers { document: path.clone() })?;
    fs::write(&path, written).map_err(Failure::path("write", &path))?;
    println!("{}\n{}", path.display(), chart.display());
    Ok(())
}
