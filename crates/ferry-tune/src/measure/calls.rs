//! Cost of calls: creating a file inline, and handing a request to the ring or the pool.

use std::num::NonZeroUsize;
use std::time::Instant;

use ferry_io::{Backend, Io, Name, OpenHow, Options, RouteChoice, run};
use ferry_lab::Failure;
use ferry_lab::statistics::median;
use ferry_lab::stop::Stop;

use super::scale::Scale;
use super::steps::Steps;
use super::work::{Work, WorkFile};
use crate::Calls;

pub(super) const SUBJECTS: usize = 3;
/// Size of the read in bytes.
const READ_BYTES: usize = 4096;

/// Pairs of inline and handed-over reads behind one difference.
const PAIRS: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Create,
    HandOver(RouteChoice),
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "creating files inline",
            Self::HandOver(RouteChoice::Ring) => "handing reads to the ring",
            Self::HandOver(_) => "handing reads to the pool",
        }
    }
}

pub(super) fn measure(
    work: &Work,
    file: &WorkFile,
    with_ring: bool,
    scale: &Scale,
    steps: &mut Steps<'_>,
) -> Result<Calls, Failure> {
    let mut calls = vec![Call::Create, Call::HandOver(RouteChoice::Pool)];
    if with_ring {
        calls.push(Call::HandOver(RouteChoice::Ring));
    } else {
        steps.skip(1);
    }
    let stop = steps.stop();
    let found = steps.rounds(
        &calls,
        |call| call.name().to_owned(),
        |call, _| match call {
            Call::Create => creating(work, scale.creates, stop),
            Call::HandOver(route) => {
                // Several pairs, because the difference is smaller than disturbances by other programs.
                let reading = |route| reading(file, route, scale.reads / PAIRS, stop);
                let pair = |_| Ok(-reading(RouteChoice::Inline)? + reading(*route)?);
                Ok(median(&(0..PAIRS).map(pair).collect::<Result<Vec<f64>, Failure>>()?))
            }
        },
    )?;
    let mut found = found.into_iter();
    match (found.next(), found.next(), found.next()) {
        (Some(inline_create), Some(pool_hand_over), ring_hand_over) => {
            Ok(Calls { inline_create, ring_hand_over, pool_hand_over })
        }
        _ => Err(Failure::Run("a figure is missing".to_owned())),
    }
}

/// Options for one worker that uses only this route.
pub(super) fn options(route: RouteChoice) -> Options {
    let backend = if route == RouteChoice::Ring { Backend::Uring } else { Backend::Posix };
    let (workers, block_size) = (NonZeroUsize::MIN, READ_BYTES);
    Options { workers, backend, route, blocks: 4, block_size, pool_threads: 1, ..Options::default() }
}

/// Runs `main` to its end, and returns its failure as text.
pub(super) fn finished<T>(
    options: &Options,
    main: impl AsyncFnOnce(Io) -> ferry_io::Result<T>,
) -> Result<T, Failure> {
    let failed = |error: String| Failure::Run(error);
    let (outcome, _) = run(options, main).map_err(|error| failed(error.to_string()))?;
    outcome.map_err(|error| failed(error.to_string()))
}

pub(super) fn name_of(text: &str) -> Result<Name, Failure> {
    Name::new(text.as_bytes()).ok_or_else(|| Failure::Run(format!("'{text}' is not a valid name")))
}

/// Returns the microseconds that creating and closing an empty file takes.
fn creating(work: &Work, count: u32, stop: &Stop) -> Result<f64, Failure> {
    let names: Vec<Name> =
        (0..count).map(|index| name_of(&format!("made{index}"))).collect::<Result<_, _>>()?;
    finished(&options(RouteChoice::Inline), async |io| {
        let folder = io.open_dir(work.path())?;
        let begun = Instant::now();
        let mut made = 0_u32;
        for name in names.iter().take_while(|_| !stop.is_set()) {
            drop(folder.open(name, OpenHow::create(0o600)).await?);
            made += 1;
        }
        let each = begun.elapsed().as_secs_f64() * 1e6 / f64::from(made.max(1));
        for name in names.iter().take(made as usize) {
            folder.unlink(name).await?;
        }
        Ok(each)
    })
}

/// Returns the microseconds that a cached read takes by a route.
fn reading(file: &WorkFile, route: RouteChoice, count: u32, stop: &Stop) -> Result<f64, Failure> {
    finished(&options(route), async |io| {
        let file = file.open(&io, OpenHow::read()).await?;
        let mut block = io.block().await?;
        // Caches the block, and starts a pool thread.
        let (back, read) = file.read_at(block, 0).await;
        block = back;
        read?;
        let begun = Instant::now();
        let mut done = 0_u32;
        while done < count && !stop.is_set() {
            let (back, read) = file.read_at(block, 0).await;
            block = back;
            read?;
            done += 1;
        }
        Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(done.max(1)))
    })
}
