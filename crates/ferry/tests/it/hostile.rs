//! Unusual sources and targets: devices, /proc, huge holes, full filesystems, interruptions.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ferry_tree::compare::Holes;

use crate::random::filesystem::{Filesystem, within};
use crate::scene::{FERRY, Stage, comparison, ferry, is_root, same_as_gnu, same_as_gnu_with, skip, text};

#[test]
fn devices_and_files_of_the_kernel_are_copied_by_what_they_give() {
    same_as_gnu(&[
        "f /dev/null",
        "-f f /dev/null",
        "f g /dev/null",
        "/dev/null /dev/null",
        "/dev/null g",
        "/proc/filesystems /proc/version empty",
        "/proc/sys/kernel/ostype new",
        "/sys/kernel/mm/transparent_hugepage/enabled new",
        "-r /proc/sys/kernel/ostype /sys/kernel/mm/transparent_hugepage/enabled empty",
        "--sparse=always /proc/version new",
        "--sparse=never /sys/kernel/mm/transparent_hugepage/enabled new",
        "-r /dev/null empty",
        "-a /dev/null /dev/zero empty",
    ]);
}

#[test]
fn names_are_taken_as_they_stand() {
    same_as_gnu(&[
        "-r . empty/../../copy_of_scene",
        "-r src/// empty///",
        "-r ./././src empty",
        "-rT src/. new",
        "-r src/./sub/../. new",
        "-r empty/../src/sub new/",
        "-a src/sub/. src/other_sub/. empty",
        "-R -- src empty",
        "-r src/sub src/sub/deep empty",
        "f empty/..",
        "-n -r src full/..",
    ]);
}

#[test]
fn the_umask_takes_what_it_takes() {
    for umask in ["000", "027", "077", "777"] {
        let line = format!("umask {umask}; exec \"$0\" \"$@\"");
        same_as_gnu_with(&["-r src new", "-r src/sub setid full"], &comparison(), |command| {
            under_shell(command, &line);
        });
    }
}

fn under_shell(command: &mut Command, line: &str) {
    let words: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let program = command.get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.current_dir(command.get_current_dir().unwrap()).env("LC_ALL", "C.UTF-8");
    shell.args(["-c", line]).arg(program).args(words);
    *command = shell;
}

