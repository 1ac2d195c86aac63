use super::*;
use crate::entry::{Time, Times};

const NEVER: Time = Time { seconds: 0, nanoseconds: 0 };

/// Entries with attributes of a size, of which one is missing and one can't be listed.
struct Scripted {
    value_bytes: usize,
    listed: usize,
}

impl FactCalls for Scripted {
    fn stat(&mut self, name: &Name) -> Result<Stat, Errno> {
        if name.as_bytes() == b"missing" {
            return Err(Errno::NOENT);
        }
        let times = Times { accessed: NEVER, modified: NEVER };
        let (kind, mode, uid, gid, links, device) = (FileKind::Regular, 0o644, 0, 0, 1, 1);
        let (inode, special, size, blocks, born) = (2, 0, 0, 0, None);
        let changed = NEVER;
        Ok(Stat { kind, mode, uid, gid, links, device, inode, special, size, blocks, times, changed, born })
    }

    fn text(&mut self, _: &Name) -> Result<Vec<u8>, Errno> {
        unreachable!("only links have texts")
    }

    fn xattrs(&mut self, name: &Name) -> Result<Vec<Xattr>, Errno> {
        self.listed += 1;
        if name.as_bytes() == b"refused" {
            return Err(Errno::IO);
        }
        Ok(vec![(c"user.a".to_owned(), vec![0; self.value_bytes])])
    }
}

fn names(names: &[&str]) -> Vec<Name> {
    names.iter().filter_map(|name| Name::new(name.as_bytes())).collect()
}

#[test]
fn a_request_returns_a_bounded_amount_of_attributes() {
    for (value_bytes, returned, listed) in [
        (XATTR_BYTES / 3, [true, true, false, false], 3),
        (XATTR_BYTES / 2, [true, false, false, false], 2),
        (XATTR_BYTES, [false, false, false, false], 1),
    ] {
        let mut calls = Scripted { value_bytes, listed: 0 };
        let found = examine(&mut calls, &names(&["a", "b", "c", "d"]), true);
        let has_xattrs: Vec<bool> = found.iter().flatten().map(|facts| facts.xattrs.is_some()).collect();
        assert_eq!((has_xattrs, calls.listed), (returned.to_vec(), listed), "{value_bytes} bytes");
    }
}

#[test]
fn an_error_is_that_of_its_entry() {
    let mut calls = Scripted { value_bytes: 1, listed: 0 };
    let found = examine(&mut calls, &names(&["missing", "refused", "c"]), true);
    let seen: Vec<_> = found.iter().map(|one| one.as_ref().map(|facts| facts.xattrs.is_some())).collect();
    assert_eq!(seen, [Err(&Errno::NOENT), Ok(false), Ok(true)]);
}

#[test]
fn nothing_but_attributes_is_read_unless_requested() {
    let mut calls = Scripted { value_bytes: 1, listed: 0 };
    let found = examine(&mut calls, &names(&["a"]), false);
    assert!(matches!(&found[..], [Ok(facts)] if facts.xattrs.is_none()));
    assert_eq!(calls.listed, 0);
}
