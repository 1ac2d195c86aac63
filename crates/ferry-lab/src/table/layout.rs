//! Fits a table into a width: headings and words are wrapped, and columns that have no room follow in another block. Each
//! cell has its own line if that leaves little room for sentences in the first column, or if a column has no room beside
//! it.

/// Characters between two columns.
const GAP: usize = 2;
/// Narrowest column for sentences.
const NARROW: usize = 20;

/// Formats columns and rows in lines of at most `width` characters. The first column stands in each block.
pub(super) fn fitted(columns: &[String], rows: &[Vec<String>], width: usize) -> String {
    let sizes: Vec<Size> = (0..columns.len()).map(|index| Size::of(columns, rows, index)).collect();
    let blocks = blocks(&sizes, width);
    let has_room = match &blocks[..] {
        [block] => first_width(&sizes, block, width) >= NARROW,
        _ => false,
    };
    let is_short = !has_room && sizes.first().is_some_and(|size| size.body > width);
    if is_short || blocks.iter().any(|block| least_width(&sizes, block) > width) {
        return stacked(columns, rows, width);
    }
    let texts: Vec<String> =
        blocks.iter().map(|block| lines(columns, rows, &places(&sizes, block, width))).collect();
    texts.join("\n")
}

/// Formats columns and rows in a line each. All columns but the first are aligned to the right.
pub(super) fn unbroken(columns: &[String], rows: &[Vec<String>]) -> String {
    let place = |index: usize| {
        let width = Size::of(columns, rows, index).natural;
        Place { index, width, is_text: index == 0 }
    };
    let places: Vec<Place> = (0..columns.len()).map(place).collect();
    lines(columns, rows, &places)
}

fn lines(columns: &[String], rows: &[Vec<String>], places: &[Place]) -> String {
    let head = line(columns, places, Aligned::Bottom);
    rows.iter().fold(head, |text, row| text + &line(row, places, Aligned::Top))
}

/// Widths of a column, in characters.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Smallest possible width.
    least: usize,
    /// Width of the widest cell.
    body: usize,
    /// Width of the widest cell and of the heading, in one line each.
    natural: usize,
    /// True if it has words instead of figures.
    is_text: bool,
}

impl Size {
    fn of(columns: &[String], rows: &[Vec<String>], index: usize) -> Self {
        let heading = columns.get(index).map(String::as_str).unwrap_or_default();
        let cells = || rows.iter().filter_map(move |row| row.get(index)).map(String::as_str);
        let longest = |text: &str| pieces(text).map(length).max().unwrap_or(0);
        let is_breakable = |cell: &str| index == 0 || is_words(cell);
        let least = cells().map(|cell| if is_breakable(cell) { longest(cell) } else { length(cell) });
        let least = least.max().unwrap_or(0).max(longest(heading));
        let body = cells().map(length).max().unwrap_or(0).max(least);
        let mut filled = cells().filter(|cell| !cell.is_empty()).peekable();
        let is_text = index == 0 || (filled.peek().is_some() && filled.all(is_words));
        Self { least, body, natural: body.max(length(heading)), is_text }
    }
}

/// A column of a block.
struct Place {
    index: usize,
    width: usize,
    is_text: bool,
}

/// Divides the columns into blocks that fit. The first column is in each of them.
fn blocks(sizes: &[Size], width: usize) -> Vec<Vec<usize>> {
    let first = sizes.first().map_or(0, |size| size.least);
    let mut blocks = vec![vec![0]];
    let mut used = first;
    for (index, size) in sizes.iter().enumerate().skip(1) {
        let is_alone = blocks.last().is_some_and(|block| block.len() == 1);
        if used + GAP + size.least > width && !is_alone {
            blocks.push(vec![0]);
            used = first;
        }
        used += GAP + size.least;
        if let Some(block) = blocks.last_mut() {
            block.push(index);
        }
    }
    blocks
}

