//! Opening a direct file: twice, once through the page cache and once past it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use rustix::io::Errno;

use super::ahead::Streams;
use super::behind::Ends;
use super::cache::Cache;
use super::changed::Changed;
use super::failures::Failures;
use super::options::DirectOptions;
use super::transfer::Path;
use super::{DirectFile, State, access};
use crate::buffers::Blocks;
use crate::cancel::Context;
use crate::descriptor::Dir;
use crate::entry::FileKind;
use crate::error::{Error, Operation, Result};
use crate::fibers::Fibers;
use crate::name::Name;
use crate::open_how::OpenHow;
use crate::run::Io;
use crate::worker;

/// The first window of a reader, in bytes.
const FIRST_WINDOW: u64 = 128 << 10;

impl Io {
    /// Opens a regular file to be read and written past the page cache; a file that is written is read, too, so it must be
    /// allowed. Where there is no direct I/O it goes through the page cache, and [`DirectFile::explain`] says so.
    ///
    /// ```
    /// use ferry_io::sim::World;
    /// use ferry_io::{DirectOptions, Name, OpenHow, run};
    ///
    /// let world = World::default();
    /// let options = DirectOptions::default();
    /// let (outcome, _) = run(&world.options(1), async |io| {
    ///     let folder = io.open_dir("/".as_ref())?;
    ///     let name = Name::new(b"data").expect("a component");
    ///     let file = io.open_direct(&folder, &name, OpenHow::create(0o644), options).await?;
    ///     file.write_from(b"any bytes, anywhere", 4711).await?;
    ///     let mut bytes = [0; 5];
    ///     assert_eq!(file.read_into(&mut bytes, 4715).await?, 5);
    ///     assert_eq!(&bytes, b"bytes");
    ///     file.close().await.expect("it is written");
    ///     Ok::<_, ferry_io::Error>(())
    /// })?;
    /// outcome?;
    /// assert_eq!(world.get("data").expect("it is there").content.size(), 4711 + 19);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of open(2); EINVAL for what is no regular file, and for options outside their limits; ENOMEM if the cache can't
    /// be had.
    pub async fn open_direct(
        &self,
        dir: &Dir,
        name: &Name,
        how: OpenHow,
        options: DirectOptions,
    ) -> Result<DirectFile<'_>> {
        let options = options.checked()?;
        let failed = |errno| Error::errno(Operation::Open, errno);
        let file = dir.open(name, how.also_reading()).await?;
        let stat = file.stat().await?;
        if stat.kind != FileKind::Regular {
            return Err(failed(Errno::INVAL));
        }
        let memory = Blocks::map(options.blocks, options.block_bytes).map_err(|_| failed(Errno::NOMEM))?;
        memory.want_large_pages();
        let mut free = memory.take_all();
        let (direct, access) = access::open(dir, name, (&file, how), &options, &mut free).await?;
        let (unit, alignment) = access.units();
        let is_writable = how.writes();
        let uncached = matches!(access, access::Access::Buffered { uncached: true, .. });
        let path = Path {
            file: direct.as_ref().map_or_else(|| file.fd(), crate::File::fd),
            buffered: file.fd(),
            unit: usize::try_from(unit).unwrap_or(options.block_bytes),
            alignment: usize::try_from(alignment).unwrap_or(options.block_bytes),
            uncached,
        };
        let ends = Ends { size: stat.size, on_device: stat.size, unit, is_extending: false };
        let block_bytes = options.block_bytes as u64;
        let streams = Streams::new(FIRST_WINDOW.max(block_bytes), options.ahead_blocks as u64 * block_bytes);
        let cache = Cache::new(free, &options);
        Ok(DirectFile {
            path,
            file,
            is_writable,
            access,
            options,
            state: RefCell::new(State {
                cache,
                streams,
                wanted: VecDeque::new(),
                ends,
                failures: Failures::default(),
                promised: 0,
                odd_end: None,
                written_to: 0,
            }),
            flights: RefCell::new(Fibers::new(Context::detached())),
            changed: Arc::new(Changed::default()),
            worker: worker::current(),
            is_still: Cell::new(false),
            io: PhantomData,
        })
    }
}
