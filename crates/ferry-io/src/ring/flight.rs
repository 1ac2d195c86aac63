//! What the kernel is working on: the requests themselves, kept until their last completion.
//!
//! A request's place here is its slot's index in the worker (`slots.rs`), which no two operations in flight share, so
//! the completion's user data finds it without a search.

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
    /// The parts of several blocks.
    pub(super) parts: Parts,
    /// How far it is, if it is a chain.
    pub(super) chain: Option<Chain>,
    /// How often the kernel has asked for another try.
    pub(super) retries: u8,
    /// Whether the kernel was told that nobody wants it.
    pub(super) cancelled: bool,
    /// When it was queued, if the kernel had been asked before and said that it would wait.
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

/// What a completion is about, as its user data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A request, or one step of a chain.
    Request(Key, Step),
    /// The inbox has something.
    Inbox,
    /// A cancellation was answered.
    Cancel,
}

/// Which part of a chain; plain requests have only the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    First,
    Read,
    Close,
}

/// Bits of the user data below the slot's index.
const KIND_BITS: u32 = 4;
const INBOX: u64 = 14;
const CANCEL: u64 = 15;
/// Slots that user data can name.
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

    /// `None` for what this ring never sent.
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
