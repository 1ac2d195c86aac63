//! A service on tokio that copies trees without being blocked: `tokio-service ROOT`
//!
//! It listens on a port of the loopback interface, which it prints. A client sends one line:
//!
//! - `copy SOURCE TARGET` copies a folder or file of ROOT to a new name in ROOT. The answers are lines: `progress ENTRIES
//!   BYTES` now and then, `failed PATH: WHY`, and in the end `done FILES files BYTES bytes FAILED failed`. If the client
//!   closes its connection before, the copy ends and removes its incomplete files.
//! - `status` answers with the number of copies, and the longest time in which the service's only thread did nothing else.
//!
//! Each copy is a run of ferry's runtime on a thread of `spawn_blocking`. The runtime has threads of its own, so tokio's
//! worker stays free. A permit bounds the number of copies, and belongs to the copy until it has ended.

use std::io;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use ferry_copy::{Dereference, Failure, Item, Observer, Options, Progress, Summary, Unfinished, run_in};
use ferry_io::{Io, Name, Paths, SetupError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines, Take};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

/// Bytes that a client may send.
const REQUEST: u64 = 4096;
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_millis(100);
/// Time between two ticks, which show that nothing blocks the service.
const TICK: Duration = Duration::from_millis(5);
/// Failures that wait for a slow client; more are only counted.
const FAILURES: usize = 64;

/// Serve copies of trees on a port of the loopback interface.
#[derive(Parser)]
struct Arguments {
    /// Folder in which everything is copied
    root: PathBuf,
    /// Port; 0 for one that is free
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Copies that run at the same time; others wait
    #[arg(long, default_value_t = 4)]
    at_once: u32,
    /// Bytes that each copy writes per second at most
    #[arg(long)]
    rate: Option<NonZeroU64>,
}

/// State that all requests share.
struct Service {
    root: PathBuf,
    rate: Option<NonZeroU64>,
    permits: Arc<Semaphore>,
    counts: Counts,
}

/// Numbers of the status.
#[derive(Default)]
struct Counts {
    running: AtomicU64,
    complete: AtomicU64,
    stopped: AtomicU64,
    failed: AtomicU64,
    ticks: AtomicU64,
    longest_pause_us: AtomicU64,
}

/// One thread, so that anything that blocks would stop all of the service.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tokio-service: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> io::Result<()> {
    let Arguments { root, port, at_once, rate } = arguments;
    let service = Arc::new(Service {
        root: root.canonicalize()?,
        rate,
        permits: Arc::new(Semaphore::new(at_once as usize)),
        counts: Counts::default(),
    });
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    println!("listening on {}", listener.local_addr()?);
    let mut requests = JoinSet::new();
    requests.spawn(tick(Arc::clone(&service)));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                requests.spawn(serve(Arc::clone(&service), socket));
            }
            Some(_) = requests.join_next() => {}
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        }
    }
    // Ends the copies, because each belongs to its request.
    requests.shutdown().await;
    // Each gives its permit back after it has removed its incomplete files.
    service.permits.acquire_many(at_once).await.map(drop).map_err(io::Error::other)
}

/// Measures the longest time between two turns of this task.
async fn tick(service: Arc<Service>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    loop {
        ticks.tick().await;
        let now = Instant::now();
        let pause = u64::try_from((now - last).as_micros()).unwrap_or(u64::MAX);
        service.counts.longest_pause_us.fetch_max(pause, Ordering::Relaxed);
        service.counts.ticks.fetch_add(1, Ordering::Relaxed);
        last = now;
    }
}

/// The rest of what a client sends. It ends when the client is gone.
type Rest = Lines<BufReader<Take<OwnedReadHalf>>>;

async fn serve(service: Arc<Service>, socket: TcpStream) {
    let (reader, mut writer) = socket.into_split();
    let mut lines = BufReader::new(reader.take(REQUEST)).lines();
    let answered = match lines.next_line().await {
        Ok(Some(request)) => answer(&service, &request, &mut lines, &mut writer).await,
        Ok(None) | Err(_) => return,
    };
    if let Err(error) = answered {
        eprintln!("tokio-service: cannot answer: {error}");
    }
}

async fn answer(
    service: &Arc<Service>,
    request: &str,
    lines: &mut Rest,
    writer: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let words: Vec<&str> = request.split_whitespace().collect();
    match words.as_slice() {
        ["status"] => writer.write_all(service.status().as_bytes()).await,
        ["copy", source, target] => match service.item(source, target) {
            Some(item) => copy(service, item, lines, writer).await,
            None => writer.write_all(b"error: a name is no name of a file\n").await,
        },
        _ => writer.write_all(b"error: unknown request\n").await,
    }
}

