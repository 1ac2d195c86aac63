//! Changes by other processes at any call of a copy.

use ferry_io::FileKind;
use ferry_io::sim::World;
use ferry_tree::fill::SplitMix64;

use super::shadow::{Path, Shadow, Shared, folder_of};

#[derive(Debug, Clone, Copy)]
enum Deed {
    Modify(Change),
    Rename(Act),
    /// Removes several of the source's neighbours.
    Thin,
    /// Replaces the source's folder by a link that leads elsewhere.
    Redirect,
    Meddle(Meddling),
}

/// Changes of the source's bytes in place.
#[derive(Debug, Clone, Copy)]
enum Change {
    Overwrite,
    Cut,
    Append,
}

/// Changes of the source's name.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A new file is renamed to it.
    Replace,
    /// It is removed and created again, perhaps with the same inode number.
    Recreate,
    Remove,
    /// It is renamed to another file's name.
    Move,
    /// It gets another name.
    Link,
}

/// Changes of the target.
#[derive(Debug, Clone, Copy)]
enum Meddling {
    /// A foreign file is renamed to its name.
    Replace,
    /// Another link of the source is renamed to its name.
    Link,
    Remove,
    /// A foreign file is created beside it.
    Accompany,
}

const DEEDS: [Deed; 16] = [
    Deed::Modify(Change::Overwrite),
    Deed::Modify(Change::Cut),
    Deed::Modify(Change::Append),
    Deed::Rename(Act::Replace),
    Deed::Rename(Act::Replace),
    Deed::Rename(Act::Recreate),
    Deed::Rename(Act::Recreate),
    Deed::Rename(Act::Remove),
    Deed::Rename(Act::Move),
    Deed::Rename(Act::Link),
    Deed::Thin,
    Deed::Redirect,
    Deed::Meddle(Meddling::Replace),
    Deed::Meddle(Meddling::Link),
    Deed::Meddle(Meddling::Remove),
    Deed::Meddle(Meddling::Accompany),
];

/// Paths that one deed changes.
struct Subject {
    number: usize,
    path: Path,
    other: Path,
    folder: Path,
    size: usize,
}

/// Plans the changes by other processes.
pub(super) fn plan(world: &World, shared: &Shared, folders: &[String], numbers: &mut SplitMix64) {
    let mut shadow = shared.lock().unwrap();
    let paths: Vec<Path> = shadow.paths().cloned().collect();
    for path in &paths {
        // The folder that a redirected one leads to has the same names.
        let name = path.rsplit('/').next().unwrap_or_default();
        let bytes = shadow.new_bytes(200);
        world.file(format!("outside/{name}"), &bytes);
        shadow.outside.insert(name.to_owned(), bytes);
    }
    drop(shadow);
    let busy = [30, 200, 1500][numbers.index(3)];
    for number in 0..numbers.index(14) {
        let subject = Subject {
            number,
            path: paths[numbers.index(paths.len())].clone(),
            other: paths[numbers.index(paths.len())].clone(),
            folder: folders[numbers.index(folders.len())].trim_end_matches('/').to_owned(),
            size: 1 + numbers.index(30_000),
        };
        let (deed, shared) = (DEEDS[numbers.index(DEEDS.len())], Shared::clone(shared));
        world.meanwhile(numbers.below(busy), move |world| {
            let mut shadow = shared.lock().unwrap();
            if act(world, &mut shadow, deed, &subject) {
                let Subject { path, other, folder, .. } = &subject;
                shadow.log.push(format!("{deed:?} {path} (other {other}, folder {folder})"));
            }
        });
    }
}

/// Performs a change. Returns false if it is impossible.
fn act(world: &World, shadow: &mut Shadow, deed: Deed, subject: &Subject) -> bool {
    let Subject { path, folder, .. } = subject;
    match deed {
        Deed::Meddle(meddling) => meddle(world, shadow, meddling, subject),
        Deed::Redirect => {
            if folder.is_empty() || !is_folder(world, &format!("source/{folder}")) {
                return false;
            }
            shadow.remove(folder);
            world.remove(format!("source/{folder}")).symlink(format!("source/{folder}"), "/outside");
            true
        }
        Deed::Thin => {
            let is_near = |other: &&Path| folder_of(other) == folder_of(path) && *other != path;
            let near: Vec<Path> = shadow.paths().filter(is_near).take(6).cloned().collect();
            for other in &near {
                world.remove(format!("source/{other}"));
                shadow.remove(other);
            }
            !near.is_empty()
        }
        Deed::Modify(_) | Deed::Rename(_) if !shadow.has(path) => false,
        Deed::Modify(change) => {
            modify(world, shadow, change, subject);
            true
        }
        Deed::Rename(act) => act_on_name(world, shadow, act, subject),
    }
}

