use std::collections::BTreeMap;

use super::Cycles;
use crate::modules::{Graph, Import};

/// Makes a graph of files with one-letter names, with an import for each pair of letters.
fn graph(files: &str, imports: &[&str]) -> Graph {
    let index = |letter: u8| usize::from(letter - b'a');
    let import = |pair: &&str| {
        let letters = pair.as_bytes();
        ((index(letters[0]), index(letters[1])), Import { line: 1, path: String::new() })
    };
    let imports: BTreeMap<_, _> = imports.iter().map(import).collect();
    Graph { files: files.chars().map(String::from).collect(), imports }
}

fn check(files: &str, imports: &[&str], largest: usize, upward: &[&str], longest: usize) {
    let graph = graph(files, imports);
    let cycles = Cycles::find(&graph);
    assert_eq!(cycles.largest(), largest);
    let found: Vec<String> =
        cycles.upward.iter().map(|&(from, to)| graph.files[from].clone() + &graph.files[to]).collect();
    assert_eq!(found, upward);
    assert_eq!(cycles.longest, longest);
}

#[test]
fn layers_have_no_cycle() {
    check("abcd", &["ab", "bc", "ac", "bd"], 0, &[], 3);
}

#[test]
fn two_files_that_import_each_other_are_a_cycle() {
    check("abc", &["ab", "ba", "bc"], 2, &["ba"], 2);
}

#[test]
fn the_import_that_closes_a_cycle_runs_upward() {
    check("abcd", &["ab", "bc", "cd", "ac", "ad", "bd", "da"], 4, &["da"], 1);
}

#[test]
fn the_largest_of_several_cycles_counts() {
    check("abcde", &["ab", "ba", "bc", "cd", "de", "ec", "ce"], 3, &["ec", "ba"], 2);
}
