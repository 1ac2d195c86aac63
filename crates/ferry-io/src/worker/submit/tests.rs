use std::sync::Arc;

use super::*;
use crate::descriptor::{Descriptor, Fd};
use crate::name::Name;
use crate::op::FileOrEntry;
use crate::options::{Backend, Options};
use crate::worker::{INLINE_STRETCH, LONGEST_STRETCH};

fn file() -> Fd {
    Arc::new(Descriptor::Real(std::fs::File::open("/dev/null").unwrap().into()))
}

/// Operations on a target that the fiber has begun.
fn on_a_begun_target() -> Vec<Op> {
    let mode = rustix::fs::Mode::empty();
    vec![
        Op::Write { file: file(), block: None, skip: 0, at: 0 },
        Op::CopyRange { source: file(), source_at: 0, target: file(), target_at: 0, size: 1 },
        Op::Clone { source: file(), target: file() },
        Op::Allocate { file: file(), at: 0, size: 1 },
        Op::Truncate { file: file(), size: 0 },
        Op::Stat { place: FileOrEntry::Open(file()), follow: false, birth: false },
        Op::SetMode { file: file(), mode },
    ]
}

/// Operations that begin a file or concern none.
fn on_names() -> Vec<Op> {
    let name = || Name::new(b"name").unwrap();
    vec![
        Op::Unlink { dir: file(), name: name(), directory: false },
        Op::Stat { place: FileOrEntry::Entry(file(), name()), follow: false, birth: false },
        Op::Load {
            dir: file(),
            name: name(),
            xattrs: false,
            alone: false,
            block: None,
            opened: None,
            into: None,
        },
    ]
}

#[test]
fn a_fiber_that_has_begun_a_file_gives_way_later_than_others() {
    let options = Options { backend: Backend::Posix, ..Options::default() };
    crate::run(&options, async |_| {
        let worker = current();
        let give_way = |op, inline_calls| {
            worker.inline_calls.set(inline_calls);
            submit(op).gives_way(&worker)
        };
        let nothing_has_come = on_names().into_iter().map(|op| give_way(op, INLINE_STRETCH));
        assert!(nothing_has_come.into_iter().all(|gives_way| !gives_way));
        worker.inbox.deliver([]);
        for op in on_names() {
            assert!(give_way(op, INLINE_STRETCH));
        }
        for op in on_a_begun_target() {
            let operation = op.operation();
            assert!(!give_way(op, INLINE_STRETCH), "{operation:?} leaves its target unfinished");
        }
        for op in on_a_begun_target().into_iter().chain(on_names()) {
            assert!(give_way(op, LONGEST_STRETCH));
        }
        worker.inline_calls.set(0);
    })
    .unwrap();
}
