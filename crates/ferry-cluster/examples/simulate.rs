//! Simulates a copy by many ranks with the real lease code: `simulate [ENTRIES RANKS SHAPE]`.
//!
//! Ranks, network and rank 0 take simulated time; coordinator, leases, walks and the lines of the journal are those of
//! `ferry-mpi`. Entries are computed from their folder's name, and stored nowhere. SHAPE is `even`, `half` (one folder
//! with half of all entries) or `file` (one file with a third of the bytes). Without arguments, prints a table.
//!
//! Not simulated: a filesystem that slows down under load, ranks of different speed, lost messages.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

use ferry_cluster::{
    Coordinator, Found, Leases, Line, Next, Settings, Task, Text, ToCoordinator, ToRank, Totals, Version,
    Walk, Work, write_line,
};

/// Time for one small entry: a few calls of 1 to 10 ms on a network filesystem, some of them at once.
const ENTRY_NS: u64 = 500_000;
/// Time to make and list a folder, and to set its attributes.
const FOLDER_NS: u64 = 10_000_000;
/// Bytes per second of one rank.
const BANDWIDTH: u64 = 1_000_000_000;
/// Time of a message on its way.
const LATENCY_NS: u64 = 20_000;
/// Time of rank 0 for a message, with MPI and the journal, and for each folder, batch or piece of work in it. Assumed; the
/// last column has the time that the coordinator's code takes here, without MPI and the journal's file.
const MESSAGE_NS: u64 = 10_000;
const ITEM_NS: u64 = 3_000;
/// Names of a folder read at once.
const CHUNK: u64 = 1024;
/// Batches that a rank gives away at once.
const BATCHES: u32 = 128;
/// Time to read a name.
const NAME_NS: u64 = 2_000;
/// Bytes of a small file.
const SMALL: u64 = 16 << 10;

/// A folder, as its name tells it.
#[derive(Clone, Copy)]
struct Synthetic {
    seed: u64,
    /// Entries beneath it.
    entries: u64,
    /// Set for the folder with half of all entries.
    is_huge: bool,
}

fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Synthetic {
    fn name(self) -> Text {
        let kind = if self.is_huge { 'h' } else { 'd' };
        format!("{kind}{:x}.{}", self.seed, self.entries).into_bytes().into()
    }

    fn parse(path: &Text, root: Self) -> Self {
        let last = path.as_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let text = std::str::from_utf8(last).unwrap_or_default();
        let parts = text.get(1..).and_then(|rest| rest.split_once('.'));
        let Some((seed, entries)) = parts else { return root };
        Self {
            seed: u64::from_str_radix(seed, 16).unwrap_or_default(),
            entries: entries.parse().unwrap_or_default(),
            is_huge: text.starts_with('h'),
        }
    }

    /// Returns the folders in it, and the number of files.
    fn list(self) -> (Vec<Self>, u64) {
        if self.is_huge || self.entries <= 40 {
            return (Vec::new(), self.entries);
        }
        let count = 2 + mix(self.seed) % 12;
        let files = mix(self.seed ^ 1) % 40;
        let mut left = self.entries.saturating_sub(files + count);
        let mut folders = Vec::new();
        for index in 0..count {
            let rest = count - index;
            // Shares from nothing to twice the mean.
            let share = left * (mix(self.seed ^ (index + 7)) % 1000) / 500 / rest;
            let entries = if rest == 1 { left } else { share.min(left) };
            left -= entries;
            folders.push(Self { seed: mix(self.seed ^ (index << 32)), entries, is_huge: false });
        }
        (folders, files)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Even,
    Half,
    File,
}

impl Shape {
    fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Half => "half in one folder",
            Self::File => "a third in one file",
        }
    }
}

enum Event {
    /// A rank goes on.
    Rank(usize),
    ToRank(usize, ToRank),
    ToCoordinator(usize, ToCoordinator),
}

/// Events in the order of their times; of those at one time, in the order in which they were added.
#[derive(Default)]
struct Queue {
    order: BinaryHeap<Reverse<(u64, u64)>>,
    events: std::collections::HashMap<u64, Event>,
    next: u64,
}

