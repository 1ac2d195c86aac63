//! Changes and extends a file past the page cache until it is killed; a test examines the remains.
//!
//! `direct_writer FILE SEED auto|posix`. Each byte depends on its offset and on its writer, and is never zero. For each
//! flush it prints a line with the file's size.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::ExitCode;

use ferry_direct::{DirectFile, DirectOptions};
use ferry_io::{Backend, Error, Io, Name, OpenHow, Options, both, run};

/// Byte at an offset as written by the `generation`-th writer.
fn byte(at: u64, generation: u64) -> u8 {
    u8::try_from((at * 31 + at / 4096 * 7 + generation * 29) % 251 + 1).unwrap_or(1)
}

fn bytes(at: u64, size: u64, generation: u64) -> Vec<u8> {
    (at..at + size).map(|at| byte(at, generation)).collect()
}

async fn write(io: &Io, folder: &Path, name: &Name, seed: u64) -> Result<(), Error> {
    let folder = io.open_dir(folder)?;
    let options =
        DirectOptions { blocks: 64, request_blocks: 4, ahead_blocks: 16, ..DirectOptions::default() };
    let file = DirectFile::open(io, &folder, name, OpenHow::write(), options).await?;
    println!("0");
    let mut chance = seed;
    let mut next = |end: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % end
    };
    for step in 0_u64.. {
        let (size, odd) = (file.size(), next(9000) + 1);
        let at = next(size - 9000);
        let longer = async { file.write_from(&bytes(size, odd, 1), size).await };
        let within = async { file.write_from(&bytes(at, odd, 2 + step % 2), at).await };
        both(longer, within).await?;
        if step % 64 == 63 {
            file.flush().await.map_err(|failures| failures.failures[0].error)?;
            println!("{}", file.size());
        }
    }
    Ok(())
}

fn misused() -> ExitCode {
    eprintln!("usage: direct_writer FILE SEED auto|posix");
    ExitCode::from(2)
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [path, seed, backend] = arguments.as_slice() else { return misused() };
    let path = Path::new(path);
    let name = path.file_name().and_then(|name| Name::new(name.as_bytes()));
    let seed = seed.to_str().and_then(|seed| seed.parse().ok());
    let (Some(folder), Some(name), Some(seed)) = (path.parent(), name, seed) else { return misused() };
    let backend = match backend.to_str() {
        Some("auto") => Backend::Auto,
        Some("posix") => Backend::Posix,
        _ => return misused(),
    };
    let options = Options { backend, ..Options::default() };
    match run(&options, async |io| write(&io, folder, &name, seed).await) {
        Ok((Ok(()), _)) => ExitCode::SUCCESS,
        Ok((Err(error), _)) => {
            eprintln!("direct_writer: {error}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("direct_writer: {error}");
            ExitCode::FAILURE
        }
    }
}
