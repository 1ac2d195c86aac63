use ferry_trace::Trace;
use ferry_trace::model::{Cause, CompletionMet, Did, KernelEvent};

use super::{Attribution, counted, measures, tables};
use crate::cache::State;
use crate::record::tests::record;
use crate::record::{Cell, Run};

fn trace() -> Trace {
    let chains = [
        "tctx_task_work_run io_cqring_wait do_syscall_64",
        "try_to_wake_up __io_req_task_work_add iomap_dio_bio_end_io common_interrupt asm_common_interrupt",
    ];
    let event = |did, chain| KernelEvent { thread: 0, at: 0, processor: 0, did, chain };
    Trace {
        chains: chains.map(|chain| chain.split(' ').map(str::to_owned).collect()).to_vec(),
        kernel: vec![
            event(Did::TaskWork { cause: Cause::GetEvents, count: 2 }, Some(0)),
            event(Did::TaskWork { cause: Cause::Ipi, count: 1 }, None),
            event(Did::Sleep, None),
            event(Did::Wake { by: None }, Some(1)),
            KernelEvent { at: 3000, ..event(Did::TaskWork { cause: Cause::GetEventsSlept, count: 1 }, None) },
            event(Did::Sleep, None),
            event(Did::Run, None),
            event(Did::HandOver(None), None),
        ],
        ..Trace::default()
    }
}

#[test]
fn each_thing_is_counted_where_it_belongs() {
    let figures = counted(
        &trace(),
        &[Some(CompletionMet::Peek), None, Some(CompletionMet::Slept), Some(CompletionMet::Peek)],
    );
    let found: Vec<(&str, f64)> =
        figures.iter().map(|(name, n)| (name.as_str(), *n)).filter(|(_, n)| *n > 0.0).collect();
    let expected = [
        ("added_by_iomap_dio_bio_end_io", 1.0),
        ("added_to_run_s_p50", 3e-6),
        ("added_to_run_s_p99", 3e-6),
        ("met_peek", 2.0),
        ("met_slept", 1.0),
        ("ran_by_tctx_task_work_run", 1.0),
        ("runs_getevents", 1.0),
        ("runs_getevents_slept", 1.0),
        ("runs_ipi", 1.0),
        ("sleeps", 2.0),
        ("task_work_runs", 3.0),
        ("wakes_device_interrupt", 1.0),
        ("wakes_not_sampled", 1.0),
    ];
    assert_eq!(found, expected);
    let mut record = record();
    let mut cell = Cell::new(&[("mode", "plain".into())], State::AsItIs);
    let run = Run { round: 0, started: String::new(), figures, proof: None };
    cell.runs.push(run);
    record.cells = vec![cell];
    record.measures = measures(&record.cells);
    // Each figure has a measure, and each measure says what it is.
    let cell = &record.cells[0];
    assert!(
        cell.runs[0].figures.keys().all(|name| record.measure(name).is_some_and(|its| !its.about.is_empty()))
    );
    let tables = tables(&record);
    let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(titles.len(), 7, "{titles:?}");
    assert_eq!(tables[0].columns, ["depth/load/mode", "of", "getevents", "getevents slept", "ipi"]);
    assert_eq!(tables[0].rows, [["plain", "3", "1 (33.3 %)", "1 (33.3 %)", "1 (33.3 %)"]]);
    let beside = [
        ["plain", "3", "2 (66.7 %)", "1 (33.3 %)", "0 (0.0 %)", "0 (0.0 %)"],
        [
            "002: plain",
            "10,714,835",
            "8,752,655 (81.7 %)",
            "1,931,395 (18.0 %)",
            "30,785 (0.3 %)",
            "0 (0.0 %)",
        ],
        [
            "002: COOP_TASKRUN",
            "11,680,031",
            "11,661,199 (99.8 %)",
            "0 (0.0 %)",
            "18,832 (0.2 %)",
            "0 (0.0 %)",
        ],
    ];
    assert_eq!(tables[5].rows, beside);
    assert_eq!(tables[6].rows, [["plain", "3.00 µs", "3.00 µs"]]);
}

#[test]
fn without_figures_there_are_no_tables() {
    assert!(tables(&record()).is_empty());
}

#[test]
fn what_the_kernel_did_for_a_ring_is_found() {
    use ferry_io::{Name, RingMode};
    let attribution = match Attribution::start() {
        Ok(attribution) => attribution,
        Err(failure) => return eprintln!("SKIP: {failure}"),
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("reads"), vec![1; 1 << 20]).unwrap();
    let ran = ferry_io::run(&super::super::reads::options(RingMode::Defer), async |io| {
        let name = Name::new(b"reads").unwrap();
        let file = io.open_dir(folder.path())?.open(&name, ferry_io::OpenHow::read()).await?;
        for block in 0..64 {
            file.read_at(io.block().await?, block * 4096).await.1?;
        }
        Ok::<(), ferry_io::Error>(())
    });
    let figures = attribution.finish();
    match ran {
        Ok((read, _)) => read.unwrap(),
        Err(error) => return eprintln!("SKIP: {error}"),
    }
    assert_eq!(figures["lost_events"].total_cmp(&0.0), std::cmp::Ordering::Equal);
    assert!(figures["requests"] >= 64.0, "{figures:?}");
    let sum = |prefix: &str| {
        figures.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, n)| n).sum::<f64>()
    };
    assert!((sum("runs_") - figures["task_work_runs"]).abs() < 0.5, "{figures:?}");
    assert!(figures["runs_ipi"] < 0.5, "{figures:?}");
}
