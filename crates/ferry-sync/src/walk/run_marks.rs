//! Marks of other runs in the target's root: those of killed runs, and of runs at work.

use ferry_copy::RunMark;
use ferry_io::{Dir, Io, Time};

/// A time that each file was changed after.
const ANY: Time = Time { seconds: i64::MIN, nanoseconds: 0 };

/// Returns the time since which files of the root's tree may lack bytes, if a run ended with its session; and the marks of runs
/// that have ended, as far as they can be opened.
pub(super) async fn look(
    io: &Io,
    marks: Vec<RunMark>,
    (root, inode): (&Dir, u64),
) -> (Option<Time>, Vec<RunMark>) {
    let (mut since, mut ended): (Option<Time>, _) = (None, Vec::new());
    for mark in marks {
        let is_over = mark.is_over(root, inode).await;
        if is_over == Some(false) {
            continue;
        }
        since = since.into_iter().chain(mark.doubts_since(root, inode).await).min();
        if is_over == Some(true) {
            ended.push(mark);
        }
    }
    // The clock was put back since: all files may be older than the mark.
    let since = since.map(|since| if since > io.real_time() { ANY } else { since });
    (since, ended)
}
