//! Chooses the ways of copying, and names, groups and draws their cells.

use std::path::Path;

use crate::cache::State;
use crate::command::Stranger;
use crate::needs::Unmet;
use crate::plot::Plot;
use crate::record::{Cell, Record, Value};
use crate::search_path::find_program;
use crate::settings::Settings;
use crate::strategies::Strategy;
use crate::units::size;

/// The block with which GNU cp reads and writes; newer ones take twice as much, which is no slower.
const CP_BLOCK: u64 = 128 << 10;
/// No runtime takes larger blocks.
const LARGEST_BLOCK: u64 = 64 << 20;

/// One way of copying.
pub(super) struct Copier {
    /// The strategy's name or the program's.
    pub(super) name: String,
    /// Which strategy, if it is not a program.
    pub(super) strategy: Option<Strategy>,
    /// Command line of the program.
    pub(super) command: Stranger,
    block: Option<u64>,
    depth: Option<u64>,
    /// The block of the read-write that it is compared with.
    base: Option<u64>,
}

/// Measurements of one source.
pub(super) struct Plan {
    /// `one` or `many`.
    pub(super) files: String,
    /// Every way.
    pub(super) ways: Vec<Copier>,
}

impl Plan {
    pub(super) fn new(settings: &Settings, ferry: &Path, files: &str) -> Self {
        let blocks = match files {
            "many" => vec![settings.number("many-size").min(LARGEST_BLOCK)],
            _ => settings.numbers("block-sizes"),
        };
        let depths = settings.numbers("depths");
        let chosen: Vec<Strategy> =
            settings.texts("strategies").iter().filter_map(|name| Strategy::named(name)).collect();
        let mut ways = Vec::new();
        for strategy in chosen {
            let way = |block, depth| of_strategy(ferry, strategy, block, depth, middle(&blocks));
            if !strategy.has_blocks() {
                ways.push(way(None, None));
                continue;
            }
            for block in &blocks {
                if !strategy.has_depth() {
                    ways.push(way(Some(*block), None));
                    continue;
                }
                // Document 003's own program copied in the smallest blocks, before and after several were in flight.
                let is_flow = strategy == Strategy::RingBuffered && blocks.iter().min() == Some(block);
                let is_taken = |depth: &&u64| {
                    let in_the_middle = *block == middle(&blocks) || **depth == middle(&depths);
                    in_the_middle || is_flow || settings.is_on("every-pair")
                };
                ways.extend(depths.iter().filter(is_taken).map(|depth| way(Some(*block), Some(*depth))));
            }
        }
        ways.extend(programs(files, &blocks));
        Self { files: files.to_owned(), ways }
    }

    /// The programs that take part, by their names.
    pub(super) fn programs(&self) -> impl Iterator<Item = (&str, &Path)> {
        let foreign = self.ways.iter().filter(|way| way.strategy.is_none() && way.absent().is_none());
        foreign.map(|way| (way.name.as_str(), way.command.program.as_path()))
    }

    /// A cell for each way, in the same order.
    pub(super) fn cells(&self, state: State) -> Vec<Cell> {
        let cell = |name: &str, block: Option<u64>, depth: Option<u64>| {
            let mut parameters: Vec<(&str, Value)> = vec![
                ("files", self.files.as_str().into()),
                ("cache", state.name().into()),
                ("strategy", name.into()),
            ];
            parameters.extend(block.map(|block| ("block", size(block).as_str().into())));
            parameters.extend(depth.map(|depth| ("depth", depth.into())));
            let cell = Cell::new(&parameters, state);
            match block {
                Some(block) => cell.with("block_bytes", block.into()),
                None => cell,
            }
        };
        let base = Strategy::ReadWrite.name();
        let has_base = |block| self.ways.iter().any(|way| way.name == base && way.block == Some(block));
        let of_way = |way: &Copier| {
            let cell_of_way = cell(&way.name, way.block, way.depth);
            match way.base.filter(|block| way.name != base && has_base(*block)) {
                Some(block) => cell_of_way.against(&cell(base, Some(block), None)),
                None => cell_of_way,
            }
        };
        self.ways.iter().map(of_way).collect()
    }
}

impl Copier {
    /// Why it can't be run, if it is a program that is not there.
    pub(super) fn absent(&self) -> Option<String> {
        let program = self.command.program.as_os_str();
        let is_absent = self.strategy.is_none() && find_program(program).is_none();
        is_absent.then(|| Unmet::Program(program.to_owned()).to_string())
    }
}

