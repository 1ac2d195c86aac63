use ferry_io::Route;

use super::{Doing, parts};
use crate::model::{Nanos, Operation};
use crate::sample;

type Times = (Nanos, Option<Nanos>, Option<Nanos>, Option<Nanos>, Option<Nanos>);

/// Parts of an operation with these times: asked, submitted, started, completed, taken. The recording ended at 100.
fn found(route: Route, (asked, submitted, started, completed, taken): Times) -> Vec<(Doing, Nanos, Nanos)> {
    let like = sample::copy_of(1).operations.remove(0);
    let operation = Operation { route, asked, submitted, started, completed, taken, ..like };
    parts(&operation, 100).map(|part| (part.doing, part.began, part.ended)).collect()
}

#[test]
fn waiting_is_told_from_being_at_work() {
    let ring = found(Route::Ring, (1, Some(2), None, Some(5), Some(9)));
    assert_eq!(ring, [(Doing::Queued, 1, 2), (Doing::InRing, 2, 5), (Doing::Done, 5, 9)]);
    let pool = found(Route::Pool, (1, Some(2), Some(4), Some(5), Some(9)));
    assert_eq!(pool, [(Doing::Queued, 1, 4), (Doing::Runs, 4, 5), (Doing::Done, 5, 9)]);
    let inline = found(Route::Inline, (1, Some(1), Some(1), Some(5), Some(5)));
    assert_eq!(inline, [(Doing::Runs, 1, 5)]);
}

#[test]
fn what_is_not_known_is_not_made_up() {
    // Without the kernel's events.
    let ring = found(Route::Ring, (1, Some(2), None, None, Some(9)));
    assert_eq!(ring, [(Doing::Queued, 1, 2), (Doing::InRing, 2, 9)]);
    // The recording ended before the request was submitted.
    assert_eq!(found(Route::Ring, (1, None, None, None, None)), [(Doing::Queued, 1, 100)]);
    assert_eq!(
        found(Route::Pool, (1, Some(1), Some(3), None, None)),
        [(Doing::Queued, 1, 3), (Doing::Runs, 3, 100)]
    );
}

#[test]
fn times_out_of_order_make_no_part_that_ends_before_it_begins() {
    assert_eq!(found(Route::Ring, (5, Some(3), None, Some(12), Some(9))), [(Doing::InRing, 5, 9)]);
    assert_eq!(
        found(Route::Pool, (5, Some(6), Some(8), Some(7), Some(9))),
        [(Doing::Queued, 5, 8), (Doing::Done, 8, 9)]
    );
}
