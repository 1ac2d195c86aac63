//! `ferry verify --manifest`: compares a tree with a list of hashes.

use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use ferry_copy::Progress;
use ferry_sync::manifest::{BadManifest, Check, Checked, Finding, Listing, Parts, What, check as check_tree};
use ferry_tree::attributes::Time;
use ferry_tree::compare::Summary;

use super::options::{Listed, MANUAL, Request};
use super::report;
use crate::output::{Output, describe};
use crate::progress::{Counts, Indicator};
use crate::quote::quote;
use crate::signals;
use crate::sync::refusal;
use crate::units::{bytes, counted, time};

/// Exit code for a tree that differs, or can't be read.
const DIFFERENT: ExitCode = ExitCode::FAILURE;
/// Exit code for a manifest that is none.
const MALFORMED: u8 = 2;

pub(super) fn check(listed: &Listed, request: &Request) -> ExitCode {
    let output = Arc::new(Output::new());
    let fail = |message: &str, code| {
        output.error(&format!("{}: {message}", MANUAL.name));
        code
    };
    let listing = match read(listed) {
        Ok(listing) => listing,
        Err((message, code)) => return fail(&message, code),
    };
    let options = &request.options;
    let parts = Parts { content: options.content, mode: options.mode, times: options.mtime };
    let ignored = below(&listed.manifest, &listed.tree);
    let tree = listed.tree.clone();
    let check = Check { tree, listing, allows_extra: listed.allows_extra, ignored, parts };
    let counters = Arc::new(Progress::default());
    let counts = {
        let counters = Arc::clone(&counters);
        move || {
            let (entries, bytes) = (counters.entries_done.get(), counters.bytes_done.get());
            Counts { entries, bytes, ..Counts::default() }
        }
    };
    let start = Instant::now();
    let indicator = Indicator::start(request.progress, counts, Arc::clone(&output));
    let tell = {
        let (output, json) = (Arc::clone(&output), request.json);
        Arc::new(move |finding: Finding| output.line(&line(&finding, json)))
    };
    let workers = NonZeroUsize::new(options.threads).unwrap_or(NonZeroUsize::MIN);
    let io = ferry_io::Options::with_workers(workers);
    let checked = check_tree(&io, check, counters, tell);
    indicator.stop();
    let checked = match checked {
        Ok(checked) => checked,
        Err(refused) => return fail(&refusal(&refused), DIFFERENT),
    };
    let Checked { files, bytes: read, differences, trashes, interrupted, ref io } = checked;
    if request.json {
        let summary =
            Summary { entries: files, files, bytes: read, differences, shared: 0, stopped: interrupted };
        output.line(&report::summary_of_manifest(&summary, trashes));
    } else {
        let begin = if interrupted { "interrupted: " } else { "" };
        let what = counted(files, "file", "files");
        let found = counted(differences, "difference", "differences");
        let passed = match trashes {
            0 => String::new(),
            trashes => format!(", {} passed over", counted(trashes, "trash", "trashes")),
        };
        output.error(&format!(
            "{begin}checked {what}, {} in {}{passed}: {found}",
            bytes(read),
            time(start.elapsed())
        ));
    }
    if let Err(error) = output.finish() {
        return fail(&format!("write error: {}", describe(&error)), DIFFERENT);
    }
    if let Some(signal) = io.signal.filter(|_| interrupted) {
        return signals::end_by(signal);
    }
    if differences == 0 && !interrupted { ExitCode::SUCCESS } else { DIFFERENT }
}

fn read(listed: &Listed) -> Result<Listing, (String, ExitCode)> {
    let name = quote(&listed.manifest);
    let file = File::open(&listed.manifest)
        .map_err(|error| (format!("cannot open {name}: {}", describe(&error)), DIFFERENT))?;
    let listing = Listing::read(BufReader::new(file), listed.hash).map_err(|bad| match &bad {
        BadManifest::Line { .. } => (format!("{name}: {bad}"), ExitCode::from(MALFORMED)),
        BadManifest::Read(error) => (format!("cannot read {name}: {}", describe(error)), DIFFERENT),
        BadManifest::Keep(error) => (format!("cannot use a temporary file: {}", describe(error)), DIFFERENT),
    })?;
    if listed.allows_extra && listing.is_blank() {
        let message = format!("{name}: it lists no file, so that with --allow-extra nothing is compared");
        return Err((message, ExitCode::from(MALFORMED)));
    }
    Ok(listing)
}

/// Returns the path of a file below a tree; `None` if it is elsewhere.
fn below(file: &Path, tree: &Path) -> Option<PathBuf> {
    let (file, tree) = (file.canonicalize().ok()?, tree.canonicalize().ok()?);
    file.strip_prefix(tree).ok().map(Path::to_owned)
}

fn line(finding: &Finding, json: bool) -> String {
    let Finding { path, what } = finding;
    let (kind, message) = words(what);
    if json {
        report::line(path.as_os_str().as_bytes(), kind, &message)
    } else {
        format!("{}: {message}", quote(path))
    }
}

/// Returns the kind and the message of a difference.
fn words(what: &What) -> (&'static str, String) {
    match what {
        What::Missing => ("missing", "missing in the tree".to_owned()),
        What::Kind => ("type", "not a regular file in the tree".to_owned()),
        What::Extra => ("extra", "only in the tree".to_owned()),
        What::Content => ("content", "content differs".to_owned()),
        What::Size { listed, found } => {
            ("size", format!("size is {listed} bytes in the manifest, {found} in the tree"))
        }
        What::Mode { listed, found } => {
            ("mode", format!("mode is {listed:04o} in the manifest, {found:04o} in the tree"))
        }
        What::Modified { listed, found } => {
            let [listed, found] =
                [listed, found].map(|time| Time { seconds: time.seconds, nanoseconds: time.nanoseconds });
            ("times", format!("time of change is {listed} in the manifest, {found} in the tree"))
        }
        What::Unreadable(cause) => ("unreadable", format!("cannot be read: {cause}")),
    }
}
