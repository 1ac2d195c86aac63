use rustix::io::Errno;

use super::Mapped;

#[test]
fn a_mapped_file_is_written_block_by_block() {
    let place = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..10_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    std::fs::write(place.path().join("source"), &content).unwrap();
    let source = std::fs::File::open(place.path().join("source")).unwrap();
    let target = std::fs::File::create(place.path().join("target")).unwrap();
    let mapped = Mapped::of(&source, content.len()).unwrap();
    for at in [8192, 0, 4096] {
        assert_eq!(mapped.write_to(&target, at, 4096).unwrap(), (content.len() - at).min(4096));
    }
    assert_eq!(mapped.write_to(&target, content.len(), 1), Ok(0));
    assert_eq!(mapped.write_to(&target, usize::MAX, 1), Err(Errno::OVERFLOW));
    assert_eq!(std::fs::read(place.path().join("target")).unwrap(), content);
    assert_eq!(Mapped::of(&source, 0).unwrap_err(), Errno::INVAL);
}

#[test]
fn a_source_that_shrinks_is_an_error_and_no_signal() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("source"), vec![1; 64 << 10]).unwrap();
    let source = std::fs::File::options().read(true).write(true).open(place.path().join("source")).unwrap();
    let target = std::fs::File::create(place.path().join("target")).unwrap();
    let mapped = Mapped::of(&source, 64 << 10).unwrap();
    source.set_len(0).unwrap();
    assert_eq!(mapped.write_to(&target, 32 << 10, 4096), Err(Errno::FAULT));
}

#[test]
fn pages_are_populated_by_another_thread() {
    let place = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..70_001_u32).map(|n| (n ^ (n >> 8)).to_le_bytes()[0]).collect();
    std::fs::write(place.path().join("source"), &content).unwrap();
    let source = std::fs::File::open(place.path().join("source")).unwrap();
    let target = std::fs::File::create(place.path().join("target")).unwrap();
    let mapped = Mapped::of(&source, content.len()).unwrap();
    match std::thread::scope(|scope| scope.spawn(|| mapped.populate(5000, usize::MAX)).join().unwrap()) {
        Err(Errno::INVAL) => eprintln!("SKIP this kernel cannot populate mappings"),
        populated => assert_eq!(populated, Ok(())),
    }
    assert_eq!(mapped.populate(content.len() + 4096, 1), Ok(()));
    let mut at = 0;
    while at < content.len() {
        at += mapped.write_to(&target, at, 16 << 10).unwrap();
    }
    assert_eq!(std::fs::read(place.path().join("target")).unwrap(), content);
}

#[test]
fn what_a_file_lost_is_not_populated() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("source");
    std::fs::write(&path, vec![1; 64 << 10]).unwrap();
    let source = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let mapped = Mapped::of(&source, 64 << 10).unwrap();
    source.set_len(4096).unwrap();
    let populated = mapped.populate(32 << 10, 4096);
    assert!(matches!(populated, Err(Errno::FAULT | Errno::INVAL)), "{populated:?}");
}
