//! Runs of a normal user, who can set neither owners nor attributes of root.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use ferry_tree::random::Knobs;

use super::{Pair, knobs, said, seeds};
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, is_root, place_program};

/// A user who is not root.
pub(super) const NOBODY: u32 = 65_534;

/// Gives a pair to that user. Nobody but root may change what is in folders that they may not write to.
pub(super) fn give_to_user(pair: &Pair) {
    let given = "chown -hR 65534:65534 . && chmod -R u+rwX .";
    assert!(Command::new("sh").args(["-c", given]).current_dir(pair.path()).status().unwrap().success());
}

#[test]
fn a_normal_user_makes_trees_equal() {
    if !is_root() {
        // All other tests are run by this user.
        return;
    }
    let memory = Filesystem::memory();
    let ferry = memory.path().join("ferry");
    place_program(Path::new(FERRY), &ferry);
    for seed in seeds(6) {
        let possible = knobs(memory.path(), seed);
        let knobs =
            Knobs { unreadable: false, devices: false, owners: false, trusted_xattrs: false, ..possible };
        let (pair, _) = Pair::random(memory.path(), seed, &knobs);
        give_to_user(&pair);
        let backend = ["uring", "posix"][usize::try_from(seed % 2).unwrap()];
        for round in 0..2 {
            let mut command = Command::new(&ferry);
            command.args(["sync", "-v", "--delete", "--backend", backend, "source", "target"]);
            let output = command.current_dir(pair.path()).uid(NOBODY).gid(NOBODY).output().unwrap();
            assert!(output.status.success(), "FERRY_SEED={seed}: {}", said(&output));
            pair.assert_equal("source", "target", &output);
            assert!(round == 0 || output.stdout.is_empty(), "FERRY_SEED={seed}: {}", said(&output));
        }
    }
}