fn modify(world: &World, shadow: &mut Shadow, change: Change, subject: &Subject) {
    let Subject { path, size, .. } = subject;
    let name = format!("source/{path}");
    let before = usize::try_from(world.get(&name).unwrap().content.size()).unwrap();
    let fresh = shadow.new_bytes(before + size);
    let (at, end) = match change {
        Change::Cut => {
            world.set_size(&name, before as u64 / 2);
            return shadow.modify(path, |bytes| bytes.truncate(before / 2));
        }
        Change::Append => (before, before + size),
        Change::Overwrite => (before / 3, before),
    };
    world.write(&name, at as u64, &fresh[at..end]);
    shadow.modify(path, |bytes| {
        bytes.truncate(at);
        bytes.extend_from_slice(&fresh[at..end]);
    });
}

fn act_on_name(world: &World, shadow: &mut Shadow, act: Act, subject: &Subject) -> bool {
    let Subject { number, path, other, size, .. } = subject;
    let name = format!("source/{path}");
    match act {
        Act::Replace => {
            let bytes = shadow.new_bytes(*size);
            world.file("foreign/new", &bytes).rename("foreign/new", &name);
            shadow.put(path, bytes);
        }
        Act::Recreate => {
            let bytes = shadow.new_bytes(*size);
            world.remove(&name).file(&name, &bytes);
            shadow.remove(path);
            shadow.put(path, bytes);
        }
        Act::Remove => {
            world.remove(&name);
            shadow.remove(path);
        }
        Act::Move if path != other && shadow.has(other) => {
            world.rename(&name, format!("source/{other}"));
            shadow.join(path, other);
            shadow.remove(path);
        }
        Act::Link => {
            let new = format!("{path}-link{number}");
            world.hard_link(&name, format!("source/{new}"));
            shadow.join(path, &new);
        }
        Act::Move => return false,
    }
    true
}

fn meddle(world: &World, shadow: &mut Shadow, meddling: Meddling, subject: &Subject) -> bool {
    let Subject { number, path, size, .. } = subject;
    let name = format!("target/{path}");
    let folder = format!("target/{}", folder_of(path));
    // A redirected folder may have been copied as a link.
    if !is_folder(world, &folder) {
        return false;
    }
    let is_there = world.get(&name).is_some_and(|node| node.kind == FileKind::Regular);
    let may_be_put = is_there || world.get(&name).is_none();
    match meddling {
        Meddling::Replace if may_be_put => {
            let bytes = shadow.new_bytes(*size);
            world.file("foreign/new", &bytes).rename("foreign/new", &name);
            shadow.meddle(path, Some(bytes));
        }
        Meddling::Link if may_be_put && shadow.has(path) => {
            world.hard_link(format!("source/{path}"), "foreign/link").rename("foreign/link", &name);
            shadow.link_to_target(path);
            shadow.meddle(path, None);
        }
        Meddling::Remove if is_there => {
            world.remove(&name);
            shadow.meddle(path, None);
        }
        Meddling::Accompany => {
            let bytes = shadow.new_bytes(*size);
            let beside = format!("{path}-beside{number}");
            world.file(format!("target/{beside}"), &bytes);
            shadow.stand_by(&beside, bytes);
        }
        Meddling::Replace | Meddling::Link | Meddling::Remove => return false,
    }
    true
}

fn is_folder(world: &World, path: &str) -> bool {
    // Only paths without links on the way.
    let mut whole = String::new();
    path.split('/').filter(|name| !name.is_empty()).all(|name| {
        whole = format!("{whole}/{name}");
        world.get(&whole).is_some_and(|node| node.kind == FileKind::Directory)
    })
}
