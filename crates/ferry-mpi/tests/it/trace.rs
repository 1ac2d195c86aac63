//! Recordings of jobs: a track for each rank, read by `ferry trace`.

use std::fs;
use std::path::Path;
use std::process::Command;

use ferry_trace::{Trace, check, read};

use crate::job::{PROGRAM, end, expect_equal, make_many, mpirun, turn};

/// Reads a recording without faults of four ranks.
fn tracks(path: &Path) -> Trace {
    let trace = read::open(path).unwrap();
    assert_eq!(check::check(&trace), Vec::<String>::new());
    assert_eq!(trace.lost.program, 0);
    let names: Vec<_> =
        trace.threads.iter().map(|thread| thread.name.split(" on ").next().unwrap()).collect();
    assert_eq!(names, ["rank 0", "rank 1", "rank 2", "rank 3"]);
    trace
}

/// Returns names and ranks of the spans whose names begin so.
fn spans<'a>(trace: &'a Trace, begin: &str) -> Vec<(u32, &'a str)> {
    let fibers = trace.fibers.iter().filter(|fiber| fiber.name.starts_with(begin));
    fibers.map(|fiber| (trace.scopes[fiber.scope as usize].thread, fiber.name.as_str())).collect()
}

/// Returns the sum of the numbers before a word in names of leases.
fn sum(leases: &[(u32, &str)], word: &str) -> u64 {
    let number = |name: &str| {
        name.split(", ")
            .flat_map(|part| part.split("; "))
            .find_map(|part| part.strip_suffix(word)?.parse::<u64>().ok())
    };
    leases.iter().map(|(_, name)| number(name).unwrap_or_else(|| panic!("{name}"))).sum()
}

#[test]
fn a_recording_has_a_track_for_each_rank_with_its_leases_and_messages() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    for task in [&["cp", "-aT"][..], &["sync"]] {
        let (target, recording) = (path(task[0]), path("recording"));
        let mut job = mpirun(4);
        job.arg(PROGRAM).args(task).args(["--lease", "16", "--range", "64K", "--trace"]).arg(&recording);
        let output = end(job.args([path("source"), target.clone()]).spawn().unwrap());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        expect_equal(&path("source"), &target, "recorded");
        let trace = tracks(&recording);
        let leases = spans(&trace, "lease ");
        for rank in 0..4 {
            assert!(leases.iter().any(|(of, _)| *of == rank), "rank {rank} has no lease");
            let received = spans(&trace, "message: lease ").into_iter().filter(|(of, _)| *of == rank).count();
            assert!(received > 0, "rank {rank} has got no lease");
            assert!(spans(&trace, "message: everything is done").iter().any(|(of, _)| *of == rank));
        }
        // Rank 0 answers each report.
        let reports = spans(&trace, "to rank 0: report");
        assert!(reports.len() >= leases.len() && !spans(&trace, "waits for the journal").is_empty());
        assert!(trace.rests.iter().all(|rest| rest.began <= rest.ended && rest.ended <= trace.about.took));
        let files = files_of(&path("source"));
        assert_eq!(sum(&leases, " files"), files, "{leases:?}");
        shown(&recording, &place.path().join("perfetto"));
    }
    fs::write(path("notes"), "no recording").unwrap();
    let mut job = mpirun(2);
    job.args([PROGRAM, "cp", "-aT", "--trace"]).args([path("notes"), path("source"), path("other")]);
    let output = end(job.spawn().unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no recording"));
    assert_eq!(fs::read_to_string(path("notes")).unwrap(), "no recording");
}

/// Returns a sync by two ranks with a recording.
fn recorded_sync(recording: &Path, options: &[&str], source: &Path, target: &Path) -> Command {
    let mut job = mpirun(2);
    job.args([PROGRAM, "sync", "--trace"]).arg(recording).args(options).args([source, target]);
    job
}

/// Runs a job, and returns its exit code and what it has printed as errors.
fn ended(mut job: Command) -> (Option<i32>, String) {
    let output = end(job.spawn().unwrap());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_sync_is_refused_if_its_recording_could_not_be_written_or_would_be_in_a_tree() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for name in ["source", "target", "source/folder"] {
        fs::create_dir(path(name)).unwrap();
    }
    for (recording, why) in [
        ("source/recording", "it is in "),
        ("target/recording", "it is in "),
        ("missing/recording", "No such file or directory"),
    ] {
        let (code, said) = ended(recorded_sync(&path(recording), &[], &path("source"), &path("target")));
        assert!(code == Some(1) && said.contains("cannot record to ") && said.contains(why), "{said}");
        assert_eq!(fs::read_dir(path("target")).unwrap().count(), 0, "{recording}: something was copied");
    }
}

#[test]
fn a_sync_by_rank_0_alone_says_that_nothing_is_recorded() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("source")).unwrap();
    fs::write(path("source/file"), "text").unwrap();
    let options = ["--exclude=other"];
    let (code, said) = ended(recorded_sync(&path("recording"), &options, &path("source"), &path("target")));
    assert!(code == Some(0) && said.contains("ferry-mpi: --trace records nothing"), "{said}");
    assert!(path("target/file").exists() && !path("recording").exists());
}

#[test]
fn a_sync_without_its_recording_is_completed_and_fails() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for name in ["source", "target", "gone"] {
        fs::create_dir(path(name)).unwrap();
    }
    // The ranks copy it while the folder of the recording is removed.
    make_many(&path("source/many"));
    fs::write(path("source/replaced"), "new").unwrap();
    fs::write(path("target/replaced"), "older").unwrap();
    let recording = path("gone/recording");
    let mut job = recorded_sync(&recording, &["--lease", "16"], &path("source"), &path("target"));
    let child = job.spawn().unwrap();
    let since = std::time::Instant::now();
    while !path("target/many").exists() {
        assert!(since.elapsed() < std::time::Duration::from_secs(60), "nothing is copied");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    fs::remove_dir(path("gone")).unwrap();
    let output = end(child);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("cannot record to "), "{said}");
    expect_equal(&path("source"), &path("target"), "without a recording");
    assert!(!path(".target.ferry-mpi").exists());
}

/// Returns the number of regular files that are copied: names beyond the first are links.
fn files_of(source: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let inodes = crate::job::files(source).into_iter().map(|file| fs::metadata(file).unwrap().ino());
    inodes.collect::<std::collections::BTreeSet<_>>().len() as u64
}

/// Expects that `ferry trace` shows and exports the recording.
fn shown(recording: &Path, exported: &Path) {
    let Some(program) = std::env::var_os("FERRY_PROGRAM") else {
        println!("SKIP: FERRY_PROGRAM does not name the program that shows recordings");
        return;
    };
    let show = Command::new(&program).args(["trace", "show"]).arg(recording).output().unwrap();
    let shown = String::from_utf8_lossy(&show.stdout);
    assert!(show.status.success() && shown.contains("rank 3 on "), "{shown}");
    assert!(shown.contains("clocks were compared"), "{shown}");
    let mut export = Command::new(&program);
    export.args(["trace", "export", "--format", "perfetto", "--output"]).arg(exported).arg(recording);
    let output = export.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::metadata(exported).unwrap().len() > 10_000);
    fs::remove_file(exported).unwrap();
}
