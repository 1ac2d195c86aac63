//! The options of a copy on one rank: those of `ferry cp`, and what many processes make of them.
//!
//! A new copy that keeps everything, as `cp -a` does, needs no hidden names: a file is complete if it has its source's time. An
//! incomplete one is replaced. With other options, and in an existing target, `ferry cp`'s rules decide about each target, and each file gets
//! its name when it is complete, as with `--atomic`: otherwise a later job could not tell the files that a kill has left
//! incomplete, and two ranks could write to one file at once through two of its names. The journal has which of both it is, and a
//! hash of the options: a job that goes on does as the first one.

use std::ffi::OsString;
use std::num::{NonZeroU64, NonZeroUsize};

use ferry_copy::{Dereference, Direct, Existing as Fate, Make, Options, Preserve, Reflink, Sparse};
use ferry_io::{FileKind, Stat};

use crate::setup::Setup;

/// Options of a copy on one rank.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) options: Options,
    pub(crate) io: ferry_io::Options,
    /// Set if `ferry cp`'s rules decide about existing targets.
    pub(crate) by_rules: bool,
    /// Set if large files are copied in ranges.
    divides: bool,
}

impl Rules {
    /// Returns the rules of the first part of a sync: everything is kept.
    pub(crate) fn of_sync(fsync: bool, workers: NonZeroUsize) -> Self {
        let options = Options {
            recursive: true,
            dereference: Dereference::Never,
            preserve: Preserve::ARCHIVE,
            existing: Fate::Refuse,
            fsync,
            ..Options::default()
        };
        Self { options, io: ferry_io::Options::with_workers(workers), by_rules: false, divides: true }
    }

    /// Returns the rules of a copy with these arguments of `ferry cp`. `share` is the number of workers if none is given. Returns
    /// `None` if rank 0 has refused the arguments.
    pub(crate) fn of_cp(arguments: &[OsString], job: &Setup, share: NonZeroUsize) -> Option<Self> {
        let settings = ferry::job::cp_settings(arguments, &job.source())?;
        let workers = settings.workers.unwrap_or(share);
        let io = ferry_io::Options { workers, ..settings.io };
        let (options, by_rules) = (settle(settings.options, job), job.by_rules);
        let divides = divides(&options);
        Some(Self { options, io, by_rules, divides })
    }

    /// Returns true for files that are not copied where they are found: large ones, and those with several names.
    pub(crate) fn is_left(&self, stat: &Stat, large: u64) -> bool {
        self.is_linked(stat) || self.is_large(stat, large)
    }

    /// Returns true if the file is copied in ranges.
    pub(crate) fn is_large(&self, stat: &Stat, large: u64) -> bool {
        self.divides && stat.kind == FileKind::Regular && stat.size >= large
    }

    /// Returns true if the other names of a file become links to its copy.
    pub(crate) fn is_linked(&self, stat: &Stat) -> bool {
        let links = self.options.preserve.links && self.options.make == Make::Copy;
        links && stat.kind != FileKind::Directory && stat.links > 1
    }

    /// Returns true if a file with its source's time is a complete copy.
    pub(crate) fn keeps_times(&self) -> bool {
        self.options.preserve.timestamps && !self.options.attributes_only && self.options.make == Make::Copy
    }

    /// Returns true if existing targets stay (`-n`).
    pub(crate) fn keeps_existing(&self) -> bool {
        self.options.existing == Fate::Keep
    }

    /// Returns true if the mode of a folder depends on who made it.
    pub(crate) fn notes_made(&self) -> bool {
        !self.options.preserve.mode
    }
}

/// Returns the options of one rank.
fn settle(options: Options, job: &Setup) -> Options {
    let ranks = u64::from(job.ranks.max(1));
    let share = |rate: NonZeroU64| NonZeroU64::new(rate.get() / ranks);
    let bandwidth = options.bandwidth.map(|rate| share(rate).unwrap_or(NonZeroU64::MIN));
    if !job.by_rules {
        return Options { existing: Fate::Refuse, bandwidth, ..options };
    }
    let atomic = options.atomic || options.make == Make::Copy && !options.attributes_only;
    Options { atomic, bandwidth, ..options }
}

/// Returns true if a new copy needs no hidden names: a file is complete if it has its source's time.
pub(crate) fn is_plain(options: &Options) -> bool {
    let Preserve { mode, ownership, timestamps, links, xattr, .. } = options.preserve;
    let keeps_all = mode && ownership && timestamps && links && xattr;
    keeps_all
        && options.existing == Fate::Replace
        && options.make == Make::Copy
        && options.dereference != Dereference::Always
        && !(options.update || options.remove_destination || options.attributes_only || options.atomic)
}

