//! Jobs that are killed at seeded moments and go on.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ferry_cluster::Line;
use ferry_tree::fill::SplitMix64;

use crate::job::{
    copy, end, end_within, expect_equal, files, job, job_of, make_many, names, ranks, run, signal, turn,
};

const SMALL: &[&str] = &["--range", "64K", "--lease", "16"];

fn kills() -> u64 {
    std::env::var("FERRY_MPI_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(20)
}

/// Inode number and change time of each file that is complete, and is to stay as it is.
fn complete(source: &Path, target: &Path) -> HashMap<PathBuf, (u64, i64, i64)> {
    let mut complete = HashMap::new();
    for path in files(target) {
        let below = path.strip_prefix(target).unwrap().to_owned();
        let (Ok(wanted), Ok(found)) =
            (fs::symlink_metadata(source.join(&below)), fs::symlink_metadata(&path))
        else {
            continue;
        };
        // Links to a file change it, and mode 0600 may mean that the mode was not set yet.
        let is_plain = wanted.nlink() == 1 && wanted.mode() & 0o777 != 0o600;
        let is_whole = (wanted.size(), wanted.mtime(), wanted.mtime_nsec(), wanted.mode())
            == (found.size(), found.mtime(), found.mtime_nsec(), found.mode());
        if is_plain && is_whole {
            complete.insert(below, (found.ino(), found.ctime(), found.ctime_nsec()));
        }
    }
    complete
}

/// Returns a number of `--stats`.
fn count(what: &str, stats: &[u8]) -> u64 {
    let stats = String::from_utf8_lossy(stats);
    let line = stats.lines().find_map(|line| line.strip_prefix(what));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no {what} in {stats}"))
}

#[test]
fn a_job_goes_on_after_any_rank_was_killed_at_any_moment() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    let begun = Instant::now();
    copy(4, SMALL, &path("source"), &path("whole"));
    let took = begun.elapsed();
    let (mut hits, mut over, mut stuck, mut kept, mut repeated) = ([0; 4], 0, 0, 0, 0);
    for seed in 0..kills() {
        let mut random = SplitMix64::new(seed);
        let target = path("target");
        let child = job(4, SMALL, &path("source"), &target).spawn().unwrap();
        // The first part is the start of the processes.
        let micros = u64::try_from(took.as_micros()).unwrap();
        std::thread::sleep(Duration::from_micros(micros / 4 + random.below(micros * 3 / 4)));
        let processes = ranks(child.id());
        let rank = random.index(processes.len().max(1));
        if let Some(&process) = processes.get(rank) {
            signal(process, "KILL");
        }
        // mpirun of Open MPI 4.1 may hang if a rank dies while it connects ("PMIX ERROR: UNREACHABLE").
        let (output, is_stuck) = end_within(child, Duration::from_secs(30));
        stuck += u64::from(is_stuck);
        let before = complete(&path("source"), &target);
        for found in files(&target) {
            let below = found.strip_prefix(&target).unwrap();
            let is_hidden = found.file_name().unwrap().to_string_lossy().starts_with(".ferry-");
            assert!(is_hidden || path("source").join(below).exists(), "seed {seed}: {below:?} is foreign");
        }
        let has_failed = !output.status.success();
        // Without its journal, everything was done, and the rank was about to exit.
        let is_over = !path(".target.ferry-mpi").exists() && !before.is_empty();
        over += u64::from(has_failed && is_over);
        if has_failed && !is_over {
            hits[rank] += 1;
            kept += before.len();
            let options = [SMALL, &["--stats"]].concat();
            let output = run(4, &options, &path("source"), &target);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            repeated = repeated.max(count("kept", &output.stderr));
            let after = complete(&path("source"), &target);
            for (name, was) in &before {
                assert_eq!(after.get(name), Some(was), "seed {seed}: {name:?} was complete and has changed");
            }
        }
        expect_equal(&path("source"), &target, &format!("seed {seed}"));
        assert_eq!(names(place.path()), ["source", "target", "whole"], "seed {seed}: something is left");
        ferry_tree::remove::remove(&target).unwrap();
    }
    let hit: u64 = hits.iter().sum();
    println!(
        "{hit} of {} kills hit a job, of its ranks {hits:?}, {over} a rank that had done everything; mpirun hung {stuck} \
         times; {kept} files were complete and stayed; at most {repeated} were looked at again",
        kills()
    );
    assert!(stuck <= 1 + kills() / 20, "mpirun hung {stuck} times");
    assert!(over <= kills() / 5, "{over} jobs were over: kill earlier");
    assert!(hit > 0 && kept > 0, "no kill hit a job at work");
    assert!(kills() < 50 || hits.iter().all(|&hits| hits > 0), "a rank was never hit: {hits:?}");
}

