use std::fs;

use super::*;

/// A folder for tens of thousands of files, in memory if possible.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Makes two trees of `folders` folders with `files` files each, and runs `body` as the walk.
fn with_trees(
    folders: usize,
    files: usize,
    body: impl AsyncFnOnce(&Ahead, Vec<Task>) -> Result<(), std::io::Error>,
) {
    let place = in_memory();
    let name = |number: usize| format!("{number:03}");
    for side in ["source", "target"] {
        for folder in 0..folders {
            let folder = place.path().join(side).join(name(folder));
            fs::create_dir_all(&folder).expect("it is made");
            for file in 0..files {
                fs::write(folder.join(name(file)), "").expect("it is written");
            }
        }
    }
    run_beside(place.path(), async |ahead, [source, target]| {
        let task = |number| {
            let name = Name::new(name(number).as_bytes()).expect("a name");
            Task::new(Path::new(""), &name, &source, &target)
        };
        let tasks = (0..folders).map(task).collect();
        body(ahead, tasks).await
    });
}

/// Runs `body` as the walk of the trees `source` and `target` in `place`.
fn run_beside(place: &Path, body: impl AsyncFnOnce(&Ahead, [Dir; 2]) -> Result<(), std::io::Error>) {
    let options = ferry_io::Options::with_workers(2.try_into().expect("not zero"));
    let run = ferry_io::run(&options, async |io: Io| {
        let roots = ["source", "target"].map(|side| io.open_dir(&place.join(side)).expect("it opens"));
        let choices = Choices::of_everything(&io, PathBuf::new(), PathBuf::new());
        let ahead = Ahead::new(&io, &Arc::new(choices));
        ahead.beside(body(&ahead, roots)).await.expect("no error");
        let table = ahead.inner.lock();
        let is_empty = table.waiting.is_empty() && table.begun.is_empty();
        assert!(table.jobs.is_none() && is_empty, "nothing is kept");
    });
    run.expect("it runs");
}

impl Ahead {
    /// Waits until all has been examined for which there is room; returns the rows that are ready.
    async fn settled(&self) -> usize {
        let rows = || {
            let table = self.inner.lock();
            let is_ended = !table.begun.values().any(|state| matches!(state, State::Running(_)));
            (is_ended && (table.waiting.is_empty() || table.room() == 0)).then_some(table.rows)
        };
        loop {
            if let Some(rows) = rows() {
                return rows;
            }
            ferry_io::sleep(std::time::Duration::from_micros(100)).await.expect("it is not stopped");
        }
    }
}

#[test]
fn no_more_folders_are_examined_ahead_than_there_is_room_for() {
    with_trees(FOLDERS + 88, 20, async |ahead, tasks| {
        if ahead.inner.most < FOLDERS {
            println!("SKIP so many folders need more descriptors");
            return Ok(());
        }
        ahead.add(tasks);
        let knows = |number: &usize| ahead.inner.lock().knows(Path::new(&format!("{number:03}")));
        let known = (0..FOLDERS + 88).filter(knows).count();
        assert!((FOLDERS..FOLDERS + 2 * (AT_ONCE + 1)).contains(&known), "{known} folders");
        let rows = ahead.settled().await;
        // Those that had begun are ended.
        let most = ROWS + 2 * (AT_ONCE + 1) * 20;
        assert!((ROWS..most).contains(&rows), "{rows} rows");
        for number in 0..FOLDERS {
            let ready = ahead.take(Path::new(&format!("{number:03}"))).await.expect("the first come first");
            assert_eq!((ready.rows.len(), ready.examined.len()), (20, 20));
            assert!(ahead.settled().await < most);
        }
        Ok(())
    });
}

