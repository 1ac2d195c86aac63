//! One worker's executor: polls the outermost future, takes a turn, and sleeps when neither has work.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use crate::cancel::Context;
use crate::event::{self, Branch, Opener};
use crate::worker::Worker;

/// Longest sleep: a signal only sets a flag, which a sleeping worker must look at.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// Runs `future` on the worker's thread to its end, within a context that the run's stop flag cancels.
pub(crate) fn block_on<F: Future>(worker: &Rc<Worker>, future: F) -> F::Output {
    block_on_within(worker, &Context::root(Arc::clone(&worker.shared.stop)), future)
}

pub(crate) fn block_on_within<F: Future>(worker: &Rc<Worker>, context: &Rc<Context>, future: F) -> F::Output {
    let span = event::open_scope(Opener::Run);
    let branch = Branch::of(span.scope());
    let mut future = pin!(future);
    let waker = Waker::from(Arc::clone(&worker.inbox));
    let mut cx = TaskContext::from_waker(&waker);
    let mut told_to_stop = false;
    loop {
        let stopping = context.is_cancelled();
        if worker.inbox.take_ready() || (stopping && !told_to_stop) {
            if stopping && !std::mem::replace(&mut told_to_stop, true) {
                event::cancel_scope(span.scope());
            }
            let _running = branch.run();
            if let Poll::Ready(output) = context.enter(|| future.as_mut().poll(&mut cx)) {
                return output;
            }
        }
        worker.turn();
        let is_to_stop = !told_to_stop && context.is_cancelled();
        if !worker.inbox.is_ready() && !worker.inbox.is_filled() && !is_to_stop {
            worker.sleep(Some(STOP_CHECK).filter(|_| !told_to_stop));
        }
    }
}
