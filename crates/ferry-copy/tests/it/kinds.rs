//! Rules of Python's shutil: special files are failures, links take no existing entry's place, and the caller leaves entries
//! out.

use ferry_copy::{FailureKind, Options, Verb};
use ferry_io::{Errno, FileKind};

use crate::simulation::world;
use crate::told::{archive, copy};

#[test]
fn special_files_and_links_over_entries_are_failures_with_strict_kinds() {
    let (world, io) = world(1);
    world.folder("source").file("source/file", b"new").node("source/pipe", FileKind::Fifo, 0);
    world.file("source/through", b"bytes").symlink("source/link", "file");
    world.folder("target").node("target/through", FileKind::Fifo, 0).file("target/link", b"old");
    let mut outcome = copy(&world, &Options { strict_kinds: true, ..archive() }, &io);
    outcome.failures.sort_by(|one, other| one.source.cmp(&other.source));
    let [link, pipe, through] = outcome.failures.as_slice() else {
        panic!("three failures: {:?}", outcome.failures)
    };
    let is_refused = |kind: &FailureKind| matches!(kind, FailureKind::Io { verb: Verb::CreateSymlink, error } if error.is(Errno::EXIST));
    assert!(is_refused(&link.kind), "{link:?}");
    assert!(matches!(pipe.kind, FailureKind::SpecialSource), "{pipe:?}");
    assert!(matches!(through.kind, FailureKind::SpecialTarget), "{through:?}");
    assert_eq!(world.get("target/link").unwrap().kind, FileKind::Regular);
    assert_eq!(world.get("target/file").unwrap().kind, FileKind::Regular);
    assert!(world.get("target/pipe").is_none());
}

#[test]
fn entries_that_are_left_out_are_neither_copied_nor_entered() {
    let (world, io) = world(2);
    world.folder("source").file("source/kept", b"bytes").file("source/left out", b"bytes");
    world.folder("source/inner").folder("source/inner/left out").file("source/inner/left out/file", b"bytes");
    for is_filtered in [true, false] {
        let outcome = copy(&world, &Options { filtered: is_filtered, ..archive() }, &io);
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert!(world.get("target/kept").is_some() && world.get("target/inner").is_some());
        for name in ["target/left out", "target/inner/left out"] {
            assert_eq!(world.get(name).is_none(), is_filtered, "{name}");
        }
    }
}
