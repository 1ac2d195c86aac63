//! Concurrent changes of the source, the target and the filesystem below.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::served::{Call, Files, Mischief};
use super::table::assert_told;
use super::{
    assert_holds_all_but, assert_is_empty, copy, make_source, serve_source, shell, told, with_served,
};
use crate::random::filesystem::within;
use crate::scene::FERRY;

/// Performs an action once, before the first such call on a name.
fn once(call: Call, name: &'static str, deed: impl Fn(&mut Files) + Send + 'static) -> Mischief {
    let mut is_done = false;
    Box::new(move |files, asked, on| {
        if asked == call && on == name && !std::mem::replace(&mut is_done, true) {
            deed(files);
        }
        Ok(())
    })
}

/// Copies from a served source while `deed` changes it.
#[track_caller]
fn disturbed(test: &str, mischief: impl Fn() -> Mischief, changed: &str, expected: Option<&[u8]>) {
    within(test, "tmpfs", |memory| {
        with_served(memory, serve_source, &mischief, |place, _, backend| {
            let output = copy(place, &["-r", backend, "served", "target"]);
            assert_told(test, 0, told(&output));
            let copied = place.join("target").join(changed);
            match expected {
                Some(bytes) => {
                    assert!(std::fs::read(&copied).unwrap() == bytes, "{changed} is something else");
                    std::fs::remove_file(&copied).unwrap();
                }
                None => assert!(!copied.is_file(), "{changed} is there"),
            }
            assert_holds_all_but(&place.join("target"), &[changed]);
        });
    });
}

#[test]
fn a_file_that_shrinks() {
    let shrinks = || once(Call::Read, "c", |files| files.at("c").unwrap().bytes.truncate(1_000));
    let left = super::bytes_of("c", 1_000);
    disturbed("faulty::meanwhile::a_file_that_shrinks", shrinks, "c", Some(&left));
}

#[test]
fn a_file_that_grows_without_end() {
    const TEST: &str = "faulty::meanwhile::a_file_that_grows_without_end";
    within(TEST, "tmpfs", |memory| {
        let grows = || -> Mischief {
            Box::new(|files, call, name| {
                if call == Call::Read && name == "c" {
                    files.at("c").unwrap().bytes.extend([b'c'; 200_000]);
                }
                Ok(())
            })
        };
        with_served(memory, serve_source, grows, |place, _, backend| {
            let output = copy(place, &["-r", backend, "served", "target"]);
            assert_told(TEST, 0, told(&output));
            let copied = std::fs::read(place.join("target/c")).unwrap();
            assert!(copied.len() >= 300_000 && copied.iter().all(|&byte| byte == b'c'), "{}", copied.len());
            std::fs::remove_file(place.join("target/c")).unwrap();
            assert_holds_all_but(&place.join("target"), &["c"]);
        });
    });
}

#[test]
fn a_file_that_vanishes() {
    let vanishes = || once(Call::Lookup, "b", |files| files.remove("b"));
    disturbed("faulty::meanwhile::a_file_that_vanishes", vanishes, "b", None);
}

#[test]
fn a_file_that_vanishes_while_it_is_read() {
    let vanishes = || once(Call::Read, "c", |files| files.remove("c"));
    let whole = super::bytes_of("c", 300_000);
    disturbed("faulty::meanwhile::a_file_that_vanishes_while_it_is_read", vanishes, "c", Some(&whole));
}

#[test]
fn a_file_that_becomes_a_folder() {
    let swaps = || {
        once(Call::Lookup, "b", |files| {
            files.remove("b");
            files.folder("b");
        })
    };
    disturbed("faulty::meanwhile::a_file_that_becomes_a_folder", swaps, "b", None);
}

#[test]
fn a_folder_that_becomes_a_file() {
    let swaps = || {
        once(Call::Lookup, "folder", |files| {
            files.remove("folder");
            files.file("folder", b"file");
        })
    };
    disturbed("faulty::meanwhile::a_folder_that_becomes_a_file", swaps, "folder", None);
}

#[test]
fn a_folder_that_is_removed_while_it_is_listed() {
    const TEST: &str = "faulty::meanwhile::a_folder_that_is_removed_while_it_is_listed";
    within(TEST, "tmpfs", |memory| {
        let removed = || -> Mischief {
            Box::new(|files, call, name| {
                if call != Call::List || name != "folder" {
                    return Ok(());
                }
                files.remove("folder");
                Err(rustix::io::Errno::NOENT)
            })
        };
        let fill = |files: &mut Files| serve_source(files);
        with_served(memory, fill, removed, |place, _, backend| {
            let output = copy(place, &["-r", backend, "served", "target"]);
            assert_told(TEST, 0, told(&output));
            assert_holds_all_but(&place.join("target"), &["folder"]);
            assert_is_empty(&place.join("target/folder"));
        });
    });
}

