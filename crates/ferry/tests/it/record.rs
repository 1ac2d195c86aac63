//! `--errors`: never overwrites an existing file of value.

use crate::scene::{Stage, ferry, text};

#[test]
fn an_operand_is_no_record() {
    let stage = Stage::new();
    for arguments in [["f", "g"], ["g", "f"]] {
        stage.set();
        let output = ferry(&stage.root(), &[&["cp", "--errors", "f"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            text(&output.stderr),
            "ferry cp: cannot write failures to 'f': the copy reads or writes this file; choose another one\n"
        );
        assert_eq!(std::fs::read_to_string(stage.root().join("f")).unwrap(), "f's text");
    }
}

#[test]
fn an_old_record_is_emptied() {
    let stage = Stage::new();
    stage.set();
    std::fs::write(stage.root().join("record"), "old").unwrap();
    let output = ferry(&stage.root(), &["cp", "--errors", "record", "f", "new"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(stage.root().join("record")).unwrap(), "");
}
