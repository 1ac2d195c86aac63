//! Marks of other runs in the target's root: those of killed runs, and of runs at work.

use ferry_copy::RunMark;
use ferry_io::{Dir, Io, Time};

/// A time that each file was changed after.
const ANY: Time = Time { seconds: i64::MIN, nanoseconds: 0 };

/// Marks of other runs that have ended.
#[derive(Debug, Default)]
pub(super) struct RunMarks {
    /// Those of the present session: the page cache has all bytes, so they say nothing of any file.
    trusted: Vec<RunMark>,
    /// Those of sessions that are over, as far as they can be opened.
    doubted: Vec<RunMark>,
    /// Set if some session is over: also if its mark can't be opened.
    has_doubts: bool,
}

impl RunMarks {
    /// Takes the marks that a run may remove: those of sessions that are over only if it has examined everything.
    pub(super) fn take(&mut self, is_whole: bool) -> Vec<RunMark> {
        let mut taken = std::mem::take(&mut self.trusted);
        if is_whole {
            taken.append(&mut self.doubted);
        }
        taken
    }

    /// Returns true if some files may lack bytes, unless this run compares them.
    pub(super) fn has_doubts(&self) -> bool {
        self.has_doubts
    }
}

/// Returns the time since which files of the root's tree may lack bytes, if a run ended with its session; and the marks of runs
/// that have ended.
pub(super) async fn look(
    io: &Io,
    marks: Vec<RunMark>,
    (root, inode): (&Dir, u64),
) -> (Option<Time>, RunMarks) {
    let (mut since, mut ended): (Option<Time>, _) = (None, RunMarks::default());
    for mark in marks {
        let is_over = mark.is_over(root, inode).await;
        if is_over == Some(false) {
            continue;
        }
        since = since.into_iter().chain(mark.doubts_since(root, inode).await).min();
        if is_over == Some(true) {
            let of_its_kind = if mark.is_of(root) { &mut ended.trusted } else { &mut ended.doubted };
            of_its_kind.push(mark);
        }
    }
    ended.has_doubts = since.is_some();
    // The clock was put back since: all files may be older than the mark.
    let since = since.map(|since| if since > io.real_time() { ANY } else { since });
    (since, ended)
}
