//! Attributes that the target can't store, or stores with less precision.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, ferry, gnu, is_root, skip, text};

fn shell(folder: &Path, script: &str) -> Output {
    Command::new("bash").args(["-c", script]).current_dir(folder).env("LC_ALL", "C.UTF-8").output().unwrap()
}

#[test]
fn an_acl_that_is_lost_is_told() {
    if !is_root() {
        skip::<()>("mounting needs root");
        return;
    }
    let place = Filesystem::memory();
    let made = shell(
        place.path(),
        "mkdir out s && echo x >s/f && echo y >s/plain && setfacl -m u:1:r s/f && setfacl -d -m u:1:r s",
    );
    if !made.status.success() {
        skip::<()>("there are no ACLs here");
        return;
    }
    let copy = |program: &str| {
        let script = format!("mount -t ramfs none out && exec -a cp {program} -a s out/s");
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash", "-c", &script]).current_dir(place.path()).env("LC_ALL", "C");
        let output = command.output().unwrap();
        let mut lines: Vec<String> = text(&output.stderr).lines().map(str::to_owned).collect();
        lines.sort_unstable();
        (output.status.code(), lines)
    };
    let said = copy(FERRY);
    assert_eq!(said.0, Some(1), "{said:?}");
    assert!(
        said.1.contains(&"cp: preserving permissions for 'out/s/f': Operation not supported".to_owned()),
        "{said:?}"
    );
    if let Some(gnu) = gnu() {
        assert_eq!(said, copy(gnu.to_str().unwrap()));
    }
}

#[test]
fn whole_seconds_do_not_make_a_copy_older() {
    within("kept::whole_seconds_do_not_make_a_copy_older", "ext4", |outer| {
        let script =
            "truncate -s 64M image && mkfs.ext4 -q -I 128 image && mkdir old && mount -o loop image old";
        let made = shell(outer.path(), script);
        assert!(made.status.success(), "{}", text(&made.stderr));
        let source = outer.path().join("f");
        std::fs::write(&source, "text").unwrap();
        let arguments = ["cp", "-pu", "-v", "f", "old"];
        let first = ferry(outer.path(), &arguments);
        assert_eq!(text(&first.stdout), "'f' -> 'old/f'\n", "{}", text(&first.stderr));
        assert_eq!(outer.path().join("old/f").metadata().unwrap().mtime_nsec(), 0);
        let second = ferry(outer.path(), &arguments);
        assert_eq!((text(&second.stdout), text(&second.stderr)), ("", ""));
        // A source changed since then is copied.
        let later =
            std::fs::metadata(&source).unwrap().modified().unwrap() + std::time::Duration::from_secs(1);
        std::fs::File::options().write(true).open(&source).unwrap().set_modified(later).unwrap();
        assert_eq!(text(&ferry(outer.path(), &arguments).stdout), "'f' -> 'old/f'\n");
        let unmounted = shell(outer.path(), "umount old");
        assert!(unmounted.status.success());
    });
}

/// XFS also shows its ACLs as attributes that mean nothing elsewhere.
#[test]
fn attributes_of_one_filesystem_stay_there() {
    within("kept::attributes_of_one_filesystem_stay_there", "xfs", |xfs| {
        let made = shell(
            xfs.path(),
            "echo x >f && setfacl -m u:1:rwx f && setfattr -n user.Beagle.index -v 1 f && setfattr -n user.kept -v 2 f",
        );
        assert!(made.status.success(), "{}", text(&made.stderr));
        let names = |program: &str, target: &str| {
            let target = xfs.beside().join(target);
            let script =
                format!("{program} -a f {0} && getfattr -m - --absolute-names {0}", target.display());
            let said = shell(xfs.path(), &script);
            assert!(said.status.success(), "{}", text(&said.stderr));
            let mut names: Vec<String> = text(&said.stdout).lines().skip(1).map(str::to_owned).collect();
            names.sort_unstable();
            names
        };
        let kept = names(&format!("{FERRY} cp"), "ferry");
        assert_eq!(kept, ["", "system.posix_acl_access", "user.kept"]);
        if let Some(gnu) = gnu() {
            assert_eq!(names(gnu.to_str().unwrap(), "gnu"), kept);
        }
    });
}
