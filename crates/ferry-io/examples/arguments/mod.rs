//! Command line of the examples: `SOURCE TARGET [--backend NAME] [--block-size BYTES] [--max-fibers N]`.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use ferry_io::{Backend, Dir, Error, FileKind, Io, Name, Options, run};

pub(crate) struct Arguments {
    source: String,
    target: String,
    options: Options,
    /// Maximum number of fibers, as each example understands it.
    #[allow(dead_code, reason = "not every example has a bound")]
    pub(crate) max_fibers: usize,
}

/// A name in an open folder, to be copied or made.
pub(crate) struct Place {
    pub(crate) folder: Dir,
    pub(crate) name: Name,
}

/// Reason why a copy ended early.
pub(crate) enum Failure {
    Failed(Error),
    NotCopied(Name, FileKind),
    NotAName(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::NotCopied(name, kind) => write!(f, "{name:?} is a {kind:?}, which is not copied"),
            Self::NotAName(path) => write!(f, "{path:?} has no last name"),
        }
    }
}

/// Parses the command line, runs `copy` with it, and prints an error.
pub(crate) fn main(
    max_fibers: usize,
    copy: impl AsyncFnOnce(&Io, Place, Place, &Arguments) -> Result<(), Failure>,
) -> ExitCode {
    let Some(arguments) = Arguments::parse(max_fibers, std::env::args().skip(1)) else {
        eprintln!("usage: SOURCE TARGET [--backend posix|uring|auto] [--block-size BYTES] [--max-fibers N]");
        return ExitCode::from(2);
    };
    let outcome = run(&arguments.options, async |io| {
        let (source, target) = (place(&io, &arguments.source)?, place(&io, &arguments.target)?);
        copy(&io, source, target, &arguments).await
    });
    let message = match outcome {
        Ok((Ok(()), _)) => return ExitCode::SUCCESS,
        Ok((Err(failure), _)) => failure.to_string(),
        Err(error) => error.to_string(),
    };
    eprintln!("{message}");
    ExitCode::FAILURE
}

impl Arguments {
    fn parse(max_fibers: usize, mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Options::default();
        let (mut paths, mut max_fibers) = (Vec::new(), max_fibers);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--backend" => {
                    options.backend = match words.next()?.as_str() {
                        "posix" => Backend::Posix,
                        "uring" => Backend::Uring,
                        "auto" => Backend::Auto,
                        _ => return None,
                    };
                }
                "--block-size" => options.block_size = words.next()?.parse().ok()?,
                "--max-fibers" => max_fibers = words.next()?.parse().ok().filter(|&most| most > 0)?,
                _ => paths.push(word),
            }
        }
        let [source, target] = paths.try_into().ok()?;
        Some(Self { source, target, options, max_fibers })
    }
}

/// Opens the folder of a path's last component.
fn place(io: &Io, path: &str) -> Result<Place, Failure> {
    let whole = Path::new(path);
    let name = whole.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
    let name = name.ok_or_else(|| Failure::NotAName(path.to_owned()))?;
    Ok(Place { folder: io.open_dir(whole.parent().unwrap_or(whole))?, name })
}
