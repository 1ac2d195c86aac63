use super::{ALL, MACHINES, of};

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
