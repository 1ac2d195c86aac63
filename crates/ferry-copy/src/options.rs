//! Options of a copy: cp's options after parsing, without a trace of the command line.

use std::num::NonZeroU64;
use std::path::PathBuf;

use crate::digest::Algorithm;
use crate::naming::Backup;

/// One operand: a source path as given, and the path of its copy.
#[derive(Debug, Clone)]
pub struct Item {
    /// The source as the user named it. A trailing slash or a last component `.` or `..` means the folder itself.
    pub source: PathBuf,
    /// An existing folder, as the user named it, beneath which the copy is made.
    pub base: PathBuf,
    /// The copy's path beneath `base`: one component; empty or `.` for `base` itself. With `--parents` several
    /// components, the end of `source` as it is written, with `.` and `..`, which never lead above `base`.
    pub relative: PathBuf,
}

/// Symbolic links of the source that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dereference {
    /// `-P`: none; links are copied as links.
    Never,
    /// `-H`: those named on the command line.
    CommandLine,
    /// `-L`, and the default without `-r`: all.
    #[default]
    Always,
}

/// Attributes that the copy takes over (`--preserve`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preserve {
    /// Permission bits and ACLs.
    pub mode: bool,
    /// `--no-preserve=mode`: new files get 0666 less the umask, folders 0777, whatever the source's mode.
    /// Without it, and without `mode`, the source's mode less the umask.
    pub refuse_mode: bool,
    /// User and group.
    pub ownership: bool,
    /// Access and modification times, in nanoseconds.
    pub timestamps: bool,
    /// Hard links between the files copied.
    pub links: bool,
    /// Extended attributes.
    pub xattr: bool,
    /// Set if a failure to keep an extended attribute is an error (requested by name), not ignored (`-a`).
    pub xattr_required: bool,
}

impl Preserve {
    /// Everything that `cp -a` keeps.
    pub const ARCHIVE: Self = Self {
        mode: true,
        refuse_mode: false,
        ownership: true,
        timestamps: true,
        links: true,
        xattr: true,
        xattr_required: false,
    };
}

/// Treatment of an existing target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It is replaced.
    #[default]
    Replace,
    /// `-i`: it is replaced if the user agrees ([`crate::Observer::agrees`]).
    Ask,
    /// `-n`: it is left as it is.
    Keep,
    /// `--update=none-fail`: it is left as it is, which is a failure.
    Refuse,
}

/// Kind of target made for a file that is not a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Make {
    /// A copy.
    #[default]
    Copy,
    /// `-l`: a hard link to the source.
    HardLink,
    /// `-s`: a symbolic link to the source.
    SymbolicLink,
}

/// Holes in the target (`--sparse`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sparse {
    /// Holes of the source are kept.
    #[default]
    Auto,
    /// Blocks of zeros become holes, too.
    Always,
    /// None.
    Never,
}

/// Sharing of extents with the source (`--reflink`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflink {
    /// Shared if the filesystem can.
    #[default]
    Auto,
    /// An error if the filesystem can't.
    Always,
    /// Never.
    Never,
}

/// Files that are read and written past the page cache (`--direct`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direct {
    /// None.
    Never,
    /// Files of 8 MiB and more that are not cached, once a run takes more memory than is available.
    #[default]
    Auto,
    /// All that are larger than a block, as far as their filesystems can.
    Always,
}

/// Comparison of a part, which an interrupted run has left, with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// By the source's inode number, size and times.
    Identity,
    /// Also by its bytes.
    Content,
}

/// A copy's options. `Default` is `cp SOURCE DEST`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent switch of cp")]
pub struct Options {
    /// `-r`: folders are copied with their entries.
    pub recursive: bool,
    /// `--copy-contents`, or no `-r`: the content of special files is copied, instead of making special files.
    pub copy_contents: bool,
    /// Links that are followed.
    pub dereference: Dereference,
    /// Attributes that are kept.
    pub preserve: Preserve,
    /// Treatment of existing targets.
    pub existing: Existing,
    /// `-u`: existing targets that are not older than their source are left as they are.
    pub update: bool,
    /// `--backup`: replaced targets are kept under another name.
    pub backup: Option<Backup>,
    /// Kind of targets made.
    pub make: Make,
    /// `-f`: a target that can't be opened is removed and tried again.
    pub force: bool,
    /// `--attributes-only`: files are made and their attributes kept, but no bytes are copied.
    pub attributes_only: bool,
    /// `--keep-directory-symlink`: a symbolic link of the target is followed if it leads to a folder and a folder is
    /// copied there.
    pub keep_directory_symlink: bool,
    /// `POSIXLY_CORRECT`: a file is created through a dangling symbolic link of the target.
    pub through_dangling: bool,
    /// `--remove-destination`: each existing target is removed before it is opened.
    pub remove_destination: bool,
    /// `-x`: folders on other filesystems are made but not entered.
    pub one_file_system: bool,
    /// Holes that are made.
    pub sparse: Sparse,
    /// Sharing of extents.
    pub reflink: Reflink,
    /// Files that go past the page cache.
    pub direct: Direct,
    /// `--atomic`: a target that is no folder gets its name only when it is complete. Existing targets are replaced,
    /// not overwritten.
    pub atomic: bool,
    /// `--verify`: each file is read back from its device, and compared with its source, before it gets its name.
    pub verify: bool,
    /// `--manifest`: [`crate::Observer::hashed`] is called for each regular file that is copied or linked to a copy.
    pub digest: Option<Algorithm>,
    /// Set if large new files are filled in parts that a later run can go on with.
    pub resume: Option<Resume>,
    /// `--bwlimit`: bytes written in a second, at most.
    pub bandwidth: Option<NonZeroU64>,
    /// `--fsync`: everything is durable on return.
    pub fsync: bool,
    /// Set if special files are failures, as sources and as existing targets, and if a symbolic link takes no existing
    /// entry's place: the rules of Python's shutil.
    pub strict_kinds: bool,
    /// Set if [`crate::Observer::leaves_out`] is called for each entry of a folder.
    pub filtered: bool,
    /// `-v`: [`crate::Observer::copied`] is called for each entry.
    pub verbose: bool,
    /// `--debug`: [`crate::Observer::copied`] gets the means, and [`crate::Observer::skipped`] is called.
    pub debug: bool,
    /// `--explain`: [`crate::Observer::explained`] is called for each file.
    pub explain: bool,
}

impl Options {
    /// Returns true if an existing target gives way to the copy rather than being overwritten.
    pub(crate) fn replaces_targets(&self) -> bool {
        self.remove_destination || self.backup.is_some() || self.replaces_whole()
    }

    /// Returns true if only `--atomic` has an existing target replaced: the copy then keeps the attributes that
    /// overwriting it would keep.
    pub(crate) fn replaces_whole(&self) -> bool {
        let by_copy = self.atomic && self.make == Make::Copy && !self.attributes_only;
        by_copy && !self.remove_destination && self.backup.is_none()
    }

    /// Returns true if a link may take the place of an existing target: a hard link also if the user has agreed.
    pub(crate) fn links_may_replace(&self) -> bool {
        self.force || self.make == Make::HardLink && self.existing == Existing::Ask
    }
}

/// Entries of the target that a run takes away, beside those that it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Takes {
    /// Entries that the source lacks.
    pub deletes: bool,
    /// Also excluded entries, even if the source has them.
    pub excluded: bool,
}
