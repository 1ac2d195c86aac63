//! Stands in for the simulation in a build without the feature `sim`: there is none.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::buffers::{Block, Blocks};
use crate::concurrent::thread::JoinHandle;
use crate::descriptor::{Descriptor, Dir, Fd};
use crate::entry::{DirectSupport, Time};
use crate::error::{Operation, Result};
use crate::event;
use crate::inbox::Inbox;
use crate::name::Name;
use crate::op::{Op, Outcome};
use crate::pool::Pool;
use crate::preload::Shelf;
use crate::route::Reason;
use crate::slots::{Completion, Key};
use crate::sys::Patience;

type Answer<T> = std::result::Result<T, Errno>;

/// A simulated disk and a seed, of which there are none.
#[derive(Debug, Clone)]
pub struct Simulation(Infallible);

/// A simulated run, of which there is none.
pub(crate) struct Sim(Infallible);

impl event::Clock for Sim {
    fn now_ns(&self) -> u64 {
        match self.0 {}
    }
}

impl Sim {
    pub(crate) fn new(simulation: &Simulation) -> Arc<Self> {
        match simulation.0 {}
    }

    pub(crate) fn watch(&self, _: &Arc<Blocks>, _: &Arc<AtomicBool>) {
        match self.0 {}
    }

    pub(crate) fn serve(&self, _: &Arc<Pool>) {
        match self.0 {}
    }

    pub(crate) fn descriptors(&self) -> usize {
        match self.0 {}
    }

    pub(crate) fn file_time(&self) -> Time {
        match self.0 {}
    }

    pub(crate) fn real_time(&self) -> Time {
        match self.0 {}
    }

    pub(crate) fn user(&self) -> u32 {
        match self.0 {}
    }

    pub(crate) fn group(&self) -> u32 {
        match self.0 {}
    }

    pub(crate) fn umask(&self) -> u32 {
        match self.0 {}
    }

    pub(crate) fn open_root(&self, _: &Path) -> Result<Dir> {
        match self.0 {}
    }

    pub(crate) fn now(&self) -> Instant {
        match self.0 {}
    }

    pub(crate) fn has_ring(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn can_in_ring(&self, _: Operation) -> bool {
        match self.0 {}
    }

    pub(crate) fn push_to_ring(&self, _: Key, _: Op, _: (Reason, u64)) -> std::result::Result<(), Op> {
        match self.0 {}
    }

    pub(crate) fn take_completed(&self) -> (Vec<(Key, Completion)>, bool) {
        match self.0 {}
    }

    pub(crate) fn has_completed(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn cancel(&self, _: Key) {
        match self.0 {}
    }

    pub(crate) fn need_thread(&self, _: bool) {
        match self.0 {}
    }

    pub(crate) fn turn(&self) {
        match self.0 {}
    }

    pub(crate) fn perform(&self, _: &mut Op, _: Patience) -> Answer<Outcome> {
        match self.0 {}
    }

    pub(crate) fn store(&self, _: &Fd, _: &Name, _: Mode, _: &Block) -> Answer<(Descriptor, bool)> {
        match self.0 {}
    }

    pub(crate) fn has_waited(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn ends_stretch(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn start_worker(
        &self,
        _: usize,
        _: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        match self.0 {}
    }

    pub(crate) fn introduce(&self, _: &Arc<Inbox>) {
        match self.0 {}
    }

    pub(crate) fn sleep(&self, _: Option<Instant>, _: bool) {
        match self.0 {}
    }

    pub(crate) fn join(&self, _: usize) {
        match self.0 {}
    }
}

/// A descriptor of the simulation, of which there is none.
#[derive(Debug)]
pub(crate) struct SimDescriptor(Infallible);

impl SimDescriptor {
    pub(crate) fn close(self) -> Answer<()> {
        match self.0 {}
    }

    pub(crate) fn preloaded(&self) -> &Shelf {
        match self.0 {}
    }

    pub(crate) fn device(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn magic(&self) -> Option<u64> {
        match self.0 {}
    }

    pub(crate) fn is_direct(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn set_direct(&self, _: bool) -> Answer<()> {
        match self.0 {}
    }

    pub(crate) fn try_lock(&self, _: bool) -> Answer<bool> {
        match self.0 {}
    }

    pub(crate) fn direct_support(&self) -> DirectSupport {
        match self.0 {}
    }
}
