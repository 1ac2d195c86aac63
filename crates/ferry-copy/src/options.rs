//! What a copy is asked to do: cp's options after parsing, with no trace of the command line.

use std::num::NonZeroU64;
use std::path::PathBuf;

use crate::backup::Backup;

/// One thing to copy: a source path as given, and where its copy goes.
#[derive(Debug, Clone)]
pub struct Item {
    /// The source as the user named it. A trailing slash or a last component `.` or `..` means the folder itself.
    pub source: PathBuf,
    /// An existing folder, as the user named it, beneath which the copy is made.
    pub base: PathBuf,
    /// The copy's name beneath `base`: one component; empty or `.` for `base` itself; with `--parents` several, which are
    /// the end of `source` as it is written, `.` and `..` included, but never lead above `base`.
    pub relative: PathBuf,
}

/// Which symbolic links of the source are followed.
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

/// Which attributes the copy takes over (`--preserve`).
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
    /// Whether a failure to keep an extended attribute is an error (asked for by name) or passed over (`-a`).
    pub xattr_required: bool,
}

/// What happens when the target is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// Replaced.
    #[default]
    Replace,
    /// `-i`: replaced if the user says so ([`crate::Observer::agrees`]).
    Ask,
    /// `-n`: left as it is.
    Keep,
    /// `--update=none-fail`: left as it is, which is a failure.
    Refuse,
}

/// What is made in the target for a file that is not a folder.
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

/// When holes are made (`--sparse`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sparse {
    /// Where the source has them.
    #[default]
    Auto,
    /// Also for blocks of zeros.
    Always,
    /// Never.
    Never,
}

/// Whether extents are shared with the source (`--reflink`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflink {
    /// Where the filesystem can.
    #[default]
    Auto,
    /// An error where it can't.
    Always,
    /// Never.
    Never,
}

/// Which files are read and written past the page cache (`--direct`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direct {
    /// None.
    Never,
    /// Those of 8 MiB and more that are not in memory, once a run takes more memory than is available.
    #[default]
    Auto,
    /// All that are larger than a block, as far as their filesystems can.
    Always,
}

/// A copy's options. `Default` is `cp SOURCE DEST`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one independent switch of cp")]
pub struct Options {
    /// `-r`: folders are copied with what they hold.
    pub recursive: bool,
    /// Whether special files are recreated (with `-r`) or their content is copied (`--copy-contents`, or no `-r`).
    pub copy_contents: bool,
    /// Which links are followed.
    pub dereference: Dereference,
    /// Which attributes are kept.
    pub preserve: Preserve,
    /// What to do with existing targets.
    pub existing: Existing,
    /// `-u`: existing targets that are not older than their source are left as they are.
    pub update: bool,
    /// `--backup`: what is replaced is kept by another name.
    pub backup: Option<Backup>,
    /// What is made.
    pub make: Make,
    /// `-f`: a target that can't be opened is removed and tried again.
    pub force: bool,
    /// `--attributes-only`: files are made and their attributes kept, but no bytes are copied.
    pub attributes_only: bool,
    /// `--keep-directory-symlink`: a symbolic link of the target that leads to a folder is followed where a folder is to be.
    pub keep_directory_symlink: bool,
    /// Whether a file is made where a symbolic link of the target leads to nothing (`POSIXLY_CORRECT`).
    pub through_dangling: bool,
    /// `--remove-destination`: each existing target is removed before it is opened.
    pub remove_destination: bool,
    /// `-x`: folders on other filesystems are made but not entered.
    pub one_file_system: bool,
    /// When holes are made.
    pub sparse: Sparse,
    /// Whether extents are shared.
    pub reflink: Reflink,
    /// Which files go past the page cache.
    pub direct: Direct,
    /// `--atomic`: whatever is no folder has its name only when it is whole. What is there is replaced, not overwritten.
    pub atomic: bool,
    /// `--bwlimit`: bytes a second that go to the target at most.
    pub bandwidth: Option<NonZeroU64>,
    /// `--fsync`: everything is durable on return.
    pub fsync: bool,
    /// Whether [`crate::Observer::copied`] is called for each entry (`-v`).
    pub verbose: bool,
    /// Whether [`crate::Observer::copied`] is told how, and [`crate::Observer::skipped`] is called (`--debug`).
    pub debug: bool,
    /// Whether [`crate::Observer::explained`] is called for each file (`--explain`).
    pub explain: bool,
}
