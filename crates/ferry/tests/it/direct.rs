//! `--direct`: the copies are the same as through the page cache, and leave nothing in it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ferry_io::probe;

use crate::memory::Group;
use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, ferry, text};

const MIB: u64 = 1 << 20;

/// Sizes around a block of 256 KiB, around a unit of 4 KiB, and large ones.
const SIZES: [u64; 8] =
    [0, 5, 256 << 10, (256 << 10) + 1, (512 << 10) - 1, MIB, 3 * MIB + 4096 + 511, 20 * MIB + 7];

fn fill(file: &File, at: u64, size: u64) {
    let mut content = vec![0; usize::try_from(size).unwrap()];
    ferry_tree::fill::fill(at + 1, 0, &mut content);
    file.write_all_at(&content, at).unwrap();
}

/// Makes a directory `s` with files of all sizes and one with holes.
fn make(folder: &Path) {
    fs::create_dir(folder.join("s")).unwrap();
    for size in SIZES {
        fill(&File::create(folder.join(format!("s/{size}"))).unwrap(), 0, size);
    }
    let holey = File::create(folder.join("s/holey")).unwrap();
    for (at, size) in [(MIB, 3 * MIB), (8 * MIB + 4096, 4096), (12 * MIB, MIB + 3)] {
        fill(&holey, at, size);
    }
    holey.set_len(16 * MIB).unwrap();
}

fn cached(path: &Path) -> u64 {
    probe::data(File::open(path).unwrap(), 0, 0).unwrap().bytes
}

