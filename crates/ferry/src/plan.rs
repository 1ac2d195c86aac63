//! `ferry plan`: splits a copy into parts for jobs that know nothing of each other.
//!
//! The plan is that of `ferry sync --dry-run`. Names are divided among lists (`balance.rs`, `lists.rs`), and each step is a
//! run of `ferry sync` with a list. Only ranges of large files (`ranges.rs`) are copied here.

mod balance;
mod lists;
mod manual;
mod options;
mod ranges;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ferry_copy::{Make, Observer, Progress};
use ferry_sync::Surroundings;
use ferry_sync::plan::{Action, Kind, Verb, Version};

use crate::arguments::{CommandError, Usage};
use crate::complete_file::is_in;
use crate::cp::{Failures, Messages, Wording};
use crate::output::Output;
use crate::quote::quote;
use crate::sync::options::{Output as To, Task};
use crate::units::{bytes, counted};
use crate::{signals, sync};
use balance::{Balance, Shared};
use lists::{HIDDEN, Header, Lists, Range, Writer, cannot};
pub(crate) use manual::MANUAL;
use options::Step;
pub(crate) use options::{OPTIONS, Request, parse};
use ranges::{Job, Performed, Step as RangeStep, absolute};

/// Smallest and largest default size of a range.
const RANGES: [u64; 2] = [64 << 20, 256 << 20];

/// Takes a step.
///
/// # Errors
/// A problem found before anything is changed.
pub(crate) fn run(request: &Request) -> Result<ExitCode, CommandError> {
    let output = Arc::new(Output::new());
    let wording = Wording { make: Make::Copy, base_is_implied: false };
    let messages = Messages::new(MANUAL.name, Arc::clone(&output), wording, Failures::default());
    let run = Run { request, lists: Lists::at(&request.lists), output, messages: Arc::new(messages) };
    match &request.step {
        Step::Split { parts, range, source, target } => run.split(*parts, *range, (source, target)),
        Step::Open => run.open(),
        Step::Part(part) => run.part(*part),
        Step::Close(does_rest) => run.close(*does_rest),
    }
    .map_err(|message| CommandError { program: MANUAL.name, usage: Usage::plain(message), code: 1 })
}

struct Run<'a> {
    request: &'a Request,
    lists: Lists,
    output: Arc<Output>,
    messages: Arc<Messages>,
}

