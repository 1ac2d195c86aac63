//! `--direct`: copies past the page cache are the copies that they would be through it, and leave nothing in it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ferry_io::probe;

use crate::random::filesystem::{Filesystem, within};
use crate::scene::{ferry, text};

const MIB: u64 = 1 << 20;

/// Sizes about a block of 256 KiB, about a unit of 4 KiB, and large.
const SIZES: [u64; 8] =
    [0, 5, 256 << 10, (256 << 10) + 1, (512 << 10) - 1, MIB, 3 * MIB + 4096 + 511, 20 * MIB + 7];

fn fill(file: &File, at: u64, size: u64) {
    let mut content = vec![0; usize::try_from(size).unwrap()];
    ferry_tree::fill::fill(at + 1, 0, &mut content);
    file.write_all_at(&content, at).unwrap();
}

/// A folder `s` of files of all sizes, and one with holes.
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

/// Bytes of a file that are in memory.
fn cached(path: &Path) -> u64 {
    probe::data(File::open(path).unwrap(), 0, 0).unwrap().bytes
}

/// Has memory forget a file.
fn chill(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

const WAYS: [&[&str]; 6] = [
    &["--backend=uring"],
    &["--backend=posix"],
    &["--atomic", "--fsync"],
    &["--sparse=never", "--block-size=4K"],
    &["--bwlimit=400M"],
    &["--route=inline"],
];

/// Copies by all ways; afterwards nothing of what is larger than a block is in memory.
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

#[test]
fn memory_is_copied_through_the_page_cache_and_that_is_said() {
    let memory = Filesystem::memory();
    make(memory.path());
    let large = format!("s/{}", SIZES[7]);
    let output = ferry(memory.path(), &["cp", "--direct", "--explain", "--sparse=never", &large, "t"]);
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
            let output = ferry(folder, &["cp", "--direct", "--explain", source, target]);
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
fn only_what_is_large_and_cold_is_read_directly_by_itself() {
    within("direct::only_what_is_large_and_cold_is_read_directly_by_itself", "ext4", |ext4| {
        let folder = ext4.path();
        // A file is large from 256 MiB on; there is no room for two, so that the copy is in memory.
        let large = File::create(folder.join("large")).unwrap();
        (0..16).for_each(|index| fill(&large, index * 16 * MIB, 16 * MIB));
        let target = ext4.beside().join("t");
        let target = target.to_str().unwrap();
        let explained = |option: &str, source: &str| {
            let output = ferry(folder, &["cp", option, "--explain", "--sparse=never", source, target]);
            assert!(output.status.success(), "{}", text(&output.stderr));
            text(&output.stdout).lines().next().unwrap().to_owned()
        };
        let why = "direct: read past the page cache: it is large and not in memory";
        let said = explained("--direct=auto", "large");
        assert!(!said.contains("direct"), "it is in memory: {said}");
        chill(&folder.join("large"));
        let said = explained("--direct=auto", "large");
        assert!(said.contains(why), "{said}");
        assert_eq!(cached(&folder.join("large")), 0);
        let said = explained("--backup=off", "large");
        assert!(said.contains(why), "that is the default: {said}");
        let said = explained("--direct=never", "large");
        assert!(!said.contains("direct") && cached(&folder.join("large")) > 0, "{said}");
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
