//! Behaviour that does not depend on the features of the build.

use ferry_io::{Backend, Error, Name, OpenHow, Options, Stats, for_each, name_fiber, run};

/// Writes and reads some files at once; returns the counters.
fn write_and_read(backend: Backend) -> Result<Stats, Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let options = Options { backend, ..Options::default() };
    let (outcome, stats) = run(&options, async |io| {
        let folder = io.open_dir(home.path())?;
        for_each(4, 0..16_u64, async |index| {
            name_fiber(index.to_string());
            let name = Name::new(index.to_string().as_bytes()).expect("one component of a path");
            let file = folder.open(&name, OpenHow::create(0o644).also_reading()).await?;
            let mut block = io.block().await?;
            block.as_mut_capacity()[..8].copy_from_slice(&index.to_le_bytes());
            block.set_filled(8);
            let (block, written) = file.write_all_at(block, 0).await;
            written?;
            let (block, count) = file.read_at(block, 0).await;
            assert_eq!((count?, block.as_slice()), (8, &index.to_le_bytes()[..]));
            Ok::<(), Error>(())
        })
        .await
    })?;
    outcome?;
    assert_eq!(std::fs::read_dir(home.path())?.count(), 16);
    Ok(stats)
}

#[test]
fn files_are_written_and_read_with_any_features() {
    assert_eq!(write_and_read(Backend::Posix).unwrap().backend, "posix");
    write_and_read(Backend::Auto).unwrap();
}

#[test]
fn a_ring_is_refused_by_a_build_without_it() {
    match write_and_read(Backend::Uring) {
        Ok(stats) => assert!(cfg!(feature = "uring") && stats.backend == "uring", "{stats:?}"),
        Err(refused) if cfg!(feature = "uring") => println!("SKIP uring: {refused}"),
        Err(refused) => assert!(refused.to_string().contains("lacks its feature `uring`"), "{refused}"),
    }
}
