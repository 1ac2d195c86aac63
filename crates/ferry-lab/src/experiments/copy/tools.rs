//! The copiers: their commands, and what sets them apart.

use std::path::Path;

use ferry_tree::workload::{Sizes, Workload};

use super::extent::Extent;

use crate::command::Stranger;
use crate::error::Failure;
use crate::limits::Limit;
use crate::needs::Unmet;
use crate::programs::Program;
use crate::record::Value;
use crate::search_path::find_program;
use crate::session::Session;
use crate::settings::Settings;
use crate::units::size;

/// Option that names the variants of cp and ferry.
pub(super) const ALSO: &str = "also";
/// Variant: cp that reads and writes every byte.
pub(super) const CP_BY_BLOCKS: &str = "cp-reflink-never";
/// Variant: ferry that reads and writes every byte on the ring.
pub(super) const FERRY_RING: &str = "ferry-ring";
/// Variant: ferry without io_uring.
pub(super) const FERRY_POSIX: &str = "ferry-posix";

/// One copier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::experiments) struct Tool {
    /// As cells and pictures name it.
    pub(super) name: String,
    /// Command line of the tool.
    pub(super) command: Stranger,
    /// Further parameters of its cells.
    pub(super) parameters: Vec<(&'static str, Value)>,
    /// True if the tool is worth a cell only with io_uring.
    pub(super) needs_ring: bool,
    /// The limit program, if it is one.
    pub(super) limit: Option<Limit>,
    /// True if the program's version is printed under its name.
    pub(super) version_counts: bool,
    /// Files must be larger than this, in bytes: smaller ones are copied as by another tool.
    pub(super) more_than: u64,
}

impl Tool {
    /// A copier of all trees that needs nothing but its program.
    pub(super) fn plain(name: &str, command: Stranger) -> Self {
        Self {
            name: name.to_owned(),
            command,
            parameters: Vec::new(),
            needs_ring: false,
            limit: None,
            version_counts: true,
            more_than: 0,
        }
    }

    /// Returns true if the tool copies this workload differently from all others. Blocks larger than every file make no
    /// difference, nor do several blocks in flight of files that have one.
    pub(super) fn suits(&self, workload: &Workload) -> bool {
        self.more_than == 0 || largest_file(workload) > self.more_than
    }
}

/// Returns the size of the largest file that a tree may have, in bytes.
pub(super) fn largest_file(workload: &Workload) -> u64 {
    match workload.sizes {
        Sizes::Fixed(size) => size,
        Sizes::Uniform { most, .. } | Sizes::LogNormal { most, .. } => most,
    }
}

fn cp(options: &[&str]) -> Result<Stranger, Failure> {
    let cp = find_program("cp".as_ref()).ok_or_else(|| Unmet::Program("cp".into()))?;
    Ok(Stranger::new(&cp, &[options, &["{source}", "{target}"]].concat()))
}

fn ferry_cp(ferry: &Path, options: &[&str], more: &[&str]) -> Stranger {
    Stranger::new(ferry, &[&["cp"], options, more, &["{source}", "{target}"]].concat())
}

/// cp and ferry.
pub(in crate::experiments) fn cp_and_ferry(extent: Extent, ferry: &Path) -> Result<Vec<Tool>, Failure> {
    Ok(vec![
        Tool::plain("cp", cp(extent.options())?),
        Tool::plain("ferry", ferry_cp(ferry, extent.options(), &[])),
    ])
}

/// The variants of cp and ferry that were asked for. Where cp reads and writes every byte anyway, it has none.
fn variants(settings: &Settings, extent: Extent, ferry: &Path) -> Result<Vec<Tool>, Failure> {
    let mut found = Vec::new();
    for name in settings.texts(ALSO) {
        let command = match name.as_str() {
            CP_BY_BLOCKS if extent == Extent::Shared => cp(extent.options_by_blocks())?,
            // As in eio, which has no call for copying in the kernel.
            FERRY_RING => ferry_cp(ferry, extent.options_by_blocks(), &["--route", "ring"]),
            FERRY_POSIX => ferry_cp(ferry, extent.options(), &["--backend=posix"]),
            _ => continue,
        };
        let needs_ring = name == FERRY_RING;
        found.push(Tool { needs_ring, version_counts: false, ..Tool::plain(&name, command) });
    }
    Ok(found)
}

/// cp, ferry, their variants, what was given, and the documents' programs.
pub(super) fn all(settings: &Settings, ferry: &Path) -> Result<Vec<Tool>, Failure> {
    let extent = Extent::of(settings);
    let mut tools = cp_and_ferry(extent, ferry)?;
    tools.extend(variants(settings, extent, ferry)?);
    for line in settings.texts("vs") {
        let command = Stranger::parse(&line)?;
        let name = command.name();
        // Programs of equal name are distinguished by their whole command lines.
        let name = if tools.iter().any(|tool| tool.name == name) { line.replace('/', "-") } else { name };
        tools.push(Tool {
            parameters: vec![("command", line.as_str().into())],
            ..Tool::plain(&name, command)
        });
    }
    let sizes = settings.numbers("block-sizes");
    let first = sizes.first().copied().unwrap_or_default();
    for program in settings.texts("programs") {
        let Some(known) = Program::named(&program) else { continue };
        let fibers = match settings.number("max-fibers") {
            0 => u64::try_from(known.usual_fibers()).unwrap_or(1),
            fibers => fibers,
        };
        for bytes in &sizes {
            tools.push(of_program(ferry, &program, *bytes, fibers, first));
        }
    }
    Ok(tools)
}

fn of_program(ferry: &Path, program: &str, bytes: u64, fibers: u64, first: u64) -> Tool {
    let (block, max_fibers) = (bytes.to_string(), fibers.to_string());
    let options = ["--block-size", &block, "--max-fibers", &max_fibers];
    let words = [&["lab", "strategy", program], &options[..], &["{source}", "{target}"]].concat();
    let name = format!("{program}-{}", size(bytes));
    Tool {
        parameters: vec![
            ("program", program.into()),
            ("block_bytes", bytes.into()),
            ("max_fibers", fibers.into()),
        ],
        needs_ring: true,
        version_counts: false,
        more_than: match program {
            "blocks" => bytes,
            _ if bytes != first => first,
            _ => 0,
        },
        ..Tool::plain(&name, Stranger::new(ferry, &words))
    }
}

/// Notes the versions of the programs.
pub(in crate::experiments) fn note(session: &mut Session<'_>, tools: &[Tool]) {
    for tool in tools.iter().filter(|tool| tool.version_counts && tool.command.absent().is_none()) {
        session.note_tool(&tool.name, &tool.command.program);
    }
}
