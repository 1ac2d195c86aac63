use std::time::{Duration, Instant};

use super::{BESIDE, BUSY, READERS, Share, USER, Usage, WAITED, figures, measures, parse};

const STAT: &str = "4711 (a (b) c) S 1 2 3 0 -1 4194560 1 0 0 0 30 70 0 0 20 0 1 0 99 8192 5 \
                    18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0\n";

#[test]
fn the_kernels_accounting_is_parsed() {
    let usage = Usage { ran: 2.5, waited: 0.5, user: 30.0, system: 70.0 };
    assert_eq!(parse("2500000000 500000000 7\n", STAT), Some((usage, 3)));
    for (schedstat, stat) in [("", STAT), ("1", STAT), ("1 2 3", ""), ("1 2 3", "1 (x) S 1 2")] {
        assert_eq!(parse(schedstat, stat), None, "{schedstat:?} {stat:?}");
    }
}

#[test]
fn a_thread_that_computes_has_its_processor() {
    let (begun, before) = (Instant::now(), Usage::of_this_thread());
    while Usage::of_this_thread().since(before).ran < 0.02 {}
    let share = Share::of_this_thread(before, begun.elapsed());
    assert!(share.usage.ran >= 0.02 && share.usage.ran <= share.lasted * 1.05, "{share:?}");
    let before = Usage::of_this_thread();
    std::thread::sleep(Duration::from_millis(50));
    let asleep = Share::of_this_thread(before, Duration::from_millis(50));
    assert!(asleep.of_one_processor() < 0.5, "{asleep:?}");
}

/// A thread that had so much of its processor in ten seconds.
fn share(processor: usize, ran: f64, waited: f64) -> Share {
    let usage = Usage { ran, waited, user: ran, system: 3.0 * ran };
    Share { processor, is_bound: true, lasted: 10.0, usage }
}

#[test]
fn shares_are_of_all_processors_and_of_each_thread() {
    let readers = [share(0, 4.0, 1.0), share(1, 2.0, 0.0), share(0, 1.0, 2.0)];
    let alone = figures(&readers, &[], 2);
    let figure = |name: &str| alone.get(name).copied();
    assert_eq!((figure(READERS), figure(WAITED), figure(USER)), (Some(0.35), Some(0.1), Some(0.25)));
    assert_eq!((figure(BUSY), figure(BESIDE)), (None, None));
    assert_eq!((figure("share_reader_0"), figure("share_reader_2")), (Some(0.4), Some(0.1)));
    // One process is beside a reader, one may run elsewhere, one is on another processor, one never ran.
    let free = Share { is_bound: false, ..share(1, 5.0, 0.0) };
    let busy = [share(0, 6.0, 0.0), free, share(7, 5.0, 0.0), share(1, 0.0, 9.0)];
    let beside = figures(&readers, &busy, 2);
    assert_eq!((beside.get(BUSY), beside.get(BESIDE)), (Some(&0.8), Some(&0.25)));
    let known = measures(readers.len(), busy.len());
    for name in beside.keys() {
        assert!(known.iter().any(|measure| measure.name == *name), "{name}");
    }
    assert_eq!(known.len(), beside.len());
}
