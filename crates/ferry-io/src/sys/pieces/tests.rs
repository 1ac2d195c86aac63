use std::fs::File;
use std::os::fd::AsFd as _;

use super::*;
use crate::choose::Way;

fn pieces<'a>(source: &'a File, target: &'a File, at: u64) -> Pieces<'a> {
    let (source, target) = (source.as_fd(), target.as_fd());
    Pieces { source, target, at, since: Instant::now(), buffer: Vec::new() }
}

/// Moves one piece by a mapping from `at` on, of a source of `size` bytes.
fn by_mapping(size: usize, at: u64, bytes: usize) -> (Result<usize, Errno>, Vec<u8>, Vec<u8>) {
    let place = tempfile::tempdir().expect("a file");
    let content: Vec<u8> = (0..size).map(|n| (n % 251).to_le_bytes()[0] | 1).collect();
    std::fs::write(place.path().join("source"), &content).expect("a file");
    let source = File::open(place.path().join("source")).expect("a file");
    let target = File::create(place.path().join("target")).expect("a file");
    let mut moves = pieces(&source, &target, at);
    let moved = moves.piece(0, &Piece::alone(Way::Mapped128, bytes));
    (moved, content, std::fs::read(place.path().join("target")).expect("a file"))
}

/// Returns true if this kernel cannot populate mappings (before Linux 5.14).
fn is_skipped(moved: Result<usize, Errno>) -> bool {
    if moved == Err(Errno::INVAL) {
        println!("SKIP this kernel cannot populate mappings");
    }
    moved == Err(Errno::INVAL)
}

/// A mapping shows zeros behind the end of its file. Without the look at the end, 8,192 bytes would count as copied.
#[test]
fn a_mapping_ends_where_its_source_ends() {
    let (moved, content, target) = by_mapping(5000, 0, 8192);
    if is_skipped(moved) {
        return;
    }
    assert_eq!(moved, Ok(5000));
    assert_eq!(target[..5000], content);
    // The whole piece lies behind the end.
    assert_eq!(by_mapping(5000, 1 << 20, 4096).0, Err(Errno::FAULT));
}

#[test]
fn a_piece_may_begin_within_a_page() {
    let (moved, content, target) = by_mapping(300_000, 4097, 200_001);
    if is_skipped(moved) {
        return;
    }
    assert_eq!(moved, Ok(200_001));
    assert_eq!(target[4097..], content[4097..4097 + 200_001]);
}

#[test]
fn reads_and_writes_copy_to_the_end_of_the_source() {
    let place = tempfile::tempdir().expect("a folder");
    let content: Vec<u8> = (0..700_001_u32).map(|n| n.to_le_bytes()[0] | 1).collect();
    std::fs::write(place.path().join("source"), &content).expect("a file");
    let source = File::open(place.path().join("source")).expect("a file");
    for (way, at) in [(Way::Buffered256, 0), (Way::Buffered64, 4097)] {
        let target = File::create(place.path().join("target")).expect("a file");
        let mut moves = pieces(&source, &target, at as u64);
        assert_eq!(moves.piece(0, &Piece::alone(way, 1 << 20)), Ok(content.len() - at));
        assert_eq!(std::fs::read(place.path().join("target")).expect("a file")[at..], content[at..]);
        assert_eq!(moves.buffer.len(), way.write_bytes().expect("its buffer"));
    }
}

#[test]
fn writes_without_space_are_reported() {
    let source = File::open("/dev/zero").expect("zeros");
    let Ok(target) = File::options().write(true).open("/dev/full") else {
        return println!("SKIP there is no /dev/full");
    };
    let mut moves = pieces(&source, &target, 0);
    assert_eq!(moves.piece(0, &Piece::alone(Way::Buffered256, 1 << 20)), Err(Errno::NOSPC));
}

/// Another program changes the source while its mapping is written.
#[test]
fn a_source_that_changes_is_copied_in_another_way() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("source");
    std::fs::write(&path, vec![1; 8 << 20]).expect("a file");
    let source = File::options().read(true).write(true).open(&path).expect("a file");
    let target = File::create(place.path().join("target")).expect("a file");
    let mut moves = pieces(&source, &target, 0);
    let version = moves.version().expect("its attributes");
    source.set_len(5000).expect("a shorter file");
    source.set_len(8 << 20).expect("a longer file");
    assert_ne!(moves.version().expect("its attributes"), version);
    let moved = moves.piece(0, &Piece::alone(Way::Mapped64, 1 << 20));
    assert!(is_skipped(moved) || moved == Ok(1 << 20));
}
