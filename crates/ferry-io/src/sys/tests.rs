use super::*;

#[test]
fn a_call_that_a_filter_forbids_is_tried_the_older_way() {
    let newer = Newer::new();
    assert_eq!(newer.answer(|| Err::<(), _>(Errno::PERM)), None);
    assert_eq!(newer.instead(Err::<(), _>(Errno::PERM)), Err(Errno::PERM));
    assert_eq!(newer.answer(|| Err::<(), _>(Errno::PERM)), None, "both said no: it may be meant");
    assert_eq!(newer.instead(Ok(1)), Ok(1));
    assert_eq!(newer.answer(|| -> Result<(), _> { panic!("it is not tried again") }), None);
}

#[test]
fn a_call_that_has_worked_is_believed() {
    let newer = Newer::new();
    assert_eq!(newer.answer(|| Ok(1)), Some(Ok(1)));
    assert_eq!(newer.answer(|| Err::<(), _>(Errno::PERM)), Some(Err(Errno::PERM)));
    assert_eq!(newer.answer(|| Err::<(), _>(Errno::NOSYS)), None);
}

#[test]
fn files_that_fit_are_loaded_with_their_folder() {
    use crate::buffers::Blocks;
    use crate::descriptor::Descriptor;
    use crate::listed::LoadAhead;
    use crate::loaded::Content;

    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    for (name, size) in [("a", 5000), ("b", 1), ("c", 3000), ("large", 20000)] {
        std::fs::write(folder.join(name), vec![7; size]).unwrap();
    }
    std::os::unix::fs::symlink("a", folder.join("link")).unwrap();
    let pool = Blocks::map(1, 16384).unwrap();
    for (patience, expected) in [(Patience::Wait, 3), (Patience::Ask, 0)] {
        let dir = Descriptor::from(OwnedFd::from(std::fs::File::open(place.path()).unwrap()));
        let ahead = LoadAhead { block: pool.try_take(), xattrs: true, alone: true };
        let name = Name::new(b"folder").unwrap();
        let mut op = Op::Enter { dir: dir.into(), name, ahead: Some(Box::new(ahead)) };
        let Ok(Outcome::Entered(entered)) = perform(&mut op, patience) else { panic!("it is there") };
        let entries = entered.2.entries;
        assert_eq!(entries.len(), 5);
        let loaded = entries.into_iter().filter_map(|entry| Some((entry.name, entry.loaded?)));
        let loaded: Vec<_> = loaded.collect();
        assert_eq!(loaded.len(), expected);
        for (name, file) in loaded {
            let Content::Whole(block) = file.content else { panic!("{name:?} is read") };
            assert_eq!(block.as_slice(), std::fs::read(folder.join(name.as_os_str())).unwrap());
        }
        drop(op);
        assert_eq!(pool.in_list(), 1, "all of the block has come back");
    }
}
