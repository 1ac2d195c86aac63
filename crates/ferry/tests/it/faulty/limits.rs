//! Limits of a process and of a filesystem.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::io::Errno;

use super::served::{Call, Files};
use super::table::assert_told;
use super::{BACKENDS, assert_holds_all_but, copy, failing, make_source, shell, told, with_served};
use crate::random::filesystem::within;
use crate::scene::FERRY;

#[test]
fn few_descriptors() {
    const TEST: &str = "faulty::limits::few_descriptors";
    within(TEST, "tmpfs", |memory| {
        make_source(memory.path());
        for backend in BACKENDS {
            let script =
                format!("ulimit -n 24; exec timeout -s KILL 60 {FERRY} cp -r {backend} source target");
            let output = shell(memory.path(), &script);
            assert_told(TEST, 0, told(&output));
            assert_holds_all_but(&memory.path().join("target"), &[]);
            std::fs::remove_dir_all(memory.path().join("target")).unwrap();
        }
    });
}

#[test]
fn too_few_descriptors() {
    const TEST: &str = "faulty::limits::too_few_descriptors";
    within(TEST, "tmpfs", |memory| {
        make_source(memory.path());
        let target = memory.path().join("target");
        for backend in BACKENDS {
            let copy = |limit: u64| {
                let script = format!(
                    "ulimit -n {limit}; exec timeout -s KILL 60 {FERRY} cp -a {backend} source target"
                );
                shell(memory.path(), &script)
            };
            let output = copy(6);
            assert_told(TEST, 0, told(&output));
            assert!(!target.exists());
            // The limit that the message names is sufficient, and not larger than needed.
            let (_, said) = told(&output);
            let (_, needed) = said.split_once("at least ").unwrap();
            let needed: u64 = needed.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(told(&copy(needed)), (Some(0), ""), "{needed} descriptors");
            assert_holds_all_but(&target, &[]);
            std::fs::remove_dir_all(&target).unwrap();
            assert_eq!(told(&copy(needed - 1)).0, Some(1), "{needed} are not needed");
            assert!(!target.exists());
        }
    });
}

#[test]
fn an_owner_that_cannot_be_kept() {
    const TEST: &str = "faulty::limits::an_owner_that_cannot_be_kept";
    within(TEST, "tmpfs", |memory| {
        let mischief = || failing(Call::SetOwner, "b", Errno::PERM);
        with_served(
            memory,
            |_: &mut Files| {},
            mischief,
            |place, _, backend| {
                make_source(place);
                std::os::unix::fs::chown(place.join("source/b"), Some(1), Some(1)).unwrap();
                let output = copy(place, &["-a", backend, "source", "served/target"]);
                assert_told(TEST, 0, told(&output));
                let target = place.join("served/target");
                assert_holds_all_but(&target, &[]);
                let mode = |name: &str| target.join(name).metadata().unwrap().permissions().mode() & 0o7777;
                assert_eq!((mode("b"), mode("a")), (0o600, 0o644));
            },
        );
    });
}

/// One of the two files with an attribute is copied with it.
#[track_caller]
fn assert_only_b_lacks_its_color(target: &Path) {
    let color = |name: &str| rustix::fs::getxattr(target.join(name), "user.color", &mut [0; 16]);
    assert_eq!((color("a"), color("b")), (Ok("blue".len()), Err(Errno::NODATA)));
}

#[test]
fn attributes_that_cannot_be_kept() {
    const TEST: &str = "faulty::limits::attributes_that_cannot_be_kept";
    within(TEST, "tmpfs", |memory| {
        let mischief = || failing(Call::SetXattr, "b", Errno::OPNOTSUPP);
        with_served(
            memory,
            |_: &mut Files| {},
            mischief,
            |place, _, backend| {
                make_source(place);
                assert!(shell(place, "setfattr -n user.color -v blue source/a source/b").status.success());
                for (nth, options) in [&["-a"][..], &["-r", "--preserve=xattr"]].iter().enumerate() {
                    let output = copy(place, &[options, &[backend, "source", "served/target"][..]].concat());
                    assert_told(TEST, nth, told(&output));
                    assert_holds_all_but(&place.join("served/target"), &[]);
                    assert_only_b_lacks_its_color(&place.join("served/target"));
                    std::fs::remove_dir_all(place.join("served/target")).unwrap();
                }
            },
        );
    });
}

#[test]
fn attributes_that_cannot_be_listed() {
    const TEST: &str = "faulty::limits::attributes_that_cannot_be_listed";
    within(TEST, "tmpfs", |memory| {
        let mischief = || failing(Call::ListXattr, "b", Errno::IO);
        with_served(memory, super::serve_source, mischief, |place, _, backend| {
            assert!(shell(place, "setfattr -n user.color -v blue served/a served/b").status.success());
            for (nth, options) in [&["-a"][..], &["-r", "--preserve=xattr"]].iter().enumerate() {
                let output = copy(place, &[options, &[backend, "served", "target"][..]].concat());
                assert_told(TEST, nth, told(&output));
                assert_holds_all_but(&place.join("target"), &[]);
                assert_only_b_lacks_its_color(&place.join("target"));
                std::fs::remove_dir_all(place.join("target")).unwrap();
            }
        });
    });
}

#[test]
fn a_target_that_is_read_only() {
    const TEST: &str = "faulty::limits::a_target_that_is_read_only";
    within(TEST, "tmpfs", |memory| {
        make_source(memory.path());
        let made = shell(memory.path(), "mkdir ro; mount -t tmpfs -o ro none ro");
        assert!(made.status.success(), "{made:?}");
        for backend in BACKENDS {
            assert_told(TEST, 0, told(&copy(memory.path(), &["-r", backend, "source", "ro/target"])));
            assert_told(TEST, 1, told(&copy(memory.path(), &[backend, "source/a", "ro/a"])));
        }
        assert!(shell(memory.path(), "umount ro").status.success());
    });
}
