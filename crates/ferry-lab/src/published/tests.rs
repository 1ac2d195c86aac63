use super::{ALL, BESIDE, MACHINES, beside, of};

#[test]
fn every_row_has_a_place_for_each_column() {
    for table in ALL {
        assert_eq!(table.columns.len(), table.units.len(), "{}", table.title);
        assert!(
            table.rows.iter().all(|(_, figures)| figures.len() == table.columns.len()),
            "{}",
            table.title
        );
        assert!(MACHINES.iter().any(|(document, _)| *document == table.document));
    }
}

#[test]
fn the_documents_tables_are_as_published() {
    let write: Vec<String> = of("write").map(|table| table.table().text()).collect();
    assert!(write[0].contains("Overwrite (dd)  100  56.7 s  56.8 s  56.8 s  57.4 s"), "{}", write[0]);
    let disk = of("disk").next().unwrap().table().text();
    assert!(disk.contains("random 4 KiB, depth 1   29.1 MB/s  107 MB/s  42.8 MB/s"), "{disk}");
    assert!(of("tree").next().is_none());
}

#[test]
fn a_published_table_stands_beside_those_that_repeat_it() {
    for (experiment, start, _) in BESIDE {
        let is_it =
            |table: &super::Published| table.experiment == *experiment && table.title.starts_with(start);
        assert!(ALL.iter().any(is_it), "{experiment}: {start}");
    }
    let titles = |experiment: &str, title: &str| {
        beside(experiment, title).map(|table| table.title).collect::<Vec<_>>()
    };
    assert_eq!(titles("copy", "large (2 levels fewer), warm"), ["780 MB in files of 1 MiB"]);
    assert_eq!(
        titles("copy", "large-3905, cold"),
        ["3,905 files of 4 KiB, and of 1 MiB with blocks of 1 MB", "On a cold cache"]
    );
    assert!(titles("limits", "large, warm").is_empty());
}
