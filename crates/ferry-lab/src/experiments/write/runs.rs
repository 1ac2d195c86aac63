//! The runs: each writes its own file, which is timed, compared and removed.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use super::content::Content;
use super::http::{Download, Url};
use super::rates::{DEVICE_RATE, Rate};
use super::server::Server;
use super::sink::{self, Sink, SinkOptions, Source};
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::needs::{self, Need};
use crate::record::{Cell, Figures, Value};
use crate::search_path::find_program;
use crate::session::{Session, Subject, Turn};
use crate::stop::Stop;
use crate::units::real;

/// Files that are written to find the device's rate.
const TRIALS: usize = 3;

/// Takes the runs of overwriting a sparse file with zeros.
pub(super) fn overwrite(session: &mut Session<'_>, cells: Vec<(Cell, SinkOptions)>) -> Result<(), Failure> {
    let bytes = session.settings().number("size");
    let content = Content::Zeros(bytes);
    let subject = |(cell, how): (Cell, SinkOptions)| {
        let content = &content;
        Subject::new(cell, move |turn: &mut Turn<'_>| {
            let begin = |stop: &Stop| Ok(Source::Zeros(bytes, stop.clone()));
            written(&how, bytes, bytes, content, begin, turn)
        })
    };
    let mut subjects: Vec<Subject<'_>> = cells.into_iter().map(subject).collect();
    session.interleave(&mut subjects, &Sample::none())
}

/// Takes the runs of downloads from the own server at a rate, or from the URL.
pub(super) fn download(
    session: &mut Session<'_>,
    rate: Option<Rate>,
    cells: Vec<(Cell, SinkOptions)>,
) -> Result<(), Failure> {
    let (mut own, mut first) = (None, None);
    let (url, content, bytes) = if let Some(rate) = rate {
        let size = session.settings().number("download-size");
        let device = if matches!(rate, Rate::OfDevice(_)) { device_rate(session, size)? } else { 0 };
        let server = own.insert(Server::start(session.seed(), size, rate.bytes_per_second(device))?);
        (server.url(), Content::Stamped(session.seed(), size), size)
    } else {
        let url = Url::parse(&session.settings().text("url"))?;
        session.step("downloading once, to compare the others with");
        let source = Download::begin(&url, session.stop())?;
        let needed = |bytes: u64| [Need::Space { bytes, entries: 2 }];
        if let Some(size) = source.size {
            needs::check(&needed(size.saturating_mul(2)), session.work())?;
        }
        let path = first.insert(session.work().join("first"));
        let file = File::create(&path).map_err(|error| Failure::file("create", path, &error))?;
        let how = SinkOptions { sink: Sink::Control, block_bytes: 1 << 20, depth: 1 };
        sink::pour(&how, Source::Http(source), session.work(), "first")?;
        let size = file.metadata().map_err(|error| Failure::file("read", path, &error))?.len();
        settle_content(session, size, &hash_of(path)?)?;
        needs::check(&needed(size), session.work())?;
        (url, Content::File(path.clone()), size)
    };
    let subject = |(cell, how): (Cell, SinkOptions)| {
        let (url, content) = (&url, &content);
        Subject::new(cell, move |turn: &mut Turn<'_>| {
            let begin = |stop: &Stop| Ok(Source::Http(Download::begin(url, stop)?));
            written(&how, 0, bytes, content, begin, turn)
        })
    };
    let mut subjects: Vec<Subject<'_>> = cells.into_iter().map(subject).collect();
    let outcome = session.interleave(&mut subjects, &Sample::none());
    drop(own);
    if let Some(path) = first {
        ferry_tree::remove::remove(&path)?;
    }
    outcome
}