fn of_strategy(
    ferry: &Path,
    strategy: Strategy,
    block: Option<u64>,
    depth: Option<u64>,
    usual_block: u64,
) -> Copier {
    let (block_text, depth_text) = (block.unwrap_or(usual_block).to_string(), depth.unwrap_or(1).to_string());
    let words = ["lab", "strategy", strategy.name(), "--block-size", &block_text, "--depth", &depth_text];
    let command = Stranger::new(ferry, &[&words[..], &["{source}", "{target}"]].concat());
    let base = Some(block.unwrap_or(usual_block));
    Copier { name: strategy.name().to_owned(), strategy: Some(strategy), command, block, depth, base }
}

/// Programs that make the same calls as read-write.
fn programs(files: &str, blocks: &[u64]) -> Vec<Copier> {
    let way = |name: &str, words: &[&str], block: Option<u64>, base: u64| {
        let program = find_program(name.as_ref()).unwrap_or_else(|| name.into());
        let command = Stranger::new(&program, words);
        Copier { name: name.to_owned(), strategy: None, command, block, depth: None, base: Some(base) }
    };
    let nearest = blocks.iter().min_by_key(|block| block.abs_diff(CP_BLOCK)).copied().unwrap_or(CP_BLOCK);
    let mut ways = vec![way("cp", &["-r", "--reflink=never", "{source}", "{target}"], None, nearest)];
    if files == "one" {
        let dd = |block: &u64| {
            way("dd", &["if={source}", "of={target}", &format!("bs={block}")], Some(*block), *block)
        };
        ways.extend(blocks.iter().map(dd));
    }
    ways
}

/// The middle one of those given, the larger of two.
pub(super) fn middle(numbers: &[u64]) -> u64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(1)
}

/// A cell's source and state: `one/cold`.
pub(super) fn group_of(cell: &Cell) -> String {
    format!("{}/{}", cell.text("files"), cell.text("cache"))
}

pub(super) fn groups(record: &Record) -> Vec<String> {
    let mut groups = Vec::new();
    for group in record.cells.iter().map(group_of) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// `One file of 128M, cold`.
pub(super) fn heading(record: &Record, group: &str) -> String {
    let number = |name: &str| record.parameters.get(name).and_then(Value::as_number).unwrap_or_default();
    let state = group.rsplit('/').next().unwrap_or_default();
    match group.split('/').next() {
        Some("many") => {
            format!("{} files of {}, {state}", number("many-count"), size(number("many-size")))
        }
        _ => format!("One file of {}, {state}", size(number("size"))),
    }
}

fn numbers(record: &Record, name: &str) -> Vec<u64> {
    match record.parameters.get(name) {
        Some(Value::Numbers(numbers)) => numbers.clone(),
        _ => Vec::new(),
    }
}

/// One file by block size and by depth; many files in rows.
pub(super) fn plots(record: &Record, group: &str) -> Vec<Plot> {
    let title = heading(record, group);
    let cells = || record.cells.iter().filter(|cell| group_of(cell) == group);
    let mut plots = Vec::new();
    for (measure, until) in [("returned_s", "until it returned"), ("durable_s", "until durable")] {
        let title = format!("{title}, {until}");
        if group.starts_with("many") {
            plots.push(Plot::strips(record, &title, measure, &format!("{group}/"), cells()));
            continue;
        }
        let (depth, block) = (middle(&numbers(record, "depths")), middle(&numbers(record, "block-sizes")));
        let of_program = |cell: &&Cell| matches!(cell.text("strategy").as_str(), "cp" | "dd");
        let plain = || cells().filter(|cell| cell.number("depth").is_none());
        let ring = || cells().filter(|cell| cell.number("depth").is_some());
        let series = |cell: &Cell| cell.text("strategy");
        let lines = |what: &str, parameter: &str, cells: Vec<&Cell>| {
            Plot::lines(record, &format!("{title}: {what}"), measure, parameter, series, cells)
        };
        plots.push(lines(
            "a call after another",
            "block_bytes",
            plain().filter(|c| !of_program(c)).collect(),
        ));
        plots.push(lines(
            &format!("on the ring, {depth} in flight"),
            "block_bytes",
            ring().filter(|cell| cell.number("depth") == Some(depth)).collect(),
        ));
        plots.push(lines(
            &format!("on the ring, blocks of {}", size(block)),
            "depth",
            ring().filter(|cell| cell.number("block_bytes") == Some(block)).collect(),
        ));
        let beside =
            |cell: &&Cell| of_program(cell) || series(cell) == "read-write" || series(cell) == "reflink";
        let title = format!("{title}: beside plain programs");
        plots.push(Plot::strips(record, &title, measure, &format!("{group}/"), plain().filter(beside)));
    }
    plots.retain(|plot| !plot.is_empty());
    // With one block size and one depth, what is by either is the same.
    plots.dedup_by(|one, other| one.kind == other.kind && one.measure == other.measure);
    plots
}