/// Runs a script once, at the first read of a large file.
fn script_at_first_read(folder: std::path::PathBuf, script: &'static str) -> Mischief {
    once(Call::Read, "c", move |_| {
        let output = shell(&folder, script);
        assert!(output.status.success(), "{script}: {output:?}");
    })
}

#[test]
fn a_target_that_is_unmounted_lazily() {
    const TEST: &str = "faulty::meanwhile::a_target_that_is_unmounted_lazily";
    within(TEST, "tmpfs", |memory| {
        let unmounts = || script_at_first_read(memory.path().to_owned(), "umount --lazy out");
        with_served(memory, serve_source, unmounts, |place, _, backend| {
            let mount = "rm -rf out image; mkdir out; truncate -s 64M image; mkfs.ext4 -q image; mount -o loop image out";
            assert!(shell(memory.path(), mount).status.success());
            let output = copy(place, &["-r", backend, "served", "../out/target"]);
            assert_told(TEST, 0, told(&output));
            assert!(!memory.path().join("out/target").exists(), "it is not mounted any more");
            // The kernel may need a moment to unmount.
            let again = "for i in $(seq 100); do mount -o loop image out && exit; sleep 0.1; done; exit 1";
            assert!(shell(memory.path(), again).status.success());
            assert_holds_all_but(&memory.path().join("out/target"), &[]);
            assert!(shell(memory.path(), "umount out").status.success());
        });
    });
}

#[test]
fn a_target_that_becomes_read_only() {
    const TEST: &str = "faulty::meanwhile::a_target_that_becomes_read_only";
    within(TEST, "tmpfs", |memory| {
        let remounts = || script_at_first_read(memory.path().to_owned(), "mount -o remount,abort out");
        with_served(memory, serve_source, remounts, |place, _, backend| {
            let mount = "rm -rf out image; mkdir out; truncate -s 64M image; mkfs.ext4 -q image; mount -o loop image out";
            assert!(shell(memory.path(), mount).status.success());
            let output = copy(place, &["-r", backend, "served", "../out/target"]);
            assert_told(TEST, 0, told(&output));
            for (name, size) in super::FILES {
                let found = std::fs::read(memory.path().join("out/target").join(name));
                let is_whole = found.as_ref().is_ok_and(|found| *found == super::bytes_of(name, size));
                let is_told = output.stderr.windows(name.len()).any(|at| at == name.as_bytes());
                let above = name.rsplit_once('/').map_or("", |(above, _)| above);
                let is_above_told = told(&output).1.contains(&format!("'../out/target/{above}'"));
                // The run has ended early, so that not each path is reported; none is incomplete under its name.
                let is_missing = found.is_err();
                assert!(is_whole || is_missing || is_told || is_above_told, "{name}: {}", told(&output).1);
            }
            assert!(shell(memory.path(), "umount out").status.success());
        });
    });
}

#[test]
fn a_connection_that_is_lost() {
    const TEST: &str = "faulty::meanwhile::a_connection_that_is_lost";
    within(TEST, "tmpfs", |memory| {
        // The server of a filesystem notifies the kernel when it ends.
        let lost = || -> Mischief {
            let mut is_lost = false;
            Box::new(move |_, call, name| {
                is_lost |= call == Call::Read && name == "c";
                if is_lost { Err(rustix::io::Errno::NOTCONN) } else { Ok(()) }
            })
        };
        with_served(memory, serve_source, lost, |place, _, backend| {
            let output = copy(place, &["-r", backend, "served", "target"]);
            assert_told(TEST, 0, told(&output));
            for (name, size) in super::FILES {
                if let Ok(found) = std::fs::read(place.join("target").join(name)) {
                    assert!(found == super::bytes_of(name, size), "{name} is in pieces");
                }
            }
        });
    });
}

#[test]
fn a_connection_to_the_target_that_is_lost() {
    const TEST: &str = "faulty::meanwhile::a_connection_to_the_target_that_is_lost";
    within(TEST, "tmpfs", |memory| {
        let lost = || -> Mischief {
            let mut is_lost = false;
            Box::new(move |_, call, name| {
                is_lost |= call == Call::Write && name == "c";
                if is_lost { Err(rustix::io::Errno::NOTCONN) } else { Ok(()) }
            })
        };
        with_served(
            memory,
            |_: &mut Files| {},
            lost,
            |place, _, backend| {
                make_source(place);
                let output = copy(place, &["-a", backend, "source", "served/target"]);
                assert_told(TEST, 0, told(&output));
            },
        );
    });
}

