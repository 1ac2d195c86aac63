use super::{InMemory, data, is_name_in_memory};
use rustix::io::Errno;

#[test]
fn what_was_just_written_is_in_memory() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    std::fs::write(&path, vec![1; 10_000]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    match data(&file, 0, 0) {
        Ok(InMemory { bytes, dirty_bytes }) => {
            assert_eq!(bytes, 12_288);
            assert!(dirty_bytes <= bytes);
        }
        Err(errno) => eprintln!("SKIP: cachestat(2): {errno}"),
    }
    match is_name_in_memory(&path) {
        Ok(answer) => assert!(answer),
        Err(errno) => eprintln!("SKIP: openat2(2): {errno}"),
    }
}

#[test]
fn a_name_that_is_not_there_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("missing");
    // Listed or not: the first look may have to ask the filesystem.
    std::fs::metadata(&path).unwrap_err();
    let answer = is_name_in_memory(&path);
    assert!(matches!(answer, Err(Errno::NOENT | Errno::NOSYS | Errno::INVAL) | Ok(false)), "{answer:?}");
}
