use super::*;

fn entry(name: &str, inode: u64) -> Entry {
    let kind = if inode.is_multiple_of(2) { Some(FileKind::BlockDevice) } else { None };
    Entry { name: Name::new(name.as_bytes()).expect("a name"), kind, inode }
}

fn names(mut sorted: Sorted<Entry>) -> Vec<(String, Option<FileKind>, u64)> {
    let mut names = Vec::new();
    while let Some(entry) = sorted.next().expect("it is read") {
        names.push((String::from_utf8_lossy(entry.name.as_bytes()).into_owned(), entry.kind, entry.inode));
    }
    names
}

/// Sorts `count` entries in chunks of seven, at most `in_memory` of them in memory.
fn check(count: u64, in_memory: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    // A name of 255 bytes crosses the pieces in which a run is read.
    let name = |number: u64| format!("{:x>255}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let entries: Vec<Entry> = (0..count).map(|number| entry(&name(number), number)).collect();
    let mut sorter = Sorter::with_limit(in_memory);
    for chunk in entries.chunks(7) {
        sorter.add(chunk.to_vec(), folder.path()).expect("it is added");
        assert!(sorter.records.len() <= in_memory, "{} entries stay in memory", sorter.records.len());
    }
    let found = names(sorter.finish(folder.path()).expect("it is sorted"));
    let mut wanted: Vec<_> = entries
        .iter()
        .map(|entry| (String::from_utf8_lossy(entry.name.as_bytes()).into_owned(), entry.kind, entry.inode))
        .collect();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found, wanted);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left behind");
}

#[test]
fn entries_come_in_the_order_of_their_names() {
    check(0, 10);
    check(9, 10);
    check(100, 10);
    check(3_000, 500);
}