impl Queue {
    fn add(&mut self, time: u64, event: Event) {
        self.order.push(Reverse((time, self.next)));
        self.events.insert(self.next, event);
        self.next += 1;
    }

    fn take(&mut self) -> Option<(u64, Event)> {
        let Reverse((time, number)) = self.order.pop()?;
        Some((time, self.events.remove(&number)?))
    }
}

#[derive(Default)]
struct Rank {
    leases: Leases,
    walk: Option<Walk>,
    /// Files of the listing that goes on.
    left: u64,
    is_asleep: bool,
    busy: u64,
    last: u64,
    totals: Totals,
}

struct World {
    root: Synthetic,
    shape: Shape,
    settings: Settings,
}

impl World {
    fn files(&self, rank: &mut Rank, walk: &mut Walk, count: u64) -> u64 {
        walk.spend(count, count * SMALL);
        rank.totals.entries += count;
        rank.totals.files += count;
        count * ENTRY_NS
    }

    /// Performs a task. Returns the time that it takes.
    fn perform(&self, rank: &mut Rank, walk: &mut Walk, task: Task) -> u64 {
        match task {
            Task::Folder { folder, path, .. } => {
                let place = Synthetic::parse(&path, self.root);
                let (mut inner, files) = place.list();
                let mut found = Found::default();
                if path.is_empty() && self.shape == Shape::Half {
                    inner.push(Synthetic { seed: 9, entries: self.root.entries, is_huge: true });
                }
                if path.is_empty() && self.shape == Shape::File {
                    let size = self.root.entries * SMALL / 2;
                    found.large.push(("file".into(), Version { inode: 1, size, seconds: 0, nanoseconds: 0 }));
                }
                rank.totals.entries += inner.len() as u64;
                found.folders = inner.into_iter().map(Synthetic::name).collect();
                let is_whole = files <= 2 * CHUNK;
                let took = if is_whole { self.files(rank, walk, files) } else { 0 };
                rank.left = if is_whole { rank.left } else { files };
                walk.found(folder, found, is_whole);
                FOLDER_NS + took
            }
            Task::Continue { folder, .. } => {
                let mut count = rank.left.min(CHUNK);
                let before = rank.left;
                if walk.idle() > 0 {
                    // A batch for each of the ranks that are idle.
                    for _ in 0..walk.idle().min(BATCHES) {
                        let given = (rank.left - count).min(CHUNK);
                        let names = (0..given).map(|index: u64| format!("f{index:08}").into_bytes().into());
                        walk.give_back(folder, names.collect());
                        rank.left -= given;
                    }
                    count = count.min(rank.left).min(64);
                }
                rank.left -= count;
                let took = self.files(rank, walk, count) + (before - rank.left) * NAME_NS;
                walk.found(folder, Found::default(), rank.left == 0);
                took
            }
            Task::Finish { folder, .. } => {
                walk.finished(folder);
                ENTRY_NS
            }
            Task::Work { index, work } => {
                let took = match work {
                    Work::Files { names, .. } => self.files(rank, walk, names.len() as u64),
                    Work::Range { size, .. } => {
                        walk.spend(0, size);
                        rank.totals.bytes += size;
                        size * 1_000 / (BANDWIDTH / 1_000_000)
                    }
                    Work::Folder { .. }
                    | Work::Owner { .. }
                    | Work::Close { .. }
                    | Work::Discard { .. }
                    | Work::Link { .. }
                    | Work::Finish { .. } => ENTRY_NS,
                };
                walk.performed(index, true);
                took
            }
        }
    }
}

/// Figures of one simulated job.
struct Figures {
    entries: u64,
    seconds: f64,
    messages: u64,
    journal: u64,
    load: f64,
    idle: f64,
    tail: f64,
    folders: usize,
    frontier: usize,
    bytes: usize,
    measured_us: f64,
}

