//! Marks of files that are overwritten in place (`ferry sync --inplace`): empty files beside them.
//!
//! A file that a killed run has overwritten in part has a time that says nothing, because each write sets it. So the run
//! makes a mark before it empties the file, and removes the mark once the file has its source's attributes. The next run
//! copies marked files again (`ferry-sync`). A mark names the file by the hash of its name and by its inode number.
//!
//! Limits: in a folder where the user can't make files, there are no marks. A program that completes a marked file finds
//! it overwritten again.

use ferry_io::{Dir, Name, OpenHow, Stat, protect};

use super::names::Mark;
use super::part::PRIVATE;

/// Marks a file of this folder as being overwritten. Returns true if it had no mark.
pub(crate) async fn mark(dir: &Dir, folder: u64, name: &Name, target: &Stat) -> bool {
    let mark = Mark::new(name, target.inode).name(folder);
    // One that exists is as good, and a file that can't be marked is copied all the same.
    protect(dir.open(&mark, OpenHow::create(PRIVATE))).await.is_ok()
}

/// Removes the mark of a file.
pub(crate) async fn unmark(dir: &Dir, folder: u64, name: &Name, target: &Stat) {
    protect(dir.unlink(&Mark::new(name, target.inode).name(folder))).await.ok();
}