/// Options without which a file's time does not show that it is complete, or with which existing files stay.
const OTHER: [&[&str]; 4] = [&["-r"], &["-an"], &["-rpu"], &["-dR", "--preserve=mode"]];

#[test]
fn with_other_options_no_name_leads_to_an_incomplete_file_and_the_job_goes_on() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    let job = |options: &[&str], target: &str| {
        let mut job = job_of(4, "-T");
        job.args(options).args(SMALL).args([path("source"), path(target)]);
        job.spawn().unwrap()
    };
    let begun = Instant::now();
    assert!(end(job(&["-r"], "whole")).status.success());
    let micros = u64::try_from(begun.elapsed().as_micros()).unwrap();
    let mut found = 0;
    for seed in 0..kills().div_ceil(4) {
        let mut random = SplitMix64::new(1_000 + seed);
        let options = OTHER[random.index(OTHER.len())];
        let child = job(options, "target");
        std::thread::sleep(Duration::from_micros(micros / 4 + random.below(micros * 3 / 4)));
        let processes = ranks(child.id());
        if let Some(&process) = processes.get(random.index(processes.len().max(1))) {
            signal(process, "KILL");
        }
        end_within(child, Duration::from_secs(30));
        for file in files(&path("target")) {
            if file.file_name().unwrap().to_string_lossy().starts_with(".ferry-") {
                continue;
            }
            found += 1;
            let source = path("source").join(file.strip_prefix(path("target")).unwrap());
            assert!(
                fs::read(&file).unwrap() == fs::read(&source).unwrap(),
                "seed {seed}: {file:?} is incomplete"
            );
        }
        let output = end(job(options, "target"));
        assert!(output.status.success(), "seed {seed}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(names(place.path()), ["source", "target", "whole"], "seed {seed}: something is left");
        for file in files(&path("source")) {
            let copy = path("target").join(file.strip_prefix(path("source")).unwrap());
            let (wanted, copied) = (fs::metadata(&file).unwrap(), fs::metadata(&copy).unwrap());
            assert_eq!(copied.mode(), wanted.mode(), "{copy:?}");
            assert!(fs::read(&file).unwrap() == fs::read(&copy).unwrap(), "seed {seed}: {copy:?}");
        }
        assert_eq!(files(&path("target")).len(), files(&path("source")).len(), "seed {seed}");
        ferry_tree::remove::remove(&path("target")).unwrap();
    }
    assert!(found > 0, "no job was killed at work");
}

/// Copies slowly, and kills all ranks once the copy has begun.
fn kill_slow(source: &Path, target: &Path, is_begun: impl Fn() -> bool) {
    let child = job(2, &["--bwlimit", "1M"], source, target).spawn().unwrap();
    let since = Instant::now();
    while !is_begun() {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing is copied");
        std::thread::sleep(Duration::from_millis(1));
    }
    for process in ranks(child.id()) {
        signal(process, "KILL");
    }
    end_within(child, Duration::from_secs(30));
}

#[test]
fn in_an_existing_target_no_job_that_goes_on_makes_files_under_their_names() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for name in ["source", "target"] {
        fs::create_dir(path(name)).unwrap();
    }
    fs::write(path("source/file"), vec![7; 8 << 20]).unwrap();
    for attempt in 0..3 {
        // Bytes before the name can't be seen: the file may have none.
        let begun = Instant::now();
        let is_begun = || path(".target.ferry-mpi").exists() && begun.elapsed() > Duration::from_secs(3);
        kill_slow(&path("source"), &path("target"), is_begun);
        assert!(path(".target.ferry-mpi").exists() && !path("target/file").exists(), "attempt {attempt}");
    }
    copy(2, &[], &path("source"), &path("target"));
    expect_equal(&path("source"), &path("target"), "after kills");
    assert_eq!(names(&path("target")), ["file"]);
}

#[test]
fn a_copy_with_other_options_does_not_go_on_and_the_first_one_still_does() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("source")).unwrap();
    fs::write(path("source/file"), vec![7; 8 << 20]).unwrap();
    let job = |options: &[&str]| job(2, options, &path("source"), &path("target")).spawn().unwrap();
    let is_begun = || fs::metadata(path("target/file")).is_ok_and(|file| file.len() > 0);
    kill_slow(&path("source"), &path("target"), is_begun);
    let is_whole = || fs::read(path("target/file")).unwrap() == fs::read(path("source/file")).unwrap();
    assert!(!is_whole(), "the job was over already");
    let journal = fs::read(path(".target.ferry-mpi")).unwrap();
    for (options, said) in [
        (&["-u"][..], "the journal is that of a copy with other options: see --restart and --journal"),
        (&["-n"], "the journal is that of a copy with other options: see --restart and --journal"),
        (&["-u", "--restart"], "an interrupted copy has left incomplete files in "),
    ] {
        let output = end(job(options));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && stderr.contains(said), "{options:?}: {stderr}");
        assert_eq!(fs::read(path(".target.ferry-mpi")).unwrap(), journal, "{options:?}");
    }
    assert!(end(job(&[])).status.success() && is_whole());
    assert_eq!(names(place.path()), ["source", "target"]);
}

