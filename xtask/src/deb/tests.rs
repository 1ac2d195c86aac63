use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{LARGEST_MIB, check, committed, entries, pack};
use crate::failure::Failure;
use crate::scratch::Scratch;
use crate::workspace;

const EPOCH: u64 = 1_750_000_000;

fn root() -> PathBuf {
    workspace::root().unwrap()
}

/// Returns the program as it was built for tests, without symbols: a release takes minutes.
fn program(scratch: &Scratch) -> PathBuf {
    let programs = workspace::programs(&root()).unwrap();
    let stripped = scratch.path().join("stripped");
    run(Command::new("strip").arg("-o").arg(&stripped).arg(programs.join("ferry")));
    stripped
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns dpkg for a system in `root` that has the same packages as this one.
fn dpkg(root: &Path) -> Command {
    let mut command = Command::new("dpkg");
    // Images of containers are configured to leave manual pages out.
    command.arg("--root").arg(root).args(["--path-include=/usr/share/*", "--log=/dev/null"]);
    // The system has no shell for the package's script.
    command.arg("--force-script-chrootless");
    command
}

#[test]
fn the_package_is_installed_and_removed() {
    if run(Command::new("id").arg("-u")).trim() != "0" {
        eprintln!("SKIP: only root installs packages");
        return;
    }
    let scratch = Scratch::open().unwrap();
    let package = pack(&root(), &program(&scratch), scratch.path(), EPOCH).unwrap();
    let system = scratch.path().join("system");
    fs::create_dir_all(system.join("var/lib/dpkg/updates")).unwrap();
    fs::create_dir_all(system.join("var/lib/dpkg/info")).unwrap();
    // dpkg looks for dependencies in this list.
    fs::copy("/var/lib/dpkg/status", system.join("var/lib/dpkg/status")).unwrap();
    let before = entries(&system).unwrap();
    run(dpkg(&system).arg("--install").arg(&package));
    assert_eq!(run(dpkg(&system).args(["--verify", "ferry"])), "");
    for file in [
        "share/man/man1/ferry.1.gz",
        "share/man/man1/ferry-cp.1.gz",
        "share/man/man1/ferry-lab-copy.1.gz",
        "share/bash-completion/completions/ferry",
        "share/zsh/vendor-completions/_ferry",
        "share/fish/vendor_completions.d/ferry.fish",
        "share/doc/ferry/copyright",
        "share/doc/ferry/changelog.gz",
        "share/doc/ferry/changelog.Debian.gz",
    ] {
        assert!(fs::metadata(system.join("usr").join(file)).unwrap().len() > 100, "{file}");
    }
    let version = run(Command::new(system.join("usr/bin/ferry")).arg("--version"));
    assert_eq!(version, concat!("ferry ", env!("CARGO_PKG_VERSION"), "\n"));
    let (source, target) = (scratch.path().join("source"), scratch.path().join("target"));
    fs::write(&source, "copied").unwrap();
    run(Command::new(system.join("usr/lib/ferry/cp")).args([&source, &target]));
    assert_eq!(fs::read(&target).unwrap(), b"copied");
    run(dpkg(&system).args(["--purge", "ferry"]));
    let left: Vec<PathBuf> = entries(&system).unwrap();
    let is_dpkgs_own = |path: &&PathBuf| path.starts_with(system.join("var/lib/dpkg"));
    let left: Vec<&PathBuf> =
        left.iter().filter(|path| !before.contains(path) && !is_dpkgs_own(path)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Returns the commands of docs/usage.md that replace Debian's cp by ferry.
fn diversion() -> String {
    let usage = workspace::read(&root().join("docs/usage.md")).unwrap();
    let block = usage.split("```").find(|block| block.contains("dpkg-divert") && block.starts_with("sh "));
    block.unwrap().split_once('\n').unwrap().1.to_owned()
}

#[test]
fn a_cp_that_is_ferry_keeps_the_package_from_being_removed() {
    if run(Command::new("id").arg("-u")).trim() != "0" {
        eprintln!("SKIP: only root installs packages");
        return;
    }
    let scratch = Scratch::open().unwrap();
    let package = pack(&root(), &program(&scratch), scratch.path(), EPOCH).unwrap();
    let top = scratch.path().join("top");
    fs::create_dir(&top).unwrap();
    let inside = format!(
        r#"dpkg --log=/dev/null --install /ferry.deb
        {}
        cp --stats /etc/passwd /copied 2>/told || exit 3
        grep -q copied /told || exit 4
        dpkg --log=/dev/null --remove ferry 2>/told && exit 5
        cp /etc/passwd /copied || exit 6
        sed -n "s/^  //p" /told >/undo
        [ "$(wc -l </undo)" = 2 ] || exit 7
        sh -e /undo
        dpkg --log=/dev/null --remove ferry
        cp --version | grep "GNU coreutils""#,
        diversion()
    );
    let script = r#"mount -t tmpfs tmpfs "$1"
        mkdir "$1/upper" "$1/work" "$1/system"
        mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/system"
        cp "$2" "$1/system/ferry.deb"
        exec chroot "$1/system" /bin/sh -ec "$3""#;
    // The mounts end with the process.
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-ec", script, "sh"]).arg(&top).arg(&package).arg(&inside);
    run(&mut command);
}

#[test]
fn a_commit_in_a_folder_of_someone_else_has_its_time() {
    if run(Command::new("id").arg("-u")).trim() != "0" {
        eprintln!("SKIP: only root gives folders away");
        return;
    }
    let scratch = Scratch::open().unwrap();
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@b.invalid"]).args(words);
        run(command.current_dir(scratch.path()).env("GIT_COMMITTER_DATE", format!("@{EPOCH} +0000")));
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
    run(Command::new("chown").args(["-R", "65534:65534"]).arg(scratch.path()));
    assert_eq!(committed(scratch.path()), Some(EPOCH.to_string()));
}

#[test]
fn the_same_program_makes_the_same_package() {
    let scratch = Scratch::open().unwrap();
    let program = program(&scratch);
    let packages = ["one", "two"].map(|name| {
        let folder = scratch.path().join(name);
        fs::create_dir(&folder).unwrap();
        pack(&root(), &program, &folder, EPOCH).unwrap()
    });
    let bytes = packages.each_ref().map(|package| fs::read(package).unwrap());
    assert!(bytes[0] == bytes[1]);
    let listed = run(Command::new("dpkg-deb").arg("--contents").arg(&packages[0]).env("TZ", "UTC"));
    for line in listed.lines() {
        assert!(line.contains(" root/root ") && line.contains(" 2025-06-15 15:06 "), "{line}");
    }
    let needs = run(Command::new("dpkg-deb").arg("--field").arg(&packages[0]).arg("Depends"));
    assert!(needs.contains("libc6 (>= 2."), "{needs}");
    let copyright = scratch.path().join("copyright");
    run(Command::new("dpkg-deb").arg("--extract").arg(&packages[0]).arg(&copyright));
    let copyright = fs::read_to_string(copyright.join("usr/share/doc/ferry/copyright")).unwrap();
    let program = copyright.split("\nFiles: *\n").next().unwrap();
    assert!(program.contains("\n clap v4.") && !program.contains("\n syn v"), "{copyright}");
    // A crate under MIT only.
    assert!(program.contains("\n Copyright (c) 2017 Armin Ronacher"), "{copyright}");
    assert!(program.contains("\n Of strsim v") && program.contains("2015 Danny Guo"), "{copyright}");
    assert!(
        copyright.contains("\nLicense: MIT\n") && copyright.contains("Permission is hereby"),
        "{copyright}"
    );
    assert!(!copyright.contains(root().to_str().unwrap()), "{copyright}");
}

#[test]
fn a_program_that_tells_of_this_machine_is_not_packed() {
    let scratch = Scratch::open().unwrap();
    let program = scratch.path().join("program");
    fs::write(&program, format!("panicked at {}/lib.rs", root().display())).unwrap();
    assert!(matches!(check(&root(), &program), Err(Failure::Tells { .. })));
    fs::write(&program, vec![0; usize::try_from(LARGEST_MIB << 20).unwrap() + 1]).unwrap();
    assert!(matches!(check(&root(), &program), Err(Failure::Large { .. })));
    fs::write(&program, "panicked at crates/ferry/src/lib.rs").unwrap();
    assert!(check(&root(), &program).is_ok());
}
