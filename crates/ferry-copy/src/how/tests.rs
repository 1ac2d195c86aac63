use ferry_io::{Cause, Errno, Error, FileKind, Operation, Stat, Time, Times};

use super::how;
use crate::abilities::Abilities;
use crate::options::{Options, Reflink, Sparse};
use crate::report::Method;

fn stat(kind: FileKind, size: u64, blocks: u64) -> Stat {
    let time = Time { seconds: 0, nanoseconds: 0 };
    let times = Times { accessed: time, modified: time };
    Stat {
        kind,
        mode: 0o644,
        uid: 0,
        gid: 0,
        links: 1,
        device: 1,
        inode: 2,
        special: 0,
        size,
        blocks,
        times,
        changed: time,
        born: None,
    }
}

#[test]
fn what_was_done_is_told() {
    let refused = Abilities::default();
    refused.note_refused_clone(&Error { operation: Operation::Clone, cause: Cause::Errno(Errno::XDEV) });
    let able = Abilities::default();
    let usual = Options::default();
    let always = Options { sparse: Sparse::Always, ..Options::default() };
    let never = Options { reflink: Reflink::Never, sparse: Sparse::Never, ..Options::default() };
    let (whole, sparse) = (stat(FileKind::Regular, 4096, 8), stat(FileKind::Regular, 1 << 20, 8));
    let file = FileKind::Regular;
    let table = [
        (how(&usual, &able, &whole, file, Method::Reflink), "unknown", "yes", "unknown"),
        (how(&usual, &refused, &whole, file, Method::Offload), "yes", "unsupported", "no"),
        (how(&usual, &refused, &sparse, file, Method::Offload), "yes", "unsupported", "SEEK_HOLE"),
        (how(&usual, &refused, &sparse, file, Method::Nothing), "unknown", "unsupported", "SEEK_HOLE"),
        (how(&usual, &able, &whole, file, Method::Whole), "avoided", "no", "no"),
        (how(&always, &refused, &whole, file, Method::Whole), "avoided", "unsupported", "zeros"),
        (how(&always, &refused, &sparse, file, Method::Whole), "avoided", "unsupported", "SEEK_HOLE + zeros"),
        (how(&never, &able, &sparse, file, Method::Pipeline), "avoided", "no", "no"),
        (how(&usual, &able, &whole, FileKind::CharDevice, Method::Whole), "unsupported", "unsupported", "no"),
    ];
    for (said, offload, reflink, sparse) in table {
        let line = format!("copy offload: {offload}, reflink: {reflink}, sparse detection: {sparse}");
        assert_eq!(said.to_string(), line);
    }
}
