//! Examples in the help of the experiments.

use ferry_lab::experiment::Spec;

use super::comparison;
use crate::arguments::Example;
use crate::names::LAB;

/// Options, and their purpose, of the example that one experiment alone has.
const OWN: &[(&str, &str, &str)] = &[
    ("copy", "--vs 'rsync -a {source}/ {target}'", "Also measure another copier"),
    ("limits", "--trees large --states cold", "Find the limit for large files that are not cached"),
    ("strategies", "--strategies read-write,mmap --states warm", "Compare two strategies on cached files"),
    ("write", "--operations overwrite", "Leave out the download"),
    ("ring", "--modes plain,coop --loads process", "Compare two modes beside a busy process"),
    ("disk", "--work-dir /mnt/photos", "Measure the device of another mount"),
    ("cache", "--access zipf --cache-sizes 64M", "Measure one access pattern with one size of the cache"),
    ("syscalls", "--files 3905 --block-sizes 4K", "Count for as many files as the documents"),
    ("handovers", "--filesystems here", "Count only on the filesystem of this folder"),
    ("when", "--cases latency", "Measure only the latency"),
    ("evict", "--use left", "Leave the working set unused during the copy"),
];

/// Examples of the command that makes trees and measures nothing.
const OF_TREE: &[Example] = &[
    ("ferry lab tree small photos", "Make a tree of 3,905 small files"),
    ("ferry lab tree huge:512 photos", "Make one file of 512 MiB"),
    ("ferry lab tree --fan-out 4 --depth 3 --files 10 photos", "Make a tree by your own numbers"),
];

/// Examples of the comparison of two commands, which has no published figures.
const OF_RUN: &[Example] = &[
    ("ferry lab run -- grep -r sea photos -- rg sea photos", "Compare two commands on cached files"),
    (
        "ferry lab run --prepare 'rm -rf b' -- cp -r a b -- ferry cp -r a b",
        "Compare two copiers, each of which makes a new copy",
    ),
    (
        "ferry lab run --state cold --files a -- grep -r sea a -- rg sea a",
        "Compare two commands on files that are not cached, as root",
    ),
    ("ferry lab run -o run.html --names old,new -- ./old a -- ./new a", "Make a page of the comparison"),
    ("ferry lab run --resume run.json", "Take the runs that are missing from a record"),
];

/// Returns the examples of an experiment, which are kept until the process ends.
pub(super) fn of(spec: &Spec) -> &'static [Example] {
    if !spec.is_measured {
        return OF_TREE;
    }
    let name = spec.name;
    if name == comparison::NAME {
        return OF_RUN;
    }
    let line = |options: &str| -> &'static str { format!("{LAB} {name} {options}").leak() };
    let record: &str = format!("-o {name}.json").leak();
    let mut examples = vec![
        (line("--quick"), "Run in seconds, to see that it works"),
        (line(record), "Measure, and keep the record"),
    ];
    let own = OWN.iter().find(|(of, ..)| *of == name);
    examples.extend(own.map(|(_, options, purpose)| (line(options), *purpose)));
    examples.push((line(&format!("--as-published {record}")), "Use the parameters of the published figures"));
    examples.push((line(&format!("--resume {name}.json")), "Take the runs that are missing from a record"));
    examples.leak()
}
