//! Makes a folder equal to another one, by a plan that can be read first: `mirror [--yes] SOURCE TARGET`
//!
//! Prints each action as a line of JSON (docs/plan.schema.json). With `--yes` it then performs exactly these actions.
//! The guide in docs/library.md explains the calls.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ferry_copy::{Failure, Observer, Progress, Unfinished};
use ferry_sync::plan::Action;
use ferry_sync::{Acting, Comparison, MaxDelete, Request, Selection, Surroundings, Totals, Use, apply, run};

const USAGE: &str = "usage: mirror [--yes] SOURCE TARGET";

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    let performs = words.first().is_some_and(|word| word == "--yes");
    words.drain(..usize::from(performs));
    let [source, target] = words.as_slice() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match mirror(&request(source.into(), target.into()), performs) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Plans, and performs the plan if asked to. Returns true if nothing failed.
fn mirror(request: &Request, performs: bool) -> Result<bool, Box<dyn std::error::Error>> {
    let plan = tempfile::tempfile()?;
    let planned = record(request, &plan)?;
    if !performs || !is_whole(&planned) {
        return Ok(is_whole(&planned));
    }
    let (io, progress) = (ferry_io::Options::default(), Arc::new(Progress::default()));
    // The same actions come again, now that they are performed.
    let surroundings = surroundings(&io, &progress, &|_| ());
    let totals = apply(&plan, &request.acting, &surroundings)?;
    let done = &totals.done;
    let bytes = progress.bytes_done.get();
    eprintln!(
        "created {}, replaced {}, set attributes of {}, deleted {}; {bytes} bytes",
        done.created, done.replaced, done.attributes, done.deleted
    );
    Ok(is_whole(&totals))
}

/// Writes the plan to a file, and prints its actions.
fn record(request: &Request, plan: &File) -> Result<Totals, Box<dyn std::error::Error>> {
    let print = |action: &Action| {
        // A path of any bytes becomes text.
        if let Err(error) = serde_json::to_writer(io::stdout(), action) {
            eprintln!("{error}");
        }
        println!();
    };
    let (io, progress) = (ferry_io::Options::default(), Arc::new(Progress::default()));
    let surroundings = surroundings(&io, &progress, &print);
    Ok(run(request, Use::Record(plan.try_clone()?), &surroundings)?)
}

fn is_whole(totals: &Totals) -> bool {
    totals.failed == 0 && !totals.interrupted && !totals.out_of_space && totals.too_many.is_none()
}

/// A mirror: what the source lacks is deleted, up to half of the target's entries.
fn request(source: PathBuf, target: PathBuf) -> Request {
    Request {
        source,
        target,
        comparison: Comparison::SizeAndTime,
        keeps_newer: false,
        deletes: true,
        allows_empty: false,
        max_delete: MaxDelete::Half,
        selection: Selection::default(),
        list: None,
        each_entry: false,
        acting: Acting::default(),
    }
}

fn surroundings<'a>(
    io: &'a ferry_io::Options,
    progress: &Arc<Progress>,
    tell: &'a dyn Fn(&Action),
) -> Surroundings<'a> {
    Surroundings {
        io,
        progress: Arc::clone(progress),
        observer: Arc::new(Messages),
        tell,
        explain: None,
        manifest: None,
        gate: None,
    }
}

/// Prints failures. Any worker's thread calls it.
struct Messages;

impl Observer for Messages {
    fn failed(&self, failure: &Failure) {
        let path = failure.source.display();
        match failure.kind.error() {
            Some(error) => eprintln!("{path}: {error}"),
            None => eprintln!("{path}: {:?}", failure.kind),
        }
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        eprintln!("{}: incomplete", unfinished.target.display());
    }
}
