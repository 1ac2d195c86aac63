use ferry_io::FileKind;

use super::{Attempt, Holes, words};
use crate::options::{Options, Reflink, Sparse};
use crate::report::Method;

const FILE: FileKind = FileKind::Regular;

#[test]
fn answers_of_the_kernel_become_the_words_of_gnu() {
    let usual = Options::default();
    let always = Options { sparse: Sparse::Always, ..Options::default() };
    let never = Options { sparse: Sparse::Never, ..Options::default() };
    let unshared = Options { reflink: Reflink::Never, ..Options::default() };
    let some = Holes::Some(0);
    let table = [
        (&usual, Holes::None, FILE, Attempt::Copied, "yes", "unsupported", "no"),
        (&usual, Holes::None, FILE, Attempt::Nothing, "unknown", "unsupported", "no"),
        (&usual, Holes::None, FILE, Attempt::Refused, "unsupported", "unsupported", "no"),
        (&usual, some, FILE, Attempt::Copied, "yes", "unsupported", "SEEK_HOLE"),
        (&usual, Holes::All, FILE, Attempt::Nothing, "unknown", "unsupported", "SEEK_HOLE"),
        (&always, Holes::None, FILE, Attempt::Nothing, "avoided", "unsupported", "zeros"),
        (&always, some, FILE, Attempt::Nothing, "avoided", "unsupported", "SEEK_HOLE + zeros"),
        (&always, Holes::All, FILE, Attempt::Nothing, "unknown", "unsupported", "SEEK_HOLE"),
        (&always, Holes::None, FileKind::CharDevice, Attempt::Refused, "unsupported", "unsupported", "no"),
        (&never, Holes::None, FILE, Attempt::Nothing, "avoided", "no", "no"),
        (&never, some, FILE, Attempt::Nothing, "avoided", "no", "SEEK_HOLE"),
        (&unshared, Holes::None, FILE, Attempt::Nothing, "avoided", "no", "no"),
        (&unshared, Holes::All, FILE, Attempt::Nothing, "unknown", "no", "SEEK_HOLE"),
    ];
    for (options, holes, target, attempt, offload, reflink, sparse) in table {
        let line = format!("copy offload: {offload}, reflink: {reflink}, sparse detection: {sparse}");
        assert_eq!(words(options, holes, target, attempt).to_string(), line);
    }
}

#[test]
fn shared_extents_leave_nothing_else_to_tell() {
    let how = words(&Options::default(), Holes::None, FILE, Attempt::Copied);
    assert_eq!(how.if_not_shared(Method::Whole), how);
    let line = "copy offload: unknown, reflink: yes, sparse detection: unknown";
    assert_eq!(how.if_not_shared(Method::Reflink).to_string(), line);
}
