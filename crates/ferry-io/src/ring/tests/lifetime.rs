//! Requests in flight end, however their fibers do, and sleeping threads are woken.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::*;
use crate::buffers::Blocks;
use crate::op::Outcome;
use crate::worker;
use crate::{Block, Cause};

/// Makes a FIFO whose only writer, the returned file, never writes.
fn silent_fifo(folder: &Path) -> fs::File {
    let path = CString::new(folder.join("fifo").as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends in NUL and is only read.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    fs::OpenOptions::new().read(true).write(true).open(folder.join("fifo")).unwrap()
}

#[test]
fn cancelling_reaps() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let _writer = silent_fifo(folder.path());
    for ring_mode in MODES {
        in_folder(&Options { ring_mode, ..ring_options() }, folder.path(), async |io, dir| {
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
}

fn free_blocks() -> usize {
    worker::current().shared.blocks.free()
}

#[test]
fn dropping_a_runtime_reaps_direct_reads() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(64 << 20)).unwrap();
    fs::File::open(folder.path().join("file")).unwrap().sync_all().unwrap();
    for ring_mode in MODES {
        let options = Options { blocks: 64, block_size: 1 << 20, ring_mode, ..ring_options() };
        let (blocks, _) = in_folder(&options, folder.path(), async |_, dir| {
            let blocks = Arc::clone(&worker::current().shared.blocks);
            match dir.open(&name("file"), OpenHow::read().direct()).await {
                Ok(file) => abandon_reads(&file, &blocks).await,
                Err(error) => eprintln!("SKIP: no direct I/O here: {error}"),
            }
            blocks
        });
        let left: Vec<Block> = std::iter::from_fn(|| blocks.try_take()).collect();
        assert_eq!(left.len(), 64, "each block came back before the runtime ended");
    }
}

/// Begins a read for each block and submits them all without waiting.
async fn abandon_reads(file: &File, blocks: &Arc<Blocks>) {
    let free = std::iter::from_fn(|| blocks.try_take());
    let mut reads: Vec<_> =
        free.zip(0_u64..).map(|(block, index)| Box::pin(file.read_at(block, index << 20))).collect();
    assert_eq!(reads.len(), 64);
    std::future::poll_fn(|cx| {
        for read in &mut reads {
            assert!(read.as_mut().poll(cx).is_pending());
        }
        Poll::Ready(())
    })
    .await;
    crate::sleep(Duration::from_micros(100)).await.unwrap();
}

#[test]
fn what_the_kernel_refuses_is_tried_again_and_then_done_by_the_pool() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), pattern(5000)).unwrap();
    let shared = Shared::open(&ring_options()).unwrap();
    let inbox = Arc::new(Inbox::of_this_thread());
    let mut ring = Ring::open(&shared, &inbox).unwrap();
    let key = Key { index: 3, generation: 9 };
    // A file without polled I/O answers EOPNOTSUPP.
    for (retries, errno, is_again) in [
        (0, libc::EINTR, true),
        (1, libc::EAGAIN, true),
        (2, libc::EAGAIN, false),
        (0, libc::EOPNOTSUPP, false),
    ] {
        let file = fs::File::open(folder.path().join("file")).unwrap();
        let file = Arc::new(crate::descriptor::Descriptor::Real(file.into()));
        let op = Op::Read { file, block: shared.blocks.try_take(), skip: 0, at: 1000, size: 8192 };
        ring.flights.insert(key, Flight { retries, ..Flight::new(op, Reason::Forced) });
        ring.owed += 1;
        assert!(ring.complete(key, Step::First, -errno).is_none());
        let mut done = Vec::new();
        while done.is_empty() {
            done = if is_again { ring.enter(Some(None), &Counters::new()) } else { inbox.collect() };
        }
        let (known, (op, outcome)) = done.remove(0);
        assert_eq!(known, key);
        assert!(matches!(outcome, Ok(Outcome::Count(4000))), "{outcome:?}");
        let Op::Read { block: Some(block), .. } = op else { panic!("another request came back") };
        assert_eq!(block.as_slice(), &pattern(5000)[1000..]);
        assert_eq!((ring.in_flight(), ring.owed), (0, 0));
    }
    let passed_on = [(Operation::Read, Reason::Forced); 2];
    assert_eq!(ring.take_passed_on(), passed_on, "they are counted as the pool's");
    shared.pool.close();
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
    // Repeated, because the poll of the inbox outlives its first completion.
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

