//! From arguments to a request: what the options come to when all have been read.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use ferry_copy::{Dereference, Existing, Make, Options, Reflink, Sparse};
use ferry_io::{Backend, RingMode, RouteChoice};

use super::attributes::Attribute;
use super::backups::Wish;
use super::destination::Operands;
use super::options::{MANUAL, OPTIONS};
use super::profile::Use;
use super::stats::Format;
use crate::arguments::{self, Read, Usage, command};
use crate::cli::Parsed;
use crate::progress::When;

#[cfg(test)]
mod tests;

/// Everything that one command line asks for.
#[derive(Debug)]
pub(crate) struct Request {
    /// The names, and how they are to be taken.
    pub(crate) operands: Operands,
    /// What is copied and how.
    pub(crate) options: Options,
    /// The runtime's knobs.
    pub(crate) io: ferry_io::Options,
    /// Whether profiles are used.
    pub(crate) profile: Use,
    /// Whether progress is shown, if that was said.
    pub(crate) progress: Option<When>,
    /// Whether and how statistics are told.
    pub(crate) stats: Option<Format>,
    /// Where failures are recorded.
    pub(crate) errors: Option<PathBuf>,
    /// Where the run is recorded.
    pub(crate) trace: Option<PathBuf>,
    /// What is told before anything is copied.
    pub(crate) warning: Option<&'static str>,
}

/// A request while its options are being read: what can't be decided before the last one is kept as given.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The operands, filled in last, and how they are to be taken.
    pub(crate) operands: Operands,
    /// What is decided already; links, existing targets and what is made are not.
    pub(crate) options: Options,
    /// The last option that says which links are followed.
    links: Option<Dereference>,
    /// `--copy-contents`.
    pub(crate) contents: bool,
    /// `--preserve=context`.
    pub(crate) context: bool,
    /// `-l`.
    pub(crate) hard_links: bool,
    /// `-s`.
    pub(crate) symbolic_links: bool,
    /// `-Z` and `--context`.
    pub(crate) labels: bool,
    /// `--context=CTX`.
    pub(crate) label_is_given: bool,
    /// The last of `-i` and `-n`: whether the user is asked.
    pub(crate) asks: Option<bool>,
    /// `-u` and `--update`.
    pub(crate) update: Update,
    /// `-b`, `--backup` and `-S`.
    pub(super) backups: Wish,
    /// `--profile`.
    pub(crate) profile: Use,
    /// `--progress`.
    pub(crate) progress: Option<When>,
    /// `--stats`.
    pub(crate) stats: Option<Format>,
    /// `--errors`.
    pub(crate) errors: Option<PathBuf>,
    /// `--trace`.
    pub(crate) trace: Option<PathBuf>,
    /// `--backend`.
    pub(crate) backend: Backend,
    /// `--route`.
    pub(crate) route: RouteChoice,
    /// `--ring-mode`.
    pub(crate) ring_mode: RingMode,
    /// `--workers`.
    pub(crate) workers: Option<NonZeroUsize>,
    /// `--queue-depth`.
    pub(crate) queue_depth: Option<u32>,
    /// `--block-size`.
    pub(crate) block_size: Option<usize>,
}

/// What `--update` says of existing targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Update {
    /// All are replaced.
    #[default]
    All,
    /// Those older than their source are.
    Older,
    /// None is.
    None,
    /// None is, and each is a failure.
    NoneFail,
}

/// Reads the arguments after the command's name.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Parsed<Request>, Usage> {
    let mut draft = Draft::default();
    match arguments::read(OPTIONS, arguments, &mut draft)? {
        Read::Print(text) => Ok(Parsed::Print(text, Box::new(command(&MANUAL, OPTIONS)))),
        Read::Operands(operands) => {
            draft.operands.paths = operands.into_iter().map(PathBuf::from).collect();
            draft.finish().map(|request| Parsed::Run(Box::new(request)))
        }
    }
}

impl Draft {
    /// Says which links are followed.
    pub(crate) fn follow(&mut self, links: Dereference) {
        self.links = Some(links);
    }

    /// Says what is kept.
    pub(crate) fn keep(&mut self, attributes: &[Attribute]) {
        attributes.iter().for_each(|attribute| attribute.set(&mut self.options.preserve, true));
    }

    fn finish(self) -> Result<Request, Usage> {
        let make = match (self.hard_links, self.symbolic_links) {
            (true, true) => return Err(Usage::with_hint("cannot make both hard and symbolic links")),
            (true, false) => Make::HardLink,
            (false, true) => Make::SymbolicLink,
            (false, false) => Make::Copy,
        };
        let existing = self.existing()?;
        if self.options.reflink == Reflink::Always && self.options.sparse != Sparse::Auto {
            return Err(Usage::with_hint("--reflink can be used only with --sparse=auto"));
        }
        if self.context {
            let text = "cannot preserve security context without an SELinux-enabled kernel";
            return Err(Usage::plain(text));
        }
        if self.labels && Path::new("/sys/fs/selinux/enforce").exists() {
            return Err(Usage::plain("cannot set security contexts"));
        }
        let ignored = "warning: ignoring --context; it requires an SELinux-enabled kernel";
        let warning = self.label_is_given.then_some(ignored);
        let io = self.io();
        io.check().map_err(|error| Usage::plain(error.to_string()))?;
        let recursive = self.options.recursive;
        let follows = !recursive || make == Make::HardLink;
        let default_links = if follows { Dereference::Always } else { Dereference::Never };
        let options = Options {
            copy_contents: self.contents || !recursive,
            dereference: self.links.unwrap_or(default_links),
            existing,
            update: self.update == Update::Older,
            backup: self.backups.settle(|name| std::env::var_os(name))?,
            make,
            through_dangling: std::env::var_os("POSIXLY_CORRECT").is_some(),
            ..self.options
        };
        let Self { operands, profile, progress, stats, errors, trace, .. } = self;
        Ok(Request { operands, options, io, profile, progress, stats, errors, trace, warning })
    }

    /// What is done with existing targets. `-n` has its way over `--update`, and that over `-i`.
    fn existing(&self) -> Result<Existing, Usage> {
        let existing = match (self.asks, self.update) {
            (Some(false), _) | (_, Update::None) => Existing::Keep,
            (_, Update::NoneFail) => Existing::Refuse,
            (Some(true), _) => Existing::Ask,
            (None, _) => Existing::Replace,
        };
        let keeps = matches!(existing, Existing::Keep | Existing::Refuse);
        match self.backups.is_made && keeps {
            true => Err(Usage::with_hint("--backup is mutually exclusive with -n or --update=none-fail")),
            false => Ok(existing),
        }
    }

    fn io(&self) -> ferry_io::Options {
        let default = ferry_io::Options::default();
        ferry_io::Options {
            backend: self.backend,
            route: self.route,
            ring_mode: self.ring_mode,
            workers: self.workers.unwrap_or(default.workers),
            queue_depth: self.queue_depth.unwrap_or(default.queue_depth),
            block_size: self.block_size.unwrap_or(default.block_size),
            observe: self.stats.is_some() || self.options.explain,
            ..default
        }
    }
}
