//! Opens a direct file: once through the page cache and once past it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use ferry_io::{Dir, Errno, Error, Fibers, FileKind, Io, Name, OpenHow, Operation, Result, map_blocks};

use crate::access::{Access, Opened};
use crate::ahead::Streams;
use crate::behind::Ends;
use crate::cache::Cache;
use crate::failures::Failures;
use crate::file::{DirectFile, State};
use crate::options::DirectOptions;
use crate::transfer::Channel;
use crate::waiters::Waiters;

/// First read-ahead window of a reader, in bytes.
const FIRST_WINDOW: u64 = 128 << 10;

impl<'io> DirectFile<'io> {
    /// Opens a regular file to be read and written past the page cache. A file that is opened for writing is also read,
    /// so reading must be permitted. Without direct I/O the file goes through the page cache; [`DirectFile::explain`]
    /// gives the reason.
    ///
    /// ```
    /// use ferry_direct::{DirectFile, DirectOptions};
    /// use ferry_io::sim::World;
    /// use ferry_io::{Name, OpenHow, run};
    ///
    /// let world = World::default();
    /// let options = DirectOptions::default();
    /// let (outcome, _) = run(&world.options(1), async |io| {
    ///     let folder = io.open_dir("/".as_ref())?;
    ///     let name = Name::new(b"data").expect("a component");
    ///     let file = DirectFile::open(&io, &folder, &name, OpenHow::create(0o644), options).await?;
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
    /// Those of open(2); EINVAL if the file is not regular or an option is outside its limits; ENOMEM if the cache
    /// can't be mapped.
    pub async fn open(
        _io: &'io Io,
        dir: &Dir,
        name: &Name,
        how: OpenHow,
        options: DirectOptions,
    ) -> Result<Self> {
        let options = options.checked()?;
        let failed = |errno| Error::errno(Operation::Open, errno);
        let file = dir.open(name, how.also_reading()).await?;
        let stat = file.stat().await?;
        if stat.kind != FileKind::Regular {
            return Err(failed(Errno::INVAL));
        }
        let mut free = map_blocks(options.blocks, options.block_bytes).map_err(|_| failed(Errno::NOMEM))?;
        let opened = Opened { dir, name, how, file: &file };
        let (direct, access) = opened.open_direct(&options, &mut free).await?;
        let (unit, alignment) = access.units();
        let channel = Channel {
            file: direct.unwrap_or_else(|| file.clone()),
            buffered: file,
            unit: usize::try_from(unit).unwrap_or(options.block_bytes),
            alignment: usize::try_from(alignment).unwrap_or(options.block_bytes),
            uncached: matches!(access, Access::Buffered { uncached: true, .. }),
        };
        let block_bytes = options.block_bytes as u64;
        let window = options.ahead_blocks as u64 * block_bytes;
        let state = State {
            cache: Cache::new(free, &options),
            streams: Streams::new(FIRST_WINDOW.max(block_bytes), window),
            wanted: VecDeque::new(),
            ends: Ends { size: stat.size, on_device: stat.size, unit, is_extending: false },
            failures: Failures::default(),
            promised: 0,
            odd_end: None,
            written_to: 0,
        };
        Ok(DirectFile {
            channel,
            is_writable: how.writes(),
            access,
            options,
            state: RefCell::new(state),
            requests: RefCell::new(Fibers::detached()),
            waiters: Arc::new(Waiters::default()),
            is_still: Cell::new(false),
            io: PhantomData,
        })
    }
}