#[test]
fn a_pipe_is_read_and_written_by_its_content() {
    let stage = Stage::new();
    stage.set();
    let fifo = stage.root().join("fifo");
    let path = fifo.clone();
    let writer =
        std::thread::spawn(move || fs::File::options().write(true).open(path).unwrap().write_all(b"through"));
    let output = ferry(&stage.root(), &["cp", "fifo", "new"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    writer.join().unwrap().unwrap();
    assert_eq!(fs::read_to_string(stage.root().join("new")).unwrap(), "through");
    let reader = std::thread::spawn(move || {
        let mut read = String::new();
        fs::File::open(fifo).unwrap().read_to_string(&mut read).unwrap();
        read
    });
    let output = ferry(&stage.root(), &["cp", "f", "fifo"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(reader.join().unwrap(), "f's text");
}

#[test]
fn holes_of_a_tebibyte_take_no_time() {
    const SIZE: u64 = 1 << 40;
    let stage = Stage::new();
    stage.set();
    let vast = fs::File::create(stage.root().join("vast")).unwrap();
    vast.set_len(SIZE).unwrap();
    for at in [0, SIZE / 3, SIZE - 10] {
        vast.write_all_at(b"data here", at).unwrap();
    }
    fs::File::create(stage.root().join("hollow")).unwrap().set_len(SIZE).unwrap();
    let start = Instant::now();
    for options in
        [&["-a"][..], &["--sparse=always"], &["-r", "--reflink=never", "--workers=3"], &["--backend=posix"]]
    {
        for name in ["vast", "hollow"] {
            let output = ferry(&stage.root(), &[&["cp"], options, &[name, "new"]].concat());
            assert!(output.status.success(), "{options:?}: {}", text(&output.stderr));
            let copied = stage.root().join("new").metadata().unwrap();
            assert_eq!(copied.size(), SIZE);
            assert!(copied.blocks() < 1024, "{options:?}: {} blocks", copied.blocks());
            let same = ferry(&stage.root(), &["verify", "--ignore=times,mode", name, "new"]);
            assert!(same.status.success(), "{}", text(&same.stdout));
            fs::remove_file(stage.root().join("new")).unwrap();
        }
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn holes_are_kept_within_larger_files() {
    let options = ferry_tree::compare::Options { holes: Holes::Same, ..comparison() };
    same_as_gnu_with(
        &["-a --reflink=never sparse zeros src/b empty", "--sparse=always src/b new"],
        &options,
        |_| {},
    );
}

#[test]
fn what_cannot_be_cloned_leaves_nothing() {
    within("hostile::what_cannot_be_cloned_leaves_nothing", "ext4", |ext4| {
        let root = ext4.path();
        fs::create_dir(root.join("source")).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(root.join("source").join(name), name).unwrap();
        }
        let output = ferry(root, &["cp", "-r", "--reflink=always", "source", "new"]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        for name in ["a", "b", "c"] {
            let line = format!("failed to clone 'new/{name}' from 'source/{name}': Operation not supported");
            assert_eq!(said.matches(&line).count(), 1, "{said}");
            assert!(!root.join("new").join(name).exists());
        }
    });
}

#[test]
fn a_full_filesystem_ends_the_run() {
    if !is_root() {
        skip::<()>("mounting needs root");
        return;
    }
    for backend in ["uring", "posix"] {
        let memory = Filesystem::memory();
        let source = memory.path().join("source");
        fs::create_dir(&source).unwrap();
        for index in 0..400 {
            fs::write(source.join(format!("{index}")), vec![7; 64 << 10]).unwrap();
        }
        fs::create_dir(memory.path().join("target")).unwrap();
        let script = "mount -t tmpfs -o size=4m tmpfs target || exit 99; \"$0\" cp -r --backend $1 source target; \
                      code=$?; for f in target/source/*; do cmp -s $f source/${f##*/} || echo \"in pieces: $f\"; done; \
                      ls target/source | wc -l; exit $code";
        let start = Instant::now();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, FERRY, backend]).current_dir(memory.path());
        let output = command.output().unwrap();
        let (said, printed) = (text(&output.stderr), text(&output.stdout));
        if output.status.code() == Some(99) {
            skip::<()>("nothing can be mounted here");
            return;
        }
        assert_eq!(output.status.code(), Some(1), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{said}");
        assert!(lines[0].ends_with(": No space left on device"), "{said}");
        assert_eq!(lines[1], "ferry cp: stopped early: the target's space or quota is used up");
        assert!(!printed.contains("in pieces"), "{printed}");
        let copied: u32 = printed.trim().parse().unwrap();
        assert!((30..=64).contains(&copied), "{copied} of 64 that there is room for");
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn filesystems_are_crossed() {
    within("hostile::filesystems_are_crossed", "ext4", |ext4| {
        let memory = Filesystem::memory();
        let source = memory.path().join("source");
        let tree = ferry_tree::random::tree(3, &ferry_tree::random::Knobs::possible_in(ext4.path()));
        ferry_tree::make::make(&tree, &source).unwrap();
        let target = ext4.path().join("target");
        let paths = [source.to_str().unwrap(), target.to_str().unwrap()];
        let output = ferry(ext4.path(), &[&["cp", "-a"], &paths[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let output = ferry(ext4.path(), &[&["verify"], &paths[..]].concat());
        assert!(output.status.success(), "{}", text(&output.stdout));
        let file = memory.path().join("file");
        fs::write(&file, "text").unwrap();
        let output = ferry(ext4.path(), &["cp", "-l", file.to_str().unwrap(), "linked"]);
        let said = format!(
            "ferry cp: cannot create hard link 'linked' to '{}': Invalid cross-device link\n",
            file.display()
        );
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), said.as_str()));
    });
}

#[test]
fn an_interrupt_removes_what_is_not_whole() {
    const SIGINT: i32 = 2;
    for backend in ["uring", "posix"] {
        let memory = Filesystem::memory();
        let source = memory.path().join("source");
        fs::create_dir(&source).unwrap();
        for index in 0..50 {
            fs::write(source.join(format!("small{index}")), "small").unwrap();
        }
        for index in 0..2 {
            // Only holes, which take long to write.
            fs::File::create(source.join(format!("large{index}"))).unwrap().set_len(64 << 30).unwrap();
        }
        let mut command = Command::new(FERRY);
        command.args([
            "cp",
            "-r",
            "--sparse=never",
            "--reflink=never",
            "--backend",
            backend,
            "source",
            "target",
        ]);
        let mut child = command.current_dir(memory.path()).stderr(Stdio::piped()).spawn().unwrap();
        let target = memory.path().join("target");
        wait_until(&mut child, || {
            let begun = |name: &str| target.join(name).metadata().is_ok_and(|found| found.size() > 0);
            begun("large0") || begun("large1")
        });
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
        let start = Instant::now();
        wait_until(&mut child, || start.elapsed() > Duration::from_secs(20));
        child.kill().ok();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(SIGINT), "{backend}");
        assert!(start.elapsed() < Duration::from_secs(5), "{backend}: {:?}", start.elapsed());
        assert!(text(&output.stderr).contains("interrupted after "), "{}", text(&output.stderr));
        for entry in fs::read_dir(&target).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(fs::read(&path).unwrap(), b"small", "{}", path.display());
        }
    }
}

fn wait_until(child: &mut Child, done: impl Fn() -> bool) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() && !done() && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_copy_is_made_as_cp_makes_it_whatever_is_closed() {
    let stage = Stage::new();
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        stage.set();
        let line = format!("exec \"$0\" cp -rv src new {closed}");
        let mut command = Command::new("sh");
        command.args(["-c", &line, FERRY]).current_dir(stage.root()).stdout(Stdio::null());
        let status = command.status().unwrap();
        assert!(stage.root().join("new/sub/deep").exists(), "{closed}");
        assert!(status.success(), "{closed}");
        assert_same(&stage.root().join("src/b"), &stage.root().join("new/b"));
    }
}

fn assert_same(one: &Path, other: &Path) {
    assert!(fs::read(one).unwrap() == fs::read(other).unwrap(), "{} differs", other.display());
}
