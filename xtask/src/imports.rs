//! Checks which crate imports which, that only `ferry-io` contains `unsafe` or names `io_uring`, and that few files of
//! a crate import one another in a circle.
//!
//! Manifests decide which crates a crate can import, so they are read first; sources are read for what a manifest does
//! not show. The compiler keeps a test's import out of the crate proper. Documentation examples are comments, and are
//! not read.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use crate::cycles::Cycles;
use crate::failure::Failure;
use crate::manifest::{Manifest, Purpose};
use crate::modules::{Graph, Import};
use crate::tokens::{Token, tokens};
use crate::workspace;

/// Imports that one crate is allowed.
struct Rule {
    name: &'static str,
    /// Crates of this workspace.
    imports: &'static [&'static str],
    /// Crates that its tests, examples and benchmarks may import besides.
    tests_import: &'static [&'static str],
    /// Import cycles that are allowed, each with its reason in ARCHITECTURE.
    cycles: &'static [&'static [&'static str]],
}

const CYCLES_OF_RUNTIME: &[&[&str]] = &[
    &["sampling.rs", "sampling/code.rs", "sampling/decode.rs", "sampling/open.rs", "sampling/sleeps.rs"],
    &["worker.rs", "worker/submit.rs", "time.rs"],
    &["pool.rs", "sim/calls.rs", "sim/schedule.rs", "sim/seats.rs"],
    &["buffers.rs", "spare.rs", "sync.rs"],
    &["sim/inner.rs", "sim/world.rs", "sim/meanwhile.rs"],
    &["sim/disk.rs", "sim/entries.rs"],
    &["sys.rs", "sys/waiting.rs"],
    &["ring.rs", "ring/enter.rs"],
    &["ring/chain.rs", "ring/flight.rs"],
];

const RULES: &[Rule] = &[
    Rule { name: "ferry-io", imports: &[], tests_import: &[], cycles: CYCLES_OF_RUNTIME },
    Rule { name: "ferry-tree", imports: &[], tests_import: &[], cycles: &[] },
    Rule { name: "ferry-direct", imports: &["ferry-io"], tests_import: &[], cycles: &[] },
    // The crate that judges the copies in its tests knows nothing of the runtime.
    Rule { name: "ferry-copy", imports: &["ferry-io"], tests_import: &["ferry-tree"], cycles: &[] },
    Rule {
        name: "ferry-sync",
        imports: &["ferry-io", "ferry-copy"],
        tests_import: &["ferry-tree"],
        cycles: &[],
    },
    // Knows neither files nor the runtime, so that a simulation runs it.
    Rule { name: "ferry-cluster", imports: &[], tests_import: &["ferry-tree"], cycles: &[] },
    Rule { name: "ferry-trace", imports: &["ferry-io"], tests_import: &[], cycles: &[] },
    Rule {
        name: "ferry-lab",
        imports: &["ferry-io", "ferry-direct", "ferry-tree", "ferry-trace"],
        tests_import: &[],
        cycles: &[],
    },
    Rule { name: "ferry-tune", imports: &["ferry-io", "ferry-lab"], tests_import: &[], cycles: &[] },
    Rule {
        name: "ferry",
        imports: &[
            "ferry-io",
            "ferry-tree",
            "ferry-copy",
            "ferry-sync",
            "ferry-trace",
            "ferry-lab",
            "ferry-tune",
        ],
        tests_import: &[],
        cycles: &[],
    },
    Rule {
        name: "ferry-python",
        imports: &["ferry", "ferry-io", "ferry-tree", "ferry-copy", "ferry-sync"],
        tests_import: &[],
        cycles: &[],
    },
    Rule {
        name: "ferry-mpi",
        imports: &["ferry", "ferry-cluster", "ferry-copy", "ferry-io", "ferry-tree"],
        tests_import: &["ferry-trace"],
        cycles: &[],
    },
    Rule { name: "xtask", imports: &[], tests_import: &[], cycles: &[] },
];

/// The one crate that may contain `unsafe` and name `io_uring`.
const RUNTIME: &str = "ferry-io";

