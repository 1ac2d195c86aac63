//! The service on tokio: copies at the same time, a request that is dropped, and one that waits.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ferry_tree::capture::capture;
use ferry_tree::compare::{Options, snapshots};
use ferry_tree::workload::{self, Workload};

/// Bytes that a copy may write per second, so that its time is known.
const RATE: u64 = 2_000_000;
/// Time after which something that must happen has not happened.
const LIMIT: Duration = Duration::from_secs(30);

/// A service in a folder of its own.
struct Service {
    child: Child,
    address: String,
    place: tempfile::TempDir,
}

impl Service {
    /// Starts a service that makes this many copies at a time.
    fn start(at_once: u32) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tokio-service"));
        command.arg(place.path()).args(["--at-once", &at_once.to_string(), "--rate", &RATE.to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
        Self { child, address, place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Makes a folder of `files` files of 50,000 bytes.
    fn make(&self, name: &str, files: u64) {
        workload::make(&Workload::plain(0, 0, files, 50_000, files), &self.path(name), 2).unwrap();
    }

    /// Sends a request, and returns the connection.
    fn send(&self, request: &str) -> BufReader<TcpStream> {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        writeln!(socket, "{request}").unwrap();
        BufReader::new(socket)
    }

    /// Sends a request, and returns all lines of the answer.
    fn ask(&self, request: &str) -> Vec<String> {
        self.send(request).lines().map(Result::unwrap).collect()
    }

    /// A number of the status.
    fn status(&self, key: &str) -> u64 {
        let lines = self.ask("status");
        let words: Vec<&str> = lines[0].split(' ').collect();
        let pair = words.chunks(2).find(|pair| pair[0] == key);
        pair.unwrap_or_else(|| panic!("{key} is not in {words:?}"))[1].parse().unwrap()
    }

    /// Waits until a number of the status is `expected`.
    fn wait_for(&self, key: &str, expected: u64) {
        let end = Instant::now() + LIMIT;
        while self.status(key) != expected {
            assert!(Instant::now() < end, "{key} is {}, and not {expected}", self.status(key));
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn check_equal(source: &Path, target: &Path) {
    let [source, target] = [source, target].map(|path| capture(path).unwrap());
    assert_eq!(snapshots(&source, &target, &Options::plain()), []);
}

/// Checks that each file of a target is complete, and returns their number.
fn complete_files(source: &Path, target: &Path) -> usize {
    let names: Vec<_> = std::fs::read_dir(target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    for name in &names {
        let [copy, original] = [target, source].map(|folder| std::fs::read(folder.join(name)));
        // A name of ferry's own would have no original.
        assert!(copy.unwrap() == original.unwrap(), "{name:?} is incomplete");
    }
    names.len()
}

/// Numbers of entries and bytes of a line of progress.
fn progress(line: &str) -> Option<(u64, u64)> {
    let (entries, bytes) = line.strip_prefix("progress ")?.split_once(' ')?;
    Some((entries.parse().unwrap(), bytes.parse().unwrap()))
}

#[test]
fn the_service_answers_while_it_copies_several_trees() {
    let service = Service::start(3);
    let names = ["a", "b", "c"];
    // Two seconds each at the given rate.
    names.iter().zip(80..).for_each(|(name, files)| service.make(name, files));
    let begun = Instant::now();
    thread::scope(|scope| {
        let copies = names.map(|name| {
            let service = &service;
            scope.spawn(move || service.ask(&format!("copy {name} {name}-copy")))
        });
        service.wait_for("running", 3);
        let asked = Instant::now();
        let before = service.status("ticks");
        thread::sleep(Duration::from_millis(500));
        let ticks = service.status("ticks") - before;
        assert_eq!(service.status("running"), 3, "all copies still run after {:?}", asked.elapsed());
        assert!(ticks >= 10, "{ticks} ticks in half a second");
        for (copy, files) in copies.into_iter().zip(80_u64..) {
            let lines = copy.join().unwrap();
            let (last, before) = lines.split_last().unwrap();
            assert_eq!(*last, format!("done {files} files {} bytes 0 failed", files * 50_000));
            let bytes: Vec<u64> = before.iter().map(|line| progress(line).unwrap().1).collect();
            assert!(bytes.len() >= 5 && bytes.is_sorted(), "{bytes:?}");
            assert!(bytes.iter().any(|&bytes| bytes > 0 && bytes < files * 50_000), "{bytes:?}");
        }
    });
    let (copied, pause) = (begun.elapsed(), Duration::from_micros(service.status("longest_pause_us")));
    assert!(copied > Duration::from_millis(1800), "it is slower than the rate allows: {copied:?}");
    assert!(pause < copied / 2, "a pause of {pause:?} in {copied:?}");
    assert_eq!((service.status("complete"), service.status("running")), (3, 0));
    names.iter().for_each(|name| check_equal(&service.path(name), &service.path(&format!("{name}-copy"))));
}

#[test]
fn a_request_that_is_dropped_ends_its_copy() {
    let service = Service::start(1);
    // A minute at the given rate.
    service.make("large", 2400);
    service.make("small", 3);
    let mut dropped = service.send("copy large large-copy");
    let mut line = String::new();
    while progress(line.trim()).is_none_or(|(entries, _)| entries < 5) {
        line.clear();
        assert!(dropped.read_line(&mut line).unwrap() > 0, "the answer has ended");
    }
    let mut waiting = service.send("copy small small-copy");
    waiting.get_ref().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(waiting.read_line(&mut String::new()).is_err(), "the second copy waits for the first");
    waiting.get_ref().set_read_timeout(Some(LIMIT)).unwrap();
    dropped.get_ref().shutdown(Shutdown::Both).unwrap();
    let lines: Vec<String> = waiting.lines().map(Result::unwrap).collect();
    assert_eq!(lines.last().unwrap(), "done 3 files 150000 bytes 0 failed");
    service.wait_for("running", 0);
    assert_eq!((service.status("stopped"), service.status("complete")), (1, 1));
    let copied = complete_files(&service.path("large"), &service.path("large-copy"));
    assert!((4..2400).contains(&copied), "{copied} files are there");
}

#[test]
fn a_signal_ends_the_service_and_its_copies() {
    let mut service = Service::start(2);
    service.make("large", 2400);
    let connection = service.send("copy large large-copy");
    service.wait_for("running", 1);
    thread::sleep(Duration::from_millis(200));
    let pid = service.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let (begun, status) = (Instant::now(), service.child.wait().unwrap());
    assert!(status.success() && begun.elapsed() < LIMIT, "{status}");
    complete_files(&service.path("large"), &service.path("large-copy"));
    drop(connection);
}

#[test]
fn failures_reach_the_client() {
    let service = Service::start(1);
    let lines = service.ask("copy missing copy");
    let failed = format!("failed {:?}: ", service.path("missing"));
    assert!(lines.iter().any(|line| line.starts_with(&failed)), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "done 0 files 0 bytes 1 failed");
    assert_eq!(service.status("failed"), 1);
    for request in ["copy ../etc copy", "copy .. copy", "copy source /tmp/x", "copy one", "remove all"] {
        let lines = service.ask(request);
        assert!(lines.len() == 1 && lines[0].starts_with("error: "), "{request}: {lines:?}");
    }
}
