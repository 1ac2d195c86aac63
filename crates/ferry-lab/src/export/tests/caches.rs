//! Screens of `lab cache` and `lab evict`.

use super::printed;
use crate::cache::State;
use crate::experiments::named;
use crate::machine::{Filesystem, Machine, Memory, Processor};
use crate::record::tests::record;
use crate::record::{Cell, Record, Run, Value};

/// Name, cache size in bytes, base and figures of a cell.
type Known<'a> = (&'a str, Option<u64>, Option<&'a str>, &'a [(&'a str, f64)]);

/// Returns a record whose cells have these figures in each of 5 runs, spread by 10 %. Cells without figures are missing.
fn taken(experiment: &str, parameters: [&str; 2], cells: &[Known<'_>]) -> Record {
    let known = record();
    let run = known.cells[0].runs[0].clone();
    let cell = |(name, cache, base, figures): &Known<'_>| {
        let words = name.split('/').map(|word| Value::Text(word.to_owned()));
        let given: Vec<(&str, Value)> = parameters.into_iter().zip(words).collect();
        let mut cell = Cell::new(&given, State::AsItIs);
        (*name).clone_into(&mut cell.name);
        if let Some(bytes) = cache {
            cell = cell.with("cache_bytes", (*bytes).into());
        }
        cell.base = base.map(str::to_owned);
        if figures.is_empty() {
            cell.missing = Some("the memory cgroup controller is missing".to_owned());
            return cell;
        }
        for (round, factor) in (0..).zip([0.9, 0.95, 1.0, 1.05, 1.1]) {
            let is_share = |name: &str| name == "hit_ratio" || name.starts_with("resident");
            let of = |(name, figure): &(&str, f64)| {
                ((*name).to_owned(), if is_share(name) { *figure } else { figure * factor })
            };
            cell.runs.push(Run { round, figures: figures.iter().map(of).collect(), ..run.clone() });
        }
        cell
    };
    let processor = Processor { model: "Xeon".to_owned(), count: 2, usable: 2, ..Processor::default() };
    let place = Filesystem { filesystem: "ext4".to_owned(), ..Filesystem::default() };
    let memory = Memory { total_bytes: 25_200_000_000, ..Memory::default() };
    Record {
        experiment: experiment.to_owned(),
        runs: 5,
        machine: Machine { kernel: "6.18.0".to_owned(), processor, place, memory, ..Machine::default() },
        measures: named(experiment).unwrap().measures(),
        cells: cells.iter().map(cell).collect(),
        parameters: [
            ("resident".to_owned(), Value::Number(512 << 20)),
            ("cache-sizes".to_owned(), Value::Numbers(vec![8 << 20, 128 << 20])),
        ]
        .into(),
        warnings: Vec::new(),
        ..known
    }
}

fn cache() -> Record {
    let figures = |rate: f64, hits: Option<f64>, page_cache: f64| {
        let mut all = vec![
            ("throughput_b_s", rate),
            ("requests_1_s", rate / 4096.0),
            ("latency_ns_p99", 4e14 / rate),
            ("processor_s", 1e8 / rate),
            ("page_cache_b", page_cache),
        ];
        all.extend(hits.map(|hits| ("hit_ratio", hits)));
        all
    };
    let (device, base) = (Some("sequential/device"), Some("zipf/one-at-a-time"));
    let sequential = [
        ("sequential/device", None, None, figures(1.6e9, None, 0.0)),
        ("sequential/page-cache", None, device, figures(1.2e9, Some(0.9), 5.4e8)),
        ("sequential/one-at-a-time", None, device, figures(8e8, None, 0.0)),
        ("sequential/own-cache/8M", Some(8 << 20), device, figures(1.55e9, Some(0.98), 0.0)),
        ("sequential/own-cache/128M", Some(128 << 20), device, figures(1.6e9, Some(0.98), 0.0)),
    ];
    let zipf = [
        ("zipf/one-at-a-time", None, None, figures(3e7, None, 0.0)),
        ("zipf/page-cache", None, base, figures(9e7, Some(0.8), 2e8)),
        ("zipf/own-cache/8M", Some(8 << 20), base, figures(6e7, Some(0.5), 0.0)),
        ("zipf/own-cache/128M", Some(128 << 20), base, figures(1.1e8, Some(0.85), 0.0)),
    ];
    let lru = [
        ("zipf/lru/8M", Some(8 << 20), None, vec![("hit_ratio", 0.48)]),
        ("zipf/lru/128M", Some(128 << 20), None, vec![("hit_ratio", 0.86)]),
    ];
    let all: Vec<_> = sequential.into_iter().chain(zipf).chain(lru).collect();
    let all: Vec<Known<'_>> =
        all.iter().map(|(name, cache, base, figures)| (*name, *cache, *base, &figures[..])).collect();
    taken("cache", ["access", "way"], &all)
}

fn evict() -> Record {
    let figures = |least: f64, refaults: f64, seconds: f64| {
        [
            ("resident_least", least),
            ("resident_after", least + 0.01),
            ("refaults", refaults),
            ("returned_s", seconds),
            ("durable_s", 2.0 * seconds),
            ("throughput_b_s", 1e9 / seconds),
        ]
    };
    let left = [
        ("left/cp", figures(0.12, 3.0, 2.0)),
        ("left/never", figures(0.11, 2.0, 1.9)),
        ("left/auto", figures(0.98, 0.0, 1.1)),
        ("left/always", figures(0.99, 0.0, 1.2)),
    ];
    let mut cells: Vec<Known<'_>> =
        left.iter().map(|(name, figures)| (*name, None, None, &figures[..])).collect();
    cells.extend(
        ["used/cp", "used/never", "used/auto", "used/always"].map(|name| (name, None, None, &[][..])),
    );
    taken("evict", ["use", "copier"], &cells)
}

#[test]
fn caches_are_answered_first_and_fit_the_terminal() {
    let screens = [
        (cache(), 40, include_str!("cache-40.txt")),
        (cache(), 80, include_str!("cache-80.txt")),
        (cache(), 120, include_str!("cache-120.txt")),
        (evict(), 40, include_str!("evict-40.txt")),
        (evict(), 80, include_str!("evict-80.txt")),
        (evict(), 120, include_str!("evict-120.txt")),
    ];
    for (record, columns, expected) in screens {
        let text = printed(&record, columns);
        assert!(text == expected, "{} in {columns} columns:\n{text}", record.experiment);
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
    }
}