#[test]
fn no_more_is_in_flight_than_twice_the_depth() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut writer = silent_fifo(folder.path());
    let silent = Arc::new(crate::descriptor::Descriptor::Real(writer.try_clone().unwrap().into()));
    let shared = Shared::open(&Options { queue_depth: 8, ..ring_options() }).unwrap();
    let inbox = Arc::new(Inbox::of_this_thread());
    let mut ring = Ring::open(&shared, &inbox).unwrap();
    let counters = Counters::new();
    let mut pushed = 0;
    loop {
        let file = Arc::clone(&silent);
        let at = crate::op::AT_POSITION;
        let op = Op::Read { file, block: shared.blocks.try_take(), skip: 0, at, size: 1 };
        match ring.push(Key { index: pushed, generation: 0 }, op, Reason::Forced, 0) {
            Ok(()) => pushed += 1,
            Err(_) if ring.is_saturated() => break,
            Err(_) => drop(ring.enter(None, &counters)),
        }
    }
    assert_eq!((pushed, ring.in_flight()), (16, 16));
    std::io::Write::write_all(&mut writer, &[7; 16]).unwrap();
    while ring.in_flight() > 0 {
        drop(ring.enter(Some(None), &counters));
    }
}

#[test]
fn dropping_a_ring_ends_reads_that_nobody_answers() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let writer = silent_fifo(folder.path());
    for ring_mode in MODES {
        let silent = Arc::new(crate::descriptor::Descriptor::Real(writer.try_clone().unwrap().into()));
        let shared = Shared::open(&Options { ring_mode, ..ring_options() }).unwrap();
        let inbox = Arc::new(Inbox::of_this_thread());
        let mut ring = Ring::open(&shared, &inbox).unwrap();
        for index in 0..16 {
            let (file, at) = (Arc::clone(&silent), crate::op::AT_POSITION);
            let op = Op::Read { file, block: shared.blocks.try_take(), skip: 0, at, size: 1 };
            assert!(ring.push(Key { index, generation: 0 }, op, Reason::Forced, 0).is_ok());
        }
        for _ in 0..3 {
            drop(ring.enter(Some(Some(Duration::from_millis(10))), &Counters::new()));
        }
        assert_eq!(ring.in_flight(), 16);
        let begun = Instant::now();
        drop(ring);
        assert!(begun.elapsed() < Duration::from_secs(2), "{ring_mode:?}: {:?}", begun.elapsed());
        assert_eq!(Arc::strong_count(&silent), 1, "each request came back");
    }
}

#[test]
fn a_forked_child_has_no_ring() {
    if !has_ring() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (flags, _) = in_folder(&ring_options(), folder.path(), async |_, dir| {
        dir.stat().await.expect("it is open");
        let smaps = fs::read_to_string("/proc/self/smaps").expect("/proc");
        let mut flags = Vec::new();
        let mut is_ring = false;
        for line in smaps.lines() {
            match line.strip_prefix("VmFlags:") {
                Some(of_mapping) if is_ring => flags.push(of_mapping.to_owned()),
                Some(_) => {}
                // A mapping's first line begins with its address and ends with its file.
                None if line
                    .starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_lowercase()) =>
                {
                    is_ring = line.contains("io_uring");
                }
                None => {}
            }
        }
        flags
    });
    assert!(!flags.is_empty(), "the ring is mapped");
    // "dc": do not copy on fork.
    assert!(flags.iter().all(|flags| flags.split(' ').any(|flag| flag == "dc")), "{flags:?}");
}
