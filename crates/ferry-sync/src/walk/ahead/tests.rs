use std::fs;

use super::*;

/// Makes two trees of `folders` folders with `files` files each, and runs `body` as the walk.
fn with_trees(
    folders: usize,
    files: usize,
    body: impl AsyncFnOnce(&Ahead, Vec<Task>) -> Result<(), std::io::Error>,
) {
    let place = tempfile::tempdir().expect("a folder");
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
    let options = ferry_io::Options::with_workers(2.try_into().expect("not zero"));
    let run = ferry_io::run(&options, async |io: Io| {
        let [source, target] =
            ["source", "target"].map(|side| io.open_dir(&place.path().join(side)).expect("it opens"));
        let choices = Choices::of_everything(&io, PathBuf::new(), PathBuf::new());
        let ahead = Ahead::new(&io, &Arc::new(choices));
        let task = |number| {
            let name = Name::new(name(number).as_bytes()).expect("a name");
            Task::new(Path::new(""), &name, &source, &target)
        };
        let tasks = (0..folders).map(task).collect();
        ahead.beside(body(&ahead, tasks)).await.expect("no error");
        let table = ahead.inner.lock();
        assert!(table.jobs.is_none() && table.folders.is_empty(), "nothing is kept");
    });
    run.expect("it runs");
}

impl Ahead {
    async fn settled(&self) -> usize {
        loop {
            ferry_io::sleep(std::time::Duration::from_millis(1)).await.expect("it is not stopped");
            let table = self.inner.lock();
            if table.folders.values().all(|state| matches!(state, State::Ready(_))) {
                return table.rows;
            }
        }
    }
}

#[test]
fn no_more_folders_are_examined_ahead_than_there_is_room_for() {
    with_trees(FOLDERS + 88, 20, async |ahead, mut tasks| {
        let rest = tasks.split_off(FOLDERS + 80);
        assert_eq!(ahead.add(tasks), FOLDERS);
        assert_eq!(ahead.add(rest), 0);
        let rows = ahead.settled().await;
        // Those that had begun are ended.
        assert!((ROWS..ROWS + 2 * (AT_ONCE + 1) * 20).contains(&rows), "{rows} rows");
        let mut taken = 0;
        for number in 0..FOLDERS {
            if let Some(ready) = ahead.take(Path::new(&format!("{number:03}"))).await {
                assert_eq!((ready.rows.len(), ready.examined.len()), (20, 20));
                taken += 1;
            }
        }
        assert_eq!(taken * 20, rows);
        assert_eq!(ahead.inner.lock().rows, 0);
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
        assert_eq!(ahead.add(tasks), 1);
        ahead.settled().await;
        assert!(ahead.take(Path::new("000")).await.is_none());
        Ok(())
    });
}
