//! `--verify`: copies are read back from their device; one that differs is made once more, and is not kept if it still
//! differs.

use std::fs;
use std::path::Path;

use super::served::{Call, Mischief};
use super::{bytes_of, copy, told, with_served};
use crate::random::filesystem::within;
use crate::scene::{ferry, text};

/// Sizes of one block, and of several.
pub(crate) const SIZES: [usize; 4] = [10, 5_000, 300_000, (3 << 20) + 7];

/// Changes what is stored of unfinished files, when they are read, up to `times` in each file.
fn spoiling(times: usize) -> Mischief {
    let mut spoiled = std::collections::BTreeMap::<String, usize>::new();
    Box::new(move |files, call, name| {
        let is_read = call == Call::Read && name.starts_with(".ferry-");
        if let Some(node) = files.at(name).filter(|_| is_read) {
            // A file is read in several requests: all units change at once, when the first is read.
            let is_whole = node.bytes.iter().step_by(4096).all(|byte| byte & 0x80 == 0);
            let so_far = spoiled.entry(name.to_owned()).or_default();
            if is_whole && *so_far < times {
                *so_far += 1;
                node.bytes.iter_mut().step_by(4096).for_each(|byte| *byte |= 0x80);
            }
        }
        Ok(())
    })
}

pub(crate) fn make_sources(place: &Path) {
    fs::create_dir(place.join("source")).unwrap();
    for size in SIZES {
        fs::write(place.join(format!("source/{size}")), bytes_of("abc", size)).unwrap();
    }
}

#[test]
fn a_copy_that_was_stored_wrongly_is_made_once_more() {
    within("faulty::verified::a_copy_that_was_stored_wrongly_is_made_once_more", "tmpfs", |memory| {
        with_served(
            memory,
            |_| (),
            || spoiling(1),
            |place, _, backend| {
                make_sources(place);
                for command in ["cp", "sync"] {
                    let options: &[&str] = if command == "cp" { &["-rT"] } else { &[] };
                    let all = [&[command, backend, "--verify"], options, &["source", "served"]].concat();
                    let output = ferry(place, &all);
                    assert_eq!(told(&output).0, Some(0), "{command}: {}", text(&output.stderr));
                    for size in SIZES {
                        let path = place.join(format!("served/{size}"));
                        assert!(fs::read(&path).unwrap() == bytes_of("abc", size), "{command}: {size}");
                        fs::remove_file(&path).unwrap();
                    }
                }
            },
        );
    });
}

#[test]
fn a_copy_that_stays_wrong_is_not_kept() {
    within("faulty::verified::a_copy_that_stays_wrong_is_not_kept", "tmpfs", |memory| {
        let fill = |files: &mut super::served::Files| files.file("5000", b"older");
        with_served(
            memory,
            fill,
            || spoiling(2),
            |place, _, backend| {
                make_sources(place);
                let output = copy(place, &["-rT", backend, "--verify", "source", "served"]);
                assert_eq!(output.status.code(), Some(1));
                for size in SIZES {
                    let line = format!(
                        "ferry cp: 'served/{size}', read back from its device, differs from 'source/{size}', also after a \
                     second copy\n"
                    );
                    assert!(text(&output.stderr).contains(&line), "{}", text(&output.stderr));
                }
                let left: Vec<_> =
                    fs::read_dir(place.join("served")).unwrap().map(|it| it.unwrap().file_name()).collect();
                assert_eq!(left, ["5000"]);
                assert_eq!(fs::read(place.join("served/5000")).unwrap(), b"older");
            },
        );
    });
}
