//! Locks, atomics and threads of a model: loom's, and substitutes for those that loom lacks.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

use loom::sync::Notify;
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;

/// Runs a model in every order of its threads with up to `preemptions` interruptions of a thread that could go on.
#[cfg(test)]
pub(crate) fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.unwrap_or(preemptions));
    builder.max_branches = 100_000;
    builder.check(model);
}

/// Runs a model whose workers run on its own thread.
#[cfg(test)]
pub(crate) fn check_workers(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let model = Arc::new(model);
    check(preemptions, move || {
        let model = Arc::clone(&model);
        let thread = thread::Builder::new().spawn(move || model()).expect("a model has threads");
        thread.join().expect("a panic ends the model");
    });
}

/// Atomics with the guarantees of C++. loom weakens sequentially consistent accesses, so fences stand in for them. It
/// also lets an exchange overwrite a store that it can't have seen, so each store is an exchange.
pub(crate) mod atomic {
    pub(crate) use loom::sync::atomic::Ordering;
    use loom::sync::atomic::fence;

    fn fence_if_consistent(order: Ordering) {
        if order == Ordering::SeqCst {
            fence(order);
        }
    }

    macro_rules! atomic {
        ($name:ident, $value:ty) => {
            pub(crate) struct $name(loom::sync::atomic::$name);

            #[allow(dead_code, reason = "the same for each, and each is used otherwise")]
            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $value {
                    fence_if_consistent(order);
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $value, order: Ordering) {
                    fence_if_consistent(order);
                    self.0.swap(value, order);
                    fence_if_consistent(order);
                }

                pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                    fence_if_consistent(order);
                    let before = self.0.swap(value, order);
                    fence_if_consistent(order);
                    before
                }
            }
        };
    }

    macro_rules! number {
        ($name:ident, $value:ty) => {
            atomic!($name, $value);

            #[allow(dead_code, reason = "the same for each, and each is used otherwise")]
            impl $name {
                pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                    self.0.fetch_add(value, order)
                }

                pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                    self.0.fetch_sub(value, order)
                }
            }
        };
    }

    atomic!(AtomicBool, bool);
    number!(AtomicUsize, usize);
    number!(AtomicU64, u64);
}

/// Threads and parking; loom's own park token is lost while its thread waits for a lock.
pub(crate) mod thread {
    use std::time::Duration;

    pub(crate) use loom::thread::JoinHandle;

    use super::{Arc, Notify};

    /// Words of a thread's stack; loom's default is too small for a worker.
    const STACK: usize = 1 << 17;

    pub(crate) struct Builder(loom::thread::Builder);

    impl Builder {
        pub(crate) fn new() -> Self {
            Self(loom::thread::Builder::new().stack_size(STACK))
        }

        pub(crate) fn name(self, name: String) -> Self {
            Self(self.0.name(name))
        }

        pub(crate) fn spawn(self, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
            self.0.spawn(body)
        }
    }

    loom::thread_local! {
        static CURRENT: Thread = Thread(Arc::default());
    }

    #[derive(Clone)]
    pub(crate) struct Thread(Arc<Notify>);

    impl Thread {
        pub(crate) fn unpark(&self) {
            self.0.notify();
        }
    }

    pub(crate) fn current() -> Thread {
        CURRENT.with(Clone::clone)
    }

    pub(crate) fn park() {
        current().0.wait();
    }

    pub(crate) fn park_timeout(_at_most: Duration) {
        park();
    }
}

/// Starts a thread; a model has no processors.
pub(crate) fn start_beside(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// An eventfd's counter, with the ring that sleeps until it changes.
#[derive(Default)]
pub(crate) struct Event(Notify);

impl Event {
    #[allow(clippy::unnecessary_wraps, reason = "the kernel's may fail")]
    pub(crate) fn open() -> Result<Self, Errno> {
        Ok(Self::default())
    }

    pub(crate) fn signal(&self) {
        self.0.notify();
    }

    /// Sleeps until the event is signalled. Each signal ends one sleep, as a poll's completion does.
    #[cfg(test)]
    pub(crate) fn sleep(&self) {
        self.0.wait();
    }

    pub(crate) fn as_raw_fd(&self) -> i32 {
        unreachable!("a model has no ring")
    }
}

/// A value of each thread; the standard library's would be shared, because a model's threads are one thread.
pub(crate) struct Local<T: 'static>(loom::thread::LocalKey<T>);

impl<T> Local<T> {
    pub(crate) const fn new(init: fn() -> T) -> Self {
        Self(loom::thread::LocalKey { init, _p: PhantomData })
    }

    pub(crate) fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.0.with(f)
    }
}

impl<T> Local<Cell<T>> {
    pub(crate) fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    pub(crate) fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T> Local<RefCell<T>> {
    pub(crate) fn with_borrow<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| f(&cell.borrow()))
    }

    pub(crate) fn with_borrow_mut<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    pub(crate) fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }

    pub(crate) fn set(&'static self, value: T) {
        self.with(|cell| *cell.borrow_mut() = value);
    }

    pub(crate) fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }
}

macro_rules! local {
    ($($(#[$attribute:meta])* static $name:ident: $value:ty = $init:expr;)*) => {
        $($(#[$attribute])* static $name: $crate::concurrent::Local<$value> =
            $crate::concurrent::Local::new(|| $init);)*
    };
}
pub(crate) use local as thread_local;
