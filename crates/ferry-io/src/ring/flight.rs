//! Requests in flight, kept until their last completion.
//!
//! A request's index is its slot in the worker (`slots.rs`), unique among operations in flight. So a completion's user
//! data leads to it without a search.

use std::time::Instant;

use crate::op::Op;
use crate::ring::chain::Chain;
use crate::ring::request::{Parts, Statx};
use crate::route::Reason;
use crate::slots::Key;

/// One request in flight.
pub(super) struct Flight {
    pub(super) op: Op,
    pub(super) reason: Reason,
    pub(super) statx: Option<Statx>,
    /// Parts of a vectored transfer.
    pub(super) parts: Parts,
    /// Progress, if the request is a chain.
    pub(super) chain: Option<Chain>,
    /// Number of tries that the kernel has answered with EINTR or EAGAIN.
    pub(super) retries: u8,
    /// Set once the kernel was asked to cancel it.
    pub(super) cancelled: bool,
    /// Time of queueing, if the kernel had reported before that the request would block.
    pub(super) missed_at: Option<Instant>,
}

impl Flight {
    pub(super) fn new(op: Op, reason: Reason) -> Self {
        let missed_at = (reason == Reason::Missed).then(Instant::now);
        Self {
            op,
            reason,
            statx: None,
            parts: Parts::new(),
            chain: None,
            retries: 0,
            cancelled: false,
            missed_at,
        }
    }
}

/// All requests in flight.
#[derive(Default)]
pub(super) struct Flights {
    places: Vec<Option<(Key, Flight)>>,
    count: usize,
}

impl Flights {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn insert(&mut self, key: Key, flight: Flight) {
        let index = key.index as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || None);
        }
        debug_assert!(self.places[index].is_none(), "two operations in flight share a slot");
        self.places[index] = Some((key, flight));
        self.count += 1;
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Flight> {
        let place = self.places.get_mut(key.index as usize)?;
        place.as_mut().filter(|(known, _)| *known == key).map(|(_, flight)| flight)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Flight> {
        let place = self.places.get_mut(key.index as usize)?;
        let (_, flight) = place.take_if(|(known, _)| *known == key)?;
        self.count -= 1;
        Some(flight)
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        self.places.iter().flatten().map(|(key, _)| *key).collect()
    }
}

/// Subject of a completion, encoded as its user data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A request, or one step of a chain.
    Request(Key, Step),
    /// The inbox was notified.
    Inbox,
    /// A cancellation was answered.
    Cancel,
}

/// Step of a chain; plain requests have only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    First,
    Read,
    Close,
}

/// Number of user-data bits below the slot's index.
const KIND_BITS: u32 = 4;
const INBOX: u64 = 14;
const CANCEL: u64 = 15;
/// Number of slots that user data can name.
pub(super) const MOST_SLOTS: u32 = 1 << (u32::BITS - KIND_BITS);

impl Token {
    pub(super) fn to_user_data(self) -> u64 {
        match self {
            Self::Request(key, step) => {
                let step = match step {
                    Step::First => 0,
                    Step::Read => 1,
                    Step::Close => 2,
                };
                u64::from(key.generation) << u32::BITS | u64::from(key.index) << KIND_BITS | step
            }
            Self::Inbox => INBOX,
            Self::Cancel => CANCEL,
        }
    }

    /// Decodes user data; `None` if this ring never sent it.
    pub(super) fn from_user_data(data: u64) -> Option<Self> {
        let step = match data & ((1 << KIND_BITS) - 1) {
            0 => Step::First,
            1 => Step::Read,
            2 => Step::Close,
            INBOX => return Some(Self::Inbox),
            CANCEL => return Some(Self::Cancel),
            _ => return None,
        };
        let index = u32::try_from((data & u64::from(u32::MAX)) >> KIND_BITS).ok()?;
        let generation = u32::try_from(data >> u32::BITS).ok()?;
        Some(Self::Request(Key { index, generation }, step))
    }
}
