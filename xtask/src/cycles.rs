//! Import cycles between the files of a crate, and the imports that close them.
//!
//! Files that reach one another by imports form a *cycle*. An import is *upward* if it runs against the order of files
//! that has the fewest such imports; without the upward ones there is no cycle. Finding that order takes too long
//! beyond a few files. A search that moves one file at a time stands in for it, so its count is an upper bound.

#[cfg(test)]
mod tests;

use crate::modules::Graph;

/// The import cycles of one crate.
pub(crate) struct Cycles {
    /// Each cycle's files by index, in the order with few upward imports; the largest cycle first.
    pub(crate) cycles: Vec<Vec<usize>>,
    /// Importing and imported file.
    pub(crate) upward: Vec<(usize, usize)>,
    /// Number of files on the longest chain of imports; a cycle counts as one file.
    pub(crate) longest: usize,
}

impl Cycles {
    pub(crate) fn find(graph: &Graph) -> Self {
        let reached = reached(graph);
        let mut cycles: Vec<Vec<usize>> = Vec::new();
        for (file, below) in reached.iter().enumerate() {
            let with: Vec<usize> =
                (0..reached.len()).filter(|&other| below[other] && reached[other][file]).collect();
            if with.first() == Some(&file) {
                cycles.push(with);
            }
        }
        for cycle in &mut cycles {
            order(graph, cycle);
        }
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.len()));
        let upward = cycles.iter().flat_map(|cycle| upward(graph, cycle)).collect();
        Self { cycles, upward, longest: longest(graph, &reached) }
    }

    /// Number of files in the largest cycle; 0 if there is none.
    pub(crate) fn largest(&self) -> usize {
        self.cycles.first().map_or(0, Vec::len)
    }
}

/// Returns for each file the files that it reaches by one or more imports.
fn reached(graph: &Graph) -> Vec<Vec<bool>> {
    let count = graph.files.len();
    let mut reached = vec![vec![false; count]; count];
    for (file, row) in reached.iter_mut().enumerate() {
        let mut waiting = vec![file];
        while let Some(from) = waiting.pop() {
            for &(_, to) in graph.imports.range((from, 0)..(from + 1, 0)).map(|(import, _)| import) {
                if !row[to] {
                    row[to] = true;
                    waiting.push(to);
                }
            }
        }
    }
    reached
}

/// Moves one file at a time to where the fewest imports run upward, until no move helps.
fn order(graph: &Graph, cycle: &mut Vec<usize>) {
    // Files that import much of the cycle, and that little of it imports, begin at the top.
    let balance = |file: usize| {
        let imports = |from: usize, to: usize| i32::from(graph.imports.contains_key(&(from, to)));
        cycle.iter().map(|&other| imports(other, file) - imports(file, other)).sum::<i32>()
    };
    let mut sorted = cycle.clone();
    sorted.sort_by_key(|&file| balance(file));
    *cycle = sorted;
    loop {
        let before = upward(graph, cycle).len();
        for place in 0..cycle.len() {
            improve(graph, cycle, place);
        }
        if upward(graph, cycle).len() >= before {
            return;
        }
    }
}

/// Moves the file at `place` to the position with the fewest upward imports.
fn improve(graph: &Graph, cycle: &mut Vec<usize>, place: usize) {
    let file = cycle.remove(place);
    let imports = |from: usize, to: usize| i32::from(graph.imports.contains_key(&(from, to)));
    // In first place, every import of this file by another one runs upward.
    let mut count: i32 = cycle.iter().map(|&other| imports(other, file)).sum();
    let (mut best, mut least) = (0, count);
    let mut at_place = count;
    for (index, &other) in cycle.iter().enumerate() {
        count += imports(file, other) - imports(other, file);
        if count < least {
            (best, least) = (index + 1, count);
        }
        if index + 1 == place {
            at_place = count;
        }
    }
    cycle.insert(if least < at_place { best } else { place }, file);
}

/// Returns the imports from a file to one before it in `order`.
fn upward(graph: &Graph, order: &[usize]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (place, &from) in order.iter().enumerate() {
        found.extend(
            order[..place].iter().map(|&to| (from, to)).filter(|import| graph.imports.contains_key(import)),
        );
    }
    found
}

fn longest(graph: &Graph, reached: &[Vec<bool>]) -> usize {
    let count = graph.files.len();
    // A file reaches more files than each file below it, so this order computes the chains below first.
    let mut files: Vec<usize> = (0..count).collect();
    files.sort_by_key(|&file| reached[file].iter().filter(|reaches| **reaches).count());
    let mut chains = vec![1_usize; count];
    for &file in &files {
        let below = (0..count).filter(|&other| reached[file][other] && !reached[other][file]);
        chains[file] = 1 + below.map(|other| chains[other]).max().unwrap_or(0);
    }
    chains.into_iter().max().unwrap_or(0)
}