#[test]
fn a_connection_to_one_of_several_sources_that_is_lost() {
    const TEST: &str = "faulty::meanwhile::a_connection_to_one_of_several_sources_that_is_lost";
    const ORDERS: [[&str; 3]; 3] =
        [["served", "source", "other"], ["source", "served", "other"], ["source", "other", "served"]];
    within(TEST, "tmpfs", |memory| {
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = || -> Mischief {
            let is_lost = Arc::clone(&is_lost);
            Box::new(move |_, call, name| {
                if call == Call::Read && name == "c" {
                    is_lost.store(true, Ordering::SeqCst);
                }
                if is_lost.load(Ordering::SeqCst) { Err(rustix::io::Errno::NOTCONN) } else { Ok(()) }
            })
        };
        with_served(memory, serve_source, lost, |place, _, backend| {
            make_source(place);
            assert!(shell(place, "cp -r source other").status.success());
            for sources in ORDERS {
                is_lost.store(false, Ordering::SeqCst);
                let target = place.join("target");
                std::fs::create_dir(&target).unwrap();
                let output = copy(place, &[&["-r", backend], &sources[..], &["target"]].concat());
                assert_told(TEST, 0, told(&output));
                // The first failure, and the reason why there are no others.
                assert_eq!(told(&output).1.lines().count(), 2, "{}", told(&output).1);
                for whole in ["source", "other"] {
                    assert_holds_all_but(&target.join(whole), &[]);
                }
                std::fs::remove_dir_all(&target).unwrap();
            }
        });
    });
}

#[test]
fn a_filesystem_that_is_slow() {
    const TEST: &str = "faulty::meanwhile::a_filesystem_that_is_slow";
    const EACH: Duration = Duration::from_millis(5);
    within(TEST, "tmpfs", |memory| {
        let slow = || -> Mischief {
            Box::new(|_, _, _| {
                std::thread::sleep(EACH);
                Ok(())
            })
        };
        with_served(memory, serve_source, slow, |place, served, backend| {
            let begun = Instant::now();
            let output = copy(place, &["-a", backend, "served", "target"]);
            assert_told(TEST, 0, told(&output));
            assert_holds_all_but(&place.join("target"), &[]);
            let output = copy(place, &["-a", backend, "target", "served/back"]);
            assert_told(TEST, 0, told(&output));
            assert_holds_all_but(&served.path().join("back"), &[]);
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        });
        make_source(memory.path());
    });
}

/// A directory with files to remove, a deep directory, and more files than one listing returns.
fn serve_long_folder(files: &mut Files) {
    files.lists_as_opened = true;
    files.folder("long");
    for number in 0..900 {
        files.file(&format!("long/a{number:03}"), b"a");
    }
    let mut path = "long".to_owned();
    for _ in 0..40 {
        path.push_str("/b");
        files.folder(&path);
    }
    path.push_str("/deepest");
    files.folder(&path);
    for number in 0..2_000 {
        files.file(&format!("long/c{number:04}"), b"c");
    }
}

#[test]
fn a_folder_that_is_emptied_while_others_are_copied() {
    const TEST: &str = "faulty::meanwhile::a_folder_that_is_emptied_while_others_are_copied";
    within(TEST, "tmpfs", |memory| {
        // The files were copied already, but positions in new listings change.
        let removes = || -> Mischief {
            let mut left = 0..800;
            Box::new(move |files, call, name| {
                if call == Call::List && name == "deepest" {
                    let copied = left.by_ref().take(100);
                    copied.for_each(|number| files.remove(&format!("long/a{number:03}")));
                }
                Ok(())
            })
        };
        with_served(memory, serve_long_folder, removes, |place, _, backend| {
            // The lowest limit reads listings at once; the other keeps them open.
            for limit in [24, 64] {
                let script = format!(
                    "ulimit -n {limit}; exec timeout -s KILL 60 {FERRY} cp -r --workers=1 {backend} served/long target"
                );
                let output = shell(place, &script);
                assert_told(TEST, 0, told(&output));
                let copied = |name: &str| place.join("target").join(name).is_file();
                let missing = (0..2_000).filter(|number| !copied(&format!("c{number:04}"))).count();
                assert_eq!(missing, 0, "files that nobody touched are missing, with {limit} descriptors");
                std::fs::remove_dir_all(place.join("target")).unwrap();
            }
        });
    });
}

#[test]
fn another_hosts_unfinished_files() {
    const TEST: &str = "faulty::meanwhile::another_hosts_unfinished_files";
    within(TEST, "tmpfs", |memory| {
        with_served(
            memory,
            |files| files.folder("target"),
            || Box::new(|_, _, _| Ok(())),
            |place, served, backend| {
                make_source(place);
                let target = served.path().join("target");
                // Another host's lock on the directory, which this host can't see.
                let unfinished = format!(".ferry-{:x}-7f-0", target.metadata().unwrap().ino());
                std::fs::write(target.join(&unfinished), "half").unwrap();
                let output = copy(place, &["-rT", "--atomic", backend, "source", "served/target"]);
                assert_told(TEST, 0, told(&output));
                assert_eq!(std::fs::read(target.join(&unfinished)).unwrap(), b"half");
                std::fs::remove_file(target.join(&unfinished)).unwrap();
                assert_holds_all_but(&target, &[]);
            },
        );
    });
}
