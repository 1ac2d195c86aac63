//! Ranks that see the same files on devices of other numbers, as machines with one network filesystem do.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Output};

use crate::job::{PROGRAM, end, expect_equal, make_many, mpirun, turn};

/// Runs a job in which every second rank has the folder `seen` through an overlay: with other device numbers, and the same
/// inode numbers. `None` without the right to mount.
fn run_on_two_devices(seen: &Path, empty: &Path, arguments: &[&str], paths: [&Path; 2]) -> Option<Output> {
    // The test is about device numbers: without another one it would show nothing.
    const WRAPPED: &str = r#"
        seen=$1 empty=$2; shift 2
        if [ $((OMPI_COMM_WORLD_RANK % 2)) = 1 ]; then
            here=$(stat -c %d "$seen/big")
            mount -t overlay overlay -o "ro,lowerdir=$seen:$empty" "$seen" || exit 77
            [ "$(stat -c %d "$seen/big")" != "$here" ] || exit 78
        fi
        exec "$@"
    "#;
    let may_mount = Command::new("unshare").args(["-m", "true"]).status();
    if !may_mount.is_ok_and(|status| status.success()) {
        println!("SKIP: no mount namespace");
        return None;
    }
    let mut job = mpirun(4);
    job.args(["unshare", "--mount", "--propagation", "private", "sh", "-c", WRAPPED, "sh"])
        .arg(seen)
        .arg(empty);
    Some(end(job.arg(PROGRAM).args(arguments).args(paths).spawn().unwrap()))
}

#[test]
fn linked_files_are_known_by_their_inode_numbers_whatever_the_number_of_the_device_is() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("empty")).unwrap();
    make_many(&path("source"));
    let paths = [&*path("source"), &*path("target")];
    let small = ["--range", "64K", "--lease", "16"];
    let copy = [&["cp", "-aT"][..], &small].concat();
    let Some(output) = run_on_two_devices(&path("source"), &path("empty"), &copy, paths) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect_equal(&path("source"), &path("target"), "on two devices");
    assert_eq!(fs::metadata(path("target/wide/f7")).unwrap().nlink(), 2);
    let verify = [&["verify"][..], &small].concat();
    let Some(output) = run_on_two_devices(&path("source"), &path("empty"), &verify, paths) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("equal: "), "{said} {}", String::from_utf8_lossy(&output.stderr));
}
