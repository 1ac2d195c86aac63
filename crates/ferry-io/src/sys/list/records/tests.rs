use super::{Errno, FileKind, Record, Records};

/// A record as the kernel writes it, its size rounded up to 8 bytes.
fn record(name: &[u8], kind: u8, next: u64) -> Vec<u8> {
    let size = (19 + name.len() + 1).next_multiple_of(8);
    let mut bytes = 7_u64.to_ne_bytes().to_vec();
    bytes.extend(next.to_ne_bytes());
    bytes.extend(u16::try_from(size).unwrap().to_ne_bytes());
    bytes.push(kind);
    bytes.extend(name);
    bytes.resize(size, 0);
    bytes
}

fn read(buffer: &[u8]) -> Vec<Result<Record<'_>, Errno>> {
    Records::new(buffer).collect()
}

#[test]
fn records_follow_one_another() {
    let buffer = [record(b"a", libc::DT_REG, 1), record(b"to_b", libc::DT_LNK, u64::MAX), record(b"c", 0, 3)];
    let found: Vec<_> = [
        (&b"a\0"[..], Some(FileKind::Regular), 1),
        (b"to_b\0", Some(FileKind::Symlink), u64::MAX),
        (b"c\0", None, 3),
    ]
    .map(|(name, kind, next)| Ok(Record { name, kind, inode: 7, next }))
    .into();
    assert_eq!(read(&buffer.concat()), found);
    assert_eq!(read(&[]), []);
}

#[test]
fn a_name_that_is_no_component_is_an_error() {
    for name in [&b""[..], b"/", b"../up", b"a/b", b"a/"] {
        let buffer =
            [record(b"whole", libc::DT_REG, 1), record(name, libc::DT_REG, 2), record(b"after", 0, 3)];
        let whole = Record { name: b"whole\0", kind: Some(FileKind::Regular), inode: 7, next: 1 };
        assert_eq!(read(&buffer.concat()), [Ok(whole), Err(Errno::IO)], "{}", name.escape_ascii());
    }
}

#[test]
fn a_record_that_is_not_whole_is_an_error() {
    let whole = record(b"name", libc::DT_REG, 1);
    for size in 1..whole.len() {
        assert_eq!(read(&whole[..size]), [Err(Errno::IO)], "{size} bytes");
    }
    let without_nul = [&whole[..16], &24_u16.to_ne_bytes(), b"\x08abcde"].concat();
    assert_eq!(read(&without_nul), [Err(Errno::IO)]);
    for size in 0..20_u16 {
        let mut short = whole.clone();
        short[16..18].copy_from_slice(&size.to_ne_bytes());
        assert_eq!(read(&short), [Err(Errno::IO)], "a record of {size} bytes");
    }
}
