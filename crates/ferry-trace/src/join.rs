//! Joins a recording of the kernel's side and one of a program's side, which were made at the same time, into one file.
//!
//! Both have the times of CLOCK_MONOTONIC and the same numbers of threads, so chunks are copied unchanged: those of the
//! kernel from the one recording, those of the program from the other. The command and the duration are those of the
//! kernel's side, which began earlier and ended later. `ferry trace record` makes such recordings.
//!
//! Limit: in a PID namespace of its own, a program has other thread numbers than the kernel's side.

use std::fs::File;
use std::io::Read;

use ferry_io::event::file::{Broken, CHUNK_HEADER, ChunkKind, Fields, Reader, Writer};

#[cfg(test)]
mod tests;

/// Fields of the header that explain the program's events.
const OF_PROGRAM: [&str; 5] = ["operations", "routes", "reasons", "ways", "run"];
/// Fields of the header that describe the recording.
const OF_KERNEL: [&str; 6] = ["command", "recorder", "kernel", "processors", "began", "began_since_1970"];
/// Fields of the end with totals and threads of the program.
const END_OF_PROGRAM: [&str; 12] = [
    "backend",
    "thread_tids",
    "thread_roles",
    "thread_names",
    "thread_begins",
    "thread_ends",
    "thread_lost",
    "counter_names",
    "counter_values",
    "events",
    "lost",
    "faults",
];
/// Fields of the end that describe the recording.
const END_OF_KERNEL: [&str; 3] = ["ended", "kernel_lost", "missing"];

/// Writes both recordings into an empty file. If it fails, the content of the file is incomplete.
///
/// # Errors
/// A fault of one of the recordings, or of writing.
pub fn join(kernel: impl Read, program: impl Read, into: File) -> Result<(), Broken> {
    let (mut kernel, mut program) = (Reader::new(kernel)?, Reader::new(program)?);
    let header = of_both((&header(&mut kernel)?, &OF_KERNEL), (&header(&mut program)?, &OF_PROGRAM));
    let mut writer = Writer::new(into)?;
    writer.add_fields(ChunkKind::Header, &header)?;
    let end_of_kernel = copy(&mut kernel, &mut writer, &[ChunkKind::Kernel, ChunkKind::KernelEnd])?;
    let end_of_program = copy(&mut program, &mut writer, &[ChunkKind::Events])?;
    let end = of_both((&end_of_kernel, &END_OF_KERNEL), (&end_of_program, &END_OF_PROGRAM));
    Ok(writer.add_fields(ChunkKind::End, &end)?)
}

fn header<R: Read>(reader: &mut Reader<R>) -> Result<Fields, Broken> {
    let (chunk, bytes) = reader.next_chunk()?;
    let fields = Fields::of_bytes(bytes).filter(|_| chunk.kind == ChunkKind::Header);
    fields.ok_or(Broken::Damaged)
}

/// Copies chunks of some kinds; returns the fields of the end.
fn copy<R: Read>(reader: &mut Reader<R>, writer: &mut Writer, kept: &[ChunkKind]) -> Result<Fields, Broken> {
    let mut buffer = Vec::new();
    loop {
        let (chunk, bytes) = reader.next_chunk()?;
        if chunk.kind == ChunkKind::End {
            return Fields::of_bytes(bytes).ok_or(Broken::Damaged);
        }
        if kept.contains(&chunk.kind) {
            buffer.clear();
            buffer.resize(CHUNK_HEADER, 0);
            buffer.extend_from_slice(bytes);
            writer.add(chunk, &mut buffer)?;
        }
    }
}

/// Returns some fields of each.
fn of_both(kernel: (&Fields, &[&str]), program: (&Fields, &[&str])) -> Fields {
    let mut both = Fields::default();
    for (fields, names) in [kernel, program] {
        names.iter().for_each(|name| both.add(name, fields.list(name)));
    }
    both
}
