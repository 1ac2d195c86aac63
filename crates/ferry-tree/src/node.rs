//! Path of a directory as a chain of names that its descendants share.

use crate::describe::join;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Node {
    parent: Option<Arc<Node>>,
    name: Box<[u8]>,
}

impl Node {
    /// Root of the walk; its path is empty.
    pub(crate) fn root() -> Arc<Self> {
        Arc::new(Self { parent: None, name: Box::default() })
    }

    pub(crate) fn child(parent: &Arc<Self>, name: &[u8]) -> Arc<Self> {
        Arc::new(Self { parent: Some(Arc::clone(parent)), name: name.into() })
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Path from the root.
    pub(crate) fn path(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut node = self;
        while let Some(parent) = &node.parent {
            names.push(&*node.name);
            node = parent;
        }
        names.reverse();
        names.join(&b'/')
    }

    pub(crate) fn entry(&self, name: &[u8]) -> Vec<u8> {
        join(&self.path(), name)
    }
}

/// Drops the ancestors in a loop: the default drop would recurse once a level.
impl Drop for Node {
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(mut node) = above.and_then(Arc::into_inner) {
            above = node.parent.take();
        }
    }
}
