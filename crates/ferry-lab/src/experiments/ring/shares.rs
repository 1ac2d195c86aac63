//! Shares of the processors: how long each reading thread and each busy process ran, and where.
//!
//! A busy process takes reads away only if the readers need the processor meanwhile. These figures show that. They come
//! from the kernel's accounting (/proc/PID/schedstat and /proc/PID/stat, proc(5)). The part in user mode is counted in
//! ticks of the clock, so it is rough in short runs. In user mode an interrupt from another processor runs task work.

use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};
use rustix::time::{ClockId, clock_gettime};

use crate::record::{Better, Figures, Measure};
use crate::units::{real, real_count};

/// Time that all readers ran, as a share of their processors' time.
pub(super) const READERS: &str = "readers_share";
/// Share of the readers' time in which they could have run, but had no processor.
pub(super) const WAITED: &str = "readers_waited";
/// Share of the readers' processor time in user mode.
pub(super) const USER: &str = "readers_user";
/// Time that all busy processes ran, as a share of their processors' time.
pub(super) const BUSY: &str = "busy_share";
/// Share of the busy processes that are bound to the processor of a reader, and ran there.
pub(super) const BESIDE: &str = "busy_beside";
/// Followed by a number from zero.
const READER: &str = "share_reader_";
const LOOP: &str = "share_busy_";

/// Processor time of a thread or a process so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Usage {
    /// Seconds on a processor.
    ran: f64,
    /// Seconds of waiting for a processor.
    waited: f64,
    /// Ticks in user mode, and in the kernel.
    user: f64,
    system: f64,
}

/// A thread's or a process's use of a processor during a time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Share {
    /// Processor on which it ran last.
    pub(super) processor: usize,
    /// True if it may run on no other.
    pub(super) is_bound: bool,
    /// Seconds of observation.
    pub(super) lasted: f64,
    /// Its processor time in that time.
    pub(super) usage: Usage,
}

impl Usage {
    /// Returns that of the calling thread. Its own time on the processor is exact.
    pub(super) fn of_this_thread() -> Self {
        let ran = clock_gettime(ClockId::ThreadCPUTime);
        let [seconds, rest] = [ran.tv_sec, ran.tv_nsec].map(|part| real(u64::try_from(part).unwrap_or(0)));
        let known = read("/proc/thread-self".as_ref()).map(|(usage, _)| usage);
        Self { ran: seconds + rest / 1e9, ..known.unwrap_or_default() }
    }

    fn since(self, before: Self) -> Self {
        Self {
            ran: self.ran - before.ran,
            waited: self.waited - before.waited,
            user: self.user - before.user,
            system: self.system - before.system,
        }
    }
}

impl Share {
    /// Returns what the calling thread had since it had used `before`.
    pub(super) fn of_this_thread(before: Usage, lasted: Duration) -> Self {
        let usage = Usage::of_this_thread().since(before);
        let is_bound = sched_getaffinity(None).is_ok_and(|set| set.count() == 1);
        Self { processor: sched_getcpu(), is_bound, lasted: lasted.as_secs_f64(), usage }
    }

    /// Returns what a process had since it had used `before`; `None` if it has ended.
    pub(super) fn of_process(process: Pid, before: Usage, lasted: Duration) -> Option<Self> {
        let (usage, processor) = process_usage(process)?;
        let only = |set: CpuSet| set.count() == 1 && processor < CpuSet::MAX_CPU && set.is_set(processor);
        let is_bound = sched_getaffinity(Some(process)).is_ok_and(only);
        Some(Self { processor, is_bound, lasted: lasted.as_secs_f64(), usage: usage.since(before) })
    }

    fn of_one_processor(&self) -> f64 {
        if self.lasted > 0.0 { self.usage.ran / self.lasted } else { 0.0 }
    }
}

/// Returns a process's usage so far, and the processor on which it ran last.
pub(super) fn process_usage(process: Pid) -> Option<(Usage, usize)> {
    read(Path::new(&format!("/proc/{}", process.as_raw_nonzero())))
}

fn read(folder: &Path) -> Option<(Usage, usize)> {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    parse(&text("schedstat")?, &text("stat")?)
}

/// Parses schedstat (`ran waited slices`, in nanoseconds) and stat. The name in stat may contain spaces and brackets.
pub(super) fn parse(schedstat: &str, stat: &str) -> Option<(Usage, usize)> {
    let mut times = schedstat.split_whitespace().map(|word| word.parse::<u64>().ok().map(real));
    let (ran, waited) = (times.next()??, times.next()??);
    // From the third field on.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|word| word.parse::<u64>().ok());
    let processor = usize::try_from(field(39)?).ok()?;
    let usage =
        Usage { ran: ran / 1e9, waited: waited / 1e9, user: real(field(14)?), system: real(field(15)?) };
    Some((usage, processor))
}

/// Returns the shares by the measures' names.
pub(super) fn figures(readers: &[Share], busy: &[Share], processors: usize) -> Figures {
    let mut figures = Figures::new();
    // Four digits are enough, and there are many of them.
    let mut add = |name: String, figure: f64| {
        figures.insert(name, (figure * 1e4).round() / 1e4);
    };
    let ratio = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
    let sum = |shares: &[Share], of: fn(&Share) -> f64| shares.iter().map(of).sum::<f64>();
    let all = real_count(processors);
    add(READERS.to_owned(), sum(readers, Share::of_one_processor) / all);
    add(WAITED.to_owned(), ratio(sum(readers, |one| one.usage.waited), sum(readers, |one| one.lasted)));
    let (user, system) = (sum(readers, |one| one.usage.user), sum(readers, |one| one.usage.system));
    if user + system > 0.0 {
        add(USER.to_owned(), user / (user + system));
    }
    for (index, share) in readers.iter().enumerate() {
        add(format!("{READER}{index}"), share.of_one_processor());
    }
    if !busy.is_empty() {
        let is_beside = |one: &&Share| {
            let has_its_processor = |reader: &Share| reader.is_bound && reader.processor == one.processor;
            one.is_bound && one.usage.ran > 0.0 && readers.iter().any(has_its_processor)
        };
        add(BUSY.to_owned(), sum(busy, Share::of_one_processor) / all);
        let beside = busy.iter().filter(is_beside).count();
        add(BESIDE.to_owned(), ratio(real_count(beside), real_count(busy.len())));
        for (index, share) in busy.iter().enumerate() {
            add(format!("{LOOP}{index}"), share.of_one_processor());
        }
    }
    figures
}

/// The measures of [`figures`], for this number of readers and of busy processes.
pub(super) fn measures(readers: usize, busy: usize) -> Vec<Measure> {
    let share = |name: &str, about: &str| Measure::new(name, about, "x", Better::Neither);
    let mut found = vec![
        share(READERS, "share of the processors' time in which readers ran"),
        share(WAITED, "share of the readers' time in which they waited for a processor"),
        share(USER, "share of the readers' processor time in user mode"),
        share(BUSY, "share of the processors' time in which busy processes ran"),
        share(BESIDE, "share of the busy processes that ran on the processor of a reader"),
    ];
    let one = |prefix: &str, what: &str, index: usize| {
        share(&format!("{prefix}{index}"), &format!("share of its processor that {what} {index} had"))
    };
    found.extend((0..readers).map(|index| one(READER, "reader", index)));
    found.extend((0..busy).map(|index| one(LOOP, "busy process", index)));
    found
}

#[cfg(test)]
mod tests;
