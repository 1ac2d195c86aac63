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
    search.reads_small = false;
    assert_eq!((search.perform(), search.folders.len()), (Health::Unknown, FOLDERS));
}

/// Regression: files of less than 4 KiB told nothing on any filesystem, so that a few others that failed decided alone.
#[test]
fn small_files_are_read_where_they_have_blocks_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("small");
    // Not so few bytes that they are stored in the inode.
    std::fs::write(&file, [1; 1000]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let mut search = search(root.path());
    // The temporary folder may be on any filesystem.
    let expected = if search.reads_small { Health::Works } else { Health::Unknown };
    assert_eq!(search.perform(), expected);
}

/// Returns the health of a device with so many files, which `read` reads.
fn health_of(count: usize, read: impl Fn(usize) -> Result<bool, Errno>) -> Health {
    let root = tempfile::tempdir().unwrap();
    let mut search = search(root.path());
    search.list(0).unwrap();
    search.files = (0..count).map(|at| (0, CString::new(at.to_string()).unwrap())).collect();
    search.decide(|_, _, name| read(name.to_str().unwrap().parse().unwrap()))
}

/// Regression: the device counted as failing if two of the 256 files that were tried had failed, and the others were too small
/// to tell anything.
#[test]
fn a_few_files_that_fail_beside_small_ones_prove_nothing() {
    let fails = |most: usize| move |at: usize| if at < most { Err(Errno::IO) } else { Ok(false) };
    for count in [3, TRIED, 3 * TRIED] {
        assert_eq!(health_of(count, fails(2)), Health::Unknown, "{count}");
    }
    // Of these, 256 are tried, and none of the good ones among them.
    let beyond = |at: usize| match at {
        0..21 => Err(Errno::IO),
        at if at % 3 == 0 => Ok(false),
        _ => Ok(true),
    };
    assert_eq!(health_of(3 * TRIED, beyond), Health::Unknown);
    assert_eq!(health_of(TRIED, fails(FILES)), Health::Fails(Errno::IO));
    assert_eq!(health_of(TRIED, fails(FILES - 1)), Health::Unknown);
}

#[test]
fn a_device_fails_if_all_its_files_do_and_they_are_few() {
    for (count, health) in
        [(1, Health::Unknown), (2, Health::Fails(Errno::IO)), (7, Health::Fails(Errno::IO))]
    {
        assert_eq!(health_of(count, |_| Err(Errno::IO)), health, "{count}");
    }
    assert_eq!(health_of(3 * TRIED, |_| Err(Errno::IO)), Health::Fails(Errno::IO));
    // A file of another user, for example.
    assert_eq!(health_of(3, |at| Err([Errno::IO, Errno::IO, Errno::ACCESS][at])), Health::Unknown);
}

/// Regression: the device counted as failing if the files of a folder that could not be opened were the only good ones.
#[test]
fn a_folder_that_is_refused_may_have_good_files() {
    let root = tempfile::tempdir().unwrap();
    for (is_refused, health) in [(false, Health::Fails(Errno::IO)), (true, Health::Unknown)] {
        let mut search = search(root.path());
        search.list(0).unwrap();
        if is_refused {
            search.fail_folder(Errno::ACCESS);
        }
        search.files = vec![(0, c"a".to_owned()), (0, c"b".to_owned())];
        assert_eq!(search.decide(|_, _, _| Err(Errno::IO)), health, "{is_refused}");
    }
}

#[test]
fn a_device_fails_if_nothing_can_be_read_and_not_for_a_single_error() {
    let root = tempfile::tempdir().unwrap();
    for fail in [Search::fail_file, Search::fail_folder] {
        let mut refused = search(root.path());
        (0..FILES).for_each(|_| fail(&mut refused, Errno::ACCESS));
        assert_eq!(refused.perform(), Health::Unknown);
        let mut search = search(root.path());
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
    search.folders.push(folder.into());
    let is_readable = search.read_file(search.folders.len() - 1, c"file") == Ok(true);
    search.folders.pop();
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
