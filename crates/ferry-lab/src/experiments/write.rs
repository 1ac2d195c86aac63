//! `lab write`: zeros over a sparse file, and a download, into different sinks (document 001).
//!
//! Each run writes its own file. It is timed from its start until the last write has returned, and until the data is
//! durable. Then every byte is compared, untimed.

mod beside;
mod content;
mod http;
mod server;
mod sink;
mod verdicts;

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use self::beside::{DOWNLOAD, OVERWRITE, beside_published};
use self::content::Content;
use self::http::{Download, Url};
use self::server::Server;
use self::sink::{Sink, SinkOptions, Source};
use crate::cache::State;
use crate::cache::sample::Sample;
use crate::command::Stranger;
use crate::error::Failure;
use crate::experiment::{Experiment, Runs, Spec};
use crate::needs::{self, Need};
use crate::plot::Plot;
use crate::record::{Better, Cell, Figures, Measure, Record, Value};
use crate::search_path::find_program;
use crate::session::{Session, Subject, Turn};
use crate::settings::{Parameter, ParameterKind, Settings};
use crate::stop::Stop;
use crate::table::{self, Table};
use crate::units::{real, size};
use crate::verdict::Verdict;

#[cfg(test)]
mod tests;

/// The experiment.
pub(super) struct Write;

const PARAMETERS: &[Parameter] = &[
    Parameter::new(
        "operations",
        "NAME,...",
        "Workloads: overwrite (zeros over a sparse file), download",
        ParameterKind::Words(&[OVERWRITE, DOWNLOAD]),
        "overwrite,download",
    ),
    Parameter::new(
        "sinks",
        "NAME,...",
        "Sinks: control, dd, direct, direct-pipelined, ring, ring-direct",
        ParameterKind::Words(&["control", "dd", "direct", "direct-pipelined", "ring", "ring-direct"]),
        "control,dd,direct,direct-pipelined,ring,ring-direct",
    ),
    Parameter::new("size", "BYTES", "Size of the sparse file", ParameterKind::Size(4096, 1 << 40), "1G")
        .quick("32M")
        .published("5G"),
    Parameter::new(
        "url",
        "URL",
        "Download this URL by plain HTTP; by default, use the lab's own server",
        ParameterKind::Text,
        "",
    ),
    Parameter::new(
        "download-size",
        "BYTES",
        "Size of the own server's file",
        ParameterKind::Size(1, 1 << 40),
        "256M",
    )
    .quick("16M")
    .published("1G"),
    Parameter::new(
        "rate",
        "BYTES",
        "Limit of the own server's rate, in bytes a second; 0: no limit",
        ParameterKind::Size(0, 1 << 40),
        "200M",
    )
    .quick("0")
    .published("62M"),
    Parameter::new(
        "block-sizes",
        "BYTES,...",
        "Bytes of each write, multiples of 4K",
        ParameterKind::Sizes(4096, 64 << 20),
        "1M",
    ),
    Parameter::new(
        "depths",
        "N,...",
        "Writes in flight, for sinks that have several",
        ParameterKind::Numbers(2, 1024),
        "16",
    ),
];

const SPEC: Spec = Spec {
    name: "write",
    about: "Times plain, direct and ring writes: zeros over a sparse file, and a download",
    manual: "\
Repeats document 001: zeros over a sparse file, and a download over HTTP. Each sink writes a new file, in rounds of \
random order. The sinks are plain writes (control), dd, O_DIRECT with one write in flight or several (by threads), \
and the ring, through the page cache or with O_DIRECT. The document does not give its image size or block size. \
--as-published takes 1 GiB at 62 MiB/s, which takes about as long as the published runs, and blocks of 1 MiB.",
    parameters: PARAMETERS,
    operands: &[],
    runs: Runs { default: 5, quick: 2, published: 100 },
    is_measured: true,
};

impl Experiment for Write {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn measures(&self) -> Vec<Measure> {
        vec![
            Measure::new("returned_s", "time until the last write returned", "s", Better::Lower),
            Measure::new("durable_s", "time until the data was durable", "s", Better::Lower),
            Measure::new(
                "throughput_b_s",
                "bytes written per second until the last write returned",
                "B/s",
                Better::Higher,
            ),
        ]
    }