impl Rule {
    fn allows(&self, package: &str, purpose: Purpose) -> bool {
        let in_tests = purpose == Purpose::Tests && self.tests_import.contains(&package);
        package == self.name || self.imports.contains(&package) || in_tests
    }
}

/// Prints each breach on a line of its own, and fails if there is one.
pub(crate) fn check(root: &Path) -> Result<(), Failure> {
    let breaches = breaches(root)?;
    for breach in &breaches {
        println!("{breach}");
    }
    if breaches.is_empty() {
        println!("check-imports: ok");
        Ok(())
    } else {
        Err(Failure::Breaches { check: "check-imports", count: breaches.len() })
    }
}

/// Returns all breaches of a workspace: `PATH[:LINE]: BREACH`.
fn breaches(root: &Path) -> Result<Vec<String>, Failure> {
    let shared = Manifest::parse(&workspace::read(&root.join("Cargo.toml"))?);
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for folder in workspace::crate_folders(root)? {
        let path = folder.join("Cargo.toml");
        let place = workspace::shown(root, &path);
        let manifest = Manifest::parse(&workspace::read(&path)?);
        let Some(rule) = RULES.iter().find(|rule| rule.name == manifest.name) else {
            found.push(format!("{place}: no import rule for {}; add one to xtask", manifest.name));
            continue;
        };
        used.extend(manifest.dependencies.keys().map(|(_, key)| key.clone()));
        found.extend(manifest_breaches(rule, &manifest, &shared).map(|breach| format!("{place}: {breach}")));
        for path in workspace::sources(&folder)? {
            let place = workspace::shown(root, &path);
            let source = workspace::read(&path)?;
            let breaches = source_breaches(rule, &source);
            found.extend(breaches.iter().map(|(line, breach)| format!("{place}:{line}: {breach}")));
        }
        found.extend(cycle_breaches(rule, &workspace::shown(root, &folder), &Graph::read(&folder)?));
    }
    let unused = shared.dependencies.keys().filter(|(_, key)| !used.contains(key));
    found.extend(unused.map(|(_, key)| format!("Cargo.toml: no crate depends on {key}")));
    Ok(found)
}

/// Prints a crate's imports between files, its cycles, and the imports that close them.
pub(crate) fn print_graph(root: &Path, name: &str) -> Result<(), Failure> {
    let folder = if name == "xtask" { root.join(name) } else { root.join("crates").join(name) };
    let graph = Graph::read(&folder)?;
    for (&(from, to), import) in &graph.imports {
        let (from, to, Import { line, path }) = (&graph.files[from], &graph.files[to], import);
        println!("{from}:{line} imports {to} ({path})");
    }
    let cycles = Cycles::find(&graph);
    for cycle in &cycles.cycles {
        let files: Vec<&str> = cycle.iter().map(|&file| graph.files[file].as_str()).collect();
        println!("cycle of {} files, from top to bottom: {}", files.len(), files.join(" "));
    }
    for import in upward_imports(&graph, &cycles) {
        println!("upward: {import}");
    }
    println!(
        "{name}: {} files, {} imports, {} upward, largest cycle {} files, longest chain {} files",
        graph.files.len(),
        graph.imports.len(),
        cycles.upward.len(),
        cycles.largest(),
        cycles.longest
    );
    let between = Cycles::find(&graph.without_submodules());
    println!(
        "{name} without imports of a module from its own submodules: {} upward, largest cycle {} files",
        between.upward.len(),
        between.largest()
    );
    Ok(())
}

/// Returns one line for each import that closes a cycle: `FILE:LINE imports FILE (PATH)`.
fn upward_imports(graph: &Graph, cycles: &Cycles) -> Vec<String> {
    let line = |&(from, to): &(usize, usize)| {
        let Import { line, path } = &graph.imports[&(from, to)];
        format!("{}:{line} imports {} ({path})", graph.files[from], graph.files[to])
    };
    cycles.upward.iter().map(line).collect()
}