/// Files in each folder of [`make_small`].
const FILES: u64 = 6;
/// Folders in it.
const FOLDERS: u64 = 300;
/// Folders that a rank with one worker works in at once.
const AT_ONCE: u64 = 16;
/// Entries of one lease at most: its budget, and what the folders being worked in hold beyond it.
const LEASE: u64 = 16 + AT_ONCE * (FILES + 1);

/// Makes a tree of small folders, in which each lease is small.
fn make_small(source: &Path) {
    for folder in 0..FOLDERS {
        let folder = source.join(format!("d{}/e{folder}", folder % 20));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..FILES {
            fs::write(folder.join(format!("f{file}")), format!("{folder:?} {file}")).unwrap();
        }
    }
}

/// Returns the number of files in the reports that a journal has.
fn reported(journal: &[u8]) -> u64 {
    let lines = journal.split_inclusive(|&byte| byte == b'\n').skip(1);
    let files = lines.map_while(|line| ferry_cluster::parse_line(line).ok()).map(|line| match line {
        Line::Record(record) => record.report.totals.files,
        Line::Resumed => 0,
    });
    files.sum()
}

#[test]
fn after_a_kill_each_rank_repeats_at_most_one_lease_and_nothing_that_was_reported() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_small(&path("source"));
    let options = ["--lease", "16", "--workers", "1", "--stats"];
    let begun = Instant::now();
    copy(4, &options, &path("source"), &path("target"));
    let micros = u64::try_from(begun.elapsed().as_micros()).unwrap();
    ferry_tree::remove::remove(&path("target")).unwrap();
    let (mut hits, mut most) = (0, 0);
    for seed in 0..kills().div_ceil(4) {
        let mut random = SplitMix64::new(2_000 + seed);
        let child = job(4, &options, &path("source"), &path("target")).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(micros / 4 + random.below(micros / 2)));
        let processes = ranks(child.id());
        if let Some(&process) = processes.get(random.index(processes.len().max(1))) {
            signal(process, "KILL");
        }
        end_within(child, Duration::from_secs(30));
        let journal = fs::read(path(".target.ferry-mpi")).unwrap_or_default();
        let before = reported(&journal);
        let made = files(&path("target")).len() as u64;
        if before > 0 {
            hits += 1;
            // Files of leases whose reports are missing.
            let unreported = made.saturating_sub(before);
            assert!(unreported <= 4 * LEASE, "seed {seed}: {unreported} of {made} files were not reported");
            let output = run(4, &options, &path("source"), &path("target"));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let (kept, copied) = (count("kept", &output.stderr), count("files", &output.stderr));
            assert!(kept <= 4 * LEASE, "seed {seed}: {kept} files were looked at again");
            // A file that was reported is neither copied nor looked at again.
            assert_eq!(kept + copied, FILES * FOLDERS, "seed {seed}: {before} reported, {made} made");
            most = most.max(unreported);
        } else {
            copy(4, &["--restart"], &path("source"), &path("target"));
        }
        expect_equal(&path("source"), &path("target"), &format!("seed {seed}"));
        ferry_tree::remove::remove(&path("target")).unwrap();
    }
    println!(
        "{hits} jobs were killed at work; at most {most} files of {} were not reported",
        FILES * FOLDERS
    );
    assert!(hits > 0, "no job was killed at work");
}

/// Returns true unless a process has ended; its parent may not have noticed yet.
fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

#[test]
fn a_signal_to_mpirun_ends_all_ranks_and_the_job_goes_on() {
    let _turn = turn();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    make_many(&path("source"));
    for name in ["TERM", "INT"] {
        let target = path("target");
        let child = job(4, &["--range", "64K", "--lease", "4"], &path("source"), &target).spawn().unwrap();
        let mpirun = child.id();
        let since = Instant::now();
        // At work: something is in the target.
        while fs::read_dir(&target).map_or(0, Iterator::count) == 0 {
            assert!(since.elapsed() < Duration::from_secs(60), "nothing is copied");
            std::thread::sleep(Duration::from_millis(1));
        }
        let processes = ranks(mpirun);
        assert!(signal(mpirun, name), "the job was over already");
        let output = end(child);
        assert!(!output.status.success());
        let since = Instant::now();
        for process in processes {
            while is_running(process) {
                assert!(since.elapsed() < Duration::from_secs(20), "{name} left process {process}");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        copy(4, SMALL, &path("source"), &target);
        expect_equal(&path("source"), &target, name);
        ferry_tree::remove::remove(&target).unwrap();
    }
}
