use std::time::{Duration, Instant};

use ferry_io::{Name, RingMode};

use super::fio::understood;
use super::load::{BUSY, Busy, Computation};
use super::names::{LATENCY_MEAN, LATENCY_P99, READS, SEEN_DURING, SEEN_P50, SEEN_P99, figures};
use super::processors::{among, choose, device_interrupts, pin};
use super::reads::{Plan, READ, RingSetup, measure};
use super::setup::make_file;
use super::tables::effects;
use super::watched::Watch;
use super::{Ring, modes, processors, shares};
use crate::cache::State;
use crate::experiment::Experiment;
use crate::experiments::tests::every_verdict_goes_every_way;
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Cell, Record, Run, Scale};
use crate::settings::Settings;
use crate::stop::Stop;
use crate::verdict::Outcome;

const INTERRUPTS: &str = "           CPU0       CPU1       CPU3
 24:          1          0         0   IO-APIC   5-edge      ACPI:Ged
 36:          2   14353021        3000 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 11:     900000     900000    900000  GICv3  30 Level     arch_timer
LOC:    2906673    3180950    2906673   Local timer interrupts
ERR:          0";

#[test]
fn processors_without_device_interrupts_are_chosen() {
    let taken = device_interrupts(INTERRUPTS);
    assert_eq!(taken.into_iter().collect::<Vec<_>>(), [(0, 3), (1, 14_353_021), (3, 3000)]);
    let taken = device_interrupts(INTERRUPTS);
    let chosen = |allowed: &[usize], named: &str| {
        among(allowed, named, 0, &taken)
            .map(|chosen| (chosen.numbers, chosen.are_quiet))
            .map_err(|e| e.to_string())
    };
    assert_eq!(chosen(&[0, 1, 3], ""), Ok((vec![0, 3], true)));
    assert_eq!(chosen(&[1], ""), Ok((vec![1], false)));
    assert_eq!(chosen(&[0, 1, 3], "1, 3"), Ok((vec![1, 3], false)));
    let refused = "invalid value '0,2' for '--processors'; this process may use 0,1".to_owned();
    assert_eq!(chosen(&[0, 1], "0,2"), Err(refused));
    assert!(chosen(&[0, 1], "x").is_err());
    assert!(!choose("", 0).unwrap().numbers.is_empty());
}

#[test]
fn so_many_processors_are_chosen_the_quietest_first() {
    let taken = device_interrupts(INTERRUPTS);
    let chosen = |count: u64| {
        let chosen = among(&[0, 1, 3], "", count, &taken).unwrap();
        (chosen.numbers, chosen.are_quiet)
    };
    assert_eq!(chosen(1), (vec![0], true));
    assert_eq!(chosen(2), (vec![0, 3], true));
    assert_eq!(chosen(9), (vec![0, 1, 3], false));
    assert_eq!(among(&[0, 1, 3], "1", 2, &taken).unwrap().numbers, [1]);
    let beside = processors::beside(choose("", 1).unwrap().numbers[0], &[]);
    assert_ne!(beside, Some(choose("", 1).unwrap().numbers[0]));
}

#[test]
fn what_fio_says_is_understood() {
    let said = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
        {"jobs": [{"read": {"iops": 1234.5, "clat_ns": {"mean": 2000.0,
         "percentile": {"50.000000": 1, "99.000000": 9000}}}}]}"#;
    assert_eq!(understood(said), Some(figures(1234.5, 2000.0 / 1e9, 9000.0 / 1e9)));
    assert_eq!(understood("fio: job failed"), None);
    assert_eq!(understood("{}"), None);
}

#[test]
fn a_computation_takes_about_as_long_as_asked() {
    let computation = Computation::of(Duration::from_millis(5));
    let time = || {
        let start = Instant::now();
        computation.run();
        start.elapsed()
    };
    let least = (0..20).map(|_| time()).min().unwrap();
    // Other tests run beside it: too long is no failure, too short is one.
    assert!(least > Duration::from_millis(2), "{least:?}");
}

/// The command of a process that runs; nothing of one that has ended, waited for or not.
fn command_of(process: u32) -> String {
    std::fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default()
}