    fn judged(&self, _: &Cell) -> &'static [&'static str] {
        &["returned_s", "durable_s"]
    }

    fn needs(&self, settings: &Settings) -> Result<Vec<Need>, Failure> {
        let has = |operation: &str| settings.texts("operations").iter().any(|known| known == operation);
        if let Some(odd) = settings.numbers("block-sizes").iter().find(|bytes| !bytes.is_multiple_of(4096)) {
            return Err(Failure::Misuse(format!("{odd} in '--block-sizes' is not a multiple of 4096")));
        }
        let url = settings.text("url");
        if !url.is_empty() {
            Url::parse(&url)?;
        }
        let overwrite = if has(OVERWRITE) { settings.number("size") } else { 0 };
        // The size behind a URL is known before the first byte is written.
        let download = if has(DOWNLOAD) && url.is_empty() { settings.number("download-size") } else { 0 };
        Ok(vec![Need::Space { bytes: overwrite.max(download), entries: 2 }])
    }

    fn run(&self, session: &mut Session<'_>) -> Result<(), Failure> {
        let operations = session.settings().texts("operations");
        let groups: Vec<(String, Vec<(Cell, SinkOptions)>)> = operations
            .into_iter()
            .map(|operation| {
                let cells = cells(&operation, session.settings());
                (operation, cells)
            })
            .collect();
        session.plan(groups.iter().map(|(_, cells)| cells.len()).sum());
        let ring = needs::ring().err();
        let has_direct = needs::has_direct_io(session.work());
        let dd = find_program("dd".as_ref());
        if let Some(program) = &dd {
            session.note_tool("dd", program);
        }
        for (cell, how) in groups.iter().flat_map(|(_, cells)| cells) {
            let why = if how.sink.needs_ring() && ring.is_some() {
                ring.clone()
            } else if how.sink.is_direct() && !has_direct {
                Some("the work folder's filesystem has no direct I/O (O_DIRECT)".to_owned())
            } else {
                (how.sink == Sink::Dd && dd.is_none()).then(|| "'dd' is not found on the PATH".to_owned())
            };
            if let Some(why) = why {
                session.leave_out(cell.clone(), &why);
            }
        }
        // URLs are tried before anything is measured.
        let (downloads, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|(operation, _)| operation == DOWNLOAD);
        for (operation, cells) in downloads.into_iter().chain(others) {
            if session.has_taken(cells.iter().map(|(cell, _)| cell)) {
                continue;
            }
            let cells = cells.into_iter().filter(|(cell, _)| {
                session.record().cell(&cell.name).is_none_or(|known| known.missing.is_none())
            });
            let cells = cells.collect();
            if operation == OVERWRITE { overwrite(session, cells)? } else { download(session, cells)? }
        }
        Ok(())
    }

    fn tables(&self, record: &Record) -> Vec<Table> {
        let of = |operation: &str| {
            let cells = record.cells.iter().filter(|cell| cell.text("operation") == operation);
            table::of_cells(record, operation, cells)
        };
        let mut tables = vec![beside_published(record), of(OVERWRITE), of(DOWNLOAD)];
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    fn plots(&self, record: &Record) -> Vec<Plot> {
        let mut plots = Vec::new();
        for operation in [OVERWRITE, DOWNLOAD] {
            for (measure, what) in
                [("returned_s", "until the last write returned"), ("durable_s", "until durable")]
            {
                let cells = record.cells.iter().filter(|cell| cell.text("operation") == operation);
                let title = format!("{operation}: {what}");
                plots.push(Plot::strips(record, &title, measure, &format!("{operation}/"), cells));
            }
        }
        plots.retain(|plot| !plot.is_empty());
        plots
    }

    fn verdicts(&self, record: &Record) -> Vec<Verdict> {
        verdicts::all(record)
    }
}

/// Each sink with each block size and, with several writes in flight, each depth.
fn cells(operation: &str, settings: &Settings) -> Vec<(Cell, SinkOptions)> {
    let mut found: Vec<(Cell, SinkOptions)> = Vec::new();
    for (name, sink) in settings.texts("sinks").iter().filter_map(|name| Some((name, Sink::named(name)?))) {
        // dd cannot download.
        if operation == DOWNLOAD && sink == Sink::Dd {
            continue;
        }
        for block in settings.numbers("block-sizes") {
            let depths = if sink.has_depth() { settings.numbers("depths") } else { vec![1] };
            for depth in depths {
                let block_words = size(block);
                let mut parameters = vec![
                    ("operation", operation.into()),
                    ("sink", name.as_str().into()),
                    ("block", block_words.as_str().into()),
                ];
                if sink.has_depth() {
                    parameters.push(("depth", depth.into()));
                }
                let cell = Cell::new(&parameters, State::AsItIs).with("block_bytes", block.into());
                let whole = |number: u64| usize::try_from(number).unwrap_or(1);
                let how = SinkOptions { sink, block_bytes: whole(block), depth: whole(depth) };
                found.push((cell, how));
            }
        }
    }
    let control = found.iter().find(|(_, how)| how.sink == Sink::Control).map(|(cell, _)| cell.clone());
    let compared = |(cell, how): (Cell, SinkOptions)| match &control {
        Some(control) if control.name != cell.name => (cell.against(control), how),
        _ => (cell, how),
    };
    found.into_iter().map(compared).collect()
}

fn overwrite(session: &mut Session<'_>, cells: Vec<(Cell, SinkOptions)>) -> Result<(), Failure> {
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

fn download(session: &mut Session<'_>, cells: Vec<(Cell, SinkOptions)>) -> Result<(), Failure> {
    let url = session.settings().text("url");
    let (mut own, mut first) = (None, None);
    let (url, content, bytes) = if url.is_empty() {
        let (size, rate) = (session.settings().number("download-size"), session.settings().number("rate"));
        let server = own.insert(Server::start(session.seed(), size, rate)?);
        (server.url(), Content::Stamped(session.seed(), size), size)
    } else {
        let url = Url::parse(&url)?;
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
    if how.sink == Sink::Dd {
        dd(how, bytes).run(Path::new(""), target, stop)?;
    } else {
        let folder = target.parent().unwrap_or(target);
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        sink::pour(how, begin(stop)?, folder, &name)?;
    }
    let returned = start.elapsed().as_secs_f64();
    file.sync_all().map_err(|error| Failure::file("sync", target, &error))?;
    let durable = start.elapsed().as_secs_f64();
    let rate = if returned > 0.0 { real(bytes) / returned } else { 0.0 };
    let figures = [("returned_s", returned), ("durable_s", durable), ("throughput_b_s", rate)];
    Ok(figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn dd(how: &SinkOptions, bytes: u64) -> Stranger {
    let program = find_program("dd".as_ref()).unwrap_or_else(|| "dd".into());
    let (block, count) = (format!("bs={}", how.block_bytes), format!("count={bytes}"));
    let flags = ["if=/dev/zero", "of={target}", "conv=notrunc", "iflag=count_bytes", "status=none"];
    Stranger::new(&program, &[&flags[..], &[&block, &count]].concat())
}
