//! Messages over MPI.
//!
//! A send is started without blocking, and while it is in flight messages are received. So two processes that send to
//! one another never wait for each other, however large the messages are.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use mpi::point_to_point::MatchedReceiveVec as _;
use mpi::request;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, Destination as _, Root as _, Source as _};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failures::complain;
use crate::recording::{self, Clock};
use crate::setup::Setup;

/// Tag of all messages but the last one.
const TAG: i32 = 17;
/// Tag of the last message.
const LAST: i32 = 18;

/// Tag of questions for a rank's time, and of the answers.
const CLOCK: i32 = 19;
/// Questions for each rank.
const QUESTIONS: u32 = 16;

/// Time between two looks for the end of rank 0's part, which may take hours.
const DISMISSAL: Duration = Duration::from_millis(10);

/// The processes of the job.
pub(crate) struct Wire {
    world: SimpleCommunicator,
    received: VecDeque<(u32, Vec<u8>)>,
}

impl Wire {
    pub(crate) fn new(world: SimpleCommunicator) -> Self {
        Self { world, received: VecDeque::new() }
    }

    /// Returns the number of workers for this process: its share of the processors that it may use. Every process has to
    /// call it once.
    pub(crate) fn workers(&self) -> NonZeroUsize {
        // Those of this machine.
        let ranks = self.world.split_shared(self.world.rank()).size();
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share = processors / usize::try_from(ranks).unwrap_or(1).max(1);
        NonZeroUsize::new(share).unwrap_or(NonZeroUsize::MIN)
    }

    pub(crate) fn is_root(&self) -> bool {
        self.world.rank() == 0
    }

    pub(crate) fn ranks(&self) -> u32 {
        u32::try_from(self.world.size()).unwrap_or(1)
    }

    /// Tells all others the job; `None` if there is none.
    pub(crate) fn send_setup(&self, setup: Option<&Setup>) {
        let mut bytes = setup.and_then(|setup| serde_json::to_vec(setup).ok()).unwrap_or_default();
        let mut size = u64::try_from(bytes.len()).unwrap_or(0);
        let root = self.world.process_at_rank(0);
        root.broadcast_into(&mut size);
        // Open MPI ends the job for a message of no bytes.
        if size > 0 {
            root.broadcast_into(&mut bytes[..]);
        }
    }

    /// Receives the job from rank 0.
    pub(crate) fn receive_setup(&self) -> Option<Setup> {
        let root = self.world.process_at_rank(0);
        let mut size = 0_u64;
        root.broadcast_into(&mut size);
        let mut bytes = vec![0_u8; usize::try_from(size).ok().filter(|size| *size > 0)?];
        root.broadcast_into(&mut bytes[..]);
        serde_json::from_slice(&bytes)
            .map_or_else(|error| self.abort(&format!("the job of rank 0: {error}")), Some)
    }

    /// Compares the clocks of all ranks with that of this one, which is rank 0. The others call [`Self::answer_clock`].
    pub(crate) fn compare_clocks(&self) -> Vec<Clock> {
        let mut clocks = vec![Clock::default()];
        for rank in 1..self.world.size() {
            let other = self.world.process_at_rank(rank);
            let asked = (0..QUESTIONS).map(|_| {
                let began = recording::now();
                other.send_with_tag(&began, CLOCK);
                let (theirs, _) = other.receive_with_tag::<u64>(CLOCK);
                let error = (recording::now() - began) / 2;
                let ahead = (began + error).cast_signed() - theirs.cast_signed();
                Clock { ahead, error: Duration::from_nanos(error) }
            });
            clocks.extend(asked.min_by_key(|clock| clock.error));
        }
        clocks
    }

    /// Answers rank 0's questions for the time.
    pub(crate) fn answer_clock(&self) {
        let root = self.world.process_at_rank(0);
        for _ in 0..QUESTIONS {
            root.receive_with_tag::<u64>(CLOCK);
            root.send_with_tag(&recording::now(), CLOCK);
        }
    }

    /// Ends all processes: this one can't take part, and the others would wait for it for ever.
    pub(crate) fn abort(&self, why: &str) -> ! {
        complain(&format!("rank {}: {why}; do all machines have the same ferry-mpi?", self.world.rank()));
        self.world.abort(1)
    }

    /// Tells all others that rank 0 has done its part.
    pub(crate) fn dismiss(&self) {
        for rank in 1..self.world.size() {
            self.world.process_at_rank(rank).send_with_tag(&[0_u8][..], LAST);
        }
    }

    /// Waits until rank 0 has done its part. A process that called MPI's end before would keep its processor busy.
    pub(crate) fn await_dismissal(&mut self) {
        for signal in [SIGINT, SIGTERM] {
            // Rank 0 ends the job. If this process died, MPI would end rank 0 before it has reported.
            signal_hook::flag::register(signal, Arc::default()).ok();
        }
        loop {
            // Messages may have crossed with the end of this rank. Rank 0 waits until they have arrived.
            self.receive();
            if let Some(last) = self.world.process_at_rank(0).immediate_matched_probe_with_tag(LAST) {
                last.matched_receive_vec::<u8>();
                return;
            }
            std::thread::sleep(DISMISSAL);
        }
    }

    /// Returns the messages that have arrived, with their senders.
    pub(crate) fn receive(&mut self) -> Vec<(u32, Vec<u8>)> {
        receive_into(&self.world, &mut self.received);
        self.received.drain(..).collect()
    }

    /// Sends a message.
    pub(crate) fn send_json(&mut self, to: u32, message: &impl Serialize) {
        let (Ok(bytes), Ok(to)) = (serde_json::to_vec(message), i32::try_from(to)) else { return };
        let (world, received) = (&self.world, &mut self.received);
        request::scope(|scope| {
            let mut sending = world.process_at_rank(to).immediate_send_with_tag(scope, &bytes[..], TAG);
            while let Err(pending) = sending.test() {
                sending = pending;
                receive_into(world, received);
                std::thread::yield_now();
            }
        });
    }
}

fn receive_into(world: &SimpleCommunicator, received: &mut VecDeque<(u32, Vec<u8>)>) {
    while let Some(arrived) = world.any_process().immediate_matched_probe_with_tag(TAG) {
        let (bytes, status) = arrived.matched_receive_vec::<u8>();
        if let Ok(from) = u32::try_from(status.source_rank()) {
            received.push_back((from, bytes));
        }
    }
}
