//! `ferry lab speeds`: prints the table of docs/performance.md, and draws README's chart, from records of `ferry lab copy`.
//!
//! `cargo xtask bench` calls it; the help does not list it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use ferry_lab::Failure;
use ferry_lab::record::store::write_atomically;
use ferry_lab::speeds;

use crate::arguments::Effect::Value;
use crate::arguments::{self, Definition, Read, Usage, option};
use crate::names::LAB;
use crate::output::Output;

pub(super) const NAME: &str = "speeds";

const OPTIONS: &[Definition<Option<PathBuf>>] = &[option(
    "svg",
    "Draw the chart to this file",
    Value("FILE", |svg, text| {
        *svg = Some(text.into());
        Ok(())
    }),
)];

pub(crate) struct Speeds {
    records: Vec<OsString>,
    svg: Option<PathBuf>,
}

pub(super) fn parse(rest: &[OsString]) -> Result<Speeds, Usage> {
    let mut svg = None;
    match arguments::read(OPTIONS, rest, &mut svg)? {
        Read::Operands(records) if !records.is_empty() => Ok(Speeds { records, svg }),
        Read::Operands(_) | Read::Print(_) => Err(Usage::plain("missing record".to_owned())),
    }
}

impl Speeds {
    /// Prints the table. Nothing is printed or written if a record can't be used.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let speeds = speeds::Speeds::read(&self.records)?;
        if let Some(path) = &self.svg {
            write_atomically(path, speeds.plot().file().as_bytes(), false)?;
        }
        let output = Output::new();
        output.line(speeds.markdown().trim_end());
        if let Err(error) = output.finish() {
            output.error(&format!("{LAB}: write error: {error}"));
            return Ok(ExitCode::FAILURE);
        }
        Ok(ExitCode::SUCCESS)
    }
}
