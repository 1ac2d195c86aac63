//! Operations that may wait without end: they block no others and can be cancelled.

use std::pin::Pin;
use std::sync::mpsc;
use std::time::Duration;

use ferry_io::{Backend, Cause, Error, OpenHow, Options, RouteChoice, both, for_each, run, sleep, timeout};

use super::place::{Place, name, on_the_kernel, pattern, poll_once};

const SOON: Duration = Duration::from_millis(50);

fn make_fifo(place: &Place) {
    let path = place.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
}

/// A single pool thread serves any number of them.
fn options(place: &Place) -> Options {
    Options { pool_threads: 1, ..place.options() }
}

/// Runs a test that would hang if it failed.
fn soon(test: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let tested = std::thread::spawn(move || {
        test();
        tell.send(()).ok();
    });
    if told.recv_timeout(Duration::from_secs(10)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs");
    }
    tested.join().expect("no panic");
}

#[test]
fn a_reader_meets_a_writer_on_one_worker() {
    on_the_kernel(|place| {
        make_fifo(place);
        let (options, path) = (options(place), place.path());
        soon(move || {
            let bytes = pattern(100_000);
            let (sent, received) = (&bytes, std::cell::RefCell::new(Vec::new()));
            let (met, _) = run(&options, async |io| {
                let dir = io.open_dir(&path)?;
                let write = async {
                    let fifo = dir.open(&name("fifo"), OpenHow::write().waiting()).await?;
                    // The other end is open, though nothing is written yet.
                    sleep(SOON).await?;
                    for part in sent.chunks(io.block_size()) {
                        let mut block = io.block().await?;
                        block.as_mut_capacity()[..part.len()].copy_from_slice(part);
                        block.set_filled(part.len());
                        fifo.write_next(block).await.1?;
                    }
                    Ok(())
                };
                let read = async {
                    let fifo = dir.open(&name("fifo"), OpenHow::read().waiting()).await?;
                    loop {
                        let (block, count) = fifo.read_next(io.block().await?).await;
                        if count? == 0 {
                            return Ok::<_, Error>(());
                        }
                        received.borrow_mut().extend_from_slice(block.as_slice());
                    }
                };
                both(read, write).await
            })
            .expect("the backend is there");
            met.expect("both end");
            assert!(*received.borrow() == *sent);
        });
    });
}

#[test]
fn a_reader_finds_a_writer_that_has_written_nothing() {
    on_the_kernel(|place| {
        make_fifo(place);
        let (options, path) = (options(place), place.path());
        soon(move || {
            let (met, _) = run(&options, async |io| {
                let dir = io.open_dir(&path)?;
                let open = async |how: OpenHow| dir.open(&name("fifo"), how).await.map(|_| ());
                both(open(OpenHow::read().waiting()), open(OpenHow::write().waiting())).await.map(|_| ())
            })
            .expect("the backend is there");
            met.expect("both are open at once");
        });
    });
}

#[test]
fn waiting_for_nobody_can_be_given_up() {
    on_the_kernel(|place| {
        make_fifo(place);
        for how in [OpenHow::read().waiting(), OpenHow::write().waiting()] {
            let (options, path) = (options(place), place.path());
            soon(move || {
                let (opened, _) = run(&options, async |io| {
                    let dir = io.open_dir(&path)?;
                    timeout(SOON, async { dir.open(&name("fifo"), how).await.map(|_| ()) }).await
                })
                .expect("the backend is there");
                assert_eq!(opened.expect_err("nobody comes").cause, Cause::TimedOut);
            });
        }
    });
}

