use super::WorkFolder;

#[test]
fn nothing_is_left_behind() {
    let place = tempfile::tempdir().unwrap();
    let left = || std::fs::read_dir(place.path()).unwrap().count();
    let (one, other) = (WorkFolder::make(place.path()).unwrap(), WorkFolder::make(place.path()).unwrap());
    std::fs::create_dir_all(one.path().join("a/b")).unwrap();
    std::fs::write(one.path().join("a/b/c"), "text").unwrap();
    assert_eq!(left(), 2);
    one.remove().unwrap();
    drop(other);
    assert_eq!(left(), 0);
    let missing = WorkFolder::make(&place.path().join("missing")).unwrap_err();
    assert!(missing.to_string().starts_with("cannot open "), "{missing}");
}
