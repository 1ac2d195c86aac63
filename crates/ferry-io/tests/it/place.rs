//! Test places: one backend with a folder of its own, real or simulated.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::Poll;

use ferry_io::sim::{Settings, World};
use ferry_io::{Backend, Dir, Errno, Error, File, Io, Name, OpenHow, Options, RouteChoice, Stats, run};

/// Seeds per test. `FERRY_SEEDS` sets another number, `FERRY_SEED` selects one.
const SEEDS: u64 = if cfg!(miri) { 1 } else { 12 };

/// One backend and a folder on it.
pub(crate) struct Place {
    name: String,
    backend: Backend,
    route: RouteChoice,
    home: Home,
}

enum Home {
    Real(tempfile::TempDir),
    /// The world, and the seed of runs against it.
    Simulated(World, u64),
}

impl Place {
    fn real(name: &str, backend: Backend, route: RouteChoice) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { name: name.to_owned(), backend, route, home: Home::Real(folder) }
    }

    /// A place on the POSIX backend.
    pub(crate) fn posix() -> Self {
        Self::real("posix", Backend::Posix, RouteChoice::Auto)
    }

    fn simulated(seed: u64) -> Self {
        Self {
            name: format!("sim (FERRY_SEED={seed})"),
            backend: Backend::Auto,
            route: RouteChoice::Auto,
            home: Home::Simulated(World::new(Settings::default()), seed),
        }
    }

    /// The simulated world, in a simulation.
    pub(crate) fn world(&self) -> Option<&World> {
        match &self.home {
            Home::Real(_) => None,
            Home::Simulated(world, _) => Some(world),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        match &self.home {
            Home::Real(folder) => folder.path().to_path_buf(),
            Home::Simulated(..) => PathBuf::from("/"),
        }
    }

    /// Options with few small blocks, so that tests run out of them.
    pub(crate) fn options(&self) -> Options {
        let defaults = match &self.home {
            Home::Simulated(world, seed) => world.options(*seed),
            Home::Real(_) => Options { backend: self.backend, ..Options::default() },
        };
        Options { route: self.route, blocks: 8, block_size: 8192, ..defaults }
    }

    /// Runs a program in the test's folder.
    pub(crate) fn run<T>(&self, main: impl AsyncFnOnce(Io, Dir) -> T) -> T {
        self.run_with(&self.options(), main).0
    }

    /// Runs a program with its own options; returns the counters too.
    pub(crate) fn run_with<T>(&self, options: &Options, main: impl AsyncFnOnce(Io, Dir) -> T) -> (T, Stats) {
        let path = self.path();
        run(options, async |io| {
            let folder = io.open_dir(&path).expect("the test's folder");
            main(io, folder).await
        })
        .expect("the backend is there")
    }

    pub(crate) fn make_file(&self, name: &str, bytes: &[u8]) {
        match &self.home {
            Home::Real(folder) => std::fs::write(folder.path().join(name), bytes).expect("a file"),
            Home::Simulated(world, _) => {
                world.file(name, bytes);
            }
        }
    }

    pub(crate) fn bytes_of(&self, name: &str) -> Vec<u8> {
        match &self.home {
            Home::Real(folder) => std::fs::read(folder.path().join(name)).expect("a file"),
            Home::Simulated(world, _) => world.bytes(name).expect("a file"),
        }
    }

    /// Sets a file's size without the runtime, as another process would.
    pub(crate) fn resize(&self, name: &str, size: u64) {
        match &self.home {
            Home::Real(folder) => {
                let file = std::fs::File::options().write(true).open(folder.path().join(name));
                file.and_then(|file| file.set_len(size)).expect("a new size");
            }
            Home::Simulated(world, _) => {
                world.set_size(name, size);
            }
        }
    }

    /// Open descriptors in the test's folder.
    pub(crate) fn open_descriptors(&self) -> Vec<String> {
        match &self.home {
            Home::Simulated(world, _) => world.open_descriptors(),
            Home::Real(folder) => {
                let listing = std::fs::read_dir("/proc/self/fd").expect("/proc");
                let targets = listing.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
                let here = targets.filter(|target| target.starts_with(folder.path()));
                here.map(|target| target.display().to_string()).collect()
            }
        }
    }
}

