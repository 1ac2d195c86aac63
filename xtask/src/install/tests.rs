use std::fs;
use std::path::Path;

use super::replace;
use crate::failure::Failure;
use crate::scratch::Scratch;

#[test]
fn what_is_replaced_stays_until_the_new_is_whole() {
    let scratch = Scratch::open().unwrap();
    let program = scratch.path().join("ferry");
    let write = |path: &Path, text: &str| fs::write(path, text).map_err(Failure::path("write", path));
    let names = || fs::read_dir(scratch.path()).unwrap().count();
    fs::write(&program, "old").unwrap();
    fs::write(scratch.path().join("ferry.new"), "of one that was killed").unwrap();
    let failed = replace(&program, |beside| {
        write(beside, "half")?;
        Err(Failure::NoTime)
    });
    assert!(matches!(failed, Err(Failure::NoTime)));
    assert_eq!((fs::read_to_string(&program).unwrap().as_str(), names()), ("old", 1));
    replace(&program, |beside| {
        write(beside, "new")?;
        assert_eq!(fs::read_to_string(&program).unwrap(), "old");
        Ok(())
    })
    .unwrap();
    assert_eq!((fs::read_to_string(&program).unwrap().as_str(), names()), ("new", 1));
}
