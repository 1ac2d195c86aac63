use super::groups::cells;
use super::trees::{self, shrink};
use super::{Copy, limits, tools};
use crate::cache::State;
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Cell, Figures, Record, Scale};
use crate::settings::Settings;
use crate::verdict::Outcome;

fn settings(given: &[(&str, &str)]) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Copy.spec().parameters, &given, Scale::Default).unwrap()
}

#[test]
fn small_files_are_copied_with_one_block_size_only() {
    let settings = settings(&[("vs", "cp -a {source} {target}"), ("vs", "true {source} {target}")]);
    let tools = tools::all(&settings, "/ferry".as_ref()).unwrap();
    let names = |tree: usize| -> Vec<String> {
        let tree = &trees::all(&settings, 1).unwrap()[tree];
        tools.iter().filter(|tool| tool.suits(&tree.workload)).map(|tool| tool.name.clone()).collect()
    };
    let copiers = ["cp", "ferry", "cp-reflink-never", "ferry-ring", "ferry-posix"];
    let common = [&copiers[..], &["cp -a {source} {target}", "true", "sequential-4K"]].concat();
    assert_eq!(names(0)[..8], common);
    assert_eq!(names(0)[8..], ["dfs-4K", "bfs-4K"]);
    let large = ["sequential-1M", "dfs-4K", "dfs-1M", "bfs-4K", "bfs-1M", "blocks-4K"];
    assert_eq!(names(1)[8..], large);
    let dfs = tools.iter().find(|tool| tool.name == "dfs-1M").unwrap();
    let words: Vec<&str> = dfs.command.arguments.iter().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(words.join(" "), "lab strategy dfs --block-size 1048576 --max-fibers 2 {source} {target}");
}

#[test]
fn a_limit_program_with_two_names_runs_once() {
    let names = "limit-read-write-2,limit-read-write-2x64K,limit-copy-range-2";
    let settings = settings(&[("limits", names)]);
    let trees = trees::all(&settings, 1).unwrap();
    assert_eq!(limits::count(&settings, &trees[0].workload, State::Warm).unwrap(), (2, 0));
}

/// The command lines of the copiers other than the documents' programs, without the programs' folders.
fn lines(given: &[(&str, &str)]) -> Vec<String> {
    let settings = settings(&[&[("programs", "none")], given].concat());
    assert!(Copy.needs(&settings).is_ok());
    let line = |tool: &tools::Tool| {
        let words = tool.command.arguments.iter().map(|word| word.to_str().unwrap());
        format!("{}: {} {}", tool.name, tool.command.name(), words.collect::<Vec<_>>().join(" "))
    };
    let tools = tools::all(&settings, "/ferry".as_ref()).unwrap();
    tools.iter().map(line).map(|line| line.replace(" {source} {target}", "")).collect()
}

#[test]
fn the_baseline_is_plain_cp_beside_one_that_reads_and_writes() {
    assert_eq!(
        lines(&[]),
        [
            "cp: cp -r",
            "ferry: ferry cp -r",
            "cp-reflink-never: cp -r --reflink=never",
            "ferry-ring: ferry cp -r --reflink=never --route ring",
            "ferry-posix: ferry cp -r --backend=posix",
        ]
    );
    assert_eq!(lines(&[("also", "none")]), ["cp: cp -r", "ferry: ferry cp -r"]);
}

#[test]
fn cp_and_ferry_get_the_options_of_an_extent() {
    for (extent, options) in [("plain", "-r --reflink=never"), ("archive", "-a --reflink=never")] {
        // cp reads and writes already.
        let expected = [
            format!("cp: cp {options}"),
            format!("ferry: ferry cp {options}"),
            format!("ferry-ring: ferry cp {options} --route ring"),
            format!("ferry-posix: ferry cp {options} --backend=posix"),
        ];
        assert_eq!(lines(&[("copy-as", extent)]), expected);
    }
}

