//! Models of whole runs: a worker, its slots, its pool, and jobs on several workers.

use std::num::NonZeroUsize;

use rustix::io::Errno;

use super::*;
use crate::concurrent::check_workers;
use crate::descriptor::Descriptor;
use crate::op::Op;
use crate::options::{Backend, RouteChoice};
use crate::scope::both;
use crate::worker::submit;

fn options(workers: usize) -> Options {
    Options {
        blocks: workers,
        block_size: 4096,
        workers: NonZeroUsize::new(workers).unwrap(),
        pool_threads: 1,
        backend: Backend::Posix,
        route: RouteChoice::Pool,
        ..Options::default()
    }
}

/// Submits an operation that the kernel refuses at once.
async fn refused() -> Result<()> {
    let file = std::fs::File::open("/dev/null").unwrap();
    let op = Op::Truncate { file: Arc::new(Descriptor::Real(file.into())), size: 0 };
    let (_, answer) = submit(op).await;
    assert!(answer.is_err_and(|error| error.is(Errno::INVAL)), "the kernel's own answer");
    Ok(())
}

#[test]
fn operations_come_back_to_their_fibers() {
    check_workers(3, || {
        run(&options(1), async |_io| both(refused(), refused()).await.unwrap()).unwrap();
    });
}

#[test]
fn an_operation_that_nobody_waits_for_is_reaped() {
    check_workers(3, || {
        let (_, stats) = run(&options(1), async |_io| {
            let refused = refused();
            let mut refused = std::pin::pin!(Some(refused));
            std::future::poll_fn(|cx| {
                let polled = refused.as_mut().as_pin_mut().map(|refused| refused.poll(cx));
                assert!(polled.is_some_and(|polled| polled.is_pending()), "the pool has it");
                std::task::Poll::Ready(())
            })
            .await;
            // Dropped while its answer may be on its way.
            refused.set(None);
        })
        .unwrap();
        assert_eq!(stats.pool_threads, 1);
    });
}
