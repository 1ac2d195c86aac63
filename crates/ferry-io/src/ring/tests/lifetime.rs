//! What is in flight ends, however its fiber does, and whoever sleeps is woken.

use std::os::unix::ffi::OsStrExt as _;
use std::pin::Pin;
use std::time::Instant;

use super::*;
use crate::worker;
use crate::{Block, Cause, Error};

/// A FIFO with a writer that never writes, and the file that keeps it so.
fn silent_fifo(folder: &Path) -> fs::File {
    let path = CString::new(folder.join("fifo").as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends in NUL and is only read.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    fs::OpenOptions::new().read(true).write(true).open(folder.join("fifo")).unwrap()
}

use std::ffi::CString;

#[test]
fn cancelling_reaps() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let _writer = silent_fifo(folder.path());
    in_folder(&ring_options(), folder.path(), async |io, dir| {
        let fifo = dir.open(&name("fifo"), OpenHow::read().waiting()).await.unwrap();
        for _ in 0..20 {
            let block = io.block().await.unwrap();
            let reading = async { fifo.read_next(block).await.1 };
            let answer = crate::timeout(Duration::from_millis(2), reading).await;
            assert_eq!(answer.unwrap_err().cause, Cause::TimedOut);
            // The block came back with the completion.
            assert_eq!(free_blocks(), io.blocks());
        }
    });
}

fn free_blocks() -> usize {
    let blocks = &worker::current().shared.blocks;
    let all: Vec<Block> = std::iter::from_fn(|| blocks.try_take()).collect();
    all.len()
}

#[test]
fn what_would_wait_says_so_if_its_file_does_not_wait() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let _writer = silent_fifo(folder.path());
    in_folder(&ring_options(), folder.path(), async |io, dir| {
        let fifo = dir.open(&name("fifo"), OpenHow::read()).await.unwrap();
        let (_, count) = fifo.read_next(io.block().await.unwrap()).await;
        assert_eq!(count.unwrap_err().as_errno(), Some(Errno::AGAIN));
    });
}

#[test]
fn dropping_a_runtime_reaps_direct_reads() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(64 << 20)).unwrap();
    fs::File::open(folder.path().join("file")).unwrap().sync_all().unwrap();
    let options = Options { blocks: 64, block_size: 1 << 20, ..ring_options() };
    let (blocks, _) = in_folder(&options, folder.path(), async |io, dir| {
        let blocks = Arc::clone(&worker::current().shared.blocks);
        let file = match dir.open(&name("file"), OpenHow::read().direct()).await {
            Ok(file) => file,
            Err(error) => {
                eprintln!("SKIP: no direct I/O here: {error}");
                return blocks;
            }
        };
        let mut reads: Vec<Pin<Box<dyn Future<Output = (Block, Result<usize, Error>)>>>> = Vec::new();
        for index in 0..64_u64 {
            let (file, block) = (file.clone(), io.block().await.unwrap());
            reads.push(Box::pin(async move { file.read_at(block, index << 20).await }));
        }
        // Each is begun, none is waited for; then one turn brings them to the device.
        std::future::poll_fn(|cx| {
            for read in &mut reads {
                assert!(read.as_mut().poll(cx).is_pending());
            }
            std::task::Poll::Ready(())
        })
        .await;
        crate::sleep(Duration::from_micros(100)).await.unwrap();
        blocks
    });
    let left: Vec<Block> = std::iter::from_fn(|| blocks.try_take()).collect();
    assert_eq!(left.len(), 64, "each block came back before the runtime ended");
}

#[test]
fn another_thread_ends_a_sleep_in_the_ring() {
    if !has_ring() {
        return;
    }
    let shared = Shared::open(&ring_options()).unwrap();
    let inbox = Arc::new(Inbox::of_this_thread());
    inbox.take_ready();
    let mut ring = Ring::open(&shared, &inbox).unwrap();
    let counters = Counters::new();
    // Again and again: the poll of the inbox outlives its first completion.
    for _ in 0..5 {
        let begun = Instant::now();
        let other = Arc::clone(&inbox);
        assert!(inbox.enter_ring());
        let waker = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(10));
            other.notify();
        });
        assert!(ring.enter(Some(Some(Duration::from_secs(60))), &counters).is_empty());
        inbox.leave_ring();
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert!(begun.elapsed() >= Duration::from_millis(10), "nothing else wakes it");
        waker.join().unwrap();
    }
    assert_eq!((counters.ring_enters.get(), counters.submitted.get()), (5, 0));
}

#[test]
fn a_notification_before_the_sleep_ends_it() {
    if !has_ring() {
        return;
    }
    let shared = Shared::open(&ring_options()).unwrap();
    let inbox = Arc::new(Inbox::of_this_thread());
    inbox.take_ready();
    let mut ring = Ring::open(&shared, &inbox).unwrap();
    assert!(inbox.enter_ring());
    inbox.notify();
    ring.enter(Some(None), &Counters::new());
}

#[test]
fn a_sleep_in_the_ring_ends_when_its_time_is_up() {
    if !has_ring() {
        return;
    }
    let shared = Shared::open(&ring_options()).unwrap();
    let inbox = Arc::new(Inbox::of_this_thread());
    let mut ring = Ring::open(&shared, &inbox).unwrap();
    ring.enter(Some(Some(Duration::from_millis(5))), &Counters::new());
}