#[test]
fn busy_processes_end_with_their_owner() {
    let number = choose("", 0).unwrap().numbers[0];
    // The test's own thread keeps its processors.
    std::thread::spawn(move || pin(number).unwrap()).join().unwrap();
    let mut busy = Busy::start(&[number, number]).unwrap();
    let processes: Vec<u32> = busy.children.iter().map(std::process::Child::id).collect();
    assert_eq!(processes.len(), 2);
    let session = |process: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned()
    };
    for process in &processes {
        // It has begun by now, but its command and its session may not be told yet.
        let end = Instant::now() + Duration::from_secs(10);
        while !command_of(*process).contains("kill -0 $PPID")
            || session(*process) == session(std::process::id())
        {
            assert!(Instant::now() < end, "{process}: '{}'", command_of(*process));
        }
    }
    let shares = busy.shares().unwrap();
    assert!(shares.iter().all(|share| share.is_bound && share.processor == number), "{shares:?}");
    busy.children[1].kill().unwrap();
    busy.children[1].wait().unwrap();
    assert_eq!(busy.shares().unwrap_err().to_string(), "a busy process ended early");
    drop(busy);
    for process in processes {
        assert_eq!(command_of(process), "", "{process}");
    }
}

#[test]
fn busy_processes_end_when_their_owner_is_killed() {
    let mut owner = std::process::Command::new("sh");
    // The inner shell asks for its parent when it begins: that must be there until then.
    owner.args(["-c", "sh -c \"$1\" <&- >&- 2>&- & echo $!; exec sleep 100", "sh", BUSY]);
    let mut owner = owner.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(owner.stdout.take().unwrap()), &mut line)
        .unwrap();
    let process: u32 = line.trim().parse().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert!(command_of(process).contains("kill -0 $PPID"));
    owner.kill().unwrap();
    owner.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while !command_of(process).is_empty() {
        assert!(Instant::now() < end, "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn needs_are_known_before_anything_is_made() {
    let settings = |given: &[(&str, &str)]| {
        let given: Vec<_> =
            given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Settings::new(Ring.spec().parameters, &given, Scale::Default).unwrap()
    };
    let needs = Ring.needs(&settings(&[])).unwrap();
    assert!(needs.contains(&Need::Ring) && needs.contains(&Need::DirectIo), "{needs:?}");
    let setsid = Need::Program("setsid".into());
    assert!(needs.contains(&setsid));
    assert!(!Ring.needs(&settings(&[("loads", "alone")])).unwrap().contains(&setsid));
    assert_eq!(Ring.needs(&settings(&[("processors", "1024")])).unwrap_err().exit_code(), 2);
}

#[test]
fn threads_that_get_no_processor_in_time_count_their_first_read() {
    let place = tempfile::tempdir().unwrap();
    let name = Name::new(b"reads").unwrap();
    let bytes = 64 * u64::try_from(READ).unwrap();
    let stop = Stop::on_signals().unwrap();
    make_file(&place.path().join("reads"), bytes, 1, &stop).unwrap();
    let measured = measure(&Plan {
        folder: place.path(),
        name: &name,
        bytes,
        depth: 4,
        ring: plain(),
        workers: 2,
        processors: &choose("", 0).unwrap().numbers,
        window: Duration::ZERO,
        computation: Some(Computation::of(Duration::from_micros(10))),
        seed: 1,
        stop: &stop,
    });
    let done = match measured {
        Ok(done) => done,
        Err(error) => {
            assert!(modes::MODES[0].refusal(plain().sqpoll_idle).is_some(), "{error}");
            eprintln!("SKIP: {error}");
            return;
        }
    };
    assert_eq!((done.latencies.len(), done.shares.len()), (2, 2));
    assert!(done.lasted > Duration::ZERO);
    assert!(done.shares.iter().all(|share| share.is_bound), "{:?}", done.shares);
}

fn plain() -> RingSetup {
    RingSetup { mode: RingMode::Plain, registers: false, sqpoll_idle: Duration::from_millis(50) }
}

#[test]
fn another_thread_sees_completions() {
    let processor = choose("", 1).unwrap().numbers[0];
    let Some(beside) = processors::beside(processor, &[]) else {
        return eprintln!("SKIP: there is one processor only");
    };
    let place = tempfile::tempdir().unwrap();
    let (path, stop) = (place.path().join("reads"), Stop::on_signals().unwrap());
    let bytes = 64 * u64::try_from(READ).unwrap();
    make_file(&path, bytes, 1, &stop).unwrap();
    let computation = Computation::of(Duration::from_micros(10));
    let (window, seed, ring) = (Duration::ZERO, 1, plain());
    let watch = Watch { path: &path, bytes, ring, processor, beside, computation, window, seed, stop: &stop };
    match watch.take() {
        Ok(figures) => {
            assert!(figures[SEEN_P50] > 0.0 && figures[SEEN_P50] <= figures[SEEN_P99], "{figures:?}");
            assert!((0.0..=1.0).contains(&figures[SEEN_DURING]), "{figures:?}");
        }
        // No direct I/O, or no ring.
        Err(failure) => eprintln!("SKIP: {failure}"),
    }
}

#[test]
fn every_mode_has_a_name() {
    assert_eq!(modes::MODES.iter().map(|mode| mode.name).collect::<Vec<_>>(), modes::NAMES);
    for mode in modes::MODES {
        assert_eq!(modes::named(mode.name).map(|found| found.ring), Some(mode.ring));
        assert!(mode.base.is_none_or(|base| modes::named(base).is_some()));
    }
}

/// A record in which each cell had so many reads and such a 99th percentile.
fn taken(cells: &[(&str, &str, f64, f64)]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.measures = Ring.measures();
    record.cells.clear();
    for (load, mode, reads, p99) in cells {
        let parameters = [("depth", 16_u64.into()), ("load", (*load).into()), ("mode", (*mode).into())];
        let mut cell = Cell::new(&parameters, State::AsItIs);
        for round in 0..5 {
            cell.runs.push(Run { round, figures: figures(*reads, 1e-3, *p99), ..run.clone() });
        }
        record.cells.push(cell);
    }
    record
}

#[test]
fn the_documents_findings_are_judged_by_the_figures() {
    let record = taken(&[
        ("alone", "plain", 100.0, 1.0),
        ("alone", "coop", 117.0, 0.9),
        ("alone", "defer", 118.0, 0.9),
        ("alone", "fio", 110.0, 0.9),
        ("process", "plain", 52.0, 2.0),
        ("process", "coop", 60.0, 1.8),
        ("computation", "plain", 50.0, 1.0),
        ("computation", "coop", 40.0, 2.0),
    ]);
    let verdicts = Ring.verdicts(&record);
    let find = |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap();
    assert_eq!(find("COOP does more reads").summary(), "holds (1.17; published 1.15-1.20)");
    assert_eq!(find("about halves").summary(), "holds (0.52; published about 0.5)");
    assert_eq!(find("COOP's mean latency is lower").outcome, Outcome::Unclear);
    assert_eq!(find("COOP's 99th percentile is lower").outcome, Outcome::Held);
    assert_eq!(find("latency is higher with COOP").outcome, Outcome::Held);
    assert!(!verdicts.iter().any(|verdict| verdict.finding.contains("higher with DEFER")));
    assert_eq!(find("DEFER and fio").words, "DEFER did 1.07 (1.07-1.07) times as many as fio");
    assert_eq!(
        find("A computation in the same thread reduces the reads a second of COOP").words,
        "the rate was 0.34 (0.34-0.34) of that without load; the 99th percentile of their latency was 2.22 (2.22-2.22) times as high"
    );
    assert_eq!(effects(&record).rows.len(), 4);
    let titles: Vec<String> = Ring.plots(&record).iter().map(|plot| plot.title.clone()).collect();
    assert_eq!(titles.len(), 9, "{titles:?}");
    assert!(titles.contains(&"Mean latency, beside a busy process (depth 16)".to_owned()), "{titles:?}");
    for measure in [READS, LATENCY_MEAN, LATENCY_P99] {
        assert!(record.measure(measure).is_some());
    }
}

#[test]
fn coop_is_shown_beside_the_documents_figures() {
    let cells = [("alone", "plain", 100.0, 1.0), ("alone", "coop", 104.0, 1.0)];
    let beside = [("process", "plain", 90.0, 2.0), ("process", "coop", 90.0, 1.0)];
    let record = taken(&[&cells[..], &beside].concat());
    let tables = Ring.tables(&record);
    let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(
        titles,
        ["Depth 16", "COOP relative to the plain ring", "Effect of each load, relative to alone"]
    );
    let rows = [
        ["16/alone", "1.04 (1.04-1.04)", "1.00 (1.00-1.00)", "1.00 (1.00-1.00)"],
        ["16/process", "1.00 (1.00-1.00)", "1.00 (1.00-1.00)", "0.50 (0.50-0.50)"],
        ["002: alone", "1.15-1.20", "below 1", "below 1"],
        ["002: process", "", "below 1", "below 1"],
    ];
    assert_eq!(tables[1].rows, rows);
    let verdicts = Ring.verdicts(&record);
    let find = |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap();
    assert_eq!(find("COOP does more reads").answer(), "holds, smaller");
}

#[test]
fn shares_of_the_processors_explain_what_a_busy_process_takes() {
    let mut record = taken(&[("alone", "plain", 100.0, 1.0), ("process", "plain", 97.0, 1.0)]);
    record.measures.extend(shares::measures(1, 1));
    let shares: [&[(&str, f64)]; 2] = [
        &[("readers_share", 0.31), ("readers_waited", 0.01)],
        &[("readers_share", 0.3), ("readers_waited", 0.02), ("busy_share", 0.68), ("busy_beside", 1.0)],
    ];
    for (cell, shares) in record.cells.iter_mut().zip(shares) {
        for run in &mut cell.runs {
            run.figures.extend(shares.iter().map(|(name, share)| ((*name).to_owned(), *share)));
        }
    }
    let verdicts = Ring.verdicts(&record);
    let found = verdicts.iter().find(|verdict| verdict.finding.contains("about halves")).unwrap();
    let words = "the rate was 0.97 (0.97-0.97) of that without load; of the processors' time readers ran for 0.31 alone \
                 and 0.30 beside the busy processes, which ran for 0.68";
    assert_eq!((found.outcome, found.words.as_str()), (Outcome::DidNotHold, words));
    let tables = Ring.tables(&record);
    let table = tables.iter().find(|table| table.title == "Shares of the processors").unwrap();
    assert_eq!(
        table.rows,
        [
            ["16/alone/plain", "0.31", "0.01", "", "", ""],
            ["16/process/plain", "0.30", "0.02", "", "0.68", "1.00"]
        ]
    );
    // The speeds stand in a table of their own.
    assert!(tables[0].columns.iter().all(|column| !column.contains("share")), "{:?}", tables[0].columns);
}

/// A record in which another thread saw the median completion of each mode so late.
fn seen(times: &[(&str, f64)]) -> Record {
    let mut record = taken(&[]);
    let run = self::record().cells[0].runs[0].clone();
    for (mode, seconds) in times {
        let parameters = [("depth", 1_u64.into()), ("load", "watched".into()), ("mode", (*mode).into())];
        let mut cell = Cell::new(&parameters, State::AsItIs);
        for round in 0..5 {
            let figures = [(SEEN_P50, *seconds), (SEEN_P99, 2.0 * seconds), (SEEN_DURING, 0.25)];
            let figures = figures.map(|(name, figure)| (name.to_owned(), figure)).into();
            cell.runs.push(Run { round, figures, ..run.clone() });
        }
        record.cells.push(cell);
    }
    record
}

#[test]
fn a_completion_that_another_thread_waits_for_is_judged() {
    let record = seen(&[("plain", 1e-4), ("coop", 2e-3), ("defer", 5e-3)]);
    let verdicts = Ring.verdicts(&record);
    assert_eq!(verdicts.iter().map(|verdict| verdict.outcome).collect::<Vec<_>>(), [Outcome::Held; 2]);
    assert_eq!(
        verdicts[0].words,
        "20.00 (20.00-20.00) times as late: after 2.00 ms (plain: 100 µs); a share of 0.25 was seen before the \
         computation ended (plain: 0.25)"
    );
    let tables = Ring.tables(&record);
    assert_eq!(tables.len(), 1, "{tables:?}");
    assert_eq!((tables[0].rows.len(), Ring.plots(&record).len()), (3, 1));
}

#[test]
fn every_finding_can_hold_or_not_or_be_unclear() {
    let mut cells = taken(&[]).cells;
    for load in ["alone", "process", "computation"] {
        let modes = ["plain", "coop", "defer", "registered", "fio"].map(|mode| (load, mode, 1.0, 1.0));
        cells.extend(taken(&modes).cells);
    }
    cells.extend(seen(&["plain", "coop", "defer"].map(|mode| (mode, 1.0))).cells);
    every_verdict_goes_every_way(&Ring, cells, &taken(&[]).parameters);
}

#[test]
fn what_each_load_does_is_stated_for_coop_as_well_as_defer() {
    for (mode, name) in [("coop", "COOP"), ("defer", "DEFER")] {
        for (load, what) in
            [("process", "A busy process"), ("computation", "A computation in the same thread")]
        {
            for (reads, outcome) in [(50.0, Outcome::Held), (120.0, Outcome::DidNotHold)] {
                let record = taken(&[("alone", mode, 100.0, 1.0), (load, mode, reads, 2.0)]);
                let verdicts = Ring.verdicts(&record);
                let finding = format!("{what} reduces the reads a second of {name} (depth 16)");
                let found = verdicts.iter().find(|verdict| verdict.finding == finding).unwrap();
                let ratio = reads / 100.0;
                let words = format!(
                    "the rate was {ratio:.2} ({ratio:.2}-{ratio:.2}) of that without load; the 99th percentile of their latency \
                     was 2.00 (2.00-2.00) times as high"
                );
                assert_eq!((found.outcome, &found.words), (outcome, &words));
            }
        }
    }
}
