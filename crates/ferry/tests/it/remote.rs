//! Copies to a filesystem whose changes a daemon performs, as a server does over a network: they wait at the same time,
//! and an interruption leaves nothing in pieces.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::faulty::served::{Call, Mischief, Served};
use crate::interrupted::end_of;
use crate::random::filesystem::Filesystem;
use crate::scene::{FERRY, skip, text};

const FILES: usize = 60;
/// Operations that change the target.
const CHANGES: [&str; 4] = ["open", "write", "chmod", "utimens"];

fn make_source(folder: &Path) {
    fs::create_dir(folder).unwrap();
    for index in 0..FILES {
        fs::write(folder.join(index.to_string()), vec![u8::try_from(index).unwrap(); 5_000]).unwrap();
    }
}

/// Serves a folder on which everything but reads takes this long.
fn serve(path: &Path, takes: Duration) -> Option<Served> {
    let mischief: Mischief = Box::new(move |_, call, _| {
        if call != Call::Read {
            std::thread::sleep(takes);
        }
        Ok(())
    });
    Served::at(path, |_| (), mischief).map_or_else(|why| skip(&why), Some)
}

/// Copies the source, and returns the number of changes on the workers, and in the pool.
fn changes(folder: &Path, target: &str) -> (u64, u64) {
    let mut command = Command::new(FERRY);
    let output = command
        .current_dir(folder)
        .args(["cp", "-a", "--workers=2", "--stats=json", "s", target])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stats: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |route: &str| -> u64 {
        let kinds = &stats["operations_by_kind"];
        CHANGES.iter().map(|kind| kinds[kind][route].as_u64().unwrap_or(0)).sum()
    };
    (count("inline"), count("pool"))
}

#[test]
fn changes_wait_in_the_pool_where_a_daemon_takes_its_time() {
    let memory = Filesystem::memory();
    make_source(&memory.path().join("s"));
    let Some(served) = serve(&memory.path().join("served"), Duration::from_millis(1)) else { return };
    let (inline, pool) = changes(memory.path(), "served/t");
    assert!(pool > 2 * inline, "inline {inline}, pool {pool}");
    for index in 0..FILES {
        let name = index.to_string();
        let (source, target) = (memory.path().join("s").join(&name), served.path().join("t").join(&name));
        assert!(fs::read(source).unwrap() == fs::read(target).unwrap(), "{name}");
    }
}

#[test]
fn changes_of_a_local_filesystem_stay_on_the_workers() {
    let memory = Filesystem::memory();
    make_source(&memory.path().join("s"));
    let (_, pool) = changes(memory.path(), "t");
    assert_eq!(pool, 0);
}

#[test]
fn an_interrupted_copy_to_a_daemon_leaves_nothing_in_pieces() {
    let memory = Filesystem::memory();
    let source = memory.path().join("s");
    make_source(&source);
    let mut caught = 0;
    for (round, backend) in ["--backend=uring", "--backend=posix"].iter().cycle().take(12).enumerate() {
        let Some(served) = serve(&memory.path().join("served"), Duration::from_millis(1)) else { return };
        let mut command = Command::new(FERRY);
        command.current_dir(memory.path()).args(["cp", "-a", backend, "s", "served/t"]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(10 + 15 * u64::try_from(round).unwrap()));
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        caught += usize::from(!end_of(&mut child, "cp").success());
        let Ok(entries) = fs::read_dir(served.path().join("t")) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let original = source.join(path.file_name().unwrap());
            assert!(original.exists(), "round {round}: {} is left", path.display());
            let (copied, wanted) = (fs::read(&path).unwrap(), fs::read(original).unwrap());
            assert!(copied == wanted, "round {round}: {} is in pieces", path.display());
        }
    }
    assert!(caught > 3, "{caught} interruptions");
}
