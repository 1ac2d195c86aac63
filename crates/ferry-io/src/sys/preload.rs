//! Reads the small files of a folder, several at once.

use std::collections::VecDeque;

use rustix::fd::BorrowedFd;
use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;

use super::{Patience, call, open, xattr};
use crate::confine::open_flags;
use crate::descriptor::Descriptor;
use crate::entry::{Entries, FileKind, Stat};
use crate::name::Name;
use crate::preload::{BYTES, FILES, IN_VAIN, Preload, Preloaded};

/// A file whose read is started.
struct Begun {
    file: Descriptor,
    found: Preloaded,
}

/// Reads the first small files among `entries`. Files that fail are left out: their own requests will get the error.
pub(crate) fn preload(dir: BorrowedFd<'_>, entries: &Entries, plan: &Preload) -> Vec<Preloaded> {
    let mut reads = Reads { room: BYTES, in_vain: 0, begun: VecDeque::new(), read: Vec::new() };
    for entry in entries.entries.iter().filter(|entry| entry.kind == Some(FileKind::Regular)).take(FILES) {
        if reads.room == 0 || reads.in_vain >= IN_VAIN {
            break;
        }
        reads.add(dir, &entry.name, plan);
    }
    while reads.end_oldest() {}
    reads.read
}

struct Reads {
    /// Bytes that further files may have.
    room: u64,
    /// Files since the last one whose read was started.
    in_vain: usize,
    begun: VecDeque<Begun>,
    read: Vec<Preloaded>,
}

impl Reads {
    /// Starts a file's read. If as many files are open as may be, the oldest read is waited for first.
    fn add(&mut self, dir: BorrowedFd<'_>, name: &Name, plan: &Preload) {
        if self.begun.len() >= plan.at_once {
            self.end_oldest();
        }
        if let Ok(Some(next)) = begin(dir, name, plan, self.room) {
            self.room = self.room.saturating_sub(next.found.bytes());
            self.in_vain = 0;
            self.begun.push_back(next);
        } else {
            self.in_vain += 1;
        }
    }

    fn end_oldest(&mut self) -> bool {
        let oldest = self.begun.pop_front();
        let is_one = oldest.is_some();
        self.read.extend(oldest.and_then(end));
        is_one
    }
}

/// Opens a file and starts its read; `None` if it is left to its own request.
fn begin(dir: BorrowedFd<'_>, name: &Name, plan: &Preload, room: u64) -> Result<Option<Begun>, Errno> {
    let flags = open_flags(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, false);
    let file = Descriptor::from(open(dir, name, flags, Mode::empty(), Patience::Wait)?);
    let stat = Stat::from_kernel(&call(|| rustix::fs::fstat(file.fd()))?);
    let Some(size) = plan.size_of(&stat, room) else { return Ok(None) };
    let xattrs = if plan.xattrs { Some(xattr::all(file.fd())?) } else { None };
    // Advice only. RWF_NOWAIT would start no read on some kernels since 5.9.
    call(|| rustix::fs::fadvise(file.fd(), 0, None, Advice::WillNeed)).ok();
    let found = Preloaded { name: name.clone(), stat, xattrs, bytes: vec![0; size] };
    Ok(Some(Begun { file, found }))
}

/// Reads a file up to its size, or to its end if it has become shorter.
fn end(begun: Begun) -> Option<Preloaded> {
    let Begun { file, mut found } = begun;
    let mut filled = 0;
    while let Some(room) = found.bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
        match call(|| rustix::io::pread(file.fd(), &mut *room, filled as u64)) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(_) => return None,
        }
    }
    found.bytes.truncate(filled);
    Some(found)
}

#[cfg(not(any(loom, miri)))]
#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fd::AsFd as _;

    use super::*;
    use crate::sys::list;

    fn preloaded(folder: &std::path::Path, plan: &Preload) -> Vec<(Vec<u8>, usize)> {
        let dir = fs::File::open(folder).unwrap();
        let entries = list::entries(dir.as_fd(), None).unwrap();
        let mut found: Vec<_> = preload(dir.as_fd(), &entries, plan)
            .iter()
            .map(|file| (file.name.as_bytes().to_vec(), file.bytes.len()))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn plain_files_are_read_up_to_64_files_or_64_kib() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for index in 0..100 {
            fs::write(path.join(format!("file {index:02}")), vec![1; 10 + index]).unwrap();
        }
        let plan = Preload { xattrs: false, alone: true, largest: 1 << 20, at_once: 16 };
        assert_eq!(preloaded(path, &plan).len(), FILES);
        for index in 0..90 {
            fs::remove_file(path.join(format!("file {index:02}"))).unwrap();
        }
        fs::write(path.join("empty"), b"").unwrap();
        fs::write(path.join("two names"), b"bytes").unwrap();
        fs::hard_link(path.join("two names"), path.join("other name")).unwrap();
        fs::File::create(path.join("hole")).unwrap().set_len(30_000).unwrap();
        std::os::unix::fs::symlink("empty", path.join("link")).unwrap();
        fs::create_dir(path.join("folder")).unwrap();
        let expected: Vec<_> =
            (90..100).map(|index| (format!("file {index}").into_bytes(), 10 + index)).collect();
        assert_eq!(preloaded(path, &plan), expected);
        assert_eq!(preloaded(path, &Preload { at_once: 1, ..plan }), expected);
        assert_eq!(preloaded(path, &Preload { largest: 104, ..plan }), expected[..5]);
        assert_eq!(preloaded(path, &Preload { alone: false, ..plan }).len(), 12);
        for index in 0..40 {
            fs::write(path.join(format!("page {index:02}")), vec![1; 4096]).unwrap();
        }
        let bytes: usize = preloaded(path, &plan).iter().map(|(_, size)| size).sum();
        let most = usize::try_from(BYTES).unwrap();
        assert!((most - 4096..=most).contains(&bytes), "{bytes}");
    }

    #[test]
    fn at_most_so_many_files_are_open_at_once() {
        let folder = tempfile::tempdir().unwrap();
        for index in 0..40 {
            fs::write(folder.path().join(format!("{index}")), b"bytes").unwrap();
        }
        let dir = fs::File::open(folder.path()).unwrap();
        let entries = list::entries(dir.as_fd(), None).unwrap();
        let plan = Preload { xattrs: false, alone: true, largest: 1 << 20, at_once: 4 };
        let mut reads = Reads { room: BYTES, in_vain: 0, begun: VecDeque::new(), read: Vec::new() };
        let mut open = Vec::new();
        for entry in &entries.entries {
            reads.add(dir.as_fd(), &entry.name, &plan);
            open.push(reads.begun.len());
        }
        assert_eq!(open.iter().max(), Some(&4));
        assert_eq!(preload(dir.as_fd(), &entries, &plan).len(), 40);
    }
}
