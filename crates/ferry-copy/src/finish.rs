//! The end of a folder: its kept attributes are set once nothing in it is pending.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::folder::{Facts, Folder, Role};
use crate::lent;
use crate::meta;
use crate::place::Subject;
use crate::report::{During as _, FailureKind, Verb};
use crate::run::Run;
use crate::sync;

/// Ends one pending task of a folder. Its last one sets the folder's attributes and ends a task of the parent.
pub(crate) async fn end_one(run: &Run, folder: Arc<Folder>) {
    let mut folder = folder;
    while folder.end() {
        if let Err(kind) = ferry_io::protect(lent::take_back(run, &folder)).await {
            run.fail(Subject::Folder(&folder), kind);
        }
        let stays = folder.is_untouched.load(Ordering::Relaxed) || is_passed_through(&folder);
        let changes = |facts: &&Facts| !stays && meta::changes_folder(run, &folder, facts);
        if let Some(facts) = folder.facts().filter(changes)
            && let Err(kind) = ferry_io::protect(keep(run, &folder, facts)).await
        {
            run.fail(Subject::Folder(&folder), kind);
        }
        if let Err(kind) = sync::filled_folder(run, &folder).await {
            run.fail(Subject::Folder(&folder), kind);
        }
        folder.close();
        let Some(parent) = folder.parent() else { return };
        folder = Arc::clone(parent);
    }
}

/// Sets the kept attributes of a filled folder.
async fn keep(run: &Run, folder: &Arc<Folder>, facts: &Facts) -> Result<(), FailureKind> {
    let target = run.dirs(folder).await.during(Verb::SetMode)?.target;
    meta::keep_folder(run, folder, facts, &target).await
}

/// Returns true for a folder on the way to an operand that gets no attributes. As with cp, an existing folder gets its
/// source's only if one beneath it had to be made. A way that ended early stays as it was made.
fn is_passed_through(folder: &Folder) -> bool {
    let Some(facts) = folder.facts().filter(|_| folder.role == Role::Way) else { return false };
    if folder.is_cut_short.load(Ordering::Relaxed) {
        return true;
    }
    let is_made = facts.is_new || folder.leads_to_new.load(Ordering::Relaxed);
    if let Some(parent) = folder.parent().filter(|_| is_made) {
        parent.leads_to_new.store(true, Ordering::Relaxed);
    }
    !is_made
}
