use std::path::Path;
use std::sync::mpsc::TrySendError;

use ferry_tree::workload::{Workload, make};

use super::*;
use crate::limits::Calls;

const LIMIT: Limit = Limit { calls: Calls::Readers, threads: 1, block_bytes: 4096, preserves: false };
/// Number of files in the tests' folder: more than the queue holds.
const FILES: usize = LOADED + 50;

fn folder(place: &Path) -> Folder {
    let source = place.join("source");
    make(&Workload::plain(1, 0, FILES as u64, 10, 1), &source, 1).unwrap();
    Folder {
        source: std::fs::File::open(&source).unwrap().into(),
        target: std::fs::File::open(place).unwrap().into(),
    }
}

fn file(folder: &Arc<Folder>) -> File {
    File {
        folder: Arc::clone(folder),
        name: CString::default(),
        mode: Mode::RUSR,
        bytes: Vec::new(),
        rest: None,
        attributes: None,
    }
}

/// Fills a queue and returns it with the number of files that it took.
fn full(folder: &Arc<Folder>) -> (SyncSender<File>, Receiver<File>, usize) {
    let (sender, receiver) = loaded_files();
    let mut count = 0;
    loop {
        match sender.try_send(file(folder)) {
            Ok(()) => count += 1,
            Err(TrySendError::Full(_)) => return (sender, receiver, count),
            Err(TrySendError::Disconnected(_)) => panic!("the receiver is here"),
        }
    }
}

#[test]
fn readers_wait_while_256_files_are_loaded() {
    let place = tempfile::tempdir().unwrap();
    let (root, other) = (folder(place.path()), tempfile::tempdir().unwrap());
    let any = Arc::new(folder(other.path()));
    let (sender, receiver, count) = full(&any);
    assert_eq!(count, LOADED);
    let queue = Queue::new(root);
    std::thread::scope(|scope| {
        scope.spawn(|| read_all(&LIMIT, &queue, &sender));
        // The reader found a full queue, or one that this thread empties.
        assert_eq!(receiver.iter().take(LOADED + FILES).filter(|file| file.bytes.len() == 10).count(), FILES);
    });
    assert!(receiver.try_recv().is_err());
    queue.outcome().unwrap();
}

#[test]
fn readers_that_wait_end_with_the_creators() {
    let place = tempfile::tempdir().unwrap();
    let (root, other) = (folder(place.path()), tempfile::tempdir().unwrap());
    let any = Arc::new(folder(other.path()));
    let (sender, receiver, _) = full(&any);
    let queue = Queue::new(root);
    std::thread::scope(|scope| {
        scope.spawn(|| read_all(&LIMIT, &queue, &sender));
        drop(receiver);
    });
    assert_eq!(queue.outcome().unwrap_err().to_string(), "all creators have ended");
}