/// The reason why io_uring is unavailable here, if it is.
fn no_uring() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let probe = || {
        let options = Options { backend: Backend::Uring, ..Options::default() };
        run(&options, async |_| ()).err().map(|error| error.to_string())
    };
    REASON.get_or_init(probe).as_deref()
}

/// The number of rounds of a test, multiplied by `FERRY_SEEDS`: a number, or a fraction such as 1/8.
pub(crate) fn scaled(count: u64) -> u64 {
    let factor = std::env::var("FERRY_SEEDS").unwrap_or_else(|_| "1".to_owned());
    let (times, parts) = factor.split_once('/').unwrap_or((&factor, "1"));
    let number = |text: &str| text.parse::<u64>().expect("FERRY_SEEDS is a number or a fraction");
    (count * number(times)).div_ceil(number(parts)).max(1)
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    match number("FERRY_SEED") {
        Some(seed) => vec![seed],
        None => (0..scaled(SEEDS)).collect(),
    }
}

/// Runs a test on every real backend.
pub(crate) fn on_the_kernel(test: impl Fn(&Place)) {
    if cfg!(miri) {
        // Miri makes no such system calls, and the simulation makes none.
        return;
    }
    let mut places = vec![
        ("posix", Backend::Posix, RouteChoice::Auto),
        ("posix, all on the pool", Backend::Posix, RouteChoice::Pool),
    ];
    match no_uring() {
        Some(reason) => println!("SKIP uring: {reason}"),
        None => places.extend([
            ("uring", Backend::Uring, RouteChoice::Auto),
            ("uring, all on the ring", Backend::Uring, RouteChoice::Ring),
        ]),
    }
    for (name, backend, route) in places {
        check(&Place::real(name, backend, route), &test);
    }
}

/// Runs a test in the simulation, with every seed.
pub(crate) fn in_simulation(test: impl Fn(&Place)) {
    for seed in seeds() {
        check(&Place::simulated(seed), &test);
    }
}

/// Runs a test on every backend.
pub(crate) fn everywhere(test: impl Fn(&Place)) {
    // First the simulation, which reports a deadlock instead of hanging.
    in_simulation(&test);
    on_the_kernel(&test);
}

/// Runs a test in one place and checks that it leaves nothing behind.
fn check(place: &Place, test: &impl Fn(&Place)) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        test(place);
        assert_eq!(place.open_descriptors(), Vec::<String>::new(), "descriptors are left open");
        assert_eq!(place.world().map_or(0, World::blocks_outstanding), 0, "blocks are outstanding");
    }));
    if let Err(panic) = outcome {
        eprintln!("the test failed on {}", place.name);
        resume_unwind(panic);
    }
}

pub(crate) fn name(text: impl AsRef<[u8]>) -> Name {
    Name::new(text.as_ref()).expect("one component of a path")
}

/// The errno of a failure.
pub(crate) fn errno<T: std::fmt::Debug>(result: Result<T, Error>) -> Errno {
    let error = result.expect_err("it should have failed");
    error.as_errno().unwrap_or_else(|| panic!("not the kernel's answer: {error:?}"))
}

pub(crate) fn pattern(size: usize) -> Vec<u8> {
    let byte = |at: usize| u8::try_from((at * 31 + at / 251 + at / 4096 * 7) % 256).unwrap_or_default();
    (0..size).map(byte).collect()
}

pub(crate) async fn write_file(io: &Io, folder: &Dir, text: &str, bytes: &[u8]) -> Result<File, Error> {
    let file = folder.open(&name(text), OpenHow::create(0o644)).await?;
    for (index, part) in bytes.chunks(io.block_size()).enumerate() {
        let mut block = io.block().await?;
        block.as_mut_capacity()[..part.len()].copy_from_slice(part);
        block.set_filled(part.len());
        file.write_all_at(block, (index * io.block_size()) as u64).await.1?;
    }
    Ok(file)
}

/// Polls a future once; returns true if it has ended.
pub(crate) async fn poll_once<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

/// The build's folder, where programs are.
pub(crate) fn folder_of_programs() -> PathBuf {
    let test = std::env::current_exe().expect("this test's own path");
    test.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST").to_path_buf()
}
