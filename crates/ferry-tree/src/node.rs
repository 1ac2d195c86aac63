//! A directory's path as a chain of names, shared by what lies beneath it.

use crate::describe::join;
use std::sync::Arc;

/// A directory: its name and the one above it.
#[derive(Debug)]
pub(crate) struct Node {
    parent: Option<Arc<Node>>,
    name: Box<[u8]>,
}

impl Node {
    /// The root of the walk, whose path is empty.
    pub(crate) fn root() -> Arc<Self> {
        Arc::new(Self { parent: None, name: Box::default() })
    }

    /// The directory `name` beneath `parent`.
    pub(crate) fn child(parent: &Arc<Self>, name: &[u8]) -> Arc<Self> {
        Arc::new(Self { parent: Some(Arc::clone(parent)), name: name.into() })
    }

    /// Its own name.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its path from the root.
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

    /// The path of an entry in it.
    pub(crate) fn entry(&self, name: &[u8]) -> Vec<u8> {
        join(&self.path(), name)
    }
}

/// One by one, because a chain dropped the usual way would recurse once a level.
impl Drop for Node {
    fn drop(&mut self) {
        let mut above = self.parent.take();
        while let Some(mut node) = above.and_then(Arc::into_inner) {
            above = node.parent.take();
        }
    }
}
