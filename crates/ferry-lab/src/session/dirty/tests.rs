use super::Dirty;

#[test]
fn writing_more_than_may_wait_is_told() {
    let at = |dirtied: u64| {
        let text = format!(
            "nr_dirty 3\nnr_dirtied {dirtied}\nnr_dirty_threshold 200\nnr_dirty_background_threshold 100\n"
        );
        Dirty::parse(&text)
    };
    assert!(at(150).warning_since(&at(0)).is_none());
    let warning = at(151).warning_since(&at(0)).unwrap();
    assert!(warning.message.starts_with("a run writes more than the 614 kB"), "{warning}");
    assert!(Dirty::parse("").warning_since(&Dirty::parse("")).is_none());
}
