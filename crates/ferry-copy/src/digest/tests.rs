use ferry_io::{FileKind, Times};

use super::*;

#[test]
fn hashes_are_those_of_the_standards() {
    let empty = Algorithm::ALL.map(|algorithm| Digest::of(algorithm, b"").to_string());
    assert_eq!(empty[0], "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    assert_eq!(empty[1], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[test]
fn bytes_may_be_added_in_pieces() {
    let bytes: Vec<u8> = (0..100_000_u32).map(|index| (index % 251).to_le_bytes()[0]).collect();
    for algorithm in Algorithm::ALL {
        let mut hasher = Hasher::new(algorithm);
        bytes.chunks(777).for_each(|piece| hasher.add(piece));
        assert_eq!(hasher.finish(), Digest::of(algorithm, &bytes));
    }
}

fn stat(inode: u64, size: u64, seconds: i64) -> Stat {
    let time = Time { seconds, nanoseconds: 7 };
    Stat {
        kind: FileKind::Regular,
        mode: 0o644,
        uid: 1,
        gid: 2,
        links: 2,
        device: 3,
        inode,
        special: 0,
        size,
        blocks: 8,
        times: Times { accessed: time, modified: time },
        changed: time,
        born: None,
    }
}

#[test]
fn a_hash_is_known_for_the_attributes_that_it_was_noted_with() {
    let digest = Digest([1; 32]);
    let known = Known::of(digest, &stat(1, 10, 100));
    assert_eq!(known.digest_of(&stat(1, 10, 100)), Some(digest));
    for other in [stat(2, 10, 100), stat(1, 11, 100), stat(1, 10, 101)] {
        assert_eq!(known.digest_of(&other), None, "{other:?}");
    }
    let known = known.or_time_of(&stat(9, 10, 50));
    assert_eq!([50, 100, 101].map(|time| known.digest_of(&stat(1, 10, time)).is_some()), [true, true, false]);
}