struct Simulation {
    world: World,
    queue: Queue,
    ranks: Vec<Rank>,
    coordinator: Coordinator,
    /// Messages that rank 0 has not taken yet.
    inbox: VecDeque<(usize, ToCoordinator)>,
    free_at: u64,
    served: u64,
    messages: u64,
    journal: u64,
    worst: ferry_cluster::Load,
    measured: f64,
}

impl Simulation {
    fn new(world: World, ranks: usize) -> Self {
        let coordinator = Coordinator::new(world.settings, world.settings.ranks);
        let mut queue = Queue::default();
        (0..ranks).for_each(|rank| queue.add(0, Event::Rank(rank)));
        Self {
            world,
            queue,
            ranks: (0..ranks).map(|_| Rank::default()).collect(),
            coordinator,
            inbox: VecDeque::new(),
            free_at: 0,
            served: 0,
            messages: 0,
            journal: 0,
            worst: ferry_cluster::Load::default(),
            measured: 0.0,
        }
    }

    fn run(&mut self) -> u64 {
        self.coordinator.begin();
        let mut now = 0;
        while let Some((time, event)) = self.queue.take() {
            now = time;
            match event {
                Event::ToRank(at, message) => {
                    let sent = self.ranks[at].leases.take(message);
                    self.send(now, at, sent);
                    if std::mem::take(&mut self.ranks[at].is_asleep) {
                        self.step(now, at);
                    }
                }
                Event::Rank(at) => self.step(now, at),
                Event::ToCoordinator(at, message) => {
                    self.inbox.push_back((at, message));
                    self.serve(now);
                }
            }
        }
        now
    }

    fn send(&mut self, now: u64, at: usize, sent: Vec<ToCoordinator>) {
        for message in sent {
            self.messages += 1;
            self.queue.add(now + LATENCY_NS, Event::ToCoordinator(at, message));
        }
    }

    /// Has rank 0 take its messages, one after another.
    fn serve(&mut self, now: u64) {
        while let Some((at, message)) = self.inbox.pop_front() {
            let items = match &message {
                ToCoordinator::Report(report) => {
                    report.folders.len() + report.files.len() + report.outcomes.len()
                }
                ToCoordinator::Want | ToCoordinator::Stopped(..) => 0,
            };
            let took = MESSAGE_NS + ITEM_NS * items as u64;
            self.free_at = self.free_at.max(now) + took;
            self.served += took;
            let began = Instant::now();
            let rank = u32::try_from(at).unwrap_or(u32::MAX);
            match self.coordinator.take(rank, message) {
                Ok(Some(record)) => {
                    let line = write_line(&Line::Record(Box::new(record))).unwrap_or_default();
                    self.journal += line.len() as u64;
                }
                Ok(None) => {}
                Err(error) => panic!("{error}"),
            }
            let sends = self.coordinator.sends();
            self.measured += began.elapsed().as_secs_f64();
            for (to, message) in sends {
                self.messages += 1;
                let to = usize::try_from(to).unwrap_or(0);
                self.queue.add(self.free_at + LATENCY_NS, Event::ToRank(to, message));
            }
            if self.messages.is_multiple_of(256) {
                let load = self.coordinator.load();
                self.worst.folders = self.worst.folders.max(load.folders);
                self.worst.frontier = self.worst.frontier.max(load.frontier);
                self.worst.bytes = self.worst.bytes.max(load.bytes);
            }
        }
    }