/// A record of cp and dd; the times and throughputs of dd are those given.
fn beside_dd(runs: &[(f64, f64)]) -> Record {
    // cp reads and writes 90 MB each in a second, which are durable after two: 45 MB a second.
    let mut record = taken(&[("small", "warm", "cp", 1.0)]);
    let run = record.cells[0].runs[0].clone();
    let figures = |returned: f64, durable: f64, rate: f64| {
        let figures = [("returned_s", returned), ("durable_s", durable), ("throughput_b_s", rate)];
        Figures::from(figures.map(|(name, figure)| (name.to_owned(), figure)))
    };
    record.cells[0].runs.iter_mut().for_each(|run| run.figures = figures(1.0, 2.0, 180e6));
    let mut dd = Cell::new(&[("tree", "dd".into())], State::AsItIs);
    for (round, (durable, rate)) in (0..).zip(runs) {
        let figures = figures(1.0, *durable, *rate);
        dd.runs.push(crate::record::Run { round, figures, ..run.clone() });
    }
    record.cells.push(dd);
    record
}

#[test]
fn dd_is_a_limit_by_durable_bytes_that_both_have_written() {
    let of_dd = |runs: &[(f64, f64)]| {
        let verdicts = Copy.verdicts(&beside_dd(runs));
        let found = verdicts.into_iter().find(|verdict| verdict.finding.contains("than dd"));
        let found = found.unwrap();
        (found.outcome, found.words)
    };
    // 100 MB that are durable after one and a third of a second: 75 MB a second.
    let (outcome, words) = of_dd(&[(4.0 / 3.0, 100e6); 5]);
    assert_eq!(outcome, Outcome::Held);
    assert_eq!(
        words,
        "cp wrote 0.60 (0.60-0.60) of dd's bytes a second until durable, 0.90 (0.90-0.90) until both returned; 0.64 in \
         the document also counts the bytes that cp read"
    );
    // dd returns ten times as fast, but its bytes are durable later than cp's.
    assert_eq!(of_dd(&[(25.0, 1e9); 5]).0, Outcome::DidNotHold);
    // Its median is above cp's, but that may be chance.
    let scattered = [25e6, 30e6, 50e6, 55e6, 60e6].map(|rate| (1.0, rate));
    assert_eq!(of_dd(&scattered).0, Outcome::Unclear);
    assert_eq!(of_dd(&[(1.0, 100e6); 3]).0, Outcome::Unclear);
}

#[test]
fn the_table_of_dd_has_the_time_that_it_would_take() {
    let record = beside_dd(&[(4.0 / 3.0, 100e6); 5]);
    let table = Copy.tables(&record).pop().unwrap();
    assert!(table.title.starts_with("dd as a limit until durable (75.0 MB/s)"), "{}", table.title);
    assert_eq!(table.rows, [["small, warm", "90.0 MB", "1.20 s", "2.00 s", "60 %", "90 %"]]);
}

#[test]
fn the_tree_that_takes_longest_has_levels_less() {
    let all = trees::all(&settings(&[("trees", "small,large,flat")]), 1).unwrap();
    let fitted = |seconds: [f64; 3], budget: f64| -> Vec<(u64, String)> {
        let mut timed: Vec<_> = all.clone().into_iter().zip(seconds).collect();
        shrink(&mut timed, budget);
        let told =
            timed.into_iter().map(|(tree, seconds)| (tree.workload.file_count(), format!("{seconds:.1}")));
        told.collect()
    };
    let row = |files: [u64; 3], seconds: [&str; 3]| -> Vec<(u64, String)> {
        files.into_iter().zip(seconds.map(str::to_owned)).collect()
    };
    assert_eq!(fitted([50.0, 70.0, 1.0], 121.0), row([3905, 780, 50_000], ["50.0", "70.0", "1.0"]));
    assert_eq!(fitted([50.0, 78.0, 1.0], 120.0), row([3905, 155, 50_000], ["50.0", "15.5", "1.0"]));
    assert_eq!(fitted([50.0, 78.0, 1.0], 30.0), row([780, 155, 50_000], ["10.0", "15.5", "1.0"]));
    // One folder has no levels, and the others must keep enough files.
    assert_eq!(fitted([50.0, 78.0, 9.0], 0.0), row([155, 155, 50_000], ["2.0", "15.5", "9.0"]));
}