#[test]
fn reading_what_nobody_writes_can_be_given_up() {
    on_the_kernel(|place| {
        make_fifo(place);
        let (options, path) = (options(place), place.path());
        let fifo = path.join("fifo");
        let writer = std::fs::File::options().read(true).write(true).open(fifo).expect("both ends");
        soon(move || {
            let (told, _) = run(&options, async |io| {
                let dir = io.open_dir(&path)?;
                let fifo = dir.open(&name("fifo"), OpenHow::read().waiting()).await?;
                let (_, read) = timeout(SOON, async { Ok(fifo.read_next(io.block().await?).await) }).await?;
                let mut block = io.block().await?;
                block.set_filled(block.capacity());
                let fifo = dir.open(&name("fifo"), OpenHow::write().waiting()).await?;
                // Eight blocks fill it.
                let written = timeout(SOON, async {
                    loop {
                        let (back, written) = fifo.write_next(block).await;
                        written?;
                        block = back;
                    }
                });
                let written: Result<(), Error> = written.await;
                Ok::<_, Error>((read, written))
            })
            .expect("the backend is there");
            let (read, written) = told.expect("the FIFO is there");
            assert!(read.expect_err("nobody writes").is_cancelled());
            assert_eq!(written.expect_err("nobody reads").cause, Cause::TimedOut);
        });
        drop(writer);
    });
}

#[test]
fn a_saturated_ring_keeps_timers_alive() {
    on_the_kernel(|place| {
        make_fifo(place);
        let path = place.path();
        let both_ends = std::fs::File::options().read(true).write(true).open(path.join("fifo"));
        let options = Options { queue_depth: 1, ..options(place) };
        if options.backend != Backend::Uring || options.route != RouteChoice::Ring {
            return;
        }
        soon(move || {
            let (told, _) = run(&options, async |io| {
                let dir = io.open_dir(&path)?;
                let fifo = dir.open(&name("fifo"), OpenHow::read().waiting()).await?;
                let read = async |_: u32| fifo.read_next(io.block().await?).await.1.map(|_| ());
                timeout(SOON, for_each(8, 0..8, read)).await
            })
            .expect("the backend is there");
            assert_eq!(told.expect_err("nobody writes").cause, Cause::TimedOut);
        });
        drop(both_ends);
    });
}

type Reading = Pin<Box<dyn Future<Output = ()>>>;

/// Runs programs that end while they read sixteen FIFOs without writers. The reads are dropped before the program's
/// end, or outlive it.
fn end_while_reading(place: &Place, outlives: bool) {
    for queue_depth in [1, 4, 64] {
        // Queued only, or begun.
        for pause in [Duration::ZERO, SOON] {
            end_with_reads_in_flight(place, queue_depth, pause, outlives);
        }
    }
}

fn end_with_reads_in_flight(place: &Place, queue_depth: u32, pause: Duration, outlives: bool) {
    const READS: usize = 16;
    let path = place.path();
    let make = |index: usize| {
        let path = path.join(format!("fifo{index}"));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("new");
        std::fs::File::options().read(true).write(true).open(path).expect("both ends")
    };
    let _writers: Vec<_> = (0..READS).map(make).collect();
    let options = Options { blocks: READS, pool_threads: 4, queue_depth, ..place.options() };
    let read_from = path.clone();
    soon(move || {
        let (reads, _) = run(&options, async |io| {
            let dir = io.open_dir(&read_from).expect("the test's folder");
            let mut fifos = Vec::new();
            for index in 0..READS {
                let fifo = dir.open(&name(format!("fifo{index}")), OpenHow::read().waiting()).await;
                fifos.push(fifo.expect("it has a writer"));
            }
            let mut reads = Vec::new();
            for fifo in fifos {
                let block = io.block().await.expect("not cancelled");
                let mut read: Reading = Box::pin(async move { drop(fifo.read_next(block).await) });
                assert!(!poll_once(&mut read).await, "nobody has written");
                reads.push(read);
            }
            if !pause.is_zero() {
                sleep(pause).await.expect("not cancelled");
            }
            if outlives { reads } else { Vec::new() }
        })
        .expect("the backend is there");
        drop(reads);
    });
    (0..READS)
        .for_each(|index| std::fs::remove_file(path.join(format!("fifo{index}"))).expect("it is there"));
}

/// Regression: with more cancellations than the submission queue had room for, the ring slept before all were sent.
#[test]
fn a_run_that_ends_while_it_reads_silent_fifos_gives_them_up() {
    on_the_kernel(|place| end_while_reading(place, false));
}

/// Regression: the run waited for reads that were never cancelled.
#[test]
fn reads_of_silent_fifos_that_outlive_their_run_do_not_hold_it_up() {
    on_the_kernel(|place| end_while_reading(place, true));
}
