use super::*;

fn search(root: &std::path::Path) -> Search {
    let root = std::fs::File::open(root).unwrap();
    Search::at(root.as_fd()).unwrap()
}

#[test]
fn few_folders_are_listed_and_small_files_prove_nothing() {
    let root = tempfile::tempdir().unwrap();
    for index in 0..40 {
        let folder = root.path().join(index.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("small"), "small").unwrap();
    }
    let mut search = search(root.path());
    assert_eq!((search.perform(), search.folders.len()), (Health::Unknown, FOLDERS));
}

#[test]
fn a_device_fails_if_nothing_can_be_read_and_not_for_a_single_error() {
    let root = tempfile::tempdir().unwrap();
    for fail in [Search::fail_file, Search::fail_folder] {
        let mut search = search(root.path());
        fail(&mut search, Errno::ACCESS);
        assert_eq!(search.perform(), Health::Unknown);
        for (errno, health) in [(Errno::IO, Health::Unknown), (Errno::NODEV, Health::Fails(Errno::NODEV))] {
            fail(&mut search, errno);
            assert_eq!(search.perform(), health);
        }
    }
}

/// Regression: with eight of them, no file was read, and the device counted as failing.
#[test]
fn folders_that_can_not_be_listed_prove_nothing_beside_others() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("folder")).unwrap();
    let mut search = search(root.path());
    (0..FILES).for_each(|_| search.fail_folder(Errno::IO));
    assert_eq!(search.perform(), Health::Unknown);
    std::fs::write(root.path().join("folder/file"), [1; 8192]).unwrap();
    let folder = std::fs::File::open(root.path().join("folder")).unwrap();
    // Some filesystems have no direct I/O.
    let is_readable = read_file(folder.as_fd(), c"file", search.device, &mut search.block) == Ok(true);
    assert_eq!(search.perform() == Health::Works, is_readable);
}

/// Regression: files were tried in the order of their folder, so that the device counted as failing if the first quarter of
/// them was bad.
#[test]
fn files_that_are_far_apart_are_tried_first() {
    for count in 0..600 {
        let positions: Vec<usize> = spread(count).collect();
        let distinct: std::collections::BTreeSet<usize> = positions.iter().copied().collect();
        assert_eq!((positions.len(), distinct.len()), (count.min(TRIED), count.min(TRIED)), "{count}");
        assert!(distinct.last().is_none_or(|&last| last < count), "{count}");
        if count >= TRIED {
            let mut first = [&positions[..FILES], &[count]].concat();
            first.sort_unstable();
            let is_even = first.windows(2).all(|pair| pair[1] - pair[0] <= count.div_ceil(FILES));
            assert!(is_even, "{count}: {positions:?}");
        }
    }
}

#[test]
fn a_file_that_is_written_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let folder = std::fs::File::open(root.path()).unwrap();
    let hidden = |_| Name::new(b".hidden").unwrap();
    assert_eq!(write(folder.as_fd(), hidden), Ok(()));
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}