#[test]
fn needs_are_known_before_anything_is_made() {
    let needs = Copy.needs(&settings(&[("trees", "small"), ("states", "cold")])).unwrap();
    assert!(needs.contains(&Need::DropCaches));
    assert!(
        needs.iter().any(|need| matches!(need, Need::Space { bytes, entries: 9372 } if *bytes > 32_000_000))
    );
    let refused = |given: &[(&str, &str)]| Copy.needs(&settings(given)).unwrap_err();
    // A copier that is not there is a cell that says so.
    let absent = settings(&[("vs", "no-such-copier {source} {target}")]);
    assert!(Copy.needs(&absent).is_ok());
    let tools = tools::all(&absent, "/bin/true".as_ref()).unwrap();
    let absent: Vec<_> = tools.iter().filter_map(|tool| tool.command.absent()).collect();
    assert_eq!(absent, ["'no-such-copier' is not found on the PATH"]);
    let said = refused(&[("vs", "cp -r {source} there")]).to_string();
    assert_eq!(said, "'cp -r {source} there' needs {source} and {target} in it");
    assert!(refused(&[("trees", "tiny")]).to_string().starts_with("'tiny' is none of small"));
    assert!(refused(&[("trees", "mixed")]).to_string().starts_with("'mixed' has symbolic links"));
}

/// A record in which each tool took so many seconds.
fn taken(times: &[(&str, &str, &str, f64)]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.cells.clear();
    for (tree, cache, tool, seconds) in times {
        let parameters = [("tree", (*tree).into()), ("cache", (*cache).into()), ("tool", (*tool).into())];
        let mut cell = Cell::new(&parameters, crate::cache::State::Warm);
        for round in 0..5 {
            let figures =
                Figures::from([("returned_s".to_owned(), *seconds), ("throughput_b_s".to_owned(), 1e8)]);
            cell.runs.push(crate::record::Run { round, figures, ..run.clone() });
        }
        record.cells.push(cell);
    }
    record
}

#[test]
fn the_documents_findings_are_judged_by_the_figures() {
    let record = taken(&[
        ("small", "warm", "cp", 1.0),
        ("small", "warm", "dfs-4K", 1.8),
        ("small", "warm", "sequential-4K", 0.9),
        ("small", "warm", "ferry", 0.5),
        ("small", "warm", "ferry-ring", 0.6),
    ]);
    let verdicts = Copy.verdicts(&record);
    let outcome =
        |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().outcome;
    assert_eq!(outcome("warm cache, the concurrent copy with blocks of 4,096"), Outcome::Held);
    assert_eq!(outcome("the sequential program is slower than cp"), Outcome::DidNotHold);
    assert_eq!(outcome("cold cache, the concurrent program is faster"), Outcome::NotMeasured);
    assert_eq!(outcome("ferry is faster if it chooses a route"), Outcome::Held);
    assert_eq!(
        verdicts[0].to_string(),
        "000: With small files in a warm cache, the concurrent copy with blocks of 4,096 bytes is slower than cp - holds, \
         smaller (1.80; published 1.81): the copy took 1.80 (1.80-1.80) times as long as cp"
    );
    let both = taken(&[
        ("small", "warm", "cp", 1.0),
        ("small", "warm", "dfs-4K", 1.8),
        ("small", "warm", "cp-reflink-never", 1.2),
    ]);
    let words = &Copy.verdicts(&both)[0].words;
    assert!(words.ends_with("as cp, 1.50 (1.50-1.50) times as cp --reflink=never"), "{words}");
}

