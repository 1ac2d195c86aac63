//! Each operation on the ring gives the same result as the plain call.

use std::ffi::CString;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use rustix::io::Errno;

use super::*;
use crate::{Error, FileKind, Operation, Route};

#[test]
fn every_operation_answers_as_the_plain_call() {
    if !has_ring() {
        return;
    }
    let uring = tempfile::tempdir().unwrap();
    let (seen_uring, stats) = in_folder(&ring_options(), uring.path(), every_operation);
    let inline = tempfile::tempdir().unwrap();
    let options = Options { backend: Backend::Posix, route: RouteChoice::Inline, ..ring_options() };
    let (seen_inline, _) = in_folder(&options, inline.path(), every_operation);
    assert_eq!(seen_uring, seen_inline);
    for operation in [
        Operation::Open,
        Operation::Stat,
        Operation::Read,
        Operation::Write,
        Operation::Allocate,
        Operation::Truncate,
        Operation::Sync,
        Operation::MakeDirectory,
        Operation::Symlink,
        Operation::Link,
        Operation::Rename,
        Operation::Unlink,
    ] {
        let by_ring = stats.operations[operation as usize][Route::Ring as usize];
        assert!(by_ring > 0, "{} did not go to the ring", operation.name());
    }
}

/// Visible results of each operation, except times and inode numbers.
async fn every_operation(io: &Io, dir: Dir) -> Vec<String> {
    let mut seen = Vec::new();
    let mut note = |what: &str, answer: Result<(), Error>| seen.push(format!("{what}: {answer:?}"));
    let file = dir.open(&name("new"), OpenHow::create(0o640)).await.unwrap();
    note("create again", dir.open(&name("new"), OpenHow::create(0o640)).await.map(drop));
    note("open what is not there", dir.open(&name("none"), OpenHow::read()).await.map(drop));
    let mut block = io.block().await.unwrap();
    block.as_mut_capacity()[..5000].copy_from_slice(&pattern(5000));
    block.set_filled(5000);
    let (block, written) = file.write_all_at(block, 3).await;
    note("write", written);
    let (block, unread) = file.read_at(block, 0).await;
    note("read what is open for writing", unread.map(drop));
    note("allocate", file.allocate(0, 1 << 20).await);
    note("truncate", file.truncate(4000).await);
    note("sync", file.sync().await);
    note("sync data", file.sync_data().await);
    note("start write-back", file.start_write_back(0, 4096).await);
    note("make a folder", dir.make_dir(&name("folder"), 0o750).await);
    note("make it again", dir.make_dir(&name("folder"), 0o750).await);
    note("symlink", dir.symlink(&name("link"), CString::new("new").unwrap()).await);
    note("open a link", dir.open(&name("link"), OpenHow::read()).await.map(drop));
    note("follow a link", dir.open(&name("link"), OpenHow::read().following()).await.map(drop));
    let folder = dir.open_dir(&name("folder")).await.unwrap();
    note("link", dir.link(&name("new"), &folder, &name("other"), false).await);
    note("rename onto", dir.rename(&name("link"), &folder, &name("other"), false).await);
    note("rename", dir.rename(&name("link"), &folder, &name("moved"), true).await);
    note("remove a full folder", dir.remove_dir(&name("folder")).await);
    note("unlink a folder", dir.unlink(&name("folder")).await);
    note("unlink", folder.unlink(&name("moved")).await);
    let reader = folder.open(&name("other"), OpenHow::read()).await.unwrap();
    let (block, count) = reader.read_at(block, 1000).await;
    note("read", count.map(|count| assert_eq!(count, 3000)));
    assert_eq!(block.as_slice(), &pattern(5000)[997..3997]);
    let (_, count) = reader.read_at(block, 4000).await;
    note("read at the end", count.map(|count| assert_eq!(count, 0)));
    let stat = reader.stat().await.unwrap();
    assert_eq!(stat, dir.stat_entry(&name("new"), false).await.unwrap());
    seen.push(format!("{:?} {:o} {} {}", stat.kind, stat.mode, stat.size, stat.links));
    seen
}

