//! Draws a world, a tree, options, faults and changes by other processes from a seed.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use ferry_copy::{
    Algorithm, Backup, Control, Dereference, Direct, Existing, Make, Options, Preserve, Reflink, Sparse,
};
use ferry_io::sim::{Fault, Model, Node, World};
use ferry_io::{Errno, FileKind, Operation, RouteChoice, Time, Times};
use ferry_tree::fill::SplitMix64;

use crate::model;
use crate::simulation;
use crate::told::archive;

pub(crate) type Path = Vec<u8>;

/// Operations with errors that they return in practice. The target may be full, over its quota or read-only.
const ERRORS: [(Operation, Errno); 44] = [
    (Operation::Open, Errno::ACCESS),
    (Operation::Open, Errno::MFILE),
    (Operation::Open, Errno::NFILE),
    (Operation::Open, Errno::INTR),
    (Operation::Open, Errno::AGAIN),
    (Operation::Open, Errno::IO),
    (Operation::Open, Errno::NOENT),
    (Operation::Open, Errno::STALE),
    (Operation::Open, Errno::ROFS),
    (Operation::Load, Errno::IO),
    (Operation::Stat, Errno::IO),
    (Operation::Stat, Errno::NOENT),
    (Operation::Read, Errno::IO),
    (Operation::Read, Errno::INTR),
    (Operation::Read, Errno::AGAIN),
    (Operation::Write, Errno::IO),
    (Operation::Write, Errno::INTR),
    (Operation::Write, Errno::AGAIN),
    (Operation::Write, Errno::FBIG),
    (Operation::Write, Errno::NOSPC),
    (Operation::Write, Errno::DQUOT),
    (Operation::CopyRange, Errno::IO),
    (Operation::CopyRange, Errno::XDEV),
    (Operation::CopyRange, Errno::PERM),
    (Operation::Clone, Errno::IO),
    (Operation::Clone, Errno::XDEV),
    (Operation::Seek, Errno::IO),
    (Operation::Seek, Errno::INVAL),
    (Operation::Truncate, Errno::IO),
    (Operation::List, Errno::IO),
    (Operation::MakeDirectory, Errno::ACCESS),
    (Operation::MakeDirectory, Errno::NOSPC),
    (Operation::Symlink, Errno::ACCESS),
    (Operation::ReadLink, Errno::IO),
    (Operation::Link, Errno::PERM),
    (Operation::MakeNode, Errno::PERM),
    (Operation::Unlink, Errno::IO),
    (Operation::SetOwner, Errno::PERM),
    (Operation::SetTimes, Errno::IO),
    (Operation::SetMode, Errno::PERM),
    (Operation::SetXattr, Errno::OPNOTSUPP),
    (Operation::SetXattr, Errno::NOSPC),
    (Operation::ListXattr, Errno::IO),
    (Operation::Sync, Errno::IO),
];

/// Everything that a seed decides.
pub(crate) struct Storm {
    pub(crate) world: World,
    pub(crate) io: ferry_io::Options,
    pub(crate) options: Options,
    pub(crate) tree: Model,
    /// Target tree before the copy; `None` if the target does not exist.
    pub(crate) before: Option<Model>,
    /// Operations that fail.
    pub(crate) failing: Vec<Operation>,
    numbers: SplitMix64,
}

