use ferry_io::Times;

use super::*;

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
