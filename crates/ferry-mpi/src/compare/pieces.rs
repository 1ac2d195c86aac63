//! Pieces of a comparison, and the threads that perform them.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ferry_cluster::{Found, LargeFile, Text, Version};
use ferry_tree::compare::{self, Buffers, Listed, Listing, Passed, Pieces};

use super::heard::{Heard, Messages};

/// Names of a folder that are compared as a whole. Of folders with more, a rank holds the listing of one at a time.
const WHOLE: usize = 2048;

/// Time after which a thread returns the names that are left to be divided among all.
const STRETCH: Duration = Duration::from_millis(200);

/// Origin of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// A folder of the walk.
    Folder(usize),
    /// A batch of files: the work of this index.
    Work(usize),
}

/// Names that wait for a thread.
pub(super) struct Chunk {
    pub(super) origin: Origin,
    pub(super) path: Text,
    pub(super) names: Vec<Vec<u8>>,
    /// Set if no name is that of a directory.
    pub(super) are_leaves: bool,
}

/// A piece of the comparison.
pub(super) enum Piece {
    /// List a folder, and compare what it holds unless that is much.
    Enter { folder: usize, path: Text },
    /// List a large folder.
    List { folder: usize, path: Text },
    /// Go on with a large folder.
    Pass { folder: usize, path: Text, listed: Listed, most: usize },
    /// Compare some names of a folder.
    Compare(Chunk),
    /// Compare a range of a large file.
    Range { index: usize, file: LargeFile, range: Range<u64> },
}

/// Outcome of a piece.
pub(super) enum Answer {
    /// A folder can't be listed on both sides, which was reported.
    Unreadable {
        folder: usize,
    },
    /// A large folder, of which nothing is known yet.
    TooLong {
        folder: usize,
        path: Text,
    },
    Listed {
        folder: usize,
        path: Text,
        listed: Listed,
    },
    /// Names of a folder were passed, and some of them compared. These are left, and the rest of a large folder.
    Passed {
        folder: usize,
        path: Text,
        found: Found,
        leaves: Vec<Vec<u8>>,
        others: Vec<Vec<u8>>,
        rest: Option<Listed>,
    },
    /// Names were compared but for those that are left.
    Compared {
        left: Chunk,
        found: Found,
    },
    Range {
        index: usize,
    },
    Panicked,
}

/// A thread that performs pieces.
pub(super) struct Thread<'a> {
    pub(super) pieces: &'a Pieces<'a>,
    pub(super) messages: &'a Messages,
}

impl Thread<'_> {
    /// Performs pieces until there are no more to come.
    pub(super) fn run(&self, pieces: &Mutex<Receiver<Piece>>, answers: &Sender<Answer>) {
        let mut buffers = Buffers::default();
        loop {
            let piece = pieces.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(piece) = piece else { return };
            let perform = AssertUnwindSafe(|| self.perform(piece, &mut buffers));
            let answer = catch_unwind(perform).unwrap_or(Answer::Panicked);
            if answers.send(answer).is_err() {
                return;
            }
        }
    }

    fn perform(&self, piece: Piece, buffers: &mut Buffers) -> Answer {
        match piece {
            Piece::Enter { folder, path } => self.enter(folder, path, buffers),
            Piece::List { folder, path } => match self.pieces.list(path.as_bytes(), usize::MAX) {
                Listing::Listed(listed) => Answer::Listed { folder, path, listed },
                Listing::TooLong | Listing::Unreadable => Answer::Unreadable { folder },
            },
            Piece::Pass { folder, path, mut listed, most } => {
                let Passed { leaves, others } = self.pieces.pass(&mut listed, most);
                let rest = Some(listed).filter(|listed| listed.left() > 0);
                Answer::Passed { folder, path, found: Found::default(), leaves, others, rest }
            }
            Piece::Compare(mut left) => {
                let (count, found) = self.pieces.compare(left.path.as_bytes(), &left.names, STRETCH, buffers);
                left.names.drain(..count);
                Answer::Compared { left, found: to_cluster(found) }
            }
            Piece::Range { index, file: LargeFile { folder, name, version }, range } => {
                let (file, found) = ((folder.as_bytes(), name.as_bytes()), (version.inode, version.size));
                let differences = self.pieces.range(file, found, range, buffers);
                differences.into_iter().for_each(|found| self.messages.add(&Heard::InRange(found)));
                Answer::Range { index }
            }
        }
    }

    fn enter(&self, folder: usize, path: Text, buffers: &mut Buffers) -> Answer {
        let mut listed = match self.pieces.list(path.as_bytes(), WHOLE) {
            Listing::Listed(listed) => listed,
            Listing::TooLong => return Answer::TooLong { folder, path },
            Listing::Unreadable => return Answer::Unreadable { folder },
        };
        let Passed { mut leaves, mut others } = self.pieces.pass(&mut listed, usize::MAX);
        // Folders come first: other threads can enter them.
        let (count, mut found) = self.pieces.compare_listed(&listed, &others, STRETCH, buffers);
        let others = others.split_off(count);
        if others.is_empty() {
            let (count, more) = self.pieces.compare_listed(&listed, &leaves, STRETCH, buffers);
            leaves = leaves.split_off(count);
            found.folders.extend(more.folders);
            found.large.extend(more.large);
        }
        Answer::Passed { folder, path, found: to_cluster(found), leaves, others, rest: None }
    }
}

/// Returns what was found as the coordinator knows it.
fn to_cluster(found: compare::Found) -> Found {
    let large = found.large.into_iter().map(|(name, attributes)| {
        let (seconds, nanoseconds) = (attributes.mtime.seconds, attributes.mtime.nanoseconds);
        let version = Version { inode: attributes.inode.number, size: attributes.size, seconds, nanoseconds };
        (Text::from(name), version)
    });
    let large = large.collect();
    Found { folders: found.folders.into_iter().map(Text::from).collect(), large, ..Found::default() }
}
