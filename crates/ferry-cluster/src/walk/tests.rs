use super::*;

fn settings(entries: u64) -> Settings {
    Settings { lease_entries: entries, ..Settings::new(4) }
}

fn lease(works: Vec<Work>) -> Grant {
    Grant { lease: 1, works }
}

fn folder(path: &str) -> Work {
    Work::Folder { path: path.into(), again: false, is_new: false }
}

fn folders(names: &[&str]) -> Found {
    Found { folders: names.iter().map(|&name| name.into()).collect(), ..Found::default() }
}

/// Takes the next task, which has to be a folder.
fn enter(walk: &mut Walk) -> (usize, Text) {
    match walk.next_task() {
        Some(Task::Folder { folder, path, .. }) => (folder, path),
        other => panic!("{other:?} is no folder to be entered"),
    }
}

fn finish(walk: &mut Walk) -> Text {
    match walk.next_task() {
        Some(Task::Finish { folder, path, .. }) => {
            walk.finished(folder);
            path
        }
        other => panic!("{other:?} is no folder to be finished"),
    }
}

fn report(walk: &mut Walk) -> Report {
    assert_eq!(walk.next_task(), None);
    walk.report(Totals::default(), Vec::new())
}

#[test]
fn a_subtree_that_fits_into_a_lease_is_finished_bottom_up_and_reported_as_done() {
    let mut walk = Walk::new(lease(vec![folder("a")]), &settings(100));
    let (a, _) = enter(&mut walk);
    walk.found(a, folders(&["b"]), true);
    let (b, path) = enter(&mut walk);
    assert_eq!(path, "a/b".into());
    walk.found(b, Found::default(), true);
    assert_eq!([finish(&mut walk), finish(&mut walk)], ["a/b".into(), "a".into()]);
    let report = report(&mut walk);
    assert!(report.ended && report.folders.is_empty());
    assert_eq!(report.outcomes, [Outcome::Done]);
}

#[test]
fn a_spent_budget_gives_back_what_was_not_begun_beneath_folders_that_outlive_the_lease() {
    let mut walk = Walk::new(lease(vec![folder("a"), folder("z")]), &settings(10));
    let (a, _) = enter(&mut walk);
    walk.found(a, folders(&["b", "c"]), true);
    let (c, path) = enter(&mut walk);
    assert_eq!(path, "a/c".into());
    walk.found(c, folders(&["d"]), true);
    walk.spend(10, 0);
    let report = report(&mut walk);
    assert_eq!(report.outcomes, [Outcome::Listed, Outcome::Untouched]);
    let new = |at, name: &str, state| NewFolder { at, name: name.into(), state };
    let expected = [
        new(At::Work(0), "b", State::Unlisted),
        new(At::Work(0), "c", State::Listed),
        new(At::New(1), "d", State::Unlisted),
    ];
    assert_eq!(report.folders, expected);
}

#[test]
fn a_folder_with_a_large_file_is_left_to_the_coordinator_with_those_above_it() {
    let mut walk = Walk::new(lease(vec![folder("a")]), &settings(100));
    let (a, _) = enter(&mut walk);
    walk.found(a, folders(&["b"]), true);
    let (b, _) = enter(&mut walk);
    let version = Version { inode: 1, size: 1 << 40, seconds: 0, nanoseconds: 0 };
    walk.found(b, Found { large: vec![("big".into(), version)], ..Found::default() }, true);
    let report = report(&mut walk);
    assert_eq!(report.outcomes, [Outcome::Listed]);
    assert_eq!(report.folders.len(), 1);
    assert_eq!(report.large, [NewLarge { at: At::New(0), name: "big".into(), version, lacks_part: false }]);
}

#[test]
fn a_listing_goes_on_in_its_lease_and_the_rest_is_given_back() {
    let mut walk = Walk::new(lease(vec![folder("a")]), &settings(5));
    let (a, _) = enter(&mut walk);
    walk.found(a, folders(&["b"]), false);
    walk.spend(5, 0);
    let first = report(&mut walk);
    assert!(!first.ended);
    assert_eq!(first.outcomes, [Outcome::Listing]);
    assert_eq!(first.folders.len(), 1);
    let Some(Task::Continue { folder, path }) = walk.next_task() else { panic!("the listing was lost") };
    assert_eq!(path, "a".into());
    walk.found(folder, Found::default(), true);
    let last = report(&mut walk);
    assert!(last.ended && last.folders.is_empty());
    assert_eq!(last.outcomes, [Outcome::Listed], "what was given back before is not finished");
}

#[test]
fn a_hurried_lease_does_something_before_it_ends() {
    let mut walk = Walk::new(lease(vec![folder("a"), folder("z")]), &settings(100));
    walk.note_idle(2);
    let (a, _) = enter(&mut walk);
    walk.found(a, Found::default(), true);
    finish(&mut walk);
    let report = report(&mut walk);
    assert_eq!(report.outcomes, [Outcome::Done, Outcome::Untouched]);
}

#[test]
fn folders_in_one_that_is_listed_again_are_reported_and_not_walked() {
    let again = Work::Folder { path: "a".into(), again: true, is_new: false };
    let mut walk = Walk::new(lease(vec![again]), &settings(100));
    let Some(Task::Folder { folder, again: true, .. }) = walk.next_task() else { panic!("no folder") };
    walk.found(folder, folders(&["b", "c"]), true);
    let report = report(&mut walk);
    assert_eq!(report.outcomes, [Outcome::Listed]);
    assert!(report.folders.iter().all(|folder| folder.state == State::Unlisted));
    assert_eq!(report.folders.len(), 2);
}

#[test]
fn a_folder_that_is_listed_again_is_finished_by_the_coordinator_which_may_know_of_files_in_it() {
    let again = Work::Folder { path: "a".into(), again: true, is_new: false };
    let mut walk = Walk::new(lease(vec![again]), &settings(100));
    let (a, _) = enter(&mut walk);
    walk.found(a, Found::default(), true);
    assert_eq!(report(&mut walk).outcomes, [Outcome::Listed]);
}

#[test]
fn a_listing_goes_on_once_more_for_idle_ranks_and_is_then_reported() {
    let mut walk = Walk::new(lease(vec![folder("a")]), &settings(1000));
    let (a, _) = enter(&mut walk);
    walk.found(a, Found::default(), false);
    walk.note_idle(2);
    let Some(Task::Continue { folder, .. }) = walk.next_task() else { panic!("nothing is shared") };
    assert_eq!(walk.idle(), 2);
    walk.give_back(folder, vec!["f".into()]);
    walk.found(folder, Found::default(), false);
    let report = report(&mut walk);
    assert!(!report.ended);
    assert_eq!(report.files, [NewFiles { at: At::Work(0), names: vec!["f".into()] }]);
}

#[test]
fn batches_are_as_many_as_there_are_ranks_within_bounds() {
    assert_eq!([names_for(0), names_for(3), names_for(u32::MAX)], [0, 3 * 512, 128 * 512]);
    assert_eq!([batch_size(4_000, 9), batch_size(100, 9), batch_size(1_000_000, 9)], [400, 32, 512]);
}
