//! `lab write` and `lab ring`: a quick run, an interruption with resumption, and errors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use ferry_lab::record::Record;
use ferry_lab::record::read::read;
use rustix::process::{Pid, Signal, kill_process};

use crate::measured::{left_in, wait_for_a_run};
use crate::random::filesystem::within;
use crate::scene::{FERRY, ferry, skip, text};

/// Reads a record and validates it against the schema.
fn valid(path: &Path) -> Record {
    crate::measured::valid(path);
    read(path).unwrap()
}

fn lacks_ring() -> bool {
    ferry_lab::needs::ring().is_err()
}

#[track_caller]
fn was_measured(output: &Output) {
    let said = (text(&output.stdout), text(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {said:?}", output.status);
}

#[test]
fn writes_are_measured_quickly() {
    let place = tempfile::tempdir().unwrap();
    let output = ferry(place.path(), &["lab", "write", "--quick", "--json", "record.json"]);
    was_measured(&output);
    let record = valid(&place.path().join("record.json"));
    assert!(record.complete, "{:?}", record.warnings);
    assert_eq!(record.cells.len(), 12);
    assert!(lacks_ring() || record.cells.iter().all(|cell| cell.runs.len() == 2), "{:?}", record.warnings);
    let printed = text(&output.stdout);
    for part in ["Document 001's table, here and as published", "overwrite/ring-all/1M", "until queued"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    assert_eq!(left_in(place.path()), ["record.json"]);
}

#[test]
fn writes_as_published_run_to_their_end() {
    let place = tempfile::tempdir().unwrap();
    let reduced = ["--runs=1", "--size=1M", "--download-size=1000001", "--rates=0", "--json=record.json"];
    let output = ferry(place.path(), &[&["lab", "write", "--as-published"], &reduced[..]].concat());
    was_measured(&output);
    let record = valid(&place.path().join("record.json"));
    assert!(record.complete && record.runs == 1, "{:?}", record.warnings);
    assert!(text(&output.stdout).contains("58.3 s"), "{}", text(&output.stdout));
}

#[test]
fn interrupted_writes_go_on_where_they_were() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("record.json");
    // Downloads of half a second, so that one is in flight.
    let order =
        ["--operations=download", "--sinks=control,ring", "--download-size=4M", "--rates=8M", "--runs=3"];
    let mut command = Command::new(FERRY);
    command.current_dir(place.path()).args(["lab", "write", "--json", "record.json"]).args(order);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_a_run(&path, &mut child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--resume"), "{}", text(&output.stderr));
    let before = valid(&path);
    assert!(!before.complete);
    assert_eq!(left_in(place.path()), ["record.json"]);

    let output = ferry(place.path(), &["lab", "write", "--resume", "record.json"]);
    was_measured(&output);
    let after = valid(&path);
    assert!(after.complete, "{:?}", after.warnings);
    for cell in &before.cells {
        let now = after.cell(&cell.name).unwrap();
        assert!(cell.runs.iter().all(|run| now.runs.contains(run)), "{} was taken anew", cell.name);
        assert!(now.missing.is_some() || now.runs.len() == 3);
    }
    assert_eq!(left_in(place.path()), ["record.json"]);
}

/// Python's HTTP server; ended on drop.
struct Foreign(Child, String);

impl Foreign {
    fn of(folder: &Path) -> Option<Self> {
        let mut command = Command::new("python3");
        command.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]).current_dir(folder);
        let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else {
            return skip("there is no python3");
        };
        // Parses `Serving HTTP on 127.0.0.1 port 43211 (http://127.0.0.1:43211/) ...`.
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split(['(', ')']).nth(1).map(str::to_owned);
        Some(Self(child, url.unwrap()))
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn downloads_from_another_server_are_measured() {
    let (place, served) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(served.path().join("file"), vec![3; 1_000_003]).unwrap();
    let Some(server) = Foreign::of(served.path()) else { return };
    let url = format!("--url={}file", server.1);
    let arguments = ["lab", "write", "--quick", "--operations=download", &url, "--json=record.json"];
    let output = ferry(place.path(), &arguments);
    was_measured(&output);
    let record = valid(&place.path().join("record.json"));
    assert!(record.complete && record.cells.len() == 5, "{:?}", record.warnings);
    for run in record.cells.iter().flat_map(|cell| &cell.runs) {
        let bytes = run.figures["throughput_b_s"] * run.figures["returned_s"];
        assert!((bytes - 1_000_003.0).abs() < 1.0, "{run:?}");
    }
    assert!(lacks_ring() || record.cells.iter().all(|cell| cell.runs.len() == 2), "{:?}", record.warnings);
    assert_eq!(left_in(place.path()), ["record.json"]);
}

#[test]
fn a_url_with_other_content_does_not_go_on() {
    let (place, served) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(served.path().join("file"), vec![3; 100_000]).unwrap();
    let Some(server) = Foreign::of(served.path()) else { return };
    let url = format!("--url={}file", server.1);
    let few =
        ["lab", "write", "--operations=download", "--sinks=control", "--runs=1", "--json=record.json", &url];
    was_measured(&ferry(place.path(), &few));
    let path = place.path().join("record.json");
    let before = valid(&path);
    assert_eq!(before.settled["download_bytes"].as_number(), Some(100_000));
    let resume = ["lab", "write", "--resume=record.json", "--runs=2"];
    std::fs::write(served.path().join("file"), vec![4; 100_000]).unwrap();
    let output = ferry(place.path(), &resume);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = "ferry lab: the URL has other content than when the record was begun (download_blake3 ";
    assert!(said.lines().last().is_some_and(|last| last.starts_with(line)), "{said}");
    assert_eq!(read(&path).unwrap(), before);
    std::fs::write(served.path().join("file"), vec![3; 100_000]).unwrap();
    was_measured(&ferry(place.path(), &resume));
    assert_eq!(valid(&path).cells[0].runs.len(), 2);
}

#[test]
fn a_url_with_nothing_behind_it_is_refused() {
    let served = tempfile::tempdir().unwrap();
    let refused = |url: &str, why: &str| {
        let place = tempfile::tempdir().unwrap();
        let output = ferry(place.path(), &["lab", "write", "--quick", "--seed=7", "--url", url]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let line = format!("ferry lab: cannot download {url}: {why}");
        assert!(said.lines().last().is_some_and(|last| last.starts_with(&line)), "{said}");
        // Nothing was measured before.
        assert!(!said.contains("overwrite") && text(&output.stdout).is_empty(), "{said}");
        assert!(left_in(place.path()).is_empty());
    };
    if let Some(server) = Foreign::of(served.path()) {
        refused(&format!("{}none", server.1), "the server answers 'HTTP/1.0 404 ");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        assert!(client.read(&mut [0; 4096]).unwrap() > 0);
        client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive!").unwrap();
    });
    refused(&url, "the server ended early");
    server.join().unwrap();
    // "Connection reset" if another test's child process still holds the server's socket.
    refused(&url, "Connection re");
}

#[test]
fn rings_are_measured_quickly() {
    let place = tempfile::tempdir().unwrap();
    if lacks_ring() || !ferry_lab::needs::has_direct_io(place.path()) {
        return skip("there is no io_uring, or no direct I/O").unwrap_or_default();
    }
    let output = ferry(place.path(), &["lab", "ring", "--quick", "--json", "record.json"]);
    was_measured(&output);
    let record = valid(&place.path().join("record.json"));
    assert!(record.complete, "{:?}", record.warnings);
    assert!(record.find(&[("load", "computation"), ("mode", "plain")]).is_some());
    // Cells have a reason or figures.
    assert!(record.cells.iter().all(|cell| cell.missing.is_some() != (cell.runs.len() == 3)));
    assert_eq!(left_in(place.path()), ["record.json"]);
}

#[test]
fn a_ring_goes_on_where_and_with_what_it_began() {
    let place = tempfile::tempdir().unwrap();
    if lacks_ring() || !ferry_lab::needs::has_direct_io(place.path()) {
        return skip("there is no io_uring, or no direct I/O").unwrap_or_default();
    }
    let small =
        ["--modes=plain", "--loads=computation", "--depths=1", "--file-size=1M", "--time=50", "--runs=1"];
    was_measured(&ferry(place.path(), &[&["lab", "ring", "--json=record.json"], &small[..]].concat()));
    let path = place.path().join("record.json");
    let settle = |name: &str, value: serde_json::Value| {
        let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert!(!record["settled"][name].is_null(), "{record}");
        record["settled"][name] = value;
        std::fs::write(&path, record.to_string()).unwrap();
    };
    // A step takes no time, so there are many computations.
    settle("computation_steps", 1.into());
    was_measured(&ferry(place.path(), &["lab", "ring", "--resume=record.json", "--runs=2"]));
    let record = valid(&path);
    assert_eq!(record.settled["computation_steps"].as_number(), Some(1));
    let computations = record.cells[0].figures("computations_1_s");
    assert!(computations[1] > computations[0] * 3.0, "{computations:?}");
    settle("processors", "1000".into());
    let output = ferry(place.path(), &["lab", "ring", "--resume=record.json", "--runs=3"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("invalid value '1000' for '--processors'"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn bytes_are_moved_by_blocks_where_they_could_be_shared() {
    within("lab_rings_and_writes::bytes_are_moved_by_blocks_where_they_could_be_shared", "xfs", |xfs| {
        if lacks_ring() {
            return skip("there is no io_uring").unwrap_or_default();
        }
        let small = ["--files=2", "--block-sizes=4K", "--modes=one,auto", "--json=record.json"];
        was_measured(&ferry(xfs.path(), &[&["lab", "syscalls", "--quick"], &small[..]].concat()));
        let record = valid(&xfs.path().join("record.json"));
        for calls in record.cell("one/4K").unwrap().figures("enters_per_block") {
            assert!(calls > 1.0, "{calls}");
        }
    });
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let place = tempfile::tempdir().unwrap();
    for (arguments, code, words) in [
        (&["lab", "write", "--url", "https://a.b/c"][..], 2, "it must begin with http://"),
        (&["lab", "write", "--block-sizes", "5000"], 2, "is not a multiple of 4096"),
        (&["lab", "write", "--size", "900G"], 1, "needs"),
        (&["lab", "ring", "--processors", "99999"], 2, "--processors"),
    ] {
        let output = ferry(place.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(words), "{arguments:?}: {}", text(&output.stderr));
        assert!(left_in(place.path()).is_empty());
    }
}
