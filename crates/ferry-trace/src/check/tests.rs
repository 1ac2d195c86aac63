use super::*;
use crate::sample;

#[test]
fn an_operation_outside_its_fiber_is_a_fault_unless_it_was_abandoned() {
    let mut trace = sample::copy_of(4);
    trace.lost.program = 1;
    let clean = check(&trace);
    let operation = trace.operations.last_mut().unwrap();
    operation.taken = Some(u64::MAX);
    let told = check(&trace);
    assert_eq!(told.len(), clean.len() + 1, "{told:?}");
    assert!(told.iter().any(|fault| fault.contains("is not within fiber")), "{told:?}");
    trace.operations.last_mut().unwrap().abandoned = true;
    assert_eq!(check(&trace), clean);
}

#[test]
fn times_out_of_order_are_a_fault() {
    let mut trace = sample::copy_of(4);
    trace.lost.program = 1;
    let clean = check(&trace);
    trace.operations[0].submitted = Some(trace.operations[0].asked - 1);
    let told = check(&trace);
    assert!(told.len() > clean.len() && told.iter().any(|fault| fault.contains("not in order")), "{told:?}");
}

#[test]
fn counts_are_compared_where_nothing_was_lost() {
    let mut trace = sample::copy_of(4);
    trace.counters = counts(&trace);
    let clean = check(&trace);
    trace.operations.pop();
    let told = check(&trace);
    assert!(
        told.len() > clean.len() && told.iter().any(|fault| fault.starts_with("operations is")),
        "{told:?}"
    );
    trace.lost.program = 1;
    assert!(check(&trace).iter().all(|fault| !fault.contains("by the counters")));
}
