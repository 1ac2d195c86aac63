use ferry_tree::compare::{Options, Progress, trees};
use ferry_tree::workload::{Sizes, Workload, make};

use super::{Strategy, StrategyOptions, copy};

/// Copies with every strategy and block size; those that this filesystem or kernel lacks say so.
fn every_strategy_copies(workload: &Workload) {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    make(workload, &source, 2).unwrap();
    for (name, strategy) in Strategy::ALL {
        for (block_bytes, depth) in [(4096, 1), (1 << 20, 16)] {
            let target = place.path().join(format!("{name}-{block_bytes}"));
            if let Err(failure) = copy(&StrategyOptions { strategy, block_bytes, depth }, &source, &target) {
                let always = [Strategy::ReadWrite, Strategy::Splice, Strategy::SendFile, Strategy::Mmap];
                assert!(!always.contains(&strategy), "{name}: {failure}");
                // Few filesystems share extents.
                if strategy != Strategy::Reflink {
                    eprintln!("SKIP {name}: {failure}");
                }
                continue;
            }
            let found = trees(&source, &target, &Options::plain(), &Progress::new(), &|difference| {
                eprintln!("{name}: {difference}");
            });
            assert_eq!(found.unwrap().differences, 0, "{name}");
        }
        assert_eq!(Strategy::named(name), Some(strategy));
        assert_eq!(strategy.name(), name);
    }
}

#[test]
fn every_strategy_copies_files_of_whole_blocks() {
    every_strategy_copies(&Workload { sizes: Sizes::Fixed(3 << 20), ..Workload::plain(0, 0, 3, 0, 1) });
}

#[test]
fn plain_strategies_copy_files_of_any_size() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    for size in [0_usize, 1, 4095, 70_001] {
        std::fs::write(&source, vec![7; size]).unwrap();
        for (name, strategy) in Strategy::ALL {
            if strategy.has_depth() || matches!(strategy, Strategy::Reflink | Strategy::DontCache) {
                continue;
            }
            let target = place.path().join(format!("{name}-{size}"));
            copy(&StrategyOptions { strategy, block_bytes: 4096, depth: 1 }, &source, &target).unwrap();
            assert_eq!(std::fs::read(&target).unwrap(), vec![7; size], "{name}");
        }
    }
}

#[test]
fn a_target_that_is_there_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let (source, target) = (place.path().join("source"), place.path().join("target"));
    std::fs::write(&source, "new").unwrap();
    std::fs::write(&target, "old").unwrap();
    for (_, strategy) in Strategy::ALL {
        assert!(copy(&StrategyOptions { strategy, block_bytes: 4096, depth: 1 }, &source, &target).is_err());
    }
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "old");
}
