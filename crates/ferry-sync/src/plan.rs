//! A plan as text: one JSON object a line (NDJSON), described by `docs/plan.schema.json`.
//!
//! The first line is the header, then comes a line for each action, and the last line counts them: a plan without it is
//! incomplete. Actions are in the order in which they are performed.

mod path;

use std::io::{self, BufRead, Write};

use ferry_io::{Errno, FileKind, Stat, Time};
use serde::{Deserialize, Serialize};

use crate::decide::Reason;
pub use path::PathText;

#[cfg(test)]
mod tests;

/// Version of the layout. It increases when a reader of the old one would misread the new one.
pub const SCHEMA: u32 = 1;

/// Longest line, in bytes. A byte of a path has at most six characters of JSON. Paths in deep trees are longer than those
/// that the kernel takes at once.
const LONGEST_LINE: u64 = 1 << 20;

/// One line of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Line {
    /// The first line.
    Plan(Header),
    /// One action.
    Action(Action),
    /// The last line.
    End(End),
}

/// The trees that a plan is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the layout: [`SCHEMA`].
    pub schema: u32,
    /// Program that made it: `ferry 0.1.0`.
    pub made_by: String,
    /// The source folder, as an absolute path.
    pub source: PathText,
    /// The target folder, as an absolute path.
    pub target: PathText,
    /// The folder that the source was.
    pub source_root: Version,
    /// The folder that the target was; missing if it is to be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_root: Option<Version>,
}

/// The end of a complete plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Number of actions.
    pub actions: u64,
}

/// One action on one path of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// What is done.
    pub verb: Verb,
    /// Path below the two folders.
    pub path: PathText,
    /// Kind of the source, or of the target if it is deleted.
    pub kind: Kind,
    /// Reason, unless the verb says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Size of a regular file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The source that the action was decided from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Version>,
    /// The target that it was decided from; missing if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Version>,
    /// Number of the source's names. The text of a plan lacks it: 0 then.
    #[serde(skip)]
    pub links: u64,
}

impl Action {
    /// Returns true if the action makes, empties or removes a folder: then it is performed alone.
    #[must_use]
    pub fn is_on_folder(&self) -> bool {
        self.kind == Kind::Directory || self.verb == Verb::Exchange
    }
}

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Copy an entry that the target lacks.
    Create,
    /// Replace the content.
    Replace,
    /// Replace an entry of another kind.
    Exchange,
    /// Set attributes only.
    Attributes,
    /// Take away an entry that the source lacks.
    Delete,
    /// Leave a file with several names as it is: further names become links to it.
    Keep,
}

/// Kind of a file (inode(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the kinds are those of the manual page")]
pub enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    CharDevice,
    BlockDevice,
}

impl From<FileKind> for Kind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::Regular => Self::File,
            FileKind::Directory => Self::Directory,
            FileKind::Symlink => Self::Symlink,
            FileKind::Fifo => Self::Fifo,
            FileKind::Socket => Self::Socket,
            FileKind::CharDevice => Self::CharDevice,
            FileKind::BlockDevice => Self::BlockDevice,
        }
    }
}

/// One version of one file. The change time distinguishes versions, and a file from a later one with its inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Device number of the filesystem.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
    /// Time of the last change: seconds and nanoseconds since 1970. Missing where the plan's own actions change it: for
    /// folders, and for targets with several names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<(i64, u32)>,
    /// Size and modification time of a target with several names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
}

/// The last write to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Size in bytes.
    pub size: u64,
    /// Modification time: seconds and nanoseconds since 1970.
    pub modified: (i64, u32),
}

impl Version {
    /// Returns the version of a source.
    #[must_use]
    pub fn of_source(stat: &Stat) -> Self {
        let Time { seconds, nanoseconds } = stat.changed;
        let is_folder = stat.kind == FileKind::Directory;
        let changed = if is_folder { None } else { Some((seconds, nanoseconds)) };
        Self { device: stat.device, inode: stat.inode, changed, written: None }
    }

    /// Returns the version of a target.
    #[must_use]
    pub fn of_target(stat: &Stat) -> Self {
        let version = Self::of_source(stat);
        if stat.links > 1 && stat.kind != FileKind::Directory {
            let Time { seconds, nanoseconds } = stat.times.modified;
            let written = Some(Written { size: stat.size, modified: (seconds, nanoseconds) });
            return Self { changed: None, written, ..version };
        }
        version
    }

