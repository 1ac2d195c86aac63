//! A copy larger than its memory succeeds and leaves few dirty pages at any moment.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::scene::{FERRY, ferry, is_root, skip, text};

const LIMIT: u64 = 96 << 20;
/// Six times the limit.
const FILE: u64 = 576 << 20;

/// A control group with little memory; removed on drop.
pub(crate) struct Group {
    path: PathBuf,
    /// Keys of memory.stat for dirty pages and writeback.
    names: [&'static str; 2],
}

impl Group {
    pub(crate) fn new() -> Option<Self> {
        if !is_root() {
            return skip("a control group needs root");
        }
        let name = format!("ferry-test-{}", std::process::id());
        let ways = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", ["dirty", "writeback"]),
            ("/sys/fs/cgroup", "memory.max", ["file_dirty", "file_writeback"]),
        ];
        for (root, limit, names) in ways {
            let path = Path::new(root).join(&name);
            if !Path::new(root).join("memory.stat").exists() || fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self { path, names };
            if fs::write(group.path.join(limit), LIMIT.to_string()).is_ok() {
                return Some(group);
            }
        }
        skip("there is no memory controller to be had")
    }

    pub(crate) fn copy(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let line = format!("echo $$ >{} && exec \"$0\" \"$@\"", self.path.join("cgroup.procs").display());
        command.args(["-c", &line, FERRY, "cp"]).args(arguments).current_dir(folder);
        command
    }

    /// Number of bytes not written to the device.
    fn dirty(&self) -> u64 {
        let said = fs::read_to_string(self.path.join("memory.stat")).unwrap_or_default();
        let number = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|number| number.parse::<u64>().ok()).unwrap_or_default()
        };
        self.names.iter().map(|name| number(name)).sum()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel frees the pages of ended processes asynchronously.
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_copy_larger_than_its_memory_leaves_little_dirty() {
    let Some(group) = Group::new() else { return };
    let place = tempfile::tempdir().unwrap();
    let mut content = vec![0; 8 << 20];
    ferry_tree::fill::fill(5, 0, &mut content);
    let file = fs::File::create(place.path().join("s")).unwrap();
    for _ in 0..FILE / (8 << 20) {
        std::io::Write::write_all(&mut &file, &content).unwrap();
    }
    file.sync_all().unwrap();
    for options in [&["--reflink=never"][..], &["--backend=posix"], &["--backend=uring", "--sparse=never"]] {
        let mut command = group.copy(place.path(), &[options, &["s", "t"]].concat());
        let mut child = command.stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let (begun, mut most) = (Instant::now(), 0);
        let status = loop {
            most = most.max(group.dirty());
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > Duration::from_secs(120) {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{options:?}: it does not end");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(status.success(), "{options:?}: {status}");
        eprintln!("{options:?}: {} MiB dirty at most, {:?}", most >> 20, begun.elapsed());
        // Without a bound, a copy leaves half and more dirty.
        assert!(most <= LIMIT / 4, "{options:?}: {most} bytes were dirty");
        let same = ferry(place.path(), &["verify", "--ignore=times", "s", "t"]);
        assert!(same.status.success(), "{options:?}: {}", text(&same.stdout));
        fs::remove_file(place.path().join("t")).unwrap();
    }
}