impl Run<'_> {
    /// Writes the lists.
    fn split(&self, parts: u32, range: Option<u64>, trees: (&Path, &Path)) -> Result<ExitCode, String> {
        let (source, target) = (absolute(trees.0)?, absolute(trees.1)?);
        let planning = self.sync(vec!["--dry-run".into(), source.clone().into(), target.clone().into()])?;
        let Task::Sync(sync, ..) = &planning.task else { return Err("nothing is to be planned".to_owned()) };
        if let Some(tree) = [&source, &target].into_iter().find(|tree| is_in(&self.request.lists, tree)) {
            return Err(format!(
                "{} is in {}: it would be copied, too",
                quote(&self.request.lists),
                quote(tree)
            ));
        }
        self.lists.make()?;
        let splitting = RefCell::new(Splitting::new(&self.lists, parts, range));
        let problem = RefCell::new(None);
        let tell = |action: &Action| {
            if problem.borrow().is_none()
                && let Err(why) = splitting.borrow_mut().add(action)
            {
                *problem.borrow_mut() = Some(why);
            }
        };
        let surroundings = Surroundings {
            io: &planning.io,
            progress: Arc::new(Progress::default()),
            observer: Arc::clone(&self.messages) as Arc<dyn Observer>,
            tell: &tell,
            explain: None,
            manifest: None,
            gate: None,
        };
        let totals = sync::make_equal(sync, &To::Show, &surroundings)?;
        let totals = totals.map_err(|error| sync::refusal(&error))?;
        if let Some(problem) = problem.into_inner() {
            return Err(problem);
        }
        if totals.interrupted {
            return Ok(totals.io.signal.map_or(ExitCode::FAILURE, signals::end_by));
        }
        let found = splitting.into_inner().end()?;
        self.lists.complete((&source, &target), inode(&source)?, parts)?;
        self.output.error(&format!(
            "{}, {} in {}",
            counted(found.0, "entry", "entries"),
            bytes(found.1),
            counted(parts.into(), "part", "parts")
        ));
        Ok(self.end(ExitCode::SUCCESS))
    }

    /// Makes what several parts need.
    fn open(&self) -> Result<ExitCode, String> {
        let header = self.lists.header()?;
        refuse_other(&header.source.0, header.source_inode)?;
        for part in 1..=header.parts {
            if self.lists.is_done(part)? {
                return Err(format!(
                    "part {part} has been copied already: make new lists by 'ferry plan --split'"
                ));
            }
        }
        for part in 1..=header.parts {
            self.lists.forget_copied_ranges(part)?;
        }
        let code = self.run_list(&header, &self.lists.directories())?;
        if !ferry_io::is_superuser() {
            let directories = lists::read_names(self.lists.directories())?;
            let trees = (&*header.source.0, &*header.target.0);
            if let Some(signal) = self.job(&header, trees, false, |job| job.lend(directories))?.signal {
                return Ok(signals::end_by(signal));
            }
        }
        let files = self.large_files(&header, |_| Some(RangeStep::Begin));
        if let Some(signal) = self.with_ranges(&header, files)?.signal {
            return Ok(signals::end_by(signal));
        }
        // What could not be made is reported by the parts that need it, too.
        self.lists.note_opened(inode(&header.target.0)?)?;
        Ok(self.end(code))
    }

    /// Copies a part.
    fn part(&self, part: u32) -> Result<ExitCode, String> {
        let header = self.lists.header()?;
        if part > header.parts {
            return Err(format!("there are {} parts, and no part {part}", header.parts));
        }
        self.refuse_unopened(&header)?;
        if self.lists.is_done(part)? {
            self.output.error(&format!("{}: part {part} has been copied already", MANUAL.name));
            return Ok(self.end(ExitCode::SUCCESS));
        }
        if !self.lists.has_copied_ranges(part)?
            && let Some(signal) = self.copy_ranges(&header, part)?
        {
            return Ok(signals::end_by(signal));
        }
        let code = self.run_list(&header, &self.lists.names(part))?;
        let code = self.end(code);
        if code == ExitCode::SUCCESS {
            self.lists.note_done(part)?;
        }
        Ok(code)
    }

    /// Copies the ranges of a part. Returns the signal that has ended it.
    fn copy_ranges(&self, header: &Header, part: u32) -> Result<Option<i32>, String> {
        let ranges = self.lists.ranges(part)?.map(|range| range.map(|range| (range, RangeStep::Copy)));
        let trees = (&*header.source.0, &*header.target.0);
        // Durable in any case: a large file that has lost bytes has the right size and time all the same.
        let copied = self.job(header, trees, true, |job| job.perform(ranges))?;
        if copied.signal.is_some() {
            return Ok(copied.signal);
        }
        if copied.count > 0 {
            let ranges = counted(copied.count, "range of large files", "ranges of large files");
            self.output.error(&format!("copied {ranges}: {}", bytes(copied.bytes)));
        }
        if copied.failed == 0 {
            self.lists.note_copied_ranges(part)?;
        }
        Ok(None)
    }

    /// Does what is left after the parts.
    fn close(&self, does_rest: bool) -> Result<ExitCode, String> {
        let header = self.lists.header()?;
        self.refuse_unopened(&header)?;
        let mut missing = Vec::new();
        for part in 1..=header.parts {
            if !self.lists.is_done(part)? {
                missing.push(part);
            }
        }
        if !missing.is_empty() && !does_rest {
            return Err(format!(
                "{}: run them, or give --rest to copy here what they lack",
                unfinished(&missing)
            ));
        }
        let copied = self.copied_bytes(&header)?;
        let complete = self.large_files(&header, |range| {
            (copied.get(&range.hidden) == Some(&range.size)).then_some(RangeStep::End)
        });
        let ended = self.with_ranges(&header, complete)?;
        // What was not ended is copied as a whole below.
        let all = self.large_files(&header, |_| Some(RangeStep::Drop));
        let target = &*header.target.0;
        let signal = match ended.signal {
            None => self.job(&header, (target, target), false, |job| job.perform(all))?.signal,
            signal => signal,
        };
        if let Some(signal) = signal {
            return Ok(signals::end_by(signal));
        }
        let sync = self.sync(trees(&header))?;
        let code = sync::run(&sync).map_err(|error| error.usage.message)?;
        Ok(self.end(code))
    }

    /// Refuses lists of which the opening step has not been done, and other trees.
    fn refuse_unopened(&self, header: &Header) -> Result<(), String> {
        let Some(target) = self.lists.opened()? else {
            return Err("the opening step has not been done: run 'ferry plan --open' first".to_owned());
        };
        refuse_other(&header.source.0, header.source_inode)?;
        refuse_other(&header.target.0, target)
    }

    /// Returns the number of bytes of each large file that parts have copied, by hidden name.
    fn copied_bytes(&self, header: &Header) -> Result<HashMap<String, u64>, String> {
        let mut copied: HashMap<String, u64> = HashMap::new();
        for part in 1..=header.parts {
            if self.lists.has_copied_ranges(part)? {
                for range in self.lists.ranges(part)? {
                    let Range { hidden, start, end, .. } = range?;
                    *copied.entry(hidden).or_default() += end - start;
                }
            }
        }
        Ok(copied)
    }

    /// Reads the ranges of all parts, and selects a step for each large file.
    fn large_files(
        &self,
        header: &Header,
        step: impl Fn(&Range) -> Option<RangeStep>,
    ) -> impl Iterator<Item = Result<(Range, RangeStep), String>> {
        // One file is open at a time.
        let ranges = (1..=header.parts).flat_map(|part| -> Box<dyn Iterator<Item = _>> {
            match self.lists.ranges(part) {
                Ok(ranges) => Box::new(ranges),
                Err(why) => Box::new(std::iter::once(Err(why))),
            }
        });
        let mut met = HashSet::new();
        ranges.filter_map(move |range| match range {
            Ok(range) if !met.insert(range.hidden.clone()) => None,
            Ok(range) => step(&range).map(|step| Ok((range, step))),
            Err(why) => Some(Err(why)),
        })
    }

    /// Takes a step with each range.
    fn with_ranges(
        &self,
        header: &Header,
        ranges: impl Iterator<Item = Result<(Range, RangeStep), String>>,
    ) -> Result<Performed, String> {
        self.job(header, (&header.source.0, &header.target.0), false, |job| job.perform(ranges))
    }

    fn job(
        &self,
        header: &Header,
        (source, target): (&Path, &Path),
        is_durable: bool,
        act: impl FnOnce(&Job<'_>) -> Result<Performed, String>,
    ) -> Result<Performed, String> {
        let options = self.sync(trees(header))?.io;
        let job = Job {
            source,
            target,
            io: &options,
            fsync: self.request.fsync || is_durable,
            observer: Arc::clone(&self.messages) as Arc<dyn Observer>,
        };
        act(&job)
    }

    /// Runs `ferry sync` with a list.
    fn run_list(&self, header: &Header, list: &Path) -> Result<ExitCode, String> {
        let mut words: Vec<OsString> = vec!["--null".into(), "--files-from".into(), list.into()];
        words.extend(trees(header));
        let mut sync = self.sync(words)?;
        sync.acting.is_part = true;
        sync::run(&sync).map_err(|error| error.usage.message)
    }

    fn sync(&self, words: Vec<OsString>) -> Result<sync::Request, String> {
        self.request.sync(words).map_err(|usage| usage.message)
    }

    /// Repeats failures that have scrolled away, and returns the exit code.
    fn end(&self, code: ExitCode) -> ExitCode {
        let failures = self.messages.failures();
        failures.repeat(MANUAL.name, &self.output);
        let has_failed = failures.count() > 0 || self.output.finish().is_err();
        if has_failed && code == ExitCode::SUCCESS { ExitCode::FAILURE } else { code }
    }
}