/// Draws everything except faults and changes by other processes.
pub(crate) fn calm(seed: u64) -> Storm {
    let mut numbers = SplitMix64::new(seed ^ 0x7374_6f72_6d73);
    let (world, mut io) = simulation::world(seed);
    io.route = match numbers.index(8) {
        0 => RouteChoice::Inline,
        1 => RouteChoice::Pool,
        2 => RouteChoice::Ring,
        _ => RouteChoice::Auto,
    };
    world.change(|settings| {
        settings.short_transfers = [0, 200_000, 600_000][numbers.index(3)];
        settings.ordinal_cookies = numbers.percent(50);
        settings.reuses_inodes = numbers.percent(60);
        settings.tells_birth = numbers.percent(80);
        if numbers.percent(40) {
            settings.descriptors = [40, 60][numbers.index(2)];
        }
        settings.reports_alignment = !seed.is_multiple_of(4);
        // The last unit is larger than a block.
        settings.direct_alignment = [512, 4096, 1 << 20][numbers.index(3)];
    });
    let tree = model::random(seed, 8 + numbers.index(40));
    world.folder("source").build("source", &tree);
    let before = numbers.percent(30).then(|| earlier(&tree, &mut numbers));
    if let Some(before) = &before {
        world.folder("target").build("target", before);
    }
    let options = Options { atomic: seed % 5 == 4, ..options(&mut numbers, world.clone()) };
    Storm { world, io, options, tree, before, failing: Vec::new(), numbers }
}

/// Draws an earlier copy: some of the tree's folders and files, with other bytes.
fn earlier(tree: &Model, numbers: &mut SplitMix64) -> Model {
    let mut before = Model::new();
    for (path, node) in tree {
        let is_there = before.get(above(path)).is_some_and(|above: &Node| above.kind == FileKind::Directory);
        let can_be = matches!(node.kind, FileKind::Directory | FileKind::Regular);
        if path.is_empty() || is_there && can_be && numbers.percent(60) {
            let content = ferry_io::sim::Sparse::from(&vec![b'o'; numbers.index(9_000)][..]);
            let content =
                if node.kind == FileKind::Regular { content } else { ferry_io::sim::Sparse::default() };
            let seconds = if numbers.percent(50) { 0 } else { 1 << 33 };
            let time = Time { seconds, nanoseconds: 0 };
            let times = Times { accessed: time, modified: time };
            let old = Node { times, content, ..Node::new(node.kind, 0o755) };
            before.insert(path.clone(), old);
        }
    }
    before
}

/// Draws options of every kind that affects the result.
fn options(numbers: &mut SplitMix64, world: World) -> Options {
    let mut flip = |percent| numbers.percent(percent);
    let preserve = match () {
        () if flip(60) => Preserve { xattr_required: flip(20), ..archive().preserve },
        () if flip(50) => Preserve { links: flip(50), timestamps: flip(50), ..Preserve::default() },
        () => Preserve { mode: flip(50), ownership: flip(50), refuse_mode: flip(20), ..Preserve::default() },
    };
    let make = match () {
        () if flip(85) => Make::Copy,
        () if flip(50) => Make::HardLink,
        () => Make::SymbolicLink,
    };
    let (existing, update) = match () {
        () if flip(70) => (Existing::Replace, false),
        () if flip(50) => (Existing::Replace, true),
        () if flip(70) => (Existing::Keep, false),
        () => (Existing::Refuse, false),
    };
    let sparse = match () {
        () if flip(60) => Sparse::Auto,
        () if flip(50) => Sparse::Always,
        () => Sparse::Never,
    };
    let mut clones = false;
    world.change(|settings| clones = settings.clones);
    let reflink = match () {
        () if flip(60) => Reflink::Auto,
        () if clones && sparse == Sparse::Auto && flip(40) => Reflink::Always,
        () => Reflink::Never,
    };
    let dereference = if flip(85) { Dereference::Never } else { Dereference::Always };
    Options {
        recursive: true,
        copy_contents: flip(5),
        dereference,
        preserve,
        existing,
        update,
        backup: flip(15).then(|| Backup { control: Control::Simple, suffix: "~".into() }),
        attributes_only: flip(4),
        keep_directory_symlink: false,
        through_dangling: false,
        debug: flip(10),
        atomic: false,
        bandwidth: NonZeroU64::new(1 << 22).filter(|_| flip(5)),
        make,
        force: flip(20),
        remove_destination: flip(10),
        one_file_system: flip(10),
        sparse,
        reflink,
        fsync: flip(15),
        verbose: flip(20),
        explain: flip(20),
        direct: if flip(40) { Direct::Always } else { Direct::Auto },
        verify: flip(10),
        digest: flip(30).then_some(Algorithm::Blake3),
        resume: None,
        strict_kinds: false,
        filtered: false,
    }
}

