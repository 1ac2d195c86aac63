use super::{Copy, tools, workloads};
use crate::experiments::Experiment;
use crate::needs::Need;
use crate::record::tests::record;
use crate::record::{Cell, Figures, Record, Scale};
use crate::settings::Settings;
use crate::verdict::Outcome;

fn settings(given: &[(&str, &str)]) -> Settings {
    let given: Vec<_> = given.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Settings::new(Copy.parameters(), &given, Scale::Default).unwrap()
}

#[test]
fn small_files_are_copied_with_one_block_size_only() {
    let settings = settings(&[("vs", "cp -a {source} {target}"), ("vs", "true {source} {target}")]);
    let tools = tools::all(&settings, "/ferry".as_ref()).unwrap();
    let names = |tree: usize| -> Vec<String> {
        let workload = &workloads(&settings, 1).unwrap()[tree].1;
        tools.iter().filter(|tool| tool.suits(workload)).map(|tool| tool.name.clone()).collect()
    };
    let common = ["cp", "ferry", "ferry-ring", "cp -a {source} {target}", "true", "sequential-4K"];
    assert_eq!(names(0)[..6], common);
    assert_eq!(names(0)[6..], ["dfs-4K", "bfs-4K", "blocks-4K"]);
    assert_eq!(names(1).len(), 13);
    let dfs = tools.iter().find(|tool| tool.name == "dfs-1M").unwrap();
    let words: Vec<&str> = dfs.command.arguments.iter().map(|word| word.to_str().unwrap()).collect();
    assert_eq!(words.join(" "), "lab strategy dfs --block-size 1048576 --max-fibers 2 {source} {target}");
}

#[test]
fn needs_are_known_before_anything_is_made() {
    let needs = Copy.needs(&settings(&[("trees", "small"), ("states", "cold")])).unwrap();
    assert!(needs.contains(&Need::DropCaches));
    assert!(
        needs.iter().any(|need| matches!(need, Need::Space { bytes, entries: 9372 } if *bytes > 32_000_000))
    );
    let refused = |given: &[(&str, &str)]| Copy.needs(&settings(given)).unwrap_err();
    assert_eq!(refused(&[("vs", "no-such-copier {source} {target}")]).exit_code(), 1);
    let said = refused(&[("vs", "cp -r {source} there")]).to_string();
    assert_eq!(said, "'cp -r {source} there' needs {source} and {target} in it");
    assert!(refused(&[("trees", "tiny")]).to_string().starts_with("'tiny' is none of small"));
    assert!(refused(&[("trees", "mixed")]).to_string().starts_with("'mixed' has symbolic links"));
}

/// A record in which each tool took so many seconds.
fn taken(times: &[(&str, &str, &str, f64)]) -> Record {
    let mut record = record();
    let run = record.cells[0].runs[0].clone();
    record.cells.clear();
    for (tree, cache, tool, seconds) in times {
        let parameters = [("tree", (*tree).into()), ("cache", (*cache).into()), ("tool", (*tool).into())];
        let mut cell = Cell::new(&parameters, crate::cache::State::Warm);
        for round in 0..5 {
            let figures =
                Figures::from([("returned_s".to_owned(), *seconds), ("throughput_b_s".to_owned(), 1e8)]);
            cell.runs.push(crate::record::Run { round, figures, ..run.clone() });
        }
        record.cells.push(cell);
    }
    record
}

#[test]
fn the_documents_findings_are_judged_by_the_figures() {
    let record = taken(&[
        ("small", "warm", "cp", 1.0),
        ("small", "warm", "dfs-4K", 1.8),
        ("small", "warm", "sequential-4K", 0.9),
        ("small", "warm", "ferry", 0.5),
        ("small", "warm", "ferry-ring", 0.6),
    ]);
    let verdicts = Copy.verdicts(&record);
    let outcome =
        |part: &str| verdicts.iter().find(|verdict| verdict.finding.contains(part)).unwrap().outcome;
    assert_eq!(outcome("warm cache the concurrent copy with 4,096"), Outcome::Held);
    assert_eq!(outcome("three times slower"), Outcome::DidNotHold);
    assert_eq!(outcome("cold cache concurrency wins"), Outcome::NotMeasured);
    assert_eq!(outcome("Choosing a route"), Outcome::Held);
    let words = verdicts[0].to_string();
    assert_eq!(
        words,
        "000: On small files in a warm cache the concurrent copy with 4,096-byte blocks is slower than cp - held: \
         it (published: 1.81) took 1.80 (1.80 to 1.80) times cp's time"
    );
}

#[test]
fn each_group_has_a_table_and_a_plot() {
    let record =
        taken(&[("small", "warm", "cp", 1.0), ("small", "cold", "cp", 2.0), ("large", "warm", "cp", 3.0)]);
    let titles: Vec<String> = Copy.tables(&record).into_iter().map(|table| table.title).collect();
    assert_eq!(titles, ["small, warm", "small, cold", "large, warm"]);
    assert_eq!(Copy.plots(&record).len(), 3);
}
