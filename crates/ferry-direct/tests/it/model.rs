//! A direct file against a plain vector of bytes, under any order of events, short transfers and failures.

use ferry_direct::{DirectFile, DirectOptions, Failures};
use ferry_io::sim::{Fault, Settings, World};
use ferry_io::{Errno, Error, Io, Name, OpenHow, Operation, run};

/// Number of programs tried; `FERRY_SEED` selects one.
const SEEDS: u64 = if cfg!(miri) { 3 } else { 10_000 };
/// Maximum size of the file.
const LONGEST: u64 = 70_000;

struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end
    }

    fn size_below(&mut self, end: u64) -> usize {
        usize::try_from(self.below(end)).expect("it fits")
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.size_below(of.len() as u64)]
    }
}

fn faults(chance: &mut Chance) -> Vec<Fault> {
    let mut faults = Vec::new();
    let possible = [
        (Operation::Read, Errno::IO),
        (Operation::Read, Errno::INTR),
        (Operation::Write, Errno::IO),
        (Operation::Write, Errno::INTR),
        (Operation::Write, Errno::NOSPC),
        (Operation::Sync, Errno::IO),
    ];
    for (operation, errno) in possible {
        if chance.below(3) == 0 {
            faults.push(Fault::by_chance(operation, chance.pick(&[10_000, 100_000, 300_000]), errno));
        }
    }
    faults
}

fn settings(chance: &mut Chance) -> Settings {
    Settings {
        short_transfers: chance.pick(&[0, 200_000, 1_000_000]),
        direct_alignment: chance.pick(&[512, 4096]),
        reports_alignment: chance.below(4) > 0,
        opens_direct: chance.below(5) > 0,
        keeps_history: true,
        ..Settings::default()
    }
}

fn options(chance: &mut Chance) -> DirectOptions {
    let blocks = chance.pick(&[8, 12, 40]);
    DirectOptions {
        block_bytes: chance.pick(&[4096, 8192]),
        blocks,
        request_blocks: chance.pick(&[1, 2]),
        ahead_blocks: chance.pick(&[0, 2]),
        in_flight: chance.pick(&[1, 3, 16]),
    }
}

/// Expected content of the file, now and in the past.
struct Model {
    bytes: Vec<u8>,
    /// Content after each step so far.
    past: Vec<Vec<u8>>,
    /// Number of failed writes and syncs reported.
    told: u64,
}

impl Model {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if !bytes.is_empty() {
            self.bytes.resize(self.bytes.len().max(end), 0);
            self.bytes[at..end].copy_from_slice(bytes);
        }
    }

    /// Checks that each byte on the device had that value at some time, and that the file is no longer than it ever
    /// was.
    fn check_killed(&self, world: &World) {
        let found = on_device(world);
        let longest = self.past.iter().map(Vec::len).max().unwrap_or(0);
        assert!(found.len() <= longest, "{} bytes, of {longest} at most", found.len());
        for (at, byte) in found.iter().enumerate() {
            let is_known = self.past.iter().any(|past| past.get(at) == Some(byte));
            assert!(is_known, "byte {at} is {byte}, which it never was");
        }
    }

    fn hear(&mut self, failures: &Failures) {
        for failure in &failures.failures {
            assert!(!failure.error.is_cancelled() && !failure.error.is(Errno::INTR), "{failure:?}");
        }
        self.told += failures.count();
    }
}

fn on_device(world: &World) -> Vec<u8> {
    let content = world.get("file").expect("it is there").content;
    let mut bytes = vec![0; usize::try_from(content.size()).expect("it fits")];
    content.read(0, &mut bytes);
    bytes
}

/// Number of writes and syncs that failed for good, according to the simulation's history.
fn failed(world: &World) -> u64 {
    let history = world.history();
    let done = |answer: &str| answer.parse::<u64>().is_ok() || answer == "done";
    let is_failed = |line: &&String| {
        // Format of a line: virtual time, operation and file, answer.
        let (asked, answer) = line.split_once(": ").unwrap_or_default();
        let is_of_bytes = matches!(asked.split(' ').nth(1), Some("write" | "sync"));
        is_of_bytes && !done(answer) && answer != format!("{:?}", Errno::INTR)
    };
    history.iter().filter(is_failed).count() as u64
}

async fn read_all(file: &DirectFile<'_>, end: usize) -> Vec<u8> {
    let mut bytes = vec![0; end];
    let count = file.read_into(&mut bytes, 0).await.expect("nothing fails now");
    bytes.truncate(count);
    bytes
}