/// Drops a file from the page cache. The kernel keeps pages that a processor's list still holds, so that one call may
/// leave some.
fn chill(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let left = cached(path);
        if left == 0 {
            return;
        }
        assert!(Instant::now() < end, "{left} bytes of {} stay in memory", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Repeats an attempt that needs pages to stay in memory, because tests of other binaries drop the page cache of the
/// whole system meanwhile.
fn with_a_cache_that_stays(attempt: impl Fn() -> Result<(), String>) {
    const TRIES: usize = 20;
    let failures: Vec<String> = (0..TRIES).map_while(|_| attempt().err()).collect();
    assert!(failures.len() < TRIES, "{}", failures.join("\n"));
}

const WAYS: [&[&str]; 6] = [
    &["--backend=uring"],
    &["--backend=posix"],
    &["--atomic", "--fsync"],
    &["--sparse=never", "--block-size=4K"],
    &["--bwlimit=400M"],
    &["--route=inline"],
];

/// Copies with all options; large files must not be cached afterwards.
fn check(filesystem: &Filesystem) {
    let folder = filesystem.path();
    make(folder);
    for way in WAYS {
        for entry in fs::read_dir(folder.join("s")).unwrap() {
            chill(&entry.unwrap().path());
        }
        let all = [&["cp", "-a", "--reflink=never", "--direct=always", "--stats"], way, &["s", "t"]].concat();
        let output = ferry(folder, &all);
        assert!(output.status.success(), "{way:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("by direct"), "{way:?}: {}", text(&output.stderr));
        for size in SIZES.into_iter().filter(|&size| size > 256 << 10) {
            for side in ["s", "t"] {
                let path = folder.join(format!("{side}/{size}"));
                let kind = filesystem.kind();
                assert_eq!(cached(&path), 0, "{way:?}: {side}/{size} is in memory on {kind}");
            }
        }
        assert_eq!(cached(&folder.join("t/holey")), 0, "{way:?}");
        let has_holes = way[0] != "--sparse=never";
        let ignored = if has_holes { "--ignore=times" } else { "--ignore=times,holes" };
        let same = ferry(folder, &["verify", ignored, "s", "t"]);
        assert!(same.status.success(), "{way:?}: {}", text(&same.stdout));
        if has_holes {
            let blocks =
                std::os::unix::fs::MetadataExt::blocks(&fs::metadata(folder.join("t/holey")).unwrap());
            assert!(blocks * 512 < 6 * MIB, "{way:?}: the holes are not kept: {blocks} blocks");
        }
        ferry_tree::remove::remove(&folder.join("t")).unwrap();
    }
}

#[test]
fn ext4_is_copied_past_the_page_cache() {
    within("direct::ext4_is_copied_past_the_page_cache", "ext4", check);
}

#[test]
fn xfs_is_copied_past_the_page_cache() {
    within("direct::xfs_is_copied_past_the_page_cache", "xfs", check);
}

#[test]
fn btrfs_is_copied_past_the_page_cache() {
    within("direct::btrfs_is_copied_past_the_page_cache", "btrfs", check);
}

/// Data appended during the copy is copied up to the point reached.
#[test]
fn a_file_that_grows_is_copied_as_far_as_it_is_there() {
    within("direct::a_file_that_grows_is_copied_as_far_as_it_is_there", "ext4", |ext4| {
        let (source, target) = (ext4.path().join("s"), ext4.path().join("t"));
        let file = File::create(&source).unwrap();
        // Neither a multiple of a block nor of a unit, nor are the sizes that follow.
        let first = 20 * MIB + (64 << 10) + 7;
        fill(&file, 0, first);
        let mut command = Command::new(FERRY);
        // This takes a fifth of a second.
        command.args(["cp", "--direct=always", "--bwlimit=100M"]).args([&source, &target]);
        let mut copy = command.spawn().unwrap();
        let mut size = first;
        let status = loop {
            fill(&file, size, (64 << 10) + 7);
            size += (64 << 10) + 7;
            std::thread::sleep(Duration::from_millis(2));
            if let Some(status) = copy.try_wait().unwrap() {
                break status;
            }
        };
        assert!(status.success(), "{status}");
        let (whole, copied) = (fs::read(&source).unwrap(), fs::read(&target).unwrap());
        assert!(copied.len() as u64 >= first, "{} bytes of {first} were copied", copied.len());
        assert!(whole.starts_with(&copied), "{} of {size} bytes differ", copied.len());
    });
}

#[test]
fn memory_is_copied_through_the_page_cache_and_that_is_said() {
    let memory = Filesystem::memory();
    make(memory.path());
    let large = format!("s/{}", SIZES[7]);
    let output = ferry(memory.path(), &["cp", "-v", "--direct", "--explain", "--sparse=never", &large, "t"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("through the page cache: there is no direct I/O"), "{said}");
    assert_eq!(fs::read(memory.path().join(large)).unwrap(), fs::read(memory.path().join("t")).unwrap());
}

#[test]
fn one_side_in_memory_is_copied_past_the_page_cache_on_the_other() {
    within("direct::one_side_in_memory_is_copied_past_the_page_cache_on_the_other", "ext4", |ext4| {
        let (folder, memory) = (ext4.path(), ext4.beside());
        make(folder);
        let path = folder.join("s").join(SIZES[7].to_string());
        chill(&path);
        let (path, in_memory) = (path.to_str().unwrap(), memory.join("m"));
        let in_memory = in_memory.to_str().unwrap();
        for (source, target, why) in [
            (path, in_memory, "read past the page cache; the target has no direct I/O"),
            (in_memory, "t", "written past the page cache; the source has no direct I/O"),
        ] {
            let output = ferry(folder, &["cp", "-v", "--direct", "--explain", source, target]);
            assert!(output.status.success(), "{}", text(&output.stderr));
            let said = text(&output.stdout);
            assert!(said.contains(&format!("direct: {why}")), "{said}");
            assert_eq!(fs::read(in_memory).unwrap(), fs::read(path).unwrap());
            chill(Path::new(path));
        }
        assert_eq!(cached(&folder.join("t")), 0);
        assert_eq!(fs::read(folder.join("t")).unwrap(), fs::read(path).unwrap());
    });
}

#[test]
fn by_itself_only_a_cold_file_larger_than_memory_goes_past_the_page_cache() {
    within(
        "direct::by_itself_only_a_cold_file_larger_than_memory_goes_past_the_page_cache",
        "ext4",
        |ext4| {
            let Some(group) = Group::new() else { return };
            let folder = ext4.path();
            let source = File::create(folder.join("s")).unwrap();
            (0..6).for_each(|index| fill(&source, index * 20 * MIB, 20 * MIB));
            let explained = |command: &mut Command| {
                let output = command.output().unwrap();
                assert!(output.status.success(), "{}", text(&output.stderr));
                text(&output.stdout).lines().next().unwrap().to_owned()
            };
            let small = |option| explained(&mut group.copy(folder, &[option, "-v", "--explain", "s", "t"]));
            let why = "direct: past the page cache: the copy is larger than the available memory";
            for option in ["--direct=auto", "--backup=off"] {
                chill(&folder.join("s"));
                let said = small(option);
                assert!(said.contains(why), "{option}: {said}");
                assert_eq!((cached(&folder.join("s")), cached(&folder.join("t"))), (0, 0), "{option}");
            }
            with_a_cache_that_stays(|| {
                let said = small("--direct=never");
                assert!(!said.contains("direct"), "{said}");
                let left = cached(&folder.join("s"));
                if left > 0 { Ok(()) } else { Err(format!("the source left memory: {said}")) }
            });
            let large = || {
                let mut command = Command::new(FERRY);
                explained(command.args(["cp", "-v", "--explain", "s", "t"]).current_dir(folder))
            };
            with_a_cache_that_stays(|| {
                chill(&folder.join("s"));
                let said = large();
                assert!(
                    said.contains("copy_file_range: the kernel copies it"),
                    "there is memory for it: {said}"
                );
                let left = cached(&folder.join("s"));
                let said = small("--direct=auto");
                let is_kept = left == 120 * MIB && !said.contains("direct");
                if is_kept { Ok(()) } else { Err(format!("{left} bytes were in memory, then: {said}")) }
            });
        },
    );
}

/// Output of `--explain` and `--stats=json`.
fn told(folder: &Path, options: &[&str]) -> (String, serde_json::Value) {
    let output = ferry(folder, &[&["cp", "-v", "--explain", "--stats=json"], options, &["s", "t"]].concat());
    assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
    let said = text(&output.stdout);
    let (first, stats) = (said.lines().next().unwrap(), said.lines().last().unwrap());
    (first.to_owned(), serde_json::from_str(stats).unwrap())
}

#[test]
fn the_kernel_copies_large_files_away_from_the_worker() {
    within("direct::the_kernel_copies_large_files_away_from_the_worker", "ext4", |ext4| {
        let folder = ext4.path();
        fill(&File::create(folder.join("s")).unwrap(), 0, 40 * MIB);
        // Writeback starts in pieces of 8 MiB; --fsync then syncs file and directory.
        for (options, calls, synced) in [(&[][..], 1, 0), (&["--fsync"], 5, 7)] {
            for is_cold in [false, true] {
                if is_cold {
                    chill(&folder.join("s"));
                }
                let (why, stats) = told(folder, options);
                assert!(why.ends_with("copy_file_range: the kernel copies it"), "{options:?}: {why}");
                let kinds = &stats["operations_by_kind"];
                assert_eq!(kinds["copy_file_range"]["pool"], calls, "{options:?}, cold: {is_cold}: {stats}");
                assert_eq!(kinds["copy_file_range"]["offload"], 0, "{options:?}, cold: {is_cold}: {stats}");
                assert_eq!(kinds["sync"]["pool"].as_u64().unwrap_or(0), synced, "{options:?}: {stats}");
                assert_eq!(fs::read(folder.join("s")).unwrap(), fs::read(folder.join("t")).unwrap());
            }
        }
    });
}

#[test]
fn large_cached_files_move_by_several_ways() {
    within("direct::large_cached_files_move_by_several_ways", "ext4", |ext4| {
        let folder = ext4.path();
        let size = 72 * MIB;
        fill(&File::create(folder.join("s")).unwrap(), 0, size);
        let bytes_by_way = |stats: &serde_json::Value| -> Vec<u64> {
            let ways = stats["ways"].as_array().unwrap().iter().flat_map(|pair| pair.as_array().unwrap());
            ways.map(|way| way["bytes"].as_u64().unwrap()).collect()
        };
        let ways = bytes_by_way(&told(folder, &[]).1);
        if ways.is_empty() {
            println!("SKIP this kernel tells nobody what is cached (cachestat(2), Linux 6.5)");
            return;
        }
        assert_eq!((ways.len(), ways.iter().sum::<u64>()), (4, size), "{ways:?}");
        assert_eq!(fs::read(folder.join("s")).unwrap(), fs::read(folder.join("t")).unwrap());
        let said = ferry(folder, &["cp", "--explain", "s", "t"]);
        assert!(text(&said.stdout).contains("large files: tried 4 ways; kept "), "{}", text(&said.stdout));
        let counted = ferry(folder, &["cp", "--trace=recording", "--stats=json", "s", "t"]);
        let mut counted = bytes_by_way(&serde_json::from_slice(&counted.stdout).unwrap());
        let shown = ferry(folder, &["trace", "show", "--json", "recording"]);
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        let recorded = shown["ways"].as_array().unwrap();
        let mut bytes: Vec<_> = recorded.iter().map(|way| way["bytes"].as_u64().unwrap()).collect();
        assert!(recorded.iter().any(|way| way["trials"].as_u64() > Some(0)), "{shown}");
        bytes.sort_unstable();
        counted.sort_unstable();
        assert_eq!(bytes, counted, "{shown}");
        let tables = ferry(folder, &["trace", "show", "recording"]);
        assert!(text(&tables.stdout).contains("Calls that moved the bytes of large files\n"));
        // A device is waited for, whatever the way.
        chill(&folder.join("s"));
        assert!(bytes_by_way(&told(folder, &[]).1).is_empty());
        // Before a comparison could pay, the copy is over.
        fill(&File::create(folder.join("s")).unwrap(), 0, 7 * MIB);
        assert!(bytes_by_way(&told(folder, &[]).1).is_empty());
    });
}

#[test]
fn what_the_kernel_may_not_copy_is_read_and_written_by_one_thread() {
    within("direct::what_the_kernel_may_not_copy_is_read_and_written_by_one_thread", "ext4", |ext4| {
        let folder = ext4.path();
        fill(&File::create(folder.join("s")).unwrap(), 0, 40 * MIB);
        for option in ["--reflink=never", "--sparse=never"] {
            let (why, stats) = told(folder, &[option]);
            assert!(why.ends_with("pipeline: nothing may be shared or left out"), "{option}: {why}");
            assert_eq!(stats["operations_by_kind"]["write"]["pool"], 1, "{option}: {stats}");
            let ways = stats["ways"][0].as_array().unwrap();
            assert!(ways.iter().any(|way| way["way"] == "read_write_256k"), "{option}: {stats}");
            assert_eq!(
                ways.iter().map(|way| way["bytes"].as_u64().unwrap()).sum::<u64>(),
                40 * MIB,
                "{option}: {stats}"
            );
            assert_eq!(fs::read(folder.join("s")).unwrap(), fs::read(folder.join("t")).unwrap());
        }
    });
}

#[test]
fn a_full_filesystem_ends_a_direct_copy() {
    within("direct::a_full_filesystem_ends_a_direct_copy", "ext4", |ext4| {
        let source = ext4.beside().join("source");
        let file = File::create(&source).unwrap();
        (0..40).for_each(|index| fill(&file, index * 16 * MIB, 16 * MIB));
        let output = ferry(ext4.path(), &["cp", "--direct", source.to_str().unwrap(), "t"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("No space left on device"), "{}", text(&output.stderr));
        assert!(!ext4.path().join("t").exists(), "what is not whole is removed");
    });
}

/// Regression: an extent that did not start at a unit went through the page cache as a whole.
#[test]
fn data_that_begins_between_units_is_direct_from_the_next_one_on() {
    let name = "direct::data_that_begins_between_units_is_direct_from_the_next_one_on";
    within(name, "ext4 -b 1024", |ext4| {
        let folder = ext4.path();
        let odd = File::create(folder.join("odd")).unwrap();
        for at in [5 * MIB + 1024, 40 * MIB + 3072] {
            fill(&odd, at, 20 * MIB + 7);
        }
        drop(odd);
        for way in [&["--backend=uring"][..], &["--backend=posix", "--bwlimit=400M"]] {
            chill(&folder.join("odd"));
            let all = [&["cp", "-v", "--direct", "--explain"], way, &["odd", "t"]].concat();
            let output = ferry(folder, &all);
            assert!(output.status.success(), "{}", text(&output.stderr));
            assert!(text(&output.stdout).contains("direct: it has holes"), "{}", text(&output.stdout));
            // The pages of the two unaligned starts.
            let left = cached(&folder.join("odd"));
            assert!(left < MIB, "{way:?}: {left} bytes of the source are in memory");
            // Setting the target's size may read its last page.
            assert!(cached(&folder.join("t")) <= 4096, "{way:?}");
            assert!(fs::read(folder.join("odd")).unwrap() == fs::read(folder.join("t")).unwrap(), "{way:?}");
        }
    });
}

/// Regression: with `--sparse=always`, both files stayed cached without a message.
#[test]
fn what_is_looked_through_for_zeros_leaves_memory() {
    within("direct::what_is_looked_through_for_zeros_leaves_memory", "ext4", |ext4| {
        let folder = ext4.path();
        let file = File::create(folder.join("s")).unwrap();
        fill(&file, 0, 70 * MIB + 7);
        file.write_all_at(&vec![0; 2 << 20], 9 * MIB).unwrap();
        drop(file);
        for backend in ["--backend=uring", "--backend=posix"] {
            chill(&folder.join("s"));
            let all = ["cp", "-v", "--direct", "--sparse=always", "--explain", backend, "s", "t"];
            let output = ferry(folder, &all);
            assert!(output.status.success(), "{}", text(&output.stderr));
            let said = text(&output.stdout);
            assert!(said.contains("through the page cache, which it leaves as it goes"), "{said}");
            // Setting the target's size may read its last page.
            assert!(cached(&folder.join("s")) == 0 && cached(&folder.join("t")) <= 4096, "{backend}");
            assert!(fs::read(folder.join("s")).unwrap() == fs::read(folder.join("t")).unwrap(), "{backend}");
            let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(folder.join("t")).unwrap());
            assert!(blocks * 512 < 69 * MIB, "{backend}: {blocks} blocks");
        }
    });
}

/// Regression: a limit that is not a multiple of a unit was reported as "Invalid argument".
#[test]
fn a_limit_of_sizes_between_units_is_told_as_what_it_is() {
    within("direct::a_limit_of_sizes_between_units_is_told_as_what_it_is", "ext4", |ext4| {
        fill(&File::create(ext4.path().join("s")).unwrap(), 0, 20 * MIB);
        for backend in ["uring", "posix"] {
            let copy = format!("trap '' XFSZ; exec \"$0\" cp --direct --backend={backend} s t");
            let mut command = Command::new("prlimit");
            command.args(["--fsize=5000000", "--", "sh", "-c", &copy, FERRY]).current_dir(ext4.path());
            let output = command.output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{backend}: {said}");
            assert!(said.contains("'t': File too large"), "{backend}: {said}");
            assert!(!ext4.path().join("t").exists(), "{backend}");
        }
    });
}

#[test]
fn an_interrupt_ends_a_direct_copy() {
    const SIGINT: i32 = 2;
    within("direct::an_interrupt_ends_a_direct_copy", "ext4", |ext4| {
        let file = File::create(ext4.path().join("s")).unwrap();
        (0..12).for_each(|index| fill(&file, index * 16 * MIB, 16 * MIB));
        drop(file);
        for options in [["--backend=uring", "--bwlimit=30M"], ["--backend=posix", "--bwlimit=30M"]] {
            let mut command = Command::new(FERRY);
            command.args(["cp", "--direct=always"]).args(options).args(["s", "t"]).current_dir(ext4.path());
            let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
            let (target, start) = (ext4.path().join("t"), Instant::now());
            while !target.metadata().is_ok_and(|found| found.len() > 0) {
                assert!(start.elapsed() < Duration::from_secs(30), "{options:?}: nothing is copied");
                assert!(child.try_wait().unwrap().is_none(), "{options:?}: it has ended");
                std::thread::sleep(Duration::from_millis(2));
            }
            let start = Instant::now();
            let process = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.signal(), Some(SIGINT), "{options:?}: {}", text(&output.stderr));
            assert!(start.elapsed() < Duration::from_secs(3), "{options:?}: {:?}", start.elapsed());
            assert!(!target.exists(), "{options:?}: what is not whole is removed");
        }
    });
}
