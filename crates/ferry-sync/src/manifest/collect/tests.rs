use std::collections::BTreeMap;
use std::path::PathBuf;

use super::super::text::{line, parse};
use super::super::{BadManifest, Listing};
use super::*;

fn stat(size: u64) -> Content {
    let modified = ferry_io::Time { seconds: -1, nanoseconds: 5 };
    let facts = Some(Facts { size, mode: 0o644, modified });
    let digest = Digest::of(Algorithm::Blake3, &size.to_le_bytes());
    Content { digest, algorithm: Some(Algorithm::Blake3), facts }
}

/// More notes than are sorted in memory, many of them on the same paths.
#[test]
fn many_notes_are_sorted_as_by_a_map() {
    let manifest = Manifest::new(Algorithm::Blake3);
    let mut expected = BTreeMap::new();
    for number in 0..200_000_u64 {
        let path = PathBuf::from(format!("{}/{}", number * 7_919 % 13, number * 104_729 % 150_000));
        let content = if number % 11 == 3 { None } else { Some(stat(number)) };
        expected.insert(path.as_os_str().as_bytes().to_vec(), content);
        manifest.note(&path, content);
    }
    assert!(manifest.lock().sorter.is_spilled());
    let mut written = Vec::new();
    let files = manifest.write(&mut written, Format::Json).expect("it is written");
    expected.retain(|_, content| content.is_some());
    assert_eq!(files, expected.len() as u64);
    let mut read = Listing::read(&written[..], None).expect("it is read").files;
    for (path, content) in expected {
        let note = read.next().expect("it is read").expect("one is left");
        assert_eq!((note.path.to_vec(), note.content), (path, content));
    }
    assert_eq!(read.next().expect("it is read"), None);
}

#[test]
fn lines_are_escaped_as_by_their_programs() {
    let digest = Digest([0xab; 32]);
    let hex = "ab".repeat(32);
    for (algorithm, path, escaped) in [
        (Algorithm::Sha256, &b"a b"[..], format!("{hex}  a b\n")),
        (Algorithm::Sha256, b"a\nb\\c\rd", format!("\\{hex}  a\\nb\\\\c\\rd\n")),
        (Algorithm::Blake3, b"a\nb\\c\rd", format!("\\{hex}  a\\nb\\\\c\rd\n")),
        (Algorithm::Blake3, b"c\rd", format!("{hex}  c\rd\n")),
    ] {
        let written = line(algorithm, digest, path);
        assert_eq!(written, escaped.as_bytes());
        let parsed = parse(written.strip_suffix(b"\n").expect("a line")).expect("it is read");
        assert_eq!((parsed.digest, parsed.path), (digest, path.to_vec()));
    }
}

#[test]
fn lines_without_end_are_refused() {
    let long = vec![b'a'; (1 << 20) + 1];
    let Err(BadManifest::Line { number: 1, problem }) = Listing::read(&long[..], None) else {
        panic!("it was read")
    };
    assert_eq!(problem, "it is longer than 1 MiB");
}

#[test]
fn the_name_of_the_file_tells_the_format() {
    for (name, format) in [
        ("a.json", Format::Json),
        ("a.ndjson", Format::Json),
        ("json", Format::Text),
        ("a.sha256", Format::Text),
    ] {
        assert_eq!(Format::of(Path::new(name)), format, "{name}");
    }
}
