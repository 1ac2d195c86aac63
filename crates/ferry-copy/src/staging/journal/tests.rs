use super::*;

const HEADER: &str = "ferry-journal 1 source 5 90000000 1.000000002 3.000000004 part 7 range 33554432\n";

fn hashes(count: u8) -> Vec<Hash> {
    (0..count).map(|number| blake3::hash(&[number])).collect()
}

fn journal(hashes: &[Hash]) -> String {
    let lines: String = (0..).zip(hashes).map(|(index, hash)| line(index, hash)).collect();
    HEADER.to_owned() + &lines
}

#[test]
fn ranges_are_read_as_they_were_noted() {
    let text = journal(&hashes(20));
    assert_eq!(parse(text.as_bytes(), HEADER), Ok(Noted { hashes: hashes(20), is_damaged: false }));
    assert_eq!([part_inode(text.as_bytes()), part_inode(&HEADER.as_bytes()[..60])], [Some(7), None]);
    assert_eq!(text.len() as u64, size(HEADER, 20));
}

/// Cut or changed anywhere, a journal has the ranges before that place, or is of no use.
#[test]
fn a_damaged_journal_has_no_wrong_range() {
    let text = journal(&hashes(4)).into_bytes();
    for end in 0..text.len() {
        let whole = end.checked_sub(HEADER.len()).map(|bytes| bytes / LINE);
        let found = parse(&text[..end], HEADER);
        assert!(found.as_ref().is_ok_and(|found| !found.is_damaged) == whole.is_some(), "cut at {end}");
        assert_eq!(found.ok().map(|found| found.hashes.len()), whole, "cut at {end}");
        let mut changed = text.clone();
        changed[end] ^= 1;
        if let Ok(Noted { hashes: found, is_damaged }) = parse(&changed, HEADER) {
            let line = (end - HEADER.len()) / LINE;
            assert!(is_damaged || found.len() == 4, "changed at {end}");
            assert!(found[..line] == hashes(4)[..line], "changed at {end}");
            assert!(found.len() <= line || found[line] != hashes(4)[line], "changed at {end}");
        }
    }
}

#[test]
fn journals_of_other_files_are_told_apart() {
    let other = |from, to| parse(journal(&hashes(1)).replace(from, to).as_bytes(), HEADER);
    assert_eq!(other("source 5 ", "source 6 "), Err(Useless::OtherSource));
    assert_eq!(other("3.000000004", "3.000000005"), Err(Useless::OtherSource));
    assert_eq!(other("part 7", "part 8"), Err(Useless::OtherPart));
    assert_eq!(other("journal 1", "journal 2"), Err(Useless::Damaged));
    assert_eq!(parse(b"", HEADER), Err(Useless::Damaged));
    assert_eq!(parse(b"\xff\n", HEADER), Err(Useless::Damaged));
}

#[test]
fn the_number_of_ranges_is_bounded() {
    for size in [1, 64 << 20, 2 << 40, (2 << 40) + 1, 1 << 60, u64::MAX] {
        let range = range_size(size);
        assert!(size.div_ceil(range) <= MOST && range.is_power_of_two(), "{size}: {range}");
    }
    assert_eq!([range_size(2 << 40), range_size((2 << 40) + 1)], [32 << 20, 64 << 20]);
}