/// Regression: the newest folders were examined first, and the walk came to others that were not.
#[test]
fn folders_are_examined_in_the_order_of_the_walk() {
    /// Makes `folders` folders in each folder, to a depth of `levels`; returns all paths in the walk's order.
    fn make(place: &Path, beneath: &Path, folders: usize, levels: usize, made: &mut Vec<PathBuf>) {
        for number in 0..folders {
            let path = beneath.join(number.to_string());
            for side in ["source", "target"] {
                fs::create_dir_all(place.join(side).join(&path)).expect("it is made");
            }
            made.push(path.clone());
            if levels > 1 {
                make(place, &path, folders, levels - 1, made);
            }
        }
    }
    let place = in_memory();
    let mut paths = Vec::new();
    make(place.path(), Path::new(""), 5, 4, &mut paths);
    assert!(paths.len() > FOLDERS + FOLDERS / 2, "{} folders", paths.len());
    run_beside(place.path(), async |ahead, [source, target]| {
        let task = |number: usize| {
            let name = Name::new(number.to_string().as_bytes()).expect("a name");
            Task::new(Path::new(""), &name, &source, &target)
        };
        ahead.add((0..5).map(task).collect());
        for path in &paths {
            ahead.settled().await;
            assert!(ahead.take(path).await.is_some(), "{}", path.display());
        }
        Ok(())
    });
}

#[test]
fn a_folder_that_the_walk_takes_first_is_its_own() {
    with_trees(40, 3, async |ahead, tasks| {
        ahead.add(tasks);
        // Some are taken before they begin, some while they are examined, some afterwards.
        for number in (0..40).chain(0..40) {
            let path = format!("{number:03}");
            if let Some(ready) = ahead.take(Path::new(&path)).await {
                assert_eq!(ready.rows.len(), 3);
            }
            assert!(ahead.take(Path::new(&path)).await.is_none(), "it is taken once");
        }
        Ok(())
    });
}

#[test]
fn a_folder_with_many_entries_is_left_to_the_walk() {
    with_trees(1, level::ROWS + 1, async |ahead, tasks| {
        ahead.add(tasks);
        ahead.settled().await;
        assert!(ahead.take(Path::new("000")).await.is_none());
        Ok(())
    });
}

#[test]
fn a_folder_that_is_needed_first_does_not_wait_for_later_ones() {
    with_trees(FOLDERS + 100, 20, async |ahead, mut tasks| {
        let later = tasks.split_off(100);
        ahead.add(later);
        assert!(ahead.settled().await >= ROWS);
        ahead.add(tasks);
        for number in 0..100 {
            assert!(ahead.settled().await < 2 * ROWS + 2 * (AT_ONCE + 1) * 20);
            assert!(ahead.take(Path::new(&format!("{number:03}"))).await.is_some(), "{number}");
        }
        Ok(())
    });
}

#[test]
fn folders_that_the_walk_passes_by_take_no_room() {
    with_trees(9, 20, async |ahead, tasks| {
        ahead.add(tasks);
        assert_eq!(ahead.settled().await, 9 * 20);
        assert!(ahead.take(Path::new("002")).await.is_some());
        let table = ahead.inner.lock();
        assert_eq!((table.rows, table.begun.len()), (6 * 20, 6));
        Ok(())
    });
}

/// Regression: the walk gave up a folder whose job had just begun, and its rows took room until the end.
#[test]
fn a_folder_whose_job_has_begun_is_awaited() {
    with_trees(2, 3, async |ahead, tasks| {
        let gate = Arc::new(Semaphore::new(1));
        let permit = gate.acquire().await.expect("it is not stopped");
        for task in tasks {
            ahead.inner.lock().wait(task, FOLDERS);
        }
        let task = ahead.inner.lock().begin(&gate).expect("there is room");
        let ended = async {
            let found = ahead.look(&task).await.map(|(ready, ..)| (Vec::new(), ready));
            ahead.inner.lock().end(task.path.clone(), found, FOLDERS);
            drop(permit);
            Ok(())
        };
        let taken = async { Ok::<_, std::io::Error>(ahead.take(&task.path).await.is_some()) };
        let (taken, ()) = ferry_io::both(taken, ended).await?;
        assert!(taken);
        Ok(())
    });
}
