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
    let mut search = search(root.path());
    search.fail(Errno::ACCESS);
    assert_eq!(search.perform(), Health::Unknown);
    for (errno, health) in [(Errno::IO, Health::Unknown), (Errno::NODEV, Health::Fails(Errno::NODEV))] {
        search.fail(errno);
        assert_eq!(search.perform(), health);
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