/// Returns the inode number of a directory. Unlike that of its device, all machines agree on it.
fn inode(directory: &Path) -> Result<u64, String> {
    let found = std::fs::metadata(directory);
    found.map(|found| found.ino()).map_err(|error| cannot("examine", directory, &error))
}

/// Refuses a directory that is not the one that an earlier step has found under this path.
fn refuse_other(directory: &Path, known: u64) -> Result<(), String> {
    if inode(directory)? == known {
        return Ok(());
    }
    Err(format!("{} is another directory than before: is its filesystem mounted here?", quote(directory)))
}

/// Returns the operands of `ferry sync`.
fn trees(header: &Header) -> Vec<OsString> {
    vec!["--".into(), header.source.0.clone().into(), header.target.0.clone().into()]
}

/// Formats `parts 3, 7 and 12 have not succeeded`, with ten numbers at most.
fn unfinished(missing: &[u32]) -> String {
    const SHOWN: usize = 10;
    let names: Vec<String> = missing.iter().take(SHOWN).map(u32::to_string).collect();
    let more = missing.len().saturating_sub(SHOWN);
    match (&names[..], more) {
        ([only], 0) => format!("part {only} has not succeeded"),
        (_, 0) => format!("parts {} have not succeeded", names.join(", ")),
        _ => format!("parts {} and {more} more have not succeeded", names.join(", ")),
    }
}

