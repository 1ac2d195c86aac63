//! Files that change while they are copied, and targets with several names.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FallocateFlags, fallocate};

use crate::random::filesystem::Filesystem;
use crate::scene::{ferry, skip, text};

#[test]
fn what_is_not_punched_out_is_copied() {
    const UNIT_BYTES: usize = 4096;
    const UNIT: u64 = UNIT_BYTES as u64;
    const UNITS: u64 = 2000;
    let place = Filesystem::memory();
    let path = place.path().join("source");
    let file = File::create(&path).unwrap();
    // Every other unit of the first half is data.
    file.set_len(2 * UNITS * UNIT).unwrap();
    let data = [7_u8; UNIT_BYTES];
    let fill = |unit: u64| file.write_all_at(&data, 2 * unit * UNIT).unwrap();
    (0..UNITS).for_each(fill);
    let punch = |unit: u64| {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, how, 2 * unit * UNIT, UNIT)
    };
    if punch(0).is_err() {
        skip::<()>("holes can't be punched here");
        return;
    }
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                for unit in 0..UNITS / 2 {
                    punch(unit).unwrap();
                    fill(unit);
                }
            }
        });
        let mut short = Vec::new();
        for _ in 0..40 {
            let output = ferry(place.path(), &["cp", "--reflink=never", "source", "target"]);
            let copy = fs::read(place.path().join("target")).unwrap();
            let is_kept = |unit: &u64| {
                let start = usize::try_from(2 * unit * UNIT).unwrap();
                copy.get(start..start + data.len()) == Some(&data[..])
            };
            let lost = (UNITS / 2..UNITS).filter(|unit| !is_kept(unit)).count();
            short.push((lost, output.status.code(), text(&output.stderr).to_owned()));
            fs::remove_file(place.path().join("target")).unwrap();
        }
        ended.store(true, Ordering::Relaxed);
        assert!(short.iter().all(|(lost, code, _)| *lost == 0 && *code == Some(0)), "{short:?}");
    });
}

#[test]
fn one_file_by_two_names_has_the_bytes_of_one() {
    // Large enough for several threads.
    const BYTES: usize = 9 << 20;
    let place = Filesystem::memory();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("s")).unwrap();
    fs::create_dir_all(path("d/s")).unwrap();
    let names = ["a", "b", "c", "e"];
    for (name, byte) in names.iter().zip(1_u8..) {
        fs::write(path("s").join(name), vec![byte; BYTES]).unwrap();
    }
    fs::write(path("d/s/a"), "old").unwrap();
    fs::hard_link(path("d/s/a"), path("d/s/b")).unwrap();
    std::os::unix::fs::symlink("a", path("d/s/c")).unwrap();
    std::os::unix::fs::symlink("c", path("d/s/e")).unwrap();
    for _ in 0..6 {
        let output = ferry(place.path(), &["cp", "-r", "s", "d"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let copy = fs::read(path("d/s/a")).unwrap();
        assert!(copy.len() == BYTES && copy.iter().all(|byte| *byte == copy[0]), "the bytes are mixed");
    }
}
