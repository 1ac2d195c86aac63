//! Directory listings: every name is a component within the buffer, or the listing ends with an error.
#![no_main]

use ferry_io::fuzzing::{Record, records};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|buffer: &[u8]| {
    let found: Vec<_> = records(buffer).collect();
    let whole: Vec<&Record<'_>> = found.iter().map_while(|record| record.as_ref().ok()).collect();
    assert!(whole.len() + 1 >= found.len(), "something follows an error: {found:?}");
    let mut rest = buffer;
    for record in &whole {
        let (name, nul) = record.name.split_at(record.name.len() - 1);
        assert_eq!(nul, b"\0");
        assert!(!name.is_empty() && !name.contains(&b'/') && !name.contains(&0), "{}", name.escape_ascii());
        // Records are in order and do not overlap.
        let place =
            rest.windows(record.name.len()).position(|window| window.as_ptr() == record.name.as_ptr());
        rest = &rest[place.expect("the name is in what is left of the buffer") + record.name.len()..];
    }
    // Written again, they are read as before.
    let written: Vec<u8> = whole.iter().flat_map(|record| write(record)).collect();
    let again: Vec<_> = records(&written).map(|record| record.expect("it is whole")).collect();
    assert!(again.iter().eq(whole), "{again:?}");
});

/// Encodes the record as the kernel does (getdents64(2)).
fn write(record: &Record<'_>) -> Vec<u8> {
    let size = (19 + record.name.len()).next_multiple_of(8);
    let mut bytes = 1_u64.to_ne_bytes().to_vec();
    bytes.extend(record.next.to_ne_bytes());
    bytes.extend(u16::try_from(size).unwrap_or(u16::MAX).to_ne_bytes());
    bytes.push(record.number());
    bytes.extend(record.name);
    bytes.resize(size, 0);
    bytes
}