/// Gives room to cells before headings, and to the first column last.
fn places(sizes: &[Size], block: &[usize], width: usize) -> Vec<Place> {
    let mut chosen: Vec<(Place, Size)> = block
        .iter()
        .filter_map(|&index| sizes.get(index).map(|size| (index, *size)))
        .map(|(index, size)| (Place { index, width: size.least, is_text: size.is_text }, size))
        .collect();
    let used: usize = chosen.iter().map(|(place, _)| place.width + GAP).sum();
    let mut spare = (width + GAP).saturating_sub(used);
    let first = usize::from(!chosen.is_empty());
    let aims: [fn(&Size) -> usize; 2] = [|size| size.body, |size| size.natural];
    for aim in aims {
        let (first, others) = chosen.split_at_mut(first);
        for (place, size) in others.iter_mut().chain(first) {
            let more = aim(size).saturating_sub(place.width).min(spare);
            place.width += more;
            spare -= more;
        }
    }
    chosen.into_iter().map(|(place, _)| place).collect()
}

/// Returns the width of the first column in a block.
fn first_width(sizes: &[Size], block: &[usize], width: usize) -> usize {
    places(sizes, block, width).first().map_or(0, |place| place.width)
}

/// Returns the smallest width of a block.
fn least_width(sizes: &[Size], block: &[usize]) -> usize {
    let sizes = block.iter().filter_map(|&index| sizes.get(index));
    sizes.map(|size| size.least + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Formats each row as its first cell, and below it each other cell with its heading. A figure is not broken: if it has
/// no room behind its heading, it has a line of its own.
fn stacked(columns: &[String], rows: &[Vec<String>], width: usize) -> String {
    const INDENT: &str = "  ";
    let mut out = String::new();
    for row in rows {
        for line in wrapped(row.first().map(String::as_str).unwrap_or_default(), width) {
            out += &format!("{line}\n");
        }
        let room = width.saturating_sub(INDENT.len());
        for (heading, cell) in columns.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty()) {
            let whole = format!("{heading}: {cell}");
            let lines = if length(&whole) > room && !is_words(cell) {
                let own = format!("{INDENT}{cell}");
                wrapped(&format!("{heading}:"), room).into_iter().chain([own]).collect()
            } else {
                wrapped(&whole, room)
            };
            for line in lines {
                out += &format!("{INDENT}{line}\n");
            }
        }
    }
    out
}

/// Position of the shorter cells of a row that takes several lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aligned {
    Top,
    Bottom,
}

/// Formats a row, in as many lines as its longest cell needs.
fn line(row: &[String], places: &[Place], aligned: Aligned) -> String {
    let cells: Vec<Vec<String>> = places
        .iter()
        .map(|place| wrapped(row.get(place.index).map(String::as_str).unwrap_or_default(), place.width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = String::new();
    for number in 0..height {
        let mut line = String::new();
        for (position, (cell, place)) in cells.iter().zip(places).enumerate() {
            let skipped = if aligned == Aligned::Bottom { height - cell.len() } else { 0 };
            let part = number.checked_sub(skipped).and_then(|number| cell.get(number));
            let part = part.map(String::as_str).unwrap_or_default();
            let padding = " ".repeat(place.width.saturating_sub(length(part)));
            if position > 0 {
                line += &" ".repeat(GAP);
            }
            line += &if place.is_text { format!("{part}{padding}") } else { format!("{padding}{part}") };
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Breaks a text into lines of at most `width` characters: at spaces, and in longer words after slashes. A text that fits
/// keeps all of its spaces.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    if length(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            if length(&line) + 1 + length(word) <= width {
                line = line + " " + word;
                continue;
            }
            lines.push(std::mem::take(&mut line));
        }
        for piece in word.split_inclusive('/') {
            if !line.is_empty() && length(&line) + length(piece) > width {
                lines.push(std::mem::take(&mut line));
            }
            line += piece;
        }
    }
    lines.push(line);
    lines
}

/// The parts between which a text can be broken.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|word| word.split_inclusive('/'))
}

/// Returns true if the cell does not begin with a figure.
fn is_words(cell: &str) -> bool {
    cell.chars().next().is_some_and(|first| !first.is_ascii_digit() && first != '-')
}

fn length(text: &str) -> usize {
    text.chars().count()
}
