use super::content::{PAGE, Sparse};
use super::disk::{Body, Disk, ROOT};
use super::folder::Folder;
use super::*;
use crate::entry::RenameMode;

const TIB: u64 = 1 << 40;

#[test]
fn a_large_hole_costs_nothing() {
    let mut content = Sparse::default();
    content.set_size(TIB);
    content.write(TIB, b"end");
    assert_eq!(content.size(), TIB + 3);
    assert_eq!(content.allocated(), PAGE as u64);
    assert_eq!(content.next_data(0), Some(TIB));
    assert_eq!(content.data_ranges(), vec![TIB..TIB + 3]);
}

#[test]
fn what_was_cut_off_reads_as_zero_when_it_comes_back() {
    let mut content = Sparse::from(&[7; 10_000][..]);
    content.set_size(5000);
    content.set_size(10_000);
    let mut bytes = [1; 10_000];
    assert_eq!(content.read(0, &mut bytes), 10_000);
    assert!(bytes[..5000].iter().all(|&byte| byte == 7));
    assert!(bytes[5000..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_reserved_page_is_used_up_by_data() {
    let page = PAGE as u64;
    let mut content = Sparse::default();
    content.write(2 * page, b"x");
    content.reserve(0, 5 * page);
    assert_eq!(content.allocated(), 5 * page);
    content.reserve(page, 2 * page);
    assert_eq!(content.allocated(), 5 * page, "it was reserved already");
    content.write(page, b"y");
    assert_eq!(content.allocated(), 5 * page);
    assert_eq!(content.cost_of_reserve(0, 6 * page), page);
    assert_eq!(content.fitting(4 * page, 3 * PAGE, page), 2 * PAGE);
    content.set_size(page + 1);
    assert_eq!(content.allocated(), 2 * page, "what is reserved past the end goes when it is cut");
}

#[test]
fn equal_bytes_are_equal_whatever_is_a_hole() {
    let mut sparse = Sparse::default();
    sparse.set_size(3 * PAGE as u64);
    assert_eq!(sparse, Sparse::from(&[0; 3 * PAGE][..]));
    assert_ne!(sparse, Sparse::from(&[0; 2 * PAGE][..]));
    sparse.write(PAGE as u64, b"x");
    assert_ne!(sparse, Sparse::from(&[0; 3 * PAGE][..]));
}

#[test]
fn cookies_are_stable() {
    let mut folder = Folder::new(ROOT, false);
    for number in 0..100 {
        folder.add(number.to_string().as_bytes(), number);
    }
    let all: Vec<_> = folder.after(0).map(|(cookie, entry)| (cookie, entry.inode)).collect();
    let (middle, kept) = all[50];
    folder.remove(all[49].1.to_string().as_bytes());
    folder.add(b"new", 1000);
    assert_eq!(folder.get(kept.to_string().as_bytes()), Some(kept));
    let rest: Vec<_> = folder.after(middle).map(|(_, entry)| entry.inode).filter(|&n| n < 1000).collect();
    assert_eq!(rest, all[51..].iter().map(|&(_, inode)| inode).collect::<Vec<_>>());
}

#[test]
fn an_unlinked_file_lives_until_it_is_closed() {
    let mut disk = Disk::new(Settings::default());
    let number = disk.make(ROOT, b"file", Body::Regular(Sparse::default()), 0o644).unwrap();
    disk.change(number, |content| content.write(0, b"x")).unwrap();
    let handle = disk.open(number, rustix::fs::OFlags::RDONLY, b"file").unwrap();
    disk.remove_entry(ROOT, b"file").unwrap();
    disk.drop_links(number, 1).unwrap();
    assert_eq!(disk.stat(number).unwrap().links, 0);
    assert_eq!(disk.used(), PAGE as u64);
    disk.close(handle);
    assert!(disk.stat(number).is_err());
    assert_eq!(disk.used(), 0, "removing everything frees the space");
}

#[test]
fn paths_follow_links_and_know_the_way_up() {
    let world = World::default();
    world.folder("a").folder("a/b").file("a/b/file", b"x").symlink("link", "a/./b//../b");
    let disk = world.inner.disk();
    let file = disk.walk(ROOT, b"/a/b/file", true).unwrap();
    assert_eq!(disk.walk(ROOT, b"link/file", false), Ok(file));
    assert_eq!(disk.walk(ROOT, b"../../link/../b/file", false), Ok(file));
    assert_eq!(disk.walk(ROOT, b"a/b/file/x", false), Err(rustix::io::Errno::NOTDIR));
}

#[test]
fn files_made_within_one_tick_have_one_birth_time() {
    let mut disk = Disk::new(Settings { clock_grain_ns: 4_000_000, ..Settings::default() });
    let born = |disk: &mut Disk, name: &[u8]| {
        let number = disk.make(ROOT, name, Body::Regular(Sparse::default()), 0o644).unwrap();
        disk.inode(number).unwrap().born
    };
    let first = born(&mut disk, b"first");
    assert_eq!(born(&mut disk, b"second"), first);
    disk.clock_ns += 4_000_000;
    assert_ne!(born(&mut disk, b"third"), first);
    assert!(disk.exact_now() > disk.now());
}

#[test]
fn a_rename_changes_the_file_and_both_folders() {
    let mut disk = Disk::new(Settings::default());
    let body = disk.empty_folder(ROOT);
    let folder = disk.make(ROOT, b"folder", body, 0o755).unwrap();
    let file = disk.make(ROOT, b"file", Body::Regular(Sparse::default()), 0o644).unwrap();
    disk.clock_ns += 1000;
    disk.rename((ROOT, b"file"), (folder, b"moved"), RenameMode::Replace).unwrap();
    for number in [ROOT, folder, file] {
        assert_eq!(disk.stat(number).unwrap().changed, disk.now());
    }
}

#[test]
fn a_lock_lasts_until_its_descriptor_is_closed_or_its_program_is_killed() {
    let mut disk = Disk::new(Settings { locks: true, ..Settings::default() });
    let number = disk.make(ROOT, b"file", Body::Regular(Sparse::default()), 0o644).unwrap();
    let flags = rustix::fs::OFlags::RDONLY;
    let [first, other] = [0, 1].map(|_| disk.open(number, flags, b"file").unwrap());
    assert_eq!((disk.try_lock(first, false), disk.try_lock(other, false)), (Ok(true), Ok(true)));
    assert_eq!(disk.try_lock(first, true), Ok(false), "the other has a shared lock");
    disk.close(other);
    assert_eq!(disk.try_lock(first, true), Ok(true));
    let mut killed = disk.killed();
    let [ours, theirs] = [&mut disk, &mut killed].map(|disk| disk.open(number, flags, b"file").unwrap());
    assert_eq!(disk.try_lock(ours, false), Ok(false));
    assert_eq!(killed.try_lock(theirs, true), Ok(true));
}

#[test]
fn a_kill_takes_files_that_have_only_descriptors() {
    let world = World::default();
    world.file("file", b"text");
    let mut disk = world.inner.disk();
    let number = disk.walk(ROOT, b"file", false).unwrap();
    disk.open(number, rustix::fs::OFlags::RDONLY, b"file").unwrap();
    disk.remove_name(ROOT, b"file", number).unwrap();
    assert_eq!(disk.used(), PAGE as u64);
    assert_eq!((disk.killed().used(), disk.killed().open_count()), (0, 0));
}