/// Division of the actions among the lists.
struct Splitting<'a> {
    balance: Balance,
    writer: Writer<'a>,
    parts: u64,
    /// Size of ranges, if it was asked for.
    range: Option<u64>,
    /// Beginning of the hidden names, which no other plan has.
    hidden: String,
    large: u64,
    entries: u64,
    bytes: u64,
}

impl<'a> Splitting<'a> {
    fn new(lists: &'a Lists, parts: u32, range: Option<u64>) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let hidden = format!("{HIDDEN}{:x}-{:x}", now.as_nanos(), std::process::id());
        let count = parts as usize;
        Self {
            balance: Balance::new(count),
            writer: Writer::new(lists, count),
            parts: parts.into(),
            range,
            hidden,
            large: 0,
            entries: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, action: &Action) -> Result<(), String> {
        let path: &Path = &action.path.0;
        // The root is the closing step's, and so is what is there.
        if path.as_os_str().is_empty() || matches!(action.verb, Verb::Delete | Verb::Keep) {
            return Ok(());
        }
        if action.is_on_folder() {
            // Of directories that are there, the closing step sets the attributes, as the parts change the times. An entry
            // of another kind in place of a directory is made by it, too.
            let is_made = action.kind == Kind::Directory && action.verb != Verb::Attributes;
            return if is_made { self.writer.directory(path) } else { Ok(()) };
        }
        let copies = action.verb != Verb::Attributes;
        let size = action.size.filter(|_| copies).unwrap_or(0);
        let shared =
            action.source.map(|source| Shared { file: (source.device, source.inode), names: action.links });
        let shared = shared.filter(|shared| shared.names > 1);
        self.entries += 1;
        if let Some(earlier) = shared.and_then(|shared| self.balance.earlier(shared)) {
            // If its file is copied in ranges, the closing step makes the link.
            return earlier.map_or(Ok(()), |part| self.writer.name(part, path));
        }
        self.bytes += size;
        let part = match action.source {
            Some(Version { inode, changed: Some(changed), .. }) if self.has_ranges(size) => {
                self.add_ranges(path, (inode, size, changed))?;
                None
            }
            _ => {
                let part = self.balance.next(size);
                self.writer.name(part, path)?;
                Some(part)
            }
        };
        if let Some(shared) = shared {
            self.balance.note(shared, part);
        }
        Ok(())
    }

    /// Returns true if a file of this size is copied in ranges.
    fn has_ranges(&self, size: u64) -> bool {
        let is_of_use = self.parts > 1 || self.range.is_some();
        is_of_use && size / 2 >= self.range_of(size)
    }

    /// Returns the size of the ranges of a file, a multiple of [`lists::ALIGNMENT`].
    fn range_of(&self, size: u64) -> u64 {
        let quarter = size.div_ceil(4 * self.parts).next_multiple_of(lists::ALIGNMENT);
        self.range.unwrap_or(quarter.clamp(RANGES[0], RANGES[1]))
    }

    fn add_ranges(
        &mut self,
        path: &Path,
        (inode, size, changed): (u64, u64, (i64, u32)),
    ) -> Result<(), String> {
        let hidden = format!("{}-{:x}", self.hidden, self.large);
        self.large += 1;
        let length = self.range_of(size);
        let mut start = 0;
        while start < size {
            let end = size.min(start.saturating_add(length));
            let range = Range { path: path.into(), hidden: hidden.clone(), inode, size, changed, start, end };
            self.writer.range(self.balance.range(end - start), &range)?;
            start = end;
        }
        Ok(())
    }

    /// Completes the lists, and returns the number of entries and bytes.
    fn end(self) -> Result<(u64, u64), String> {
        self.writer.end()?;
        Ok((self.entries, self.bytes))
    }
}
