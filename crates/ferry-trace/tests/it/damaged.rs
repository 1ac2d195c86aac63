//! Files that are no whole recording: each is told in one line, and none ends the program.

use std::io::Write;

use ferry_io::event::file::{Chunk, Fields, Kind, Writer};
use ferry_io::{Options, Tracing, run};
use ferry_trace::read::{self, Broken};

/// The bytes of a short recording.
fn recording() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let options = Options { trace: Some(Tracing::to(&file)), ..Options::default() };
    let ran = run(&options, async |io| {
        let proc = io.open_dir("/proc/self".as_ref()).expect("it is there");
        proc.stat_entry(&crate::program::name("stat"), false).await.expect("it is there");
    });
    ran.expect("it runs");
    std::fs::read(&file).expect("it is there")
}

#[test]
fn a_recording_is_whole_or_it_is_told_why_not() {
    let whole = recording();
    assert!(read::read(whole.as_slice()).is_ok());
    assert_eq!(read::read(&b""[..]), Err(Broken::Empty));
    assert_eq!(read::read(&b"FERRY"[..]), Err(Broken::Truncated));
    assert_eq!(read::read(&b"something else altogether"[..]), Err(Broken::Foreign));
    for size in 1..whole.len() {
        assert_eq!(read::read(&whole[..size]), Err(Broken::Truncated), "{size} of {} bytes", whole.len());
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert_eq!(read::read(longer.as_slice()), Err(Broken::Damaged));
    let mut newer = whole;
    newer[8] = 200;
    let told = read::read(newer.as_slice()).expect_err("it is newer");
    assert_eq!(told, Broken::Newer(200));
    assert_eq!(told.to_string(), "it is of version 200, and only versions up to 1 are understood here");
}

#[test]
fn a_changed_byte_never_panics() {
    let whole = recording();
    for at in 0..whole.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] ^= change;
            if let Ok(trace) = read::read(damaged.as_slice()) {
                drop(ferry_trace::check::check(&trace));
            }
        }
    }
}

#[test]
fn what_is_not_known_here_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace");
    let mut writer = Writer::create(&file).expect("a file");
    let mut header = Fields::default();
    header.add("operations", ["open", "teleport"]);
    writer.add_fields(Kind::Header, &header).expect("room");
    assert_eq!(read::open(&file), Err(Broken::Unknown("teleport".to_owned())));
}

#[test]
fn folders_and_what_is_not_there_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(read::open(folder.path()), Err(Broken::Foreign));
    let told = read::open(&folder.path().join("none")).expect_err("it is not there");
    assert_eq!(told.to_string(), "No such file or directory");
}

#[test]
fn a_chunk_larger_than_any_is_not_believed() {
    let mut bytes = ferry_io::event::file::MARK.to_vec();
    bytes.write_all(&1_u32.to_le_bytes()).expect("memory");
    let mut chunk = vec![0; 32];
    chunk[0] = 1;
    chunk[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend(chunk);
    assert_eq!(read::read(bytes.as_slice()), Err(Broken::Damaged));
    assert_eq!(Chunk::plain(Kind::End).events, 0);
}