    /// Returns true if `found` is the same version, as far as it is known. The run itself may have given a file with
    /// several names another modification time: `is_own_time` tells.
    #[must_use]
    pub fn is(&self, found: &Stat, is_own_time: impl Fn(&Stat) -> bool) -> bool {
        let now = Self::of_source(found);
        let Time { seconds, nanoseconds } = found.times.modified;
        (self.device, self.inode) == (now.device, now.inode)
            && self.changed.is_none_or(|changed| now.changed == Some(changed))
            && self.written.is_none_or(|Written { size, modified }| {
                size == found.size && (modified == (seconds, nanoseconds) || is_own_time(found))
            })
    }
}

/// Writes a plan.
pub struct Writer<W> {
    out: W,
    actions: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a plan with its header.
    ///
    /// # Errors
    /// Those of writing.
    pub fn begin(out: W, header: Header) -> io::Result<Self> {
        let mut writer = Self { out, actions: 0 };
        writer.write(&Line::Plan(header))?;
        Ok(writer)
    }

    /// Adds an action.
    ///
    /// # Errors
    /// Those of writing.
    pub fn add(&mut self, action: Action) -> io::Result<()> {
        self.actions += 1;
        self.write(&Line::Action(action))
    }

    /// Ends the plan, which is incomplete otherwise.
    ///
    /// # Errors
    /// Those of writing.
    pub fn end(mut self) -> io::Result<W> {
        self.write(&Line::End(End { actions: self.actions }))?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        if text.len() as u64 > LONGEST_LINE {
            // It would not be read.
            return Err(io::Error::from_raw_os_error(Errno::NAMETOOLONG.raw_os_error()));
        }
        self.out.write_all(&text)
    }
}

/// Reads a plan, an action at a time.
pub struct Reader<R> {
    input: R,
    line: u64,
    actions: u64,
}

/// Why a plan can't be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Unreadable {
    #[error("line {line}: {error}")]
    Read { line: u64, error: io::Error },
    #[error("line {line} is longer than {LONGEST_LINE} bytes")]
    TooLong { line: u64 },
    #[error("line {line} is no line of a plan: {error}")]
    NotJson { line: u64, error: serde_json::Error },
    #[error("line {line} is not expected here")]
    Misplaced { line: u64 },
    #[error("the plan has layout {found}; this program reads layout {SCHEMA}")]
    Schema { found: u32 },
    #[error("the plan ends after {actions} actions without its last line: it is incomplete")]
    Incomplete { actions: u64 },
    #[error("the plan has {found} actions, but its last line counts {counted}")]
    Miscounted { found: u64, counted: u64 },
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn begin(input: R) -> Result<(Self, Header), Unreadable> {
        let mut reader = Self { input, line: 0, actions: 0 };
        match reader.read()? {
            Some(Line::Plan(header)) if header.schema == SCHEMA => Ok((reader, header)),
            Some(Line::Plan(header)) => Err(Unreadable::Schema { found: header.schema }),
            Some(Line::Action(_) | Line::End(_)) => Err(Unreadable::Misplaced { line: reader.line }),
            None => Err(Unreadable::Incomplete { actions: 0 }),
        }
    }

    /// Returns the next action, or `None` at the end of a complete plan.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn next_action(&mut self) -> Result<Option<Action>, Unreadable> {
        match self.read()? {
            Some(Line::Action(action)) => {
                self.actions += 1;
                Ok(Some(action))
            }
            Some(Line::End(End { actions })) if actions != self.actions => {
                Err(Unreadable::Miscounted { found: self.actions, counted: actions })
            }
            Some(Line::End(_)) => match self.read()? {
                None => Ok(None),
                Some(_) => Err(Unreadable::Misplaced { line: self.line }),
            },
            Some(Line::Plan(_)) => Err(Unreadable::Misplaced { line: self.line }),
            None => Err(Unreadable::Incomplete { actions: self.actions }),
        }
    }

    fn read(&mut self) -> Result<Option<Line>, Unreadable> {
        self.line += 1;
        let line = self.line;
        let mut bytes = Vec::new();
        let mut limited = io::Read::take(&mut self.input, LONGEST_LINE + 1);
        let read = limited.read_until(b'\n', &mut bytes).map_err(|error| Unreadable::Read { line, error })?;
        match bytes.strip_suffix(b"\n") {
            _ if read == 0 => Ok(None),
            // The last line of an interrupted program.
            None if bytes.len() as u64 <= LONGEST_LINE => {
                Err(Unreadable::Incomplete { actions: self.actions })
            }
            None => Err(Unreadable::TooLong { line }),
            Some(text) => {
                serde_json::from_slice(text).map(Some).map_err(|error| Unreadable::NotJson { line, error })
            }
        }
    }
}
