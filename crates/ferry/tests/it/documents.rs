//! The documents of `ferry sync`, and the options that they describe.

use std::fs;
use std::path::Path;

use crate::help::options_of_sync;

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

/// Returns the options without those that every command has.
fn own_options() -> impl Iterator<Item = String> {
    options_of_sync().into_iter().filter(|option| option != "--help" && option != "--version")
}

/// Returns true if a text has this option, and not only a longer one that begins with it.
fn has(text: &str, option: &str) -> bool {
    let mut rests = text.split(option).skip(1);
    rests.any(|rest| !rest.starts_with(|next: char| next == '-' || next.is_ascii_alphabetic()))
}

#[test]
fn every_option_of_sync_is_in_its_documents() {
    for name in ["sync.md", "faults.md"] {
        let text = document(name);
        let missing: Vec<String> = own_options().filter(|option| !has(&text, option)).collect();
        assert!(missing.is_empty(), "docs/{name} lacks {missing:?}");
    }
}

/// Returns title and text of each section.
fn sections(text: &str) -> Vec<(&str, &str)> {
    text.split("\n## ").skip(1).filter_map(|section| section.split_once('\n')).collect()
}

#[test]
fn the_table_of_options_leads_to_sections_that_describe_them() {
    let text = document("sync.md");
    let sections = sections(&text);
    let table = sections.iter().find(|(title, _)| *title == "Options").unwrap().1;
    for option in own_options() {
        let row = table.lines().find(|row| has(row, &option)).unwrap_or_else(|| panic!("no row of {option}"));
        let (names, link) = row.split_once("[").unwrap();
        let title = link.split(']').next().unwrap();
        let section = sections.iter().find(|(known, _)| *known == title).unwrap_or_else(|| panic!("{row}")).1;
        // The text may have the letter that stands before the name in brackets: `-n` (`--dry-run`).
        let letter =
            names.split_once(&format!(" (`{option}`)")).and_then(|(before, _)| before.rsplit(' ').next());
        let is_described = has(section, &option) || letter.is_some_and(|letter| section.contains(letter));
        assert!(is_described, "section {title} does not describe {option}");
    }
}

#[test]
fn the_page_of_sync_begins_with_examples_then_its_decisions() {
    let text = document("sync.md");
    let titles: Vec<&str> = sections(&text).into_iter().map(|(title, _)| title).collect();
    assert_eq!(titles[..2], ["How it decides", "When not to use it"]);
    let screen = text.split_once("\n## ").unwrap().0;
    assert_eq!(screen.matches("```sh\n").count(), 3, "{screen}");
    assert!(screen.contains("whether SOURCE ends in a slash or not"), "{screen}");
}
