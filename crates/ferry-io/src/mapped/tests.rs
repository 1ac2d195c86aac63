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
