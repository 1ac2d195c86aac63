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
use ferry_io::Cause;
use ferry_sync::manifest::{BadManifest, Check, Checked, Finding, Listing, Parts, What, check as check_tree};
use ferry_tree::attributes::{EntryKind, Time};
use ferry_tree::compare::Summary;
use serde_json::{Map, Value};

use super::described::{Described, Kind, failure, members, moment, octal};
use super::file;
use super::options::{Listed, Request};
use super::report::Report;
use super::verdict::Totals;
use crate::output::describe;
use crate::progress::{Counts, Indicator};
use crate::quote::quote;
use crate::signals;
use crate::sync::refusal;

/// Exit code for a manifest that is none.
const MALFORMED: u8 = 2;

/// Message about a manifest that can't be used.
enum Unusable {
    /// It can't be read, so that the verdict stays open.
    Unread(String),
    /// It is none: a wrong use.
    Malformed(String),
}

pub(super) fn check(listed: &Listed, request: &Request) -> ExitCode {
    let output = match file::opened(request) {
        Ok(output) => Arc::new(output),
        Err(code) => return code,
    };
    let report = Arc::new(Report::new(request.shown, Arc::clone(&output)));
    let options = &request.options;
    let totals = |summary| Totals { summary, trashes: Some(0), content: options.content, took: None };
    let listing = match read(listed) {
        Ok(listing) => listing,
        Err(Unusable::Unread(why)) => return report.end_unread(&why, totals(Summary::default())),
        Err(Unusable::Malformed(why)) => {
            report.error(&why);
            return ExitCode::from(MALFORMED);
        }
    };
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
    let indicator = Indicator::start(request.progress, counts, output);
    let tell = {
        let report = Arc::clone(&report);
        Arc::new(move |finding: Finding| report.add(&finding))
    };
    let workers = NonZeroUsize::new(options.threads).unwrap_or(NonZeroUsize::MIN);
    let io = ferry_io::Options::with_workers(workers);
    let checked = check_tree(&io, check, Arc::clone(&counters), tell);
    let took = indicator.stop().map(|_| start.elapsed());
    let Checked { files, bytes, differences, trashes, interrupted, io } = match checked {
        Ok(checked) => checked,
        Err(refused) => {
            let (files, bytes) = (counters.entries_done.get(), counters.bytes_done.get());
            let summary = Summary { entries: files, files, bytes, ..Summary::default() };
            return report.end_unread(&refusal(&refused), Totals { took, ..totals(summary) });
        }
    };
    let summary =
        Summary { entries: files, files, bytes, differences, stopped: interrupted, ..Summary::default() };
    let code = report.end(&Totals { trashes: Some(trashes), took, ..totals(summary) });
    io.signal.filter(|_| interrupted).map_or(code, signals::end_by)
}

fn read(listed: &Listed) -> Result<Listing, Unusable> {
    let name = quote(&listed.manifest);
    let file = File::open(&listed.manifest)
        .map_err(|error| Unusable::Unread(format!("cannot open {name}: {}", describe(&error))))?;
    let listing = Listing::read(BufReader::new(file), listed.hash).map_err(|bad| match &bad {
        BadManifest::Line { .. } => Unusable::Malformed(format!("{name}: {bad}")),
        BadManifest::Read(error) => Unusable::Unread(format!("cannot read {name}: {}", describe(error))),
        BadManifest::Keep(error) => {
            Unusable::Unread(format!("cannot use a temporary file: {}", describe(error)))
        }
    })?;
    if listed.allows_extra && listing.is_blank() {
        let message = format!("{name}: it lists no file, so that with --allow-extra nothing is compared");
        return Err(Unusable::Malformed(message));
    }
    Ok(listing)
}

/// Returns the path of a file below a tree; `None` if it is elsewhere.
fn below(file: &Path, tree: &Path) -> Option<PathBuf> {
    let (file, tree) = (file.canonicalize().ok()?, tree.canonicalize().ok()?);
    file.strip_prefix(tree).ok().map(Path::to_owned)
}

impl Described for Finding {
    fn kind(&self) -> Kind {
        match self.what {
            What::Missing => Kind::Missing,
            What::Kind => Kind::Type,
            What::Extra => Kind::Extra,
            What::Content => Kind::Content,
            What::Size { .. } => Kind::Size,
            What::Mode { .. } => Kind::Mode,
            What::Modified { .. } => Kind::Times,
            What::Unreadable(_) => Kind::Unreadable,
        }
    }

    fn path(&self) -> &[u8] {
        self.path.as_os_str().as_bytes()
    }

    fn quoted_path(&self) -> String {
        quote(&self.path)
    }

    fn message(&self) -> String {
        match self.what {
            What::Missing => "missing in the tree".to_owned(),
            What::Kind => "not a regular file in the tree".to_owned(),
            What::Extra => "only in the tree".to_owned(),
            What::Content => "content differs".to_owned(),
            What::Size { listed, found } => {
                format!("size is {listed} bytes in the manifest, {found} in the tree")
            }
            What::Mode { listed, found } => {
                format!("mode is {listed:04o} in the manifest, {found:04o} in the tree")
            }
            What::Modified { listed, found } => {
                let [listed, found] = [listed, found].map(time);
                format!("time of change is {listed} in the manifest, {found} in the tree")
            }
            What::Unreadable(cause) => format!("cannot be read: {cause}"),
        }
    }

    fn values(&self) -> Map<String, Value> {
        let file = || EntryKind::File.to_string().into();
        let sides = |listed, found| members([("manifest", listed), ("tree", found)]);
        match self.what {
            What::Missing => sides(file(), Value::Null),
            What::Extra => sides(Value::Null, file()),
            What::Size { listed, found } => sides(listed.into(), found.into()),
            What::Mode { listed, found } => sides(octal(listed), octal(found)),
            What::Modified { listed, found } => sides(moment(time(listed)), moment(time(found))),
            What::Unreadable(Cause::Errno(errno)) => failure(errno),
            What::Unreadable(Cause::Cancelled | Cause::TimedOut | Cause::Closed)
            | What::Kind
            | What::Content => Map::new(),
        }
    }
}

fn time(time: ferry_io::Time) -> Time {
    Time::new(time.seconds, time.nanoseconds)
}
