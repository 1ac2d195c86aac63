use super::*;

fn shared(backend: Backend, registered_buffers: bool) -> Arc<Shared> {
    Shared::open(&Options { backend, registered_buffers, ..Options::default() }).unwrap()
}

#[test]
fn what_every_worker_found_out_about_rings_is_told_once() {
    let shared = shared(Backend::Auto, false);
    shared.note_no_ring(&SetupError::NoUring { reason: "no memory".to_owned() });
    shared.note_ring(vec!["deferred".to_owned()], &[RingFlag::CoopTaskrun]);
    shared.note_ring(vec!["shallow".to_owned()], &[]);
    shared.note_ring(vec!["deferred".to_owned()], &[RingFlag::CoopTaskrun]);
    shared.note_no_ring(&SetupError::NoUring { reason: "no memory".to_owned() });
    let stats = shared.stats();
    assert_eq!(stats.backend, "uring");
    assert_eq!(stats.ring_flags_left_out, [RingFlag::CoopTaskrun]);
    assert_eq!(stats.backend_reason, "deferred; not on every worker: no memory; shallow");
}

#[test]
fn buffers_that_nobody_registers_are_told() {
    let reason = |registered| shared(Backend::Posix, registered).stats().backend_reason;
    assert_eq!(reason(false), "chosen by --backend");
    assert_eq!(reason(true), "chosen by --backend; only a ring registers buffers");
}

#[test]
fn what_is_open_already_is_not_for_operations() {
    let before = descriptor_budget(true).unwrap();
    let opened: Vec<_> = (0..20).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
    // Other tests open and close some meanwhile.
    assert!(descriptor_budget(true).unwrap() < before - 5);
    drop(opened);
}
