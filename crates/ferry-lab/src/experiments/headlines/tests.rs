use crate::cache::State;
use crate::experiments::{ALL, named};
use crate::record::tests::record;
use crate::record::{Cell, Record, Run, Value, Values};

/// A cell: its parameters, its base, and a figure that all of its runs have.
type Known<'a> = (&'a [(&'a str, Value)], Option<&'a str>, (&'a str, f64));

/// A record of these cells, each with so many runs.
fn taken(experiment: &str, runs: u64, cells: &[Known<'_>]) -> Record {
    let known = record();
    let cell = |(parameters, base, (measure, figure)): &Known<'_>| {
        let mut cell = Cell::new(parameters, State::AsItIs);
        cell.base = base.map(str::to_owned);
        let figures = [((*measure).to_owned(), *figure)];
        let run = |round| Run { round, figures: figures.clone().into(), ..known.cells[0].runs[0].clone() };
        cell.runs = (0..runs).map(run).collect();
        cell
    };
    let cells = cells.iter().map(cell).collect();
    let measures = named(experiment).unwrap().measures();
    Record { experiment: experiment.to_owned(), runs, cells, measures, parameters: Values::new(), ..record() }
}

fn lines(record: &Record) -> Vec<String> {
    named(&record.experiment).unwrap().headline(record).lines()
}

fn copies(runs: u64, times: &[(&str, &str, &str, f64)]) -> Record {
    let parameters: Vec<[(&str, Value); 3]> = times
        .iter()
        .map(|(tree, cache, tool, _)| {
            [("tree", (*tree).into()), ("cache", (*cache).into()), ("tool", (*tool).into())]
        })
        .collect();
    let cells = parameters
        .iter()
        .zip(times)
        .map(|(parameters, time)| (&parameters[..], None, ("returned_s", time.3)));
    taken("copy", runs, &cells.collect::<Vec<_>>())
}

#[test]
fn copies_are_headed_by_the_one_that_takes_cp_longest() {
    let times = [
        ("small", "warm", "cp", 1.0),
        ("small", "warm", "ferry", 0.5),
        ("large", "cold", "cp", 7.0),
        ("large", "cold", "ferry", 5.0),
        ("large", "warm", "cp", 2.0),
        ("large", "warm", "ferry", 4.0),
    ];
    let record = copies(5, &times);
    let expected = [
        "ferry is 1.40x as fast as cp on large files, cold (95 %: 1.40-1.40)",
        "In 2 other copies: faster in 1, slower in 1",
    ];
    assert_eq!(lines(&record), expected);
    assert_eq!(named("copy").unwrap().headline(&record).plot.as_deref(), Some("large, cold"));
    assert_eq!(
        lines(&copies(4, &times)),
        ["ferry is 1.40x as fast as cp on large files, cold (4 runs: decides nothing)"]
    );
    let none = "No answer: cp and ferry lack figures of the same runs";
    assert_eq!(lines(&copies(5, &times[..1])), [none]);
}

#[test]
fn limits_are_headed_by_ferrys_share() {
    let mut record = copies(5, &[("small", "warm", "cp", 1.0), ("small", "warm", "ferry", 0.5)]);
    record.experiment = "limits".to_owned();
    let mut limit = record.cells[1].clone().with("tool", "limit-x".into()).with("limit", "limit-x".into());
    limit.name = "small/warm/limit-x".to_owned();
    for run in &mut limit.runs {
        run.figures.insert("returned_s".to_owned(), 0.45);
    }
    record.cells.push(limit);
    assert_eq!(
        lines(&record),
        [
            "ferry is slower than the fastest limit program on small files, warm: 0.90x as fast (95 %: 0.90-0.90)"
        ]
    );
}

#[test]
fn the_strategy_that_leads_is_stated_although_others_are_faster() {
    let cell = |strategy: &str, block: &str, depth: Option<u64>| {
        let mut parameters: Vec<(&str, Value)> = vec![
            ("files", "one".into()),
            ("cache", "cold".into()),
            ("strategy", strategy.into()),
            ("block", block.into()),
        ];
        parameters.extend(depth.map(|depth| ("depth", depth.into())));
        parameters
    };
    let cells = [
        (cell("read-write", "128K", None), 1.0),
        (cell("splice", "128K", None), 0.8),
        (cell("reflink", "128K", None), 0.1),
        (cell("cp", "128K", None), 0.2),
        (cell("copy-file-range", "4K", None), 0.5),
        (cell("copy-file-range", "128K", None), 1.25),
        (cell("copy-file-range", "4M", None), 0.4),
        (cell("ring-buffered", "128K", Some(1)), 2.0),
        (cell("ring-buffered", "128K", Some(8)), 4.0),
        (cell("ring-buffered", "128K", Some(64)), 1.0),
    ];
    let base = Some("one/cold/read-write/128K");
    let cells: Vec<Known<'_>> =
        cells.iter().map(|(parameters, seconds)| (&parameters[..], base, ("returned_s", *seconds))).collect();
    let mut record = taken("strategies", 5, &cells);
    for cell in &mut record.cells {
        let bytes: u64 = match cell.text("block").as_str() {
            "4K" => 4 << 10,
            "4M" => 4 << 20,
            _ => 128 << 10,
        };
        *cell = cell.clone().with("block_bytes", bytes.into());
    }
    let expected = [
        "copy-file-range/128K is slower than read-write/128K on one file, cold: 0.80x as fast (95 %: 0.80-0.80)",
        "A ring with 64 blocks in flight is 2.00x as fast as one with a single block of 128K (95 %: 2.00-2.00; published \
         1.60)",
    ];
    assert_eq!(lines(&record), expected);
    record.cells.retain(|cell| cell.text("strategy") != "copy-file-range");
    let middle = "ring-buffered/128K/8 is slower than read-write/128K on one file, cold: 0.25x as fast (95 %: 0.25-0.25)";
    assert_eq!(lines(&record)[0], middle);
}

#[test]
fn writes_rings_and_disks_are_headed_by_the_documents_comparison() {
    let sink = |name: &str| -> [(&'static str, Value); 2] {
        [("operation", "overwrite".into()), ("sink", name.into())]
    };
    let (control, ring, direct) = (sink("control"), sink("ring"), sink("direct"));
    let base = Some("overwrite/control");
    let record = taken(
        "write",
        5,
        &[
            (&control, None, ("returned_s", 1.0)),
            (&ring, base, ("returned_s", 0.8)),
            (&direct, base, ("returned_s", 2.0)),
        ],
    );
    let expected = [
        "io_uring is 1.25x as fast as plain writes on a sparse file (95 %: 1.25-1.25; published 1.00)",
        "O_DIRECT with one write in flight is slower than plain writes on a sparse file: 0.50x as fast (95 %: 0.50-0.50; \
         published 0.75)",
    ];
    assert_eq!(lines(&record), expected);

    let mode = |name: &str| -> [(&'static str, Value); 3] {
        [("depth", 16_u64.into()), ("load", "alone".into()), ("mode", name.into())]
    };
    let (plain, coop, defer) = (mode("plain"), mode("coop"), mode("defer"));
    let reads = |rate: f64| ("reads_1_s", rate);
    let record = taken(
        "ring",
        5,
        &[(&plain, None, reads(100.0)), (&coop, None, reads(104.0)), (&defer, None, reads(110.0))],
    );
    let expected = [
        "A ring of mode coop is 1.04x as fast as a plain one with 16 reads in flight, without load (95 %: 1.04-1.04; \
         published 1.15-1.20)",
        "A ring of mode defer is 1.10x as fast as a plain one with 16 reads in flight, without load (95 %: 1.10-1.10)",
    ];
    assert_eq!(lines(&record), expected);

    let load = |pattern: &str, depth: u64| -> [(&'static str, Value); 3] {
        [("pattern", pattern.into()), ("depth", depth.into()), ("operation", "read".into())]
    };
    let (sequential, single, deep) = (load("sequential", 1), load("random", 1), load("random", 64));
    let rate = |rate: f64| ("throughput_b_s", rate);
    let record = taken(
        "disk",
        5,
        &[(&sequential, None, rate(1e9)), (&single, None, rate(1e8)), (&deep, None, rate(5e8))],
    );
    let expected = [
        "A queue of 64 is 5.00x as fast as one request at a time with random reads of 4 KiB (95 %: 5.00-5.00; published \
         16.5)",
        "A stream of random reads of 4 KiB is slower than a sequential one with one request in flight: 0.10x as fast \
         (95 %: 0.10-0.10; published 0.04)",
    ];
    assert_eq!(lines(&record), expected);
}

#[test]
fn caches_calls_cases_and_working_sets_have_an_answer() {
    let way = |name: &str, cache: u64| -> [(&'static str, Value); 3] {
        [("access", "zipf".into()), ("way", name.into()), ("cache_bytes", cache.into())]
    };
    let (page, small, large) = (way("page-cache", 0), way("own-cache", 8 << 20), way("own-cache", 32 << 20));
    let rate = |rate: f64| ("throughput_b_s", rate);
    let record =
        taken("cache", 5, &[(&page, None, rate(1e8)), (&small, None, rate(1e8)), (&large, None, rate(8e7))]);
    let answer = "O_DIRECT with an own cache of 32M is slower than the page cache with zipf access: 0.80x as fast (95 %: \
                  0.80-0.80)";
    assert_eq!(lines(&record), [answer]);

    let mode = |name: &str| -> [(&'static str, Value); 2] { [("mode", name.into()), ("block", "4K".into())] };
    let (many, polled) = (mode("many"), mode("many-sqpoll"));
    let time = |seconds: f64| ("returned_s", seconds);
    let record = taken("syscalls", 5, &[(&many, None, time(1.0)), (&polled, None, time(2.0))]);
    let answer = "SQPOLL is slower than a ring without it in a copy with many requests in flight, blocks of 4K: 0.50x as \
                  fast (95 %: 0.50-0.50)";
    assert_eq!(lines(&record), [answer]);

    let route = |case: &str, route: &str| -> [(&'static str, Value); 2] {
        [("case", case.into()), ("route", route.into())]
    };
    let (inline, ring) = (route("durable", "inline"), route("durable", "ring"));
    let (warm_inline, warm_ring) = (route("buffered", "inline"), route("buffered", "ring"));
    let record = taken(
        "when",
        5,
        &[
            (&warm_inline, None, time(1.0)),
            (&warm_ring, None, time(0.5)),
            (&inline, None, time(1.0)),
            (&ring, None, time(1.25)),
        ],
    );
    let expected = [
        "The ring is slower than plain calls in a durable copy of small files: 0.80x as fast (95 %: 0.80-0.80)",
        "In 1 other case: faster in 1, slower in 0",
    ];
    assert_eq!(lines(&record), expected);

    let copier =
        |name: &str| -> [(&'static str, Value); 2] { [("use", "used".into()), ("copier", name.into())] };
    let (cp, auto) = (copier("cp"), copier("auto"));
    let share = |share: f64| ("resident_least", share);
    let mut record = taken("evict", 5, &[(&cp, None, share(0.25)), (&auto, None, share(1.0))]);
    record.parameters.insert("resident".to_owned(), (1_u64 << 30).into());
    let answer =
        "ferry leaves 1.00 of a working set in memory (1G, in use; 95 %: 1.00-1.00), cp 0.25 (0.25-0.25)";
    assert_eq!(lines(&record), [answer]);
}

#[test]
fn rings_under_load_alone_have_an_answer() {
    let mode = |name: &str| -> [(&'static str, Value); 3] {
        [("depth", 16_u64.into()), ("load", "process".into()), ("mode", name.into())]
    };
    let (plain, coop, defer) = (mode("plain"), mode("coop"), mode("defer"));
    let reads = |rate: f64| ("reads_1_s", rate);
    let record = taken("ring", 5, &[(&plain, None, reads(100.0)), (&coop, None, reads(110.0))]);
    let answer = "A ring of mode coop is 1.10x as fast as a plain one with 16 reads in flight, beside a busy process (95 %: \
                  1.10-1.10)";
    assert_eq!(lines(&record), [answer]);

    let record = taken("ring", 5, &[(&coop, None, reads(100.0)), (&defer, None, reads(110.0))]);
    let answer = "A ring of mode defer is 1.10x as fast as one of mode coop with 16 reads in flight, beside a busy process \
                  (95 %: 1.10-1.10)";
    assert_eq!(lines(&record), [answer]);
}

#[test]
fn waits_beside_a_long_operation_have_an_answer() {
    let answer = |case: &str, measure: &'static str, runs: u64, of_ring: f64| {
        let route =
            |route: &str| -> [(&'static str, Value); 2] { [("case", case.into()), ("route", route.into())] };
        let (inline, ring) = (route("inline"), route("ring"));
        let cells: [Known<'_>; 2] = [(&inline, None, (measure, 1.0)), (&ring, None, (measure, of_ring))];
        let mut lines = lines(&taken("when", runs, &cells));
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    };
    let aside = "(99th percentile; 95 %: 0.50-0.50)";
    for (case, measure, words) in [
        ("beside-read", "tick_p99_s", "other fibers of the worker wait 0.50x as long during a long read"),
        ("beside-sync", "tick_p99_s", "other fibers of the worker wait 0.50x as long during an fsync(2)"),
        ("latency", "read_p99_s", "another reader of the device waits 0.50x as long during a copy"),
    ] {
        let expected = format!("With the ring, {words} as with plain calls {aside}");
        assert_eq!(answer(case, measure, 5, 0.5), expected);
    }
    assert_eq!(
        answer("beside-sync", "tick_p99_s", 5, 1.0),
        "The ring and plain calls can't be told apart by how long other fibers of the worker wait during an fsync(2): \
         1.00 (99th percentile; 95 %: 1.00-1.00)"
    );
    assert_eq!(
        answer("beside-sync", "tick_p99_s", 4, 2.0),
        "With the ring, other fibers of the worker wait 2.00x as long during an fsync(2) as with plain calls \
         (99th percentile; 4 runs: decides nothing)"
    );
}

#[test]
fn the_submissions_of_dfs_are_an_answer() {
    let text = include_str!("../../../../../docs/experiments/records/syscalls-dfs.json");
    let record = crate::record::read::parse(text).unwrap();
    let answer = "dfs makes 598,390 submissions for 2,018,105 requests, in blocks of 4K: 3.37 requests share one (95 %: \
                  3.29-7.60; published 25)";
    assert_eq!(lines(&record), [answer]);
    let plot = named("syscalls").unwrap().headline(&record).plot.unwrap();
    assert!(named("syscalls").unwrap().plots(&record).iter().any(|its| its.title == plot), "{plot}");
    // Another tree has other submissions, which the document's do not stand beside.
    let mut small = record.clone();
    small.cells.remove(0);
    let answer = lines(&small).remove(0);
    assert!(answer.starts_with("dfs makes ") && answer.contains("in blocks of 1M: "), "{answer}");
    assert!(!answer.contains("published"), "{answer}");
}

#[test]
fn without_figures_every_experiment_says_that_there_is_no_answer() {
    for experiment in ALL {
        let record = taken(experiment.spec().name, 5, &[]);
        let answer = experiment.headline(&record).answer;
        assert!(answer.starts_with("No answer: ") || answer == "No claim is decided", "{answer}");
    }
}
