use ferry_io::RouteChoice;
use ferry_tree::compare::{Options, Progress, trees};
use ferry_tree::workload::{Sizes, Workload, make};

use super::{Program, ProgramOptions, copy};

#[test]
fn each_program_copies_a_tree() {
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("source");
    let sizes = Sizes::Uniform { least: 0, most: 200_000 };
    let made = make(&Workload { sizes, ..Workload::plain(3, 2, 5, 0, 1) }, &source, 2).unwrap();
    for (name, program) in Program::ALL {
        for (block_bytes, max_fibers) in [(4096, 2), (1 << 20, 64)] {
            let target = place.path().join(format!("{name}-{block_bytes}"));
            let how =
                ProgramOptions { program, block_bytes, max_fibers, route: RouteChoice::Ring, observe: true };
            let stats = match copy(&how, &source, &target) {
                Ok(stats) => stats,
                Err(failure) => panic!("{name}: {failure}"),
            };
            // A read and a write for each block.
            let least = 2 * made.bytes / u64::try_from(block_bytes).unwrap();
            assert!(stats.operations.iter().flatten().sum::<u64>() >= least, "{name}: {stats:?}");
            let found = trees(&source, &target, &Options::plain(), &Progress::new(), &|difference| {
                eprintln!("{difference}");
            });
            assert_eq!(found.unwrap().differences, 0, "{name}");
        }
        assert_eq!(Program::named(name), Some(program));
    }
}

#[test]
fn a_failure_is_told() {
    let place = tempfile::tempdir().unwrap();
    let how = ProgramOptions {
        program: Program::Dfs,
        block_bytes: 4096,
        max_fibers: 2,
        route: RouteChoice::Auto,
        observe: false,
    };
    let told = |source: &str, target: &str| {
        copy(&how, &place.path().join(source), &place.path().join(target)).unwrap_err().to_string()
    };
    assert_eq!(told("missing", "new"), "stat: No such file or directory");
    std::os::unix::fs::symlink("x", place.path().join("link")).unwrap();
    assert!(told("link", "new").ends_with("is a Symlink, which is not copied"));
    let how = ProgramOptions { block_bytes: 1000, ..how };
    assert!(copy(&how, place.path(), place.path()).unwrap_err().to_string().starts_with("block size 1000"));
}
