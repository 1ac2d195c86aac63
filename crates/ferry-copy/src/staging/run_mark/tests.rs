use super::*;

const FOLDER: u64 = 7;
const MARK: RunMark = RunMark { session: Session { boot: u128::MAX, mount: 0x2a }, process: 31, number: 4 };

#[test]
fn a_name_tells_its_mark_in_its_folder_only() {
    let name = MARK.name(0x9c);
    assert_eq!(name.as_bytes(), b".ferry-9c-ffffffffffffffffffffffffffffffff-2a-1f-4.run");
    assert_eq!(RunMark::of(&name, 0x9c), Some(MARK));
    assert_eq!(RunMark::of(&name, 0x9d), None);
}

#[test]
fn other_names_are_no_marks() {
    for name in [
        ".ferry-9c-1-2-3.run",
        ".ferry-9c-1-2-3-4-5.run",
        ".ferry-9c-1-2-3-04.run",
        ".ferry-9c-1-2-3-4.part",
        ".ferry-9c-1-10000000000000000-3-4.run",
        "9c-1-2-3-4.run",
    ] {
        assert_eq!(RunMark::of(&Name::new(name.as_bytes()).unwrap(), 0x9c), None, "{name}");
    }
}

/// Runs `test` with a folder on a real filesystem.
fn with_folder(test: impl AsyncFnOnce(Dir)) {
    let place = tempfile::tempdir().unwrap();
    ferry_io::run(&ferry_io::Options::default(), async |io: ferry_io::Io| {
        test(io.folder(&ferry_io::Paths::new(), place.path()).unwrap()).await;
    })
    .unwrap();
}

async fn has(dir: &Dir, mark: &RunMark) -> bool {
    dir.stat_entry(&mark.name(FOLDER), false).await.is_ok()
}

/// Regression: the run went on without a mark.
#[test]
fn a_mark_that_another_run_removes_before_it_is_locked_is_made_again() {
    with_folder(async |dir| {
        let mut made = Vec::new();
        let own = OwnRunMark::make_beside(&dir, FOLDER, async |mark| {
            if made.is_empty() {
                mark.remove(&dir, FOLDER).await;
                assert!(!has(&dir, mark).await, "it is not locked, so its run counts as ended");
            }
            made.push(*mark);
        });
        let own = own.await.unwrap();
        assert_eq!(made.len(), 2);
        assert!(has(&dir, &own.mark).await);
        own.mark.remove(&dir, FOLDER).await;
        assert_eq!(own.mark.is_over(&dir, FOLDER).await, Some(false));
        own.remove(&dir, FOLDER).await;
        assert_eq!(dir.list(Some(0)).await.unwrap().entries.len(), 0);
    });
}

/// Regression: the run took the mark for its own, and the other one removed it afterwards.
#[test]
fn a_mark_that_another_run_is_about_to_remove_is_given_up() {
    with_folder(async |dir| {
        let mut held = None;
        let own = OwnRunMark::make_beside(&dir, FOLDER, async |mark| {
            if held.is_none() {
                let file = dir.open(&mark.name(FOLDER), OpenHow::read()).await.unwrap();
                assert_eq!(file.try_lock_shared(), Ok(true));
                held = Some((*mark, file));
            }
        });
        let own = own.await.unwrap();
        let (first, file) = held.unwrap();
        assert!(!has(&dir, &first).await && own.mark != first);
        drop(file);
        assert_eq!(own.mark.is_over(&dir, FOLDER).await, Some(false));
    });
}

/// Regression: some runs were without a mark.
#[test]
fn marks_that_are_made_while_another_run_clears_them_away_are_there() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let options = ferry_io::Options::default();
    std::thread::scope(|scope| {
        let clears = async |io: ferry_io::Io| {
            let dir = io.folder(&ferry_io::Paths::new(), path).unwrap();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                for entry in dir.list(Some(0)).await.unwrap().entries {
                    if let Some(mark) = RunMark::of(&entry.name, FOLDER) {
                        mark.remove(&dir, FOLDER).await;
                    }
                }
            }
        };
        scope.spawn(move || ferry_io::run(&ferry_io::Options::default(), clears).unwrap());
        let found = ferry_io::run(&options, async |io: ferry_io::Io| {
            let dir = io.folder(&ferry_io::Paths::new(), path).unwrap();
            let (mut made, mut missing) = (0, 0);
            for _ in 0..5_000 {
                // None at all if each of the sixteen was removed.
                let Some(own) = OwnRunMark::make(&dir, FOLDER).await else { continue };
                made += 1;
                missing += u32::from(!has(&dir, &own.mark).await);
                own.remove(&dir, FOLDER).await;
            }
            (made, missing)
        });
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        let (made, missing) = found.unwrap().0;
        assert!(made > 2_500 && missing == 0, "{made} made, {missing} of them missing");
    });
}

#[test]
fn sixteen_names_are_tried_for_a_mark() {
    with_folder(async |dir| {
        let mut made = Vec::new();
        let own = OwnRunMark::make_beside(&dir, FOLDER, async |mark| {
            mark.remove(&dir, FOLDER).await;
            made.push(*mark);
        });
        assert!(own.await.is_none());
        assert_eq!(made.len(), 16);
    });
}

/// Regression: a mark whose run had ended meanwhile was found by its name, and another run's mark of that name was removed.
#[test]
fn no_two_marks_of_a_process_have_one_name() {
    with_folder(async |dir| {
        let first = OwnRunMark::make(&dir, FOLDER).await.unwrap();
        let mark = first.mark;
        first.remove(&dir, FOLDER).await;
        let second = OwnRunMark::make(&dir, FOLDER).await.unwrap();
        mark.remove(&dir, FOLDER).await;
        assert!(second.mark != mark && has(&dir, &second.mark).await);
    });
}
