//! Scripts and real programs with ferry as `cp` produce the same results as with GNU cp.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::scene::{Stage, comparison, differences, gnu};

#[track_caller]
fn same_scripts_as_gnu(scripts: &[&str]) {
    let Some(gnu) = gnu() else { return };
    let stage = Stage::new();
    let mut report = String::new();
    for script in scripts {
        let run = |cp: &Path| {
            stage.run("/bin/sh".as_ref(), "-euc", |command: &mut Command| {
                command
                    .arg(format!("[ \"$(command -v cp)\" = '{}' ]\n{script}", cp.display()))
                    .env("PATH", path_with(cp))
                    .env("SOURCE_DATE_EPOCH", "1700002000");
            })
        };
        let (expected, actual) = (run(&gnu), run(&stage.ferry()));
        assert!(expected.succeeded(), "{script}\n{:?}", expected.messages());
        for difference in differences(&expected, &actual, Some(&comparison())) {
            writeln!(report, "{script}: {difference}").unwrap();
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// PATH with the directory of `cp` in front.
fn path_with(cp: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap();
    let folders = cp.parent().map(Path::to_owned).into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap()
}

#[test]
fn a_package_of_a_copied_tree_is_the_same() {
    same_scripts_as_gnu(&["mkdir -p tree/DEBIAN tree/usr/share; chmod -R g-s,go-w,u+rwX,go+rX tree
        printf 'Package: x\\nVersion: 1\\nArchitecture: all\\nMaintainer: x <x@x.org>\\nDescription: x\\n' > tree/DEBIAN/control
        cp -a src setid hard sparse tree/usr/share/; cp -r --preserve=all tree copy
        dpkg-deb --build tree one.deb; dpkg-deb --build copy two.deb; cmp one.deb two.deb
        dpkg-deb --contents two.deb | sed 's/, .*//'"]);
}

#[test]
fn a_copied_repository_is_clean() {
    same_scripts_as_gnu(&["export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 HOME=$PWD
        export GIT_AUTHOR_DATE=@1700000000 GIT_COMMITTER_DATE=@1700000000
        git init -q repo; cp -rp exec to_f attributed repo/; cp -p f repo/text; cd repo; git add .
        git -c user.name=x -c user.email=x@x.org commit -qm first; git gc -q; cd ..
        cp -a repo copy; git -C copy fsck --strict; git -C copy status --porcelain
        git clone -q --local copy clone; git -C clone log --format='%H %s'; diff -r --no-dereference --exclude=.git repo clone
        rm -rf repo copy clone"]);
}

#[test]
fn scripts_make_what_they_make_with_gnu_cp() {
    same_scripts_as_gnu(&[
        // Snapshots with hard links.
        "cp -al src one; cp -al one two; echo changed > fresh; mv fresh two/b; cp -al two three; rm two/a
         find one two three -type f -printf '%n %p\\n' | sort",
        "cp -al src one; cp -al one two; diff -r --no-dereference one two; find . -samefile src/b | sort",
        // Selected files with their directories.
        "cd src; find * -type f -print0 | xargs -0 cp -p --parents -t ../empty; find ../empty -printf '%m %p\\n' | sort",
        "cp --parents src/sub/deep empty; cp -a --parents src/sub empty",
        // Sources and targets that are not regular files.
        "cat f | cp /dev/stdin new; cp f /dev/stdout | cat; cp f /dev/fd/3 3>by_fd; (rm by_fd; cp g /dev/fd/3; cat /dev/fd/4) 3>by_fd 4<by_fd; cp /dev/null g; cp -f /dev/null src/sub/deep; wc -c g",
        "cp /proc/self/comm new; cat new",
        // Lines of hooks, makefiles and maintainer scripts.
        "umask 077; install -d made; cp -pP to_f exec made/; cp -fpR src made/; cp -dpR --no-preserve=mode f made/x",
        "for i in f g exec; do cp -p \"$i\" \"empty/$i.new\" && mv -f \"empty/$i.new\" \"empty/$i\"; done",
        "cp -a src/. full/; cp -ruv src full 2>&1 | sort; cp -n f g || true; cp -rT src new; cp -rT new new || true",
        "cp -a --reflink=auto --sparse=auto sparse new; cmp sparse new; cp -rL full new2; cp -H to_f new3",
    ]);
}