/// Copies, and reports to the client.
async fn copy(
    service: &Arc<Service>,
    item: Item,
    lines: &mut Rest,
    writer: &mut OwnedWriteHalf,
) -> io::Result<()> {
    let permit = tokio::select! {
        permit = Arc::clone(&service.permits).acquire_owned() => permit.map_err(io::Error::other)?,
        () = gone(lines) => return Ok(()),
    };
    let mut copy = Copy::start(service, item, permit);
    let mut progress = interval(PROGRESS);
    loop {
        tokio::select! {
            ended = &mut copy.thread => {
                while let Ok(failure) = copy.failures.try_recv() {
                    writer.write_all(failure.as_bytes()).await?;
                }
                return writer.write_all(last_line(ended).as_bytes()).await;
            }
            Some(failure) = copy.failures.recv() => writer.write_all(failure.as_bytes()).await?,
            _ = progress.tick() => {
                let (entries, bytes) = (copy.progress.entries_done.get(), copy.progress.bytes_done.get());
                writer.write_all(format!("progress {entries} {bytes}\n").as_bytes()).await?;
            }
            // Dropping the copy ends it.
            () = gone(lines) => return Ok(()),
        }
    }
}

/// Waits until the client has closed its side.
async fn gone(lines: &mut Rest) {
    while let Ok(Some(_)) = lines.next_line().await {}
}

fn last_line(ended: Result<Result<Summary, SetupError>, tokio::task::JoinError>) -> String {
    match ended {
        Ok(Ok(summary)) if summary.interrupted || summary.out_of_space => "error: stopped early\n".to_owned(),
        Ok(Ok(summary)) => {
            format!("done {} files {} bytes {} failed\n", summary.files, summary.bytes(), summary.failed)
        }
        Ok(Err(error)) => format!("error: {error}\n"),
        Err(error) => format!("error: {error}\n"),
    }
}

/// A copy in progress. Dropping it ends the copy.
struct Copy {
    progress: Arc<Progress>,
    failures: mpsc::Receiver<String>,
    thread: JoinHandle<Result<Summary, SetupError>>,
    /// The copy sees when it is dropped.
    _request: oneshot::Sender<()>,
}

impl Copy {
    fn start(service: &Arc<Service>, item: Item, permit: OwnedSemaphorePermit) -> Self {
        let progress = Arc::new(Progress::default());
        let (sender, failures) = mpsc::channel(FAILURES);
        let (request, request_ended) = oneshot::channel();
        let (service, counters) = (Arc::clone(service), Arc::clone(&progress));
        let thread = tokio::task::spawn_blocking(move || {
            service.counts.running.fetch_add(1, Ordering::Relaxed);
            let ended =
                run_copy(item, &service.options(), counters, Arc::new(Failures(sender)), request_ended);
            service.note(&ended);
            drop(permit);
            ended
        });
        Self { progress, failures, thread, _request: request }
    }
}

/// Copies on this thread, until the copy or its request ends.
fn run_copy(
    item: Item,
    options: &Options,
    progress: Arc<Progress>,
    observer: Arc<dyn Observer>,
    mut request_ended: oneshot::Receiver<()>,
) -> Result<Summary, SetupError> {
    let items = [item];
    let (summary, _stats) = ferry_io::run(&ferry_io::Options::default(), async |io: Io| {
        let mut copy = pin!(run_in(&io, Paths::new(), &items, options, progress, observer));
        // A channel of tokio can be awaited in any runtime.
        tokio::select! {
            summary = copy.as_mut() => summary,
            _ = &mut request_ended => {
                io.stop();
                copy.await
            }
        }
    })?;
    Ok(summary)
}

/// Passes failures on to the client. Any worker's thread calls it, and must not wait.
struct Failures(mpsc::Sender<String>);

impl Failures {
    fn send(&self, line: String) {
        // If the client is slow, the last line still has the number of failures.
        self.0.try_send(line).ok();
    }
}

impl Observer for Failures {
    fn failed(&self, failure: &Failure) {
        let why = match failure.kind.error() {
            Some(error) => error.to_string(),
            None => format!("{:?}", failure.kind),
        };
        self.send(format!("failed {:?}: {why}\n", failure.source));
    }

    fn unfinished(&self, unfinished: &Unfinished) {
        self.send(format!("failed {:?}: it is incomplete\n", unfinished.target));
    }
}

impl Service {
    /// Returns the operand of a copy; `None` for what is no name, so that no request leaves the folder.
    fn item(&self, source: &str, target: &str) -> Option<Item> {
        let is_name = |text: &str| text != ".." && text != "." && Name::new(text.as_bytes()).is_some();
        let item = Item { source: self.root.join(source), base: self.root.clone(), relative: target.into() };
        (is_name(source) && is_name(target)).then_some(item)
    }

    fn options(&self) -> Options {
        let dereference = Dereference::Never;
        Options { recursive: true, dereference, bandwidth: self.rate, ..Options::default() }
    }

    /// Counts a copy that has ended.
    fn note(&self, ended: &Result<Summary, SetupError>) {
        let count = match ended {
            Ok(summary) if summary.interrupted => &self.counts.stopped,
            Ok(summary) if summary.failed == 0 && !summary.out_of_space => &self.counts.complete,
            Ok(_) | Err(_) => &self.counts.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        self.counts.running.fetch_sub(1, Ordering::Relaxed);
    }

    fn status(&self) -> String {
        let Counts { running, complete, stopped, failed, ticks, longest_pause_us } = &self.counts;
        let counts = [running, complete, stopped, failed, ticks, longest_pause_us];
        let [running, complete, stopped, failed, ticks, pause] =
            counts.map(|count| count.load(Ordering::Relaxed));
        format!(
            "running {running} complete {complete} stopped {stopped} failed {failed} ticks {ticks} longest_pause_us {pause}\n"
        )
    }
}
