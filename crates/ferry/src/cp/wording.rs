//! Failures in GNU cp's words, without the program's name.

use std::path::Path;

use ferry_copy::{Failure, FailureKind, Make, PartNote, PartState, Question, Unfinished, Verb};

use crate::quote::quote;
use crate::units::bytes;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Wording {
    /// With `-s`, messages name the link's target too.
    pub(crate) make: Make,
    /// True if targets start with a `./` that the user did not write.
    pub(crate) base_is_implied: bool,
}

impl Wording {
    /// The target's path as the user would write it.
    pub(crate) fn target<'a>(&self, target: &'a Path) -> &'a Path {
        if self.base_is_implied { target.strip_prefix(".").unwrap_or(target) } else { target }
    }

    pub(crate) fn failure(&self, failure: &Failure) -> String {
        let source = quote(&failure.source);
        let target = quote(self.target(&failure.target));
        match &failure.kind {
            FailureKind::Io { verb, error } => {
                format!("{}: {}", self.verb(*verb, &source, &target), error.cause)
            }
            FailureKind::OmittingDirectory => format!("-r not specified; omitting directory {source}"),
            FailureKind::SameFile => format!("{source} and {target} are the same file"),
            FailureKind::IntoItself => {
                format!("cannot copy a directory, {source}, into itself, {target}")
            }
            FailureKind::DirectoryOverFile => {
                format!("cannot overwrite non-directory {target} with directory {source}")
            }
            FailureKind::WayIsFile => format!("{target} exists but is not a directory"),
            FailureKind::FileOverDirectory => {
                format!("cannot overwrite directory {target} with non-directory {source}")
            }
            FailureKind::JustCreated => format!("will not overwrite just-created {target} with {source}"),
            FailureKind::ThroughJustCreated => {
                format!("will not copy {source} through just-created symlink {target}")
            }
            FailureKind::DanglingTarget => format!("not writing through dangling symlink {target}"),
            FailureKind::CyclicLink => format!("cannot copy cyclic symbolic link {source}"),
            FailureKind::BackupDestroysSource => {
                format!("backing up {target} might destroy source;  {source} not copied")
            }
            FailureKind::NotReplaced => format!("not replacing {target}"),
            FailureKind::CopiedBefore { first } => {
                let first = quote(self.target(first));
                format!("will not create hard link {target} to directory {first}")
            }
            FailureKind::LinkToCopy { first, error } => {
                let first = quote(self.target(first));
                format!("cannot create hard link {target} to {first}: {}", error.cause)
            }
            FailureKind::RelativeSymlink => {
                let name = bare(self.target(&failure.target));
                format!("{name}: can make relative symbolic links only in current directory")
            }
            FailureKind::SpecialSource => format!("{source} is a FIFO, a socket or a device"),
            FailureKind::SpecialTarget => format!("{target} is a FIFO, a socket or a device"),
            FailureKind::Changed => format!("skipping {target}: it or its source was changed meanwhile"),
            FailureKind::Unlisted => {
                format!(
                    "skipping {target}: its directory has it under another name, or it was made meanwhile"
                )
            }
            FailureKind::KeptAside { aside: Some(aside), error } => {
                let aside = self.target(&failure.target).with_file_name(aside.as_os_str());
                format!("cannot give {} its name {target} back: {}", quote(&aside), error.cause)
            }
            FailureKind::KeptAside { aside: None, error } => {
                format!("cannot give {target}, which is in the trash, its name back: {}", error.cause)
            }
            FailureKind::Unverified => {
                format!(
                    "{target}, read back from its device, differs from {source}, also after a second copy"
                )
            }
            FailureKind::ReadOnce => {
                format!("cannot verify a copy of {source}: it can be read only once")
            }
            FailureKind::Replaced => format!("skipping file {source}, as it was replaced while being copied"),
        }
    }

    pub(crate) fn unfinished(&self, unfinished: &Unfinished) -> String {
        let target = quote(self.target(&unfinished.target));
        match &unfinished.error {
            None => {
                format!("{target} is incomplete; it has the oldest time, so that `cp -u` copies it again")
            }
            Some(error) => {
                format!("{target} is incomplete, and could not be removed or marked as old: {}", error.cause)
            }
        }
    }

    pub(super) fn part(&self, note: &PartNote) -> String {
        let target = quote(self.target(&note.target));
        match note.state {
            PartState::Continued(size, why) => {
                let why = why.map(|why| format!("; {why}")).unwrap_or_default();
                format!("{target}: continuing after {} that an interrupted run has copied{why}", bytes(size))
            }
            PartState::Ignored(why) => {
                format!("{target}: what an interrupted run has copied is not used: {why}")
            }
            PartState::Kept(size) => {
                format!("{target}: {} are kept, and the next run continues there", bytes(size))
            }
        }
    }

    /// Warns of a repeated operand with the same target.
    pub(crate) fn repeated(source: &Path, is_folder: bool) -> String {
        let what = if is_folder { "directory" } else { "file" };
        format!("warning: source {what} {} specified more than once", quote(source))
    }

    pub(crate) fn question(&self, target: &Path, question: Question) -> String {
        let target = quote(self.target(target));
        match question {
            Question::Overwrite => format!("overwrite {target}?"),
            Question::TryAnyway { mode } => {
                format!("unwritable {target} (mode {mode:04o}, {}); try anyway?", letters(mode))
            }
            Question::Override { mode } => {
                format!("replace {target}, overriding mode {mode:04o} ({})?", letters(mode))
            }
        }
    }

    fn verb(&self, verb: Verb, source: &str, target: &str) -> String {
        match verb {
            Verb::Stat => format!("cannot stat {source}"),
            Verb::StatTarget => format!("cannot stat {target}"),
            Verb::StatWay => format!("failed to get attributes of {source}"),
            Verb::OpenDirectory => format!("cannot access {source}"),
            Verb::Open => format!("cannot open {source} for reading"),
            Verb::ReadDirectory => format!("cannot read directory {source}"),
            Verb::Read => format!("error reading {source}"),
            Verb::CreateFile => format!("cannot create regular file {target}"),
            Verb::CreateDirectory => format!("cannot create directory {target}"),
            Verb::CreateWay => format!("cannot make directory {target}"),
            Verb::CreateSymlink if self.make == Make::SymbolicLink => {
                format!("cannot create symbolic link {target} to {source}")
            }
            Verb::CreateSymlink => format!("cannot create symbolic link {target}"),
            Verb::CreateLink => format!("cannot create hard link {target} to {source}"),
            Verb::CreateFifo => format!("cannot create fifo {target}"),
            Verb::CreateSpecial => format!("cannot create special file {target}"),
            Verb::ReadLink => format!("cannot read symbolic link {source}"),
            Verb::Write => format!("error writing {target}"),
            Verb::Close => format!("failed to close {target}"),
            Verb::Clone => format!("failed to clone {target} from {source}"),
            Verb::SetOwner => format!("failed to preserve ownership for {target}"),
            Verb::SetMode => format!("setting permissions for {target}"),
            Verb::SetAcl => format!("preserving permissions for {target}"),
            Verb::SetTimes => format!("preserving times for {target}"),
            Verb::ListXattr => format!("listing attributes of {source}"),
            Verb::SetXattr => format!("setting attributes for {target}"),
            Verb::Remove => format!("cannot remove {target}"),
            Verb::BackUp => format!("cannot backup {target}"),
            Verb::TakeBack => format!("cannot un-backup {target}"),
            Verb::Restore => format!("cannot restore {target}"),
            Verb::Sync => format!("error syncing {target}"),
            Verb::ReadTarget => format!("error reading {target}"),
            Verb::Hash => format!("cannot read {target} for the manifest"),
            Verb::ReadTargetDirectory => format!("cannot read directory {target}"),
        }
    }
}

/// Omits the quotes, as GNU cp does at the start of a message, if a shell would not need them.
fn bare(path: &Path) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,@%]{}".contains(c);
    // A shell treats these as special only at the start of a word.
    let plain_within = |c: char| plain(c) || "~#".contains(c);
    match path.to_str() {
        Some(text) if text.starts_with(plain) && text.chars().all(plain_within) => text.to_owned(),
        Some(_) | None => quote(path),
    }
}

/// Formats permission bits as ls(1) does.
fn letters(mode: u32) -> String {
    let class = |shift: u32, special: u32, with: char, without: char| {
        let bits = mode >> shift;
        let letter = |bit: u32, letter| if bits & bit != 0 { letter } else { '-' };
        let last = match (mode & special != 0, bits & 1 != 0) {
            (true, true) => with,
            (true, false) => without,
            (false, _) => letter(1, 'x'),
        };
        [letter(4, 'r'), letter(2, 'w'), last]
    };
    let classes = [class(6, 0o4000, 's', 'S'), class(3, 0o2000, 's', 'S'), class(0, 0o1000, 't', 'T')];
    classes.into_iter().flatten().collect()
}