#[test]
fn each_group_has_a_table_and_a_plot() {
    let record =
        taken(&[("small", "warm", "cp", 1.0), ("small", "cold", "cp", 2.0), ("large", "warm", "cp", 3.0)]);
    let titles: Vec<String> = Copy.tables(&record).into_iter().map(|table| table.title).collect();
    assert_eq!(titles, ["small, warm", "small, cold", "large, warm"]);
    assert_eq!(Copy.plots(&record).len(), 3);
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let settings = settings(&[]);
    let tools = tools::all(&settings, "/ferry".as_ref()).unwrap();
    let mut all = vec![Cell::new(&[("tree", "dd".into())], State::AsItIs)];
    for tree in trees::all(&settings, 1).unwrap() {
        let tools: Vec<_> = tools.iter().filter(|tool| tool.suits(&tree.workload)).collect();
        all.extend(
            [State::Cold, State::Warm].into_iter().flat_map(|state| cells(&tree, state, &tools, 1 << 30)),
        );
    }
    every_verdict_goes_every_way(&Copy, all, settings.values());
}

/// Each finding of the documents is about one tool beside another, and which way it goes is in these figures.
#[test]
fn findings_hold_when_their_figures_say_so() {
    for (tree, cache, base, other, finding, holds_below) in [
        ("small", "warm", "cp", "dfs-4K", "with blocks of 4,096 bytes is slower than cp", false),
        (
            "small",
            "cold",
            "sequential-4K",
            "bfs-4K",
            "in a cold cache, the concurrent program is faster",
            true,
        ),
        ("small", "cold", "cp", "bfs-4K", "the concurrent copy is faster than cp", true),
        ("small", "warm", "cp", "sequential-4K", "the sequential program is slower than cp", false),
        ("small", "warm", "cp", "dfs-4K", "two fibers per folder is slower", false),
        (
            "large",
            "warm",
            "cp",
            "dfs-4K",
            "(large, warm), copying in blocks of 4,096 bytes is slower than cp",
            false,
        ),
        (
            "large",
            "cold",
            "dfs-4K",
            "dfs-1M",
            "(large, cold), blocks of 1 MiB are faster than blocks of 4,096",
            true,
        ),
        (
            "large",
            "warm",
            "cp",
            "dfs-1M",
            "(large, warm), copying in blocks of 1 MiB is faster than cp",
            true,
        ),
        (
            "large",
            "cold",
            "sequential-4K",
            "blocks-4K",
            "(large, cold, 4,096 bytes) are faster than one at a time",
            true,
        ),
        ("small", "cold", "ferry-ring", "ferry", "if it uses the ring for all (small, cold)", true),
        ("large", "cold", "ferry-posix", "ferry", "with io_uring than without (large, cold)", true),
        ("large", "warm", "cp", "cp-reflink-never", "cp is slower if it reads and writes every byte", false),
    ] {
        for (seconds, is_below) in [(0.5, true), (2.0, false)] {
            // A verdict on ferry is only given where ferry was taken.
            let record = taken(&[(tree, cache, base, 1.0), (tree, cache, other, seconds)]);
            let verdicts = Copy.verdicts(&record);
            let found = verdicts.iter().find(|verdict| verdict.finding.contains(finding)).unwrap();
            let expected = if is_below == holds_below { Outcome::Held } else { Outcome::DidNotHold };
            assert_eq!(found.outcome, expected, "{found}");
            assert!(found.words.contains(&format!("{seconds:.2} ({seconds:.2}-{seconds:.2})")), "{found}");
        }
    }
}

#[test]
fn the_documents_programs_make_no_archive() {
    let said = Copy.needs(&settings(&[("copy-as", "archive")])).unwrap_err().to_string();
    assert_eq!(
        said,
        "'--copy-as archive': the documents' programs keep no attributes: add `--programs none`"
    );
}
