//! Combines the options, once all are parsed, into a request.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use ferry_copy::{Algorithm, Dereference, Existing, Make, Options, Reflink, Sparse};
use ferry_io::{Backend, RingMode, RouteChoice};

use super::attributes::Attribute;
use super::backups::BackupOptions;
use super::destination::Operands;
use super::profile::ProfileUse;
use super::stats::StatsFormat;
use crate::arguments::Usage;
use crate::events::Place;
use crate::manifest::Wanted;
use crate::progress::When;

#[cfg(test)]
mod tests;

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) operands: Operands,
    pub(crate) options: Options,
    /// Its number of workers is 1 unless `workers` is given.
    pub(crate) io: ferry_io::Options,
    pub(crate) workers: Option<NonZeroUsize>,
    pub(crate) profile: ProfileUse,
    /// `None` if not given: the default depends on the program's name.
    pub(crate) progress: Option<When>,
    pub(crate) stats: Option<StatsFormat>,
    pub(crate) errors: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) events: Option<Place>,
    pub(crate) manifest: Option<Wanted>,
    pub(crate) warning: Option<&'static str>,
}

/// A request during parsing. Options that depend on later ones are kept as given.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// Operands (set last) and their options.
    pub(crate) operands: Operands,
    /// Settings that no later option can change.
    pub(crate) options: Options,
    /// Last of `-P`, `-L`, `-H` and the options that imply one of them.
    links: Option<Dereference>,
    pub(crate) contents: bool,
    pub(crate) context: bool,
    pub(crate) hard_links: bool,
    pub(crate) symbolic_links: bool,
    pub(crate) labels: bool,
    pub(crate) label_is_given: bool,
    /// Last of `-i` (true) and `-n` (false).
    pub(crate) asks: Option<bool>,
    pub(crate) update: Update,
    pub(super) backups: BackupOptions,
    pub(crate) profile: ProfileUse,
    pub(crate) progress: Option<When>,
    pub(crate) stats: Option<StatsFormat>,
    pub(crate) errors: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) events: Option<Place>,
    pub(crate) manifest: Option<PathBuf>,
    pub(crate) hash: Option<Algorithm>,
    pub(crate) backend: Backend,
    pub(crate) route: RouteChoice,
    pub(crate) ring_mode: RingMode,
    pub(crate) workers: Option<NonZeroUsize>,
    pub(crate) queue_depth: Option<u32>,
    pub(crate) block_size: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Update {
    #[default]
    All,
    /// Replace targets older than their source.
    Older,
    None,
    /// Replace none, and report each as a failure.
    NoneFail,
}

impl Draft {
    pub(crate) fn follow(&mut self, links: Dereference) {
        self.links = Some(links);
    }

    pub(crate) fn keep(&mut self, attributes: &[Attribute]) {
        attributes.iter().for_each(|attribute| attribute.set(&mut self.options.preserve, true));
    }

    /// The manifest that is wanted, if the other options make copies with one name each.
    fn manifest(&self, needs_copies: &[(bool, &str)]) -> Result<Option<Wanted>, Usage> {
        let manifest = Wanted::of(self.manifest.clone(), self.hash)?;
        if let Some((_, name)) = needs_copies.iter().find(|(is_given, _)| *is_given && manifest.is_some()) {
            return Err(Usage::with_hint(format!("--manifest has hashes of copies, and {name} makes none")));
        }
        if self.backups.is_made && manifest.is_some() {
            let why = "a copy may become a backup, whose name the manifest would lack";
            return Err(Usage::with_hint(format!("--backup and --manifest exclude each other: {why}")));
        }
        Ok(manifest)
    }

    pub(super) fn finish(self) -> Result<Request, Usage> {
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
        let needs_copies = [
            (make == Make::HardLink, "--link"),
            (make == Make::SymbolicLink, "--symbolic-link"),
            (self.options.attributes_only, "--attributes-only"),
        ];
        if let Some((_, name)) = needs_copies.iter().find(|(is_given, _)| *is_given && self.options.verify) {
            return Err(Usage::with_hint(format!("--verify compares copies, and {name} makes none")));
        }
        let manifest = self.manifest(&needs_copies)?;
        let prints = [
            (self.options.debug, "--debug"),
            (self.options.verbose, "--verbose"),
            (self.options.explain, "--explain"),
            (self.stats == Some(StatsFormat::Json), "--stats=json"),
        ];
        Place::refuse_beside(self.events.as_ref(), &prints)?;
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
            digest: manifest.as_ref().map(|wanted| wanted.algorithm),
            atomic: self.options.atomic || self.options.verify,
            through_dangling: std::env::var_os("POSIXLY_CORRECT").is_some(),
            ..self.options
        };
        let Self { operands, workers, profile, progress, stats, errors, trace, events, .. } = self;
        Ok(Request {
            operands,
            options,
            io,
            workers,
            profile,
            progress,
            stats,
            errors,
            trace,
            events,
            manifest,
            warning,
        })
    }

    /// Resolves `-n`, `--update` and `-i`, in this order of precedence.
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
        let default = ferry_io::Options::with_workers(self.workers.unwrap_or(NonZeroUsize::MIN));
        ferry_io::Options {
            backend: self.backend,
            route: self.route,
            ring_mode: self.ring_mode,
            queue_depth: self.queue_depth.unwrap_or(default.queue_depth),
            block_size: self.block_size.unwrap_or(default.block_size),
            observe: self.stats.is_some() || self.options.explain,
            ..default
        }
    }
}