/// Returns true if existing files may stay in the target (`-n`, `-u`).
pub(crate) fn may_keep(options: &Options) -> bool {
    options.existing == Fate::Keep || options.update
}

/// Returns a hash of the options that decide what a copy makes. Those of output and speed are left out.
pub(crate) fn deciding(options: &Options) -> String {
    let deciding = Options {
        verbose: false,
        debug: false,
        explain: false,
        bandwidth: None,
        direct: Direct::default(),
        ..options.clone()
    };
    blake3::hash(format!("{deciding:?}").as_bytes()).to_hex().to_string()
}

/// Returns true unless an option concerns a file as a whole.
fn divides(options: &Options) -> bool {
    options.make == Make::Copy
        && options.sparse == Sparse::Auto
        && options.reflink != Reflink::Always
        && options.dereference != Dereference::Always
        && !(options.verify || options.attributes_only)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ferry_cluster::Settings;

    use super::*;
    use crate::setup::{CopyOptions, Existing, Task};

    /// Returns the rules of one of four ranks whose target is new.
    fn rules(arguments: &[&str]) -> Rules {
        let arguments: Vec<_> = arguments.iter().chain(&["a", "b"]).map(OsString::from).collect();
        let options = ferry::job::cp_settings(&arguments, Path::new("a")).unwrap().options;
        let mut job = job();
        job.by_rules = !is_plain(&options);
        Rules::of_cp(&arguments, &job, NonZeroUsize::MIN).unwrap()
    }

    fn job() -> Setup {
        let options = CopyOptions::Sync { fsync: false };
        let task = Task::Copy { existing: Existing::Replaced, identity: (1, 2), options };
        Setup::new(Path::new("a"), Path::new("b"), task, Settings::new(4))
    }

    #[test]
    fn the_rate_is_divided_among_the_ranks() {
        let rate = |given: &str| rules(&["-a", "--bwlimit", given]).options.bandwidth;
        assert_eq!([rate("4K"), rate("2")], [NonZeroU64::new(1024), NonZeroU64::new(1)]);
        // Those of this job, not of the one that was interrupted.
        let mut job = job();
        job.ranks = 8;
        let arguments = ["-a", "--bwlimit", "4K", "a", "b"].map(OsString::from);
        let rules = Rules::of_cp(&arguments, &job, NonZeroUsize::MIN).unwrap();
        assert_eq!(rules.options.bandwidth, NonZeroU64::new(512));
    }

    #[test]
    fn options_of_output_and_speed_do_not_decide_what_is_made() {
        let of = |arguments: &[&str]| deciding(&rules(arguments).options);
        let of = |more: &[&str]| of(&[&["-a"], more].concat());
        for same in [&["-v"][..], &["--explain"], &["--bwlimit=4K"], &["--workers=3"], &["--direct"]] {
            assert_eq!(of(same), of(&[]), "{same:?}");
        }
        for other in ["-u", "-n", "--verify", "--sparse=always", "--no-preserve=mode", "-x", "--fsync"] {
            assert_ne!(of(&[other]), of(&[]), "{other}");
        }
    }

    #[test]
    fn only_a_new_copy_that_keeps_everything_needs_no_hidden_names() {
        for plain in [&["-a"][..], &["-dR", "--preserve=all"], &["-a", "--sparse=always"], &["-ax", "-f"]] {
            let rules = rules(plain);
            assert!(!rules.by_rules && !rules.options.atomic, "{plain:?}");
        }
        for other in [&["-r"][..], &["-rp"], &["-au"], &["-an"], &["-a", "--remove-destination"]] {
            let rules = rules(other);
            assert!(rules.by_rules && rules.options.atomic, "{other:?}");
        }
        let mut existing = job();
        (existing.by_rules, existing.is_resumed) = (true, true);
        let rules =
            Rules::of_cp(&["-a", "a", "b"].map(OsString::from), &existing, NonZeroUsize::MIN).unwrap();
        assert!(rules.by_rules && rules.options.atomic && rules.options.existing == Fate::Replace);
    }

    #[test]
    fn a_file_is_divided_unless_an_option_concerns_it_as_a_whole() {
        for divided in [&["-a"][..], &["-r"], &["-au"], &["-a", "--direct"]] {
            assert!(rules(divided).divides, "{divided:?}");
        }
        for whole in ["--sparse=always", "--reflink=always", "--verify", "--attributes-only", "-l"] {
            assert!(!rules(&["-a", whole]).divides, "{whole}");
        }
    }
}
