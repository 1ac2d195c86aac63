use super::*;
use crate::sampling::SampleKind;

#[test]
fn what_finds_no_buffer_is_counted_as_lost() {
    let (queue, lost) = (Arc::new(Queue::default()), Arc::new(AtomicU64::new(0)));
    let buffer_bytes = CHUNK_HEADER + LONGEST_EVENT + 64;
    let mut chunks = Chunks {
        queue: Arc::clone(&queue),
        most_buffers: BUFFERS,
        buffer_bytes,
        lost: Arc::clone(&lost),
        open: None,
    };
    // Nobody writes what is handed over.
    let mut added = 0;
    while lost.load(Ordering::Relaxed) < 100 {
        chunks.add(&Event { at: added, tid: 7, processor: 0, chain: None, what: SampleKind::Sleep });
        added += 1;
        assert!(added < 1_000_000, "there is no bound");
    }
    drop(chunks);
    queue.close();
    let full: Vec<(Chunk, Vec<u8>)> = std::iter::from_fn(|| queue.next()).collect();
    assert_eq!(full.len(), BUFFERS);
    assert!(
        full.iter().all(|(_, bytes)| bytes.len() <= buffer_bytes && bytes.capacity() <= 2 * buffer_bytes)
    );
    let kept: u64 = full.iter().map(|(chunk, _)| u64::from(chunk.events)).sum();
    assert_eq!(kept + 100, added);
}
