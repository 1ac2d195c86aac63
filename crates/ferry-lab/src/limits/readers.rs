//! A tree copied by many readers and few creators: reads of uncached files wait for the device, creating does not.

use std::ffi::CString;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::Mode;
use rustix::io::Errno;

use super::attributes::Attributes;
use super::entry::{self, Copier, Folder, create};
use super::limit::Limit;
use super::single::write_all;
use super::tree::{Queue, at, spawn};
use crate::error::Failure;

#[cfg(test)]
mod tests;

/// Maximum number of files that are read and not yet taken by a creator.
const LOADED: usize = 256;

/// A file to create.
struct File {
    folder: Arc<Folder>,
    name: CString,
    mode: Mode,
    bytes: Vec<u8>,
    rest: Option<OwnedFd>,
    attributes: Option<Attributes>,
}

/// Copies the tree.
pub(super) fn copy(how: &Limit, root: Folder) -> Result<(), Failure> {
    let queue = Queue::new(root);
    let creators = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let (sender, receiver) = loaded_files();
    let receiver = Arc::new(Mutex::new(receiver));
    std::thread::scope(|scope| {
        let queue = &queue;
        for _ in 0..creators {
            let receiver = Arc::clone(&receiver);
            spawn(scope, queue, move || create_all(how, queue, &receiver));
        }
        // Readers that still send must see that the creators have ended.
        drop(receiver);
        for _ in 0..how.threads {
            let sender = sender.clone();
            spawn(scope, queue, move || read_all(how, queue, &sender));
        }
        drop(sender);
    });
    queue.outcome()
}

/// Returns the bounded queue between readers and creators. Readers block while it is full.
fn loaded_files() -> (SyncSender<File>, Receiver<File>) {
    sync_channel(LOADED)
}

fn read_all(how: &Limit, queue: &Queue, sender: &SyncSender<File>) {
    let mut copier = Copier::new(how);
    queue.work(how, |folder, name| {
        let loaded = copier.load((folder.source.as_fd(), name)).map_err(at(name))?;
        let bytes = copier.bytes(loaded.count).to_vec();
        let entry::Loaded { mode, rest, attributes, .. } = loaded;
        let (folder, name) = (Arc::clone(folder), name.to_owned());
        let sent = sender.send(File { folder, name, mode, bytes, rest, attributes });
        // The creators end early only after a failure of their own, which comes first.
        sent.map_err(|_| Failure::Run("all creators have ended".to_owned()))
    });
}

fn create_all(how: &Limit, queue: &Queue, receiver: &Mutex<Receiver<File>>) {
    let mut copier = Copier::new(how);
    let next = || receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(file) = next() {
        let stored = store(&mut copier, &file).and_then(|()| entry::release(how, file.folder));
        if let Err(errno) = stored {
            return queue.fail(at(&file.name)(errno));
        }
    }
}

fn store(copier: &mut Copier<'_>, file: &File) -> Result<(), Errno> {
    let output = create((file.folder.target.as_fd(), file.name.as_c_str()), file.mode)?;
    write_all(&output, &file.bytes)?;
    file.rest.as_ref().map_or(Ok(()), |input| copier.rest(input, &output))?;
    copier.set(file.attributes.as_ref(), &output, file.mode)
}
