use super::*;
use crate::descriptor::Descriptor;

fn request() -> Op {
    let file = std::fs::File::open("/dev/null").unwrap();
    Op::Truncate { file: std::sync::Arc::new(Descriptor::Real(file.into())), size: 0 }
}

#[test]
fn an_abandoned_operation_is_reaped() {
    let mut slots = Slots::default();
    let key = slots.take();
    assert!(slots.abandon(key).is_none());
    assert_eq!(slots.in_flight(), 1, "its memory is still the backend's");
    let (waker, unwanted) = slots.complete(key, (request(), Ok(Outcome::Done)));
    assert!(waker.is_none());
    assert!(unwanted.is_some());
    assert_eq!(slots.in_flight(), 0);
    assert_ne!(slots.take(), key, "a slot used again has another generation");
}

#[test]
fn a_completion_wakes_whoever_waits() {
    let mut slots = Slots::default();
    let key = slots.take();
    assert!(slots.poll(key, Waker::noop()).is_none());
    let (waker, unwanted) = slots.complete(key, (request(), Err(Errno::IO)));
    assert!(waker.is_some());
    assert!(unwanted.is_none());
    assert!(matches!(slots.poll(key, Waker::noop()), Some((_, Err(Errno::IO)))));
}

#[test]
fn a_stale_key_reaches_nothing() {
    let mut slots = Slots::default();
    let key = slots.take();
    slots.abandon(key);
    slots.complete(key, (request(), Ok(Outcome::Done)));
    let reused = slots.take();
    let (_, unwanted) = slots.complete(key, (request(), Ok(Outcome::Done)));
    assert!(unwanted.is_some(), "the old key");
    assert!(slots.poll(reused, Waker::noop()).is_none());
}
