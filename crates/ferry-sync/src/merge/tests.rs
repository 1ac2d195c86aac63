use super::*;

struct Listing(std::collections::VecDeque<&'static str>);

impl InOrder for Listing {
    type Error = ();

    fn next_entry(&mut self) -> Result<Option<Entry>, ()> {
        let entry =
            |name: &str| Entry { name: Name::new(name.as_bytes()).expect("a name"), kind: None, inode: 1 };
        Ok(self.0.pop_front().map(entry))
    }
}

#[test]
fn each_name_of_either_side_is_one_row() {
    let listing = |names: &[&'static str]| Listing(names.iter().copied().collect());
    let mut merge =
        Merge::new(listing(&["a", "c", "c", "d"]), listing(&["b", "c", "e", "e"])).expect("no error");
    let mut rows = Vec::new();
    while let Some(row) = merge.next().expect("no error") {
        let name = String::from_utf8_lossy(row.name.as_bytes()).into_owned();
        rows.push((name, row.source.is_some(), row.target.is_some()));
    }
    let wanted =
        [("a", true, false), ("b", false, true), ("c", true, true), ("d", true, false), ("e", false, true)];
    assert_eq!(rows, wanted.map(|(name, source, target)| (name.to_owned(), source, target)));
}
