use ferry_io::{Cause, Errno, Operation};

use super::*;

#[test]
fn so_many_listings_hold_a_descriptor() {
    let listings = OpenListings::new(2);
    let (first, second) = (listings.hold(), listings.hold());
    assert!(first.is_some() && second.is_some());
    assert!(listings.hold().is_none());
    drop(first);
    assert!(listings.hold().is_some());
    assert!(OpenListings::new(0).hold().is_none());
}

#[test]
fn a_failure_comes_once_after_what_was_listed() {
    let io = ferry_io::Options::default();
    let error = Error { operation: Operation::List, cause: Cause::Errno(Errno::IO) };
    let (told, _) = ferry_io::run(&io, async |_| Listing::failed(error).next().await.map(|_| ())).unwrap();
    assert_eq!(told, Err(error));
}