/// Finds the end of the part that a failed write has written, and updates the model.
async fn settle(file: &DirectFile<'_>, world: &World, model: &mut Model, at: usize, bytes: &[u8]) {
    let faults = std::cell::Cell::new(Vec::new());
    world.change(|settings| faults.set(std::mem::take(&mut settings.faults)));
    let found = read_all(file, usize::try_from(LONGEST * 2).expect("it fits")).await;
    world.change(|settings| settings.faults = faults.take());
    let done = |count: usize| {
        let mut tried = Model { bytes: model.bytes.clone(), past: Vec::new(), told: 0 };
        tried.write(at, &bytes[..count]);
        tried.bytes == found
    };
    // Blocks before the failed one are written.
    let places = (0..=bytes.len()).filter(|count| *count == 0 || (at + count).is_multiple_of(4096));
    let count = places.into_iter().find(|&count| done(count)).expect("it was done up to some block");
    model.write(at, &bytes[..count]);
}

async fn step(file: &DirectFile<'_>, world: &World, chance: &mut Chance, model: &mut Model, number: u64) {
    let at = chance.below(LONGEST);
    let size = chance.pick(&[1, 100, 4096, 5000, 20_000]);
    let size = chance.size_below(size) + 1;
    let offset = usize::try_from(at).expect("it fits");
    match chance.below(20) {
        0..8 => {
            // Mostly within the file or at its end.
            let offset = if chance.below(3) == 0 { model.bytes.len().min(offset) } else { offset };
            let bytes = vec![u8::try_from(number % 255 + 1).expect("a byte"); size];
            match file.write_from(&bytes, offset as u64).await {
                Ok(()) => model.write(offset, &bytes),
                Err(error) => {
                    assert!(!error.is(Errno::INTR), "{error:?}");
                    model.told += u64::from(error.operation == Operation::Write);
                    settle(file, world, model, offset, &bytes).await;
                }
            }
        }
        8..16 => {
            let mut bytes = vec![0; size];
            if let Ok(count) = file.read_into(&mut bytes, at).await {
                let expected = model.bytes.get(offset..).unwrap_or_default();
                assert!(expected.starts_with(&bytes[..count]), "{count} bytes at {at}");
                assert!(count > 0 || expected.is_empty(), "it is not the end");
            }
        }
        16..18 => match file.flush().await {
            Ok(()) => assert!(on_device(world) == model.bytes, "what was flushed is on the device"),
            Err(failures) => model.hear(&failures),
        },
        _ => {
            if file.truncate(at / 2).await.is_ok() {
                model.bytes.resize(offset / 2, 0);
            }
        }
    }
    assert_eq!(file.size(), model.bytes.len() as u64);
    model.past.push(model.bytes.clone());
}

async fn program(io: &Io, world: &World, chance: &mut Chance, before: Vec<u8>) -> Result<(), Error> {
    let folder = io.open_dir("/".as_ref())?;
    let name = Name::new(b"file").expect("a component");
    let file = DirectFile::open(io, &folder, &name, OpenHow::write(), options(chance)).await?;
    let struck = faults(chance);
    world.change(|settings| settings.faults = struck);
    let mut model = Model { bytes: before.clone(), past: vec![before], told: 0 };
    for number in 0..chance.below(40) {
        step(&file, world, chance, &mut model, number).await;
        if number % 8 == 7 {
            model.check_killed(world);
        }
    }
    world.change(|settings| settings.faults.clear());
    if let Err(failures) = file.flush().await {
        model.hear(&failures);
    }
    assert!(read_all(&file, model.bytes.len() + 100).await == model.bytes);
    file.close().await.expect("all that failed has been told");
    assert_eq!(model.told, failed(world), "each failure is told once");
    assert!(on_device(world) == model.bytes, "in the end it is all there");
    Ok(())
}

fn check(seed: u64) {
    let mut chance = Chance(seed);
    let world = World::new(settings(&mut chance));
    let before = vec![255; chance.size_below(LONGEST)];
    world.file("file", &before);
    let (outcome, stats) =
        run(&world.options(seed), async |io| program(&io, &world, &mut chance, before).await)
            .expect("the simulation is there");
    outcome.expect("it opens");
    assert_eq!(stats.unwritten_bytes, 0);
    assert!(world.open_descriptors().is_empty());
}

#[test]
fn it_is_a_vector_of_bytes_whatever_happens() {
    if let Some(seed) = std::env::var("FERRY_SEED").ok().and_then(|seed| seed.parse().ok()) {
        return check(seed);
    }
    let next = std::sync::atomic::AtomicU64::new(0);
    let seeds = crate::place::scaled(SEEDS);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= seeds {
                        return;
                    }
                    let outcome = std::panic::catch_unwind(|| check(seed));
                    if let Err(panic) = outcome {
                        eprintln!("the test failed with FERRY_SEED={seed}");
                        std::panic::resume_unwind(panic);
                    }
                }
            });
        }
    });
}