/// Returns a breach for each cycle that is not part of an allowed one, followed by the imports that close it.
fn cycle_breaches(rule: &Rule, folder: &str, graph: &Graph) -> Vec<String> {
    let cycles = Cycles::find(graph);
    let closing: Vec<String> = upward_imports(graph, &cycles);
    let mut found = Vec::new();
    for cycle in &cycles.cycles {
        let files: Vec<&str> = cycle.iter().map(|&file| graph.files[file].as_str()).collect();
        if rule.cycles.iter().any(|allowed| files.iter().all(|file| allowed.contains(file))) {
            continue;
        }
        found.push(format!("{folder}/src: {} import one another in a circle", files.join(", ")));
        let of_cycle = cycles.upward.iter().zip(&closing).filter(|((from, _), _)| cycle.contains(from));
        found.extend(of_cycle.map(|(_, import)| format!("{folder}/src/{import}, which closes a cycle")));
    }
    found
}

/// Returns the breaches of a manifest. Looks through renamings there and in the workspace's manifest.
fn manifest_breaches(rule: &Rule, manifest: &Manifest, shared: &Manifest) -> impl Iterator<Item = String> {
    manifest.dependencies.iter().filter_map(|((purpose, key), package)| {
        let shared_package = shared.dependencies.get(&(Purpose::Crate, key.clone()));
        let package = if package == key { shared_package.unwrap_or(package) } else { package };
        let is_ours = RULES.iter().any(|rule| rule.name == package);
        if is_ours && !rule.allows(package, *purpose) {
            return Some(format!("{} must not import {package}", rule.name));
        }
        let names_ring = package == "io-uring" && rule.name != RUNTIME;
        names_ring.then(|| format!("{} must not name io_uring; only {RUNTIME} may", rule.name))
    })
}

/// Returns line and text of each breach in one source file.
fn source_breaches(rule: &Rule, source: &str) -> Vec<(usize, String)> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    let mut is_in_use = false;
    for (index, token) in tokens.iter().enumerate() {
        let text_at = |index: usize| tokens.get(index).map_or("", |token| token.text);
        match token.text {
            // Not `impl Trait + use<'a>`.
            "use" => is_in_use = text_at(index + 1) != "<",
            "extern" => is_in_use = text_at(index + 1) == "crate",
            ";" => is_in_use = false,
            text => {
                let names_crate = names_crate(&tokens, index, is_in_use);
                found.extend(word_breach(rule, text, names_crate).map(|breach| (token.line, breach)));
            }
        }
    }
    found
}

/// Returns true if the word at `index` begins a path or is imported by a `use`.
fn names_crate(tokens: &[Token<'_>], index: usize, is_in_use: bool) -> bool {
    let text_before = |count: usize| index.checked_sub(count).map_or("", |index| tokens[index].text);
    let starts_path = tokens.get(index + 1).is_some_and(|next| next.text == "::");
    let parent = if text_before(1) == "::" { text_before(2) } else { "" };
    let has_parent = parent.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    // rustix has a module io_uring of its own. In `use ::name`, the parent is a keyword.
    let is_root = !has_parent || ["rustix", "use"].contains(&parent);
    is_root && (starts_path || is_in_use || has_parent)
}

fn word_breach(rule: &Rule, word: &str, names_crate: bool) -> Option<String> {
    if rule.name != RUNTIME {
        if word == "unsafe" {
            return Some(format!("{} must not contain unsafe; only {RUNTIME} may", rule.name));
        }
        let is_ring_constant = word.starts_with("IORING_") || word.starts_with("SYS_io_uring");
        if is_ring_constant || (word == "io_uring" && names_crate) {
            return Some(format!("{} must not name io_uring; only {RUNTIME} may", rule.name));
        }
    }
    let package = word.replace('_', "-");
    let is_ours = names_crate && RULES.iter().any(|rule| rule.name == package);
    let is_breach = is_ours && !rule.allows(&package, Purpose::Tests);
    is_breach.then(|| format!("{} must not import {package}", rule.name))
}