/// Returns the bytes a second that the device writes with O_DIRECT, one block after another, until they are durable: the
/// median of some files. Without O_DIRECT, they go through the page cache.
fn device_rate(session: &mut Session<'_>, bytes: u64) -> Result<u64, Failure> {
    if let Some(known) = session.settled(DEVICE_RATE).and_then(Value::as_number) {
        return Ok(known);
    }
    session.step("measuring the device's rate");
    let sink = if needs::has_direct_io(session.work()) { Sink::Direct } else { Sink::Control };
    let how = SinkOptions { sink, block_bytes: 1 << 20, depth: 1 };
    let path = session.work().join("trial");
    let mut rates = Vec::new();
    for _ in 0..TRIALS {
        let file = File::create(&path).map_err(|error| Failure::file("create", &path, &error))?;
        let start = Instant::now();
        let zeros = Source::Zeros(bytes, session.stop().clone());
        sink::pour(&how, zeros, session.work(), "trial")?;
        file.sync_all().map_err(|error| Failure::file("sync", &path, &error))?;
        let rate = u128::from(bytes) * 1_000_000_000 / start.elapsed().as_nanos().max(1);
        rates.push(u64::try_from(rate).unwrap_or(u64::MAX));
    }
    ferry_tree::remove::remove(&path)?;
    rates.sort_unstable();
    let rate = rates.get(TRIALS / 2).copied().unwrap_or(1);
    session.settle(DEVICE_RATE, rate.into());
    Ok(rate)
}

/// The content of a URL must be the same in all sessions, because figures of different contents cannot be compared.
fn settle_content(session: &mut Session<'_>, size: u64, hash: &str) -> Result<(), Failure> {
    let found: [(&str, Value); 2] = [("download_bytes", size.into()), ("download_blake3", hash.into())];
    for (name, value) in found {
        match session.settled(name) {
            Some(before) if *before != value => {
                let why = format!("{name} {before} then, {value} now");
                return Err(Failure::Run(format!(
                    "the URL has other content than when the record was begun ({why})"
                )));
            }
            Some(_) => {}
            None => session.settle(name, value),
        }
    }
    Ok(())
}

fn hash_of(path: &Path) -> Result<String, Failure> {
    let mut hasher = blake3::Hasher::new();
    let hashed = File::open(path).and_then(|file| hasher.update_reader(file).map(|_| ()));
    hashed.map_err(|error| Failure::file("read", path, &error))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Writes a file; times, compares and removes it. `sparse` is its size before, `bytes` its size afterwards.
fn written(
    how: &SinkOptions,
    sparse: u64,
    bytes: u64,
    content: &Content,
    begin: impl FnOnce(&Stop) -> Result<Source, Failure>,
    turn: &mut Turn<'_>,
) -> Result<Figures, Failure> {
    let target = turn.fresh("written");
    let file = File::create(&target).map_err(|error| Failure::file("create", &target, &error))?;
    file.set_len(sparse).map_err(|error| Failure::file("resize", &target, &error))?;
    // The empty file is durable before the clock starts.
    file.sync_all().map_err(|error| Failure::file("sync", &target, &error))?;
    let outcome = timed(how, bytes, begin, &target, &file, turn.stop())
        .and_then(|figures| content.check(&target, turn.stop()).map(|()| figures));
    drop(file);
    let removed = turn.remove(target);
    let figures = outcome?;
    removed?;
    Ok(figures)
}

fn timed(
    how: &SinkOptions,
    bytes: u64,
    begin: impl FnOnce(&Stop) -> Result<Source, Failure>,
    target: &Path,
    file: &File,
    stop: &Stop,
) -> Result<Figures, Failure> {
    let start = Instant::now();
    let queued = if how.sink == Sink::Dd {
        dd(how, bytes).run(Path::new(""), target, stop)?;
        None
    } else {
        let folder = target.parent().unwrap_or(target);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        Some(sink::pour(how, begin(stop)?, folder, &name)?)
    };
    let returned = start.elapsed().as_secs_f64();
    file.sync_all().map_err(|error| Failure::file("sync", target, &error))?;
    let durable = start.elapsed().as_secs_f64();
    let rate = if returned > 0.0 { real(bytes) / returned } else { 0.0 };
    let figures = [("returned_s", returned), ("durable_s", durable), ("throughput_b_s", rate)];
    let queued = queued.map(|time| ("queued_s", time.saturating_duration_since(start).as_secs_f64()));
    Ok(figures.into_iter().chain(queued).map(|(name, value)| (name.to_owned(), value)).collect())
}

fn dd(how: &SinkOptions, bytes: u64) -> Stranger {
    let program = find_program("dd".as_ref()).unwrap_or_else(|| "dd".into());
    let (block, count) = (format!("bs={}", how.block_bytes), format!("count={bytes}"));
    let flags = ["if=/dev/zero", "of={target}", "conv=notrunc", "iflag=count_bytes", "status=none"];
    Stranger::new(&program, &[&flags[..], &[&block, &count]].concat())
}
