use super::Kind::{Content, Extra, Missing, Mode, Times, Unreadable};
use super::*;

fn findings(kinds: &[(Kind, u64)]) -> Findings {
    let mut findings = Findings::default();
    for (kind, n) in kinds {
        (0..*n).for_each(|_| findings.count(*kind));
    }
    findings
}

/// Totals of a comparison of two trees.
fn trees() -> Totals {
    let (entries, directories, files, bytes) = (4_686, 781, 3_905, 15_600_000);
    let summary = Summary { entries, directories, files, bytes, ..Summary::default() };
    Totals { summary, trashes: None, content: true, took: None }
}

/// Totals of a comparison with a manifest.
fn listed() -> Totals {
    let summary = Summary { entries: 60, files: 60, bytes: 9_000, ..Summary::default() };
    Totals { summary, trashes: Some(0), content: true, took: None }
}

/// Totals of a comparison that was stopped.
fn stopped(totals: Totals) -> Totals {
    Totals { summary: Summary { stopped: true, ..totals.summary }, ..totals }
}

#[test]
fn the_verdict_names_what_was_compared() {
    let others = Summary { entries: 4_700, ..trees().summary };
    for (totals, expected) in [
        (trees(), "equal: 3,905 files, 781 directories, 16 MB of content"),
        (
            Totals { summary: others, ..trees() },
            "equal: 3,905 files, 781 directories, 14 other entries, 16 MB of content",
        ),
        (Totals { content: false, ..trees() }, "equal: 4,686 entries, without comparing content"),
        (
            Totals { took: Some(Duration::from_millis(1_200)), ..trees() },
            "equal: 3,905 files, 781 directories, 16 MB of content; took 1.2 s",
        ),
        (listed(), "equal: 60 files, 9.0 kB of content"),
        (
            Totals { trashes: Some(2), ..listed() },
            "equal: 60 files, 9.0 kB of content; 2 trashes passed over",
        ),
        (stopped(trees()), "interrupted: no difference in 4,686 entries so far"),
    ] {
        assert_eq!(totals.line(&findings(&[])), expected);
    }
}

#[test]
fn the_verdict_counts_differences_by_kind() {
    for (totals, kinds, expected) in [
        (
            trees(),
            &[(Times, 2), (Content, 10)][..],
            "different: 12 differences in 4,686 entries: 10 content, 2 times",
        ),
        // Entries of one side are not among those that were compared.
        (
            trees(),
            &[(Missing, 1), (Extra, 3)],
            "different: 4 differences in 4,690 entries: 1 missing, 3 extra",
        ),
        (trees(), &[(Unreadable, 2)], "undecided: 2 failures to read, no other difference in 4,686 entries"),
        (
            trees(),
            &[(Unreadable, 1), (Mode, 1)],
            "different: 2 differences in 4,686 entries: 1 unreadable, 1 mode",
        ),
        (stopped(trees()), &[(Content, 1)], "interrupted: 1 difference in 4,686 entries so far: 1 content"),
        // Missing files are those of the manifest.
        (listed(), &[(Missing, 1), (Extra, 3)], "different: 4 differences in 63 files: 1 missing, 3 extra"),
    ] {
        assert_eq!(totals.line(&findings(kinds)), expected);
    }
}

#[test]
fn advice_is_given_only_if_nothing_but_times_differs() {
    for (totals, kinds, begin) in [
        (
            trees(),
            &[(Times, 3)][..],
            Some("Only modification times differ: was the copy made without -a or -p?"),
        ),
        (listed(), &[(Times, 3)], Some("Only modification times differ: `ferry verify --ignore=times`")),
        (trees(), &[(Times, 3), (Mode, 1)], None),
        (trees(), &[], None),
        (stopped(trees()), &[(Times, 3)], None),
    ] {
        let hint = totals.hint(&findings(kinds));
        assert_eq!(hint.is_some(), begin.is_some(), "{kinds:?}");
        assert!(hint.is_none_or(|hint| hint.starts_with(begin.unwrap())), "{hint:?}");
    }
}
