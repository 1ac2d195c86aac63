//! Models of files that share flushes: each goes on only after a flush that began when its bytes were written.

use std::pin::pin;
use std::task::Context;

use loom::future::block_on;
use loom::sync::atomic::AtomicUsize;

use super::*;

/// A filesystem: one bit for each file.
struct Disk {
    flush: Flush,
    written: AtomicUsize,
    on_device: AtomicUsize,
}

impl Disk {
    fn write(&self, file: usize) {
        self.written.fetch_or(1 << file, Ordering::AcqRel);
    }

    /// Flushes what was written before this call.
    async fn sync(&self) -> bool {
        let written = self.written.load(Ordering::Acquire);
        self.on_device.fetch_or(written, Ordering::AcqRel);
        true
    }

    fn assert_on_device(&self, file: usize) {
        assert_ne!(self.on_device.load(Ordering::Acquire) & 1 << file, 0, "not on the device");
    }

    fn verify(&self, file: usize) {
        self.write(file);
        let has_succeeded = block_on(self.flush.share(async || self.sync().await));
        assert!(has_succeeded.expect("not cancelled"));
        self.assert_on_device(file);
    }

    /// Begins to share a flush, and is cancelled if it has to wait.
    fn give_up(&self) {
        let mut sharing = pin!(self.flush.share(async || self.sync().await));
        // The order of the threads decides if it has to wait.
        let _ = sharing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    }
}

fn check(preemptions: usize, others: &'static [fn(&Disk)], mine: fn(&Disk)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(preemptions));
    builder.max_branches = 100_000;
    builder.check(move || {
        let disk = Disk { flush: Flush::new(), written: AtomicUsize::new(0), on_device: AtomicUsize::new(0) };
        let disk = Arc::new(disk);
        let others: Vec<_> = others
            .iter()
            .map(|other| {
                let disk = Arc::clone(&disk);
                loom::thread::spawn(move || other(&disk))
            })
            .collect();
        mine(&disk);
        others.into_iter().for_each(|other| other.join().expect("a panic ends the model"));
        assert!(disk.flush.next.lock().expect("no panic").is_none(), "no group is left");
    });
}

#[test]
fn each_file_of_a_group_is_on_the_device_when_it_goes_on() {
    check(2, &[|disk| disk.verify(0), |disk| disk.verify(1)], |disk| disk.verify(2));
}

#[test]
fn a_file_that_gives_up_ends_its_group() {
    let waits = |disk: &Disk| {
        disk.write(0);
        // A flush that was given up has not succeeded; then the file is synced by itself.
        let has_succeeded = block_on(disk.flush.share(async || disk.sync().await));
        if has_succeeded.expect("not cancelled") {
            disk.assert_on_device(0);
        }
    };
    check(3, &[Disk::give_up], waits);
}

#[test]
#[should_panic(expected = "not on the device")]
fn a_file_that_is_written_after_it_has_joined_is_found() {
    check(3, &[|disk| disk.verify(0)], |disk| {
        let sharing = disk.flush.join();
        disk.write(1);
        let (group, is_first) = sharing;
        let flushed = match is_first {
            true => block_on(disk.flush.perform(async || disk.sync().await, &group)),
            false => block_on(group.ended()),
        };
        assert!(flushed.expect("not cancelled"));
        disk.assert_on_device(1);
    });
}
