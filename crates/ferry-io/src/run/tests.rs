use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::task::Poll;
use std::time::Duration;

use super::*;
use crate::name::Name;
use crate::options::{Backend, RouteChoice};
use crate::sim::World;
use crate::{File, OpenHow};

/// A simulated file, which makes a call of the kernel panic.
fn simulated_file() -> File {
    let world = World::default();
    world.file("f", b"text");
    let (file, _) = run(&world.options(0), async |io| {
        let root = io.open_dir("/".as_ref()).unwrap();
        root.open(&Name::new(b"f").unwrap(), OpenHow::read()).await.unwrap()
    })
    .unwrap();
    file
}

#[test]
fn a_panic_that_comes_while_a_run_ends_leaves_nothing_behind() {
    let file = simulated_file();
    let options = Options { backend: Backend::Posix, route: RouteChoice::Pool, ..Options::default() };
    let (mut pool, mut shared) = (Weak::new(), Weak::new());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        run(&options, async |io| {
            (pool, shared) = (Arc::downgrade(&io.shared.pool), Arc::downgrade(&io.shared));
            let mut sync = Box::pin(file.sync());
            assert!(std::future::poll_fn(|cx| Poll::Ready(sync.as_mut().poll(cx).is_pending())).await);
            while !worker::current().inbox.is_filled() {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    }));
    let panic = outcome.map(|_| ()).unwrap_err();
    assert!(panic.downcast_ref::<&str>().is_some_and(|text| text.contains("simulated descriptor")));
    assert!(pool.upgrade().is_none(), "a thread of the pool outlives the run");
    assert!(shared.upgrade().is_none(), "the worker outlives the run");
    assert!(catch_unwind(worker::current).is_err(), "the thread has its worker still");
    let (answer, _) = run(&options, async |_| 7).unwrap();
    assert_eq!(answer, 7);
}

#[test]
fn runs_that_ask_for_the_umask_at_the_same_time_leave_it_as_it_was() {
    let Some(umask) = umask_of_status() else { return println!("SKIP: /proc does not show the umask") };
    std::thread::scope(|scope| {
        let askers = [(); 4].map(|()| scope.spawn(|| (0..2000).all(|_| umask_of_process() == umask)));
        for asker in askers {
            assert!(asker.join().unwrap(), "it was another one");
        }
    });
    assert_eq!(umask_of_status(), Some(umask));
}
