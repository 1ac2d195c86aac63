//! A program that uses everything that is recorded, and its recording.

use std::path::Path;
use std::time::Duration;

use ferry_io::event::Recorded;
use ferry_io::{
    Dir, Error, FileKind, Io, Name, NewMode, OpenHow, Options, Stats, both, first, for_each, name_fiber, run,
    scope, sleep, timeout,
};
use ferry_trace::check::check;
use ferry_trace::{Trace, read};

/// Files in the copied folder.
pub(crate) const FILES: usize = 24;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).expect("a component")
}

/// Content of a file by its number.
pub(crate) fn content(index: usize) -> Vec<u8> {
    vec![u8::try_from(index % 251).expect("small"); index * 700]
}

/// Copies a folder in three ways, some of which are cancelled. Failures are ignored.
pub(crate) async fn copy(io: &Io, source: &Path, target: &Path) -> Result<(), Error> {
    let source = io.open_dir(source)?;
    let target = io.open_dir(target)?;
    let listing = source.list(None).await?;
    let files = listing.entries.into_iter().filter(|entry| entry.kind == Some(FileKind::Regular));
    for_each(6, files, async |entry| {
        name_fiber(entry.name.as_bytes());
        // Failures of files are ignored.
        copy_one(io, &source, &target, &entry.name).await.ok();
        Ok::<(), Error>(())
    })
    .await?;
    let given_up = async {
        scope(async |scope| {
            for index in 0..4 {
                let (io, source) = (&io, &source);
                scope.spawn(async move {
                    let file = source.open(&name(&index.to_string()), OpenHow::read()).await?;
                    file.read_at(io.block().await?, 0).await.1.map(drop)
                });
            }
            sleep(Duration::from_micros(40)).await
        })
        .await
    };
    // Cancelled by its timeout.
    timeout(Duration::from_micros(60), given_up).await.ok();
    for index in 0..4 {
        let file = name(&index.to_string());
        poll_once(source.open(&file, OpenHow::read())).await;
    }
    io.share(vec![0_usize, 1, 2], 2, async |jobs, job| {
        name_fiber(format!("job {job}"));
        sleep(Duration::from_micros(5)).await.ok();
        if job < 9 {
            jobs.push(job + 3);
        }
    })
    .await;
    Ok(())
}

/// Polls a future once, and drops it.
async fn poll_once(future: impl Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| {
        // The result is irrelevant.
        drop(future.as_mut().poll(cx));
        std::task::Poll::Ready(())
    })
    .await;
}

async fn copy_one(io: &Io, source: &Dir, target: &Dir, name: &Name) -> Result<(), Error> {
    let mode = NewMode { fixed: 0o600, of_source: 0, at_once: None };
    let (loaded, stat) = both(
        source.transfer(name, io.block().await?, (false, false), target, mode),
        source.stat_entry(name, false),
    )
    .await?;
    if !matches!(loaded.content, ferry_io::Content::Stored(..)) {
        let file = target.open(name, OpenHow::create(0o600)).await?;
        if let ferry_io::Content::Whole(block) = loaded.content {
            file.write_all_at(block, 0).await.1?;
        }
        let done = first(async { file.set_times(stat.times).await.is_ok() }, async {
            sleep(Duration::from_micros(20)).await.is_ok()
        });
        done.await;
    }
    Ok(())
}

/// Runs the program, and reads and checks its recording.
pub(crate) fn traced(
    options: &Options,
    source: &Path,
    target: &Path,
    told: &str,
) -> (Trace, Recorded, Stats) {
    let (_, stats) = run(options, async |io| copy(&io, source, target).await)
        .unwrap_or_else(|error| panic!("{told}: {error}"));
    let recorded = stats.trace.clone().expect("it is recorded");
    assert_eq!((&recorded.failure, recorded.is_whole), (&None, true), "{told}");
    let trace = read::open(&recorded.file).unwrap_or_else(|broken| panic!("{told}: {broken}"));
    assert_eq!(check(&trace), Vec::<String>::new(), "{told}");
    assert_eq!(trace.lost.program, recorded.lost, "{told}");
    assert_eq!(trace.counters, stats.named(), "{told}");
    if recorded.lost == 0 {
        assert_eq!(recorded.faults, Vec::<String>::new(), "{told}");
    }
    (trace, recorded, stats)
}