    /// Has a rank do its next task.
    fn step(&mut self, now: u64, at: usize) {
        let rank = &mut self.ranks[at];
        let asks = rank.leases.asks();
        let walk = match rank.walk.take() {
            Some(walk) => Some(walk),
            None => match rank.leases.next_step() {
                Next::Perform(grant) => Some(Walk::new(grant, &self.world.settings)),
                Next::Wait => None,
                Next::End | Next::Stop(_) => return,
            },
        };
        let mut sent = asks;
        let mut took = 0;
        match walk {
            Some(mut walk) if !rank.leases.is_awaited() => {
                walk.note_idle(rank.leases.take_idle());
                if let Some(task) = walk.next_task() {
                    took = self.world.perform(rank, &mut walk, task);
                    rank.busy += took;
                    rank.last = now + took;
                    rank.walk = Some(walk);
                } else {
                    let report = walk.report(std::mem::take(&mut rank.totals), Vec::new());
                    rank.leases.report(report.lease, report.ended);
                    if !report.ended {
                        rank.walk = Some(walk);
                    }
                    sent.push(ToCoordinator::Report(Box::new(report)));
                    sent.extend(rank.leases.asks());
                }
                self.queue.add(now + took, Event::Rank(at));
            }
            walk => {
                rank.walk = walk;
                rank.is_asleep = true;
            }
        }
        self.send(now, at, sent);
    }
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn simulate(entries: u64, ranks: u32, shape: Shape) -> Figures {
    let own = if shape == Shape::Half { entries / 2 } else { entries };
    let root = Synthetic { seed: 1, entries: own, is_huge: false };
    let world = World { root, shape, settings: Settings::new(ranks) };
    let mut simulation = Simulation::new(world, usize::try_from(ranks).unwrap_or(1));
    let end = simulation.run();
    assert!(simulation.coordinator.is_complete(), "the job is stuck: {:?}", simulation.coordinator.load());
    let whole = end as f64 * f64::from(ranks);
    let busy: u64 = simulation.ranks.iter().map(|rank| rank.busy).sum();
    let tail: u64 = simulation.ranks.iter().map(|rank| end - rank.last.min(end)).sum();
    Figures {
        entries: simulation.coordinator.totals().entries,
        seconds: end as f64 / 1e9,
        messages: simulation.messages,
        journal: simulation.journal,
        load: simulation.served as f64 / end as f64,
        idle: 1.0 - busy as f64 / whole,
        tail: tail as f64 / whole,
        folders: simulation.worst.folders,
        frontier: simulation.worst.frontier,
        bytes: simulation.worst.bytes,
        measured_us: simulation.measured * 1e6 / simulation.messages as f64,
    }
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
fn print_row(ranks: u32, shape: Shape, figures: &Figures) {
    println!(
        "| {} | {ranks} | {} | {:.0} | {:.5} | {:.1} | {:.1} | {:.2} | {:.1} | {} | {} | {:.0} | {:.1} |",
        figures.entries,
        shape.name(),
        figures.seconds,
        figures.messages as f64 / figures.entries as f64,
        100.0 * figures.load,
        100.0 * figures.idle,
        100.0 * figures.tail,
        figures.journal as f64 / 1e6,
        figures.folders,
        figures.frontier,
        figures.bytes as f64 / 1e6,
        figures.measured_us,
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "| entries | ranks | tree | seconds | messages per entry | load of rank 0 % | idle % | idle tail % | journal MB \
         | folders | frontier | memory MB | measured µs per message |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    if let [entries, ranks, shape] = &arguments[..] {
        let entries = entries.parse().unwrap_or(1_000_000);
        let ranks = ranks.parse().unwrap_or(1_000);
        let shape = match shape.as_str() {
            "half" => Shape::Half,
            "file" => Shape::File,
            _ => Shape::Even,
        };
        print_row(ranks, shape, &simulate(entries, ranks, shape));
        return;
    }
    let rows = [
        (10_000_000, 16, Shape::Even),
        (10_000_000, 16, Shape::Half),
        (10_000_000, 16, Shape::File),
        (10_000_000, 100, Shape::Half),
        (10_000_000, 1_000, Shape::Even),
        (10_000_000, 1_000, Shape::Half),
        (10_000_000, 1_000, Shape::File),
        (100_000_000, 1_000, Shape::Even),
        (100_000_000, 4_000, Shape::Even),
        (100_000_000, 16_000, Shape::Even),
        (1_000_000_000, 1_000, Shape::Even),
    ];
    for (entries, ranks, shape) in rows {
        print_row(ranks, shape, &simulate(entries, ranks, shape));
    }
}