/// Changes of a source entry by other processes.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Vanish,
    Shrink,
    Grow,
    /// It becomes another file of the same name.
    Replace,
    /// It becomes another kind of file.
    Swap(FileKind),
}

const DEEDS: [Deed; 8] = [
    Deed::Vanish,
    Deed::Vanish,
    Deed::Shrink,
    Deed::Grow,
    Deed::Replace,
    Deed::Swap(FileKind::Symlink),
    Deed::Swap(FileKind::Directory),
    Deed::Swap(FileKind::Fifo),
];

fn do_to(world: &World, path: &str, deed: Deed) {
    let Some(found) = world.get(path) else { return };
    let (is_file, size) = (found.kind == FileKind::Regular, found.content.size());
    match deed {
        Deed::Shrink if is_file => world.set_size(path, size / 2),
        Deed::Grow if is_file => world.write(path, size, &[b'g'; 5000]),
        Deed::Vanish | Deed::Shrink | Deed::Grow => world.remove(path),
        Deed::Replace => world.remove(path).file(path, b"another"),
        Deed::Swap(FileKind::Symlink) => world.remove(path).symlink(path, "/outside"),
        Deed::Swap(FileKind::Directory) => world.remove(path).folder(path),
        Deed::Swap(kind) => world.remove(path).node(path, kind, 0),
    };
}

/// Adds faults and the planned changes by other processes; returns the changed paths.
pub(crate) fn rise(storm: &mut Storm) -> BTreeSet<Path> {
    let Storm { world, numbers, tree, options, failing, .. } = storm;
    world.change(|settings| {
        for _ in 0..numbers.index(5) {
            let (operation, errno) = ERRORS[numbers.index(ERRORS.len())];
            failing.push(operation);
            settings.faults.push(match numbers.index(4) {
                0 => Fault::nth(operation, 1 + numbers.below(30), errno),
                _ => Fault::by_chance(operation, 2_000 << numbers.index(6), errno),
            });
        }
    });
    if numbers.percent(10) {
        // From no space at all to more than the copy needs.
        let room = world.used_bytes() * (100 + numbers.below(130)) / 100;
        world.change(|settings| settings.space = room);
    }
    if numbers.percent(10) {
        let stopped = numbers.below(400);
        world.meanwhile(stopped, World::stop);
    }
    let mut touched: BTreeSet<Path> = BTreeSet::new();
    // Failures name the path of a followed link, not the one that it leads to.
    let is_alone = options.dereference == Dereference::Never && options.make != Make::HardLink;
    // Names that are not UTF-8 are left alone: the plan takes text.
    let paths: Vec<&Path> =
        tree.keys().filter(|path| !path.is_empty() && std::str::from_utf8(path).is_ok()).collect();
    for _ in 0..if is_alone && !paths.is_empty() { numbers.index(4) } else { 0 } {
        let path = paths[numbers.index(paths.len())];
        if touched.iter().any(|other| is_beneath(path, other) || is_beneath(other, path)) {
            continue;
        }
        touched.insert(path.clone());
        let deed = DEEDS[numbers.index(DEEDS.len())];
        let name = format!("source/{}", std::str::from_utf8(path).unwrap());
        world.meanwhile(numbers.below(300), move |world| do_to(world, &name, deed));
    }
    touched
}

pub(crate) fn above(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(b"", |at| &path[..at])
}

/// Returns true if a path is `above` or beneath it.
pub(crate) fn is_beneath(path: &[u8], above: &[u8]) -> bool {
    above.is_empty() || path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