#[test]
fn attributes_are_those_of_the_plain_call() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(10_000)).unwrap();
    std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
    let places = [
        (folder.path(), "file", false),
        (folder.path(), "link", false),
        (folder.path(), "link", true),
        (Path::new("/dev"), "null", false),
        (Path::new("/proc"), "self", true),
    ];
    for (place, entry, follow) in places {
        let (by_ring, _) = in_folder(&ring_options(), place, async |_, dir| {
            dir.stat_entry(&name(entry), follow).await.unwrap()
        });
        let path = place.join(entry);
        let by_std = if follow { fs::metadata(&path) } else { fs::symlink_metadata(&path) }.unwrap();
        assert_eq!(by_ring.mode, by_std.permissions().mode() & 0o7777);
        assert_eq!((by_ring.uid, by_ring.gid, by_ring.links), (by_std.uid(), by_std.gid(), by_std.nlink()));
        assert_eq!((by_ring.device, by_ring.special), (by_std.dev(), by_std.rdev()));
        assert_eq!((by_ring.size, by_ring.blocks), (by_std.size(), by_std.blocks()));
        let modified = by_ring.times.modified;
        assert_eq!(
            (modified.seconds, i64::from(modified.nanoseconds)),
            (by_std.mtime(), by_std.mtime_nsec())
        );
        let kind = if by_std.is_symlink() {
            FileKind::Symlink
        } else if by_std.is_dir() {
            FileKind::Directory
        } else if by_std.is_file() {
            FileKind::Regular
        } else {
            FileKind::CharDevice
        };
        assert_eq!(by_ring.kind, kind);
    }
}

#[test]
fn a_chain_reads_as_open_read_close_do() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for index in 0..300 {
        fs::write(folder.path().join(index.to_string()), pattern(index * 17)).unwrap();
    }
    std::os::unix::fs::symlink("1", folder.path().join("link")).unwrap();
    let posix = Options { backend: Backend::Posix, route: RouteChoice::Auto, ..ring_options() };
    let auto = Options { route: RouteChoice::Auto, ..ring_options() };
    for (options, by_chain) in [(ring_options(), 301), (auto, 301), (posix, 0)] {
        let options = Options { blocks: 200, block_size: 4096, ..options };
        let ((), stats) = in_folder(&options, folder.path(), async |io, dir| {
            // More files at once than the table of direct descriptors holds.
            crate::for_each(200, 0..300_usize, async |index| {
                let (block, count) = dir.read_chain(&name(&index.to_string()), io.block().await?).await;
                let expected = pattern(index * 17);
                let expected = &expected[..expected.len().min(4096)];
                assert_eq!(count?, expected.len());
                assert_eq!(block.as_slice(), expected);
                Ok::<(), Error>(())
            })
            .await
            .unwrap();
            for (missing, errno) in [("none", Errno::NOENT), ("link", Errno::LOOP)] {
                let (block, count) = dir.read_chain(&name(missing), io.block().await.unwrap()).await;
                assert_eq!(count.unwrap_err().as_errno(), Some(errno));
                drop(block);
            }
        });
        assert_eq!(stats.by_route(Route::Ring), if by_chain > 0 { 302 } else { 0 });
        if by_chain > 0 {
            assert_eq!(stats.submitted, 302 * chain::STEPS as u64);
        }
    }
}

#[test]
fn a_direct_slot_is_not_reused_before_its_close() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(4096)).unwrap();
    let options = Options { blocks: 256, block_size: 4096, ..ring_options() };
    in_folder(&options, folder.path(), async |io, dir| {
        let file = name("file");
        crate::for_each(256, 0..5000_u32, async |_| {
            let (block, count) = dir.read_chain(&file, io.block().await?).await;
            assert_eq!((count?, block.as_slice()), (4096, pattern(4096).as_slice()));
            Ok::<(), Error>(())
        })
        .await
        .unwrap();
    });
}
