use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Wake};

use super::*;
use crate::options::{Backend, Options};

/// A waker that notes its call.
#[derive(Default)]
struct Told(AtomicBool);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Workers on one thread, polled by hand.
struct Polled<'a> {
    told: Arc<Told>,
    drive: Pin<Box<dyn Future<Output = ()> + 'a>>,
}

impl Polled<'_> {
    fn poll(&mut self) {
        let waker = Waker::from(Arc::clone(&self.told));
        assert!(self.drive.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_pending());
    }

    fn take_told(&self) -> bool {
        self.told.0.swap(false, Ordering::SeqCst)
    }
}

/// Jobs without a waiting one: one runs elsewhere, and the maximum of workers is reached.
fn jobs(shared: &Arc<Shared>) -> Jobs<u32> {
    let state = State {
        waiting: Vec::new(),
        own: Vec::new(),
        behind: Vec::new(),
        outstanding: 1,
        idle: Vec::new(),
        driving: Vec::new(),
        workers: 3,
        numbered: 2,
        threads: Vec::new(),
        aborted: false,
        panic: None,
    };
    let inner = Inner {
        state: Mutex::new(state),
        idle: AtomicUsize::new(0),
        body: Box::new(|_| {}),
        most_workers: 3,
        shared: Arc::clone(shared),
        stop: Arc::default(),
    };
    Jobs { inner: Arc::new(inner), own: 0 }
}

#[test]
fn a_worker_without_room_is_not_woken_in_an_idle_ones_place() {
    let shared = Shared::open(&Options { backend: Backend::Posix, ..Options::default() }).unwrap();
    let worker = Worker::new(&shared);
    let _entered = worker.enter();
    let (jobs, never_ends) =
        (jobs(&shared), async |_: &Jobs<u32>, _: u32| std::future::pending::<()>().await);
    let [mut idle, mut thief, mut woken] = [(); 3].map(|()| {
        let drive = Box::pin(drive(&jobs, 2, &never_ends));
        Polled { told: Arc::default(), drive }
    });
    idle.poll();
    thief.poll();
    jobs.push(1);
    assert!(thief.take_told());
    thief.poll();
    woken.poll();
    jobs.push(2);
    assert!(woken.take_told());
    // Another of its fibers was ready before, so it has no room now.
    thief.poll();
    for job in [3, 4] {
        woken.poll();
        jobs.push(job);
        assert!(woken.take_told());
    }
    woken.poll();
    jobs.push(5);
    assert!(idle.take_told(), "the one that has nothing to do");
}

#[test]
fn a_worker_takes_its_own_newest_job_and_the_oldest_of_another() {
    let shared = Shared::open(&Options { backend: Backend::Posix, ..Options::default() }).unwrap();
    let ones = jobs(&shared);
    let others = Jobs { own: 1, ..ones.clone() };
    for job in [1, 2, 3, 4] {
        ones.push_own(job);
    }
    ones.push(5);
    ones.push_behind(6);
    others.push_own(7);
    let take = |jobs: &Jobs<u32>| jobs.lock().take(jobs.own);
    let taken = [&others, &others, &others, &ones, &ones, &ones, &others, &ones].map(take);
    assert_eq!(taken, [Some(7), Some(5), Some(1), Some(4), Some(3), Some(2), Some(6), None]);
}

/// Runs three jobs on a thread that may use one processor; returns the number of workers.
fn workers_of_three_jobs(options: impl FnOnce() -> Options + Send + 'static) -> u64 {
    let body = move || {
        let mut only = rustix::thread::CpuSet::new();
        only.set(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(None, &only).expect("one of its own");
        let options = Options { backend: Backend::Posix, ..options() };
        let run = crate::run(&options, async |io| io.share(vec![1, 2, 3], 1, async |_, _: u32| {}).await);
        run.expect("a run").1.workers
    };
    std::thread::spawn(body).join().expect("no panic")
}

#[test]
fn the_processors_permitted_bound_the_workers_unless_their_number_is_given() {
    assert_eq!(workers_of_three_jobs(Options::default), 1);
    let three = std::num::NonZeroUsize::new(3).expect("not zero");
    assert_eq!(workers_of_three_jobs(move || Options::with_workers(three)), 3);
}
