//! The simulated backend.

use std::sync::Arc;

use crate::inbox::Inbox;
use crate::op::Op;
use crate::slots::Key;

#[derive(Debug)]
pub(crate) struct SimDescriptor;

pub(crate) struct Sim;

impl Sim {
    pub(crate) fn new(_seed: u64) -> Arc<Self> {
        Arc::new(Self)
    }

    pub(crate) fn open_root(&self, _path: &std::path::Path) -> crate::error::Result<crate::dir::Dir> {
        Ok(crate::dir::Dir::from_descriptor(crate::op::Descriptor::Sim(SimDescriptor)))
    }

    pub(crate) fn push(&self, _key: Key, _op: Op, _owner: &Arc<Inbox>) {}
}
