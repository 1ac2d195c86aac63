use super::*;

fn parsed(words: &[&str]) -> Result<Request, String> {
    let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
    match parse(&arguments) {
        Ok(Parsed::Run(request)) => Ok(*request),
        Ok(Parsed::Print(..)) => Err("it prints".to_owned()),
        Err(usage) => Err(usage.message),
    }
}

#[test]
fn deletions_go_to_the_trash_unless_they_are_to_be_made_now() {
    let disposal =
        |words: &[&str]| parsed(&[words, &["a", "b"]].concat()).map(|request| request.acting.disposal);
    assert_eq!(disposal(&[]), Ok(Disposal::Remove));
    assert_eq!(disposal(&["--delete"]), Ok(Disposal::Trash(None)));
    assert_eq!(disposal(&["--delete=now"]), Ok(Disposal::Remove));
    assert_eq!(disposal(&["--trash=x"]), Ok(Disposal::Trash(Some("x".into()))));
    assert!(disposal(&["--delete=now", "--trash"]).is_err());
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    for words in [
        &["--checksum", "--size-only", "a", "b"][..],
        &["--plan", "x", "-n", "a", "b"],
        &["--apply", "x", "a"],
        &["--apply", "x", "--delete"],
        &["--apply", "x", "--checksum"],
        &["--apply", "x", "--max-delete=1"],
        &["--plan", "x", "--delete=now", "a", "b"],
        &["--plan", "x", "--fsync", "a", "b"],
        &["--plan", "x", "--inplace", "a", "b"],
        &["--undo", ".ferry-trash/x", "--fsync"],
        &["--undo", ".ferry-trash/x", "--trash"],
        &["--undo", ".ferry-trash/x", "--delete=now"],
        &["--max-delete=1", "a", "b"],
        &["--allow-empty", "a", "b"],
        &["--max-delete", "some", "a", "b"],
        &["a"],
        &["a", "b", "c"],
        &[],
    ] {
        assert!(parsed(words).is_err(), "{words:?}");
    }
}

#[test]
fn a_load_is_a_whole_percentage() {
    let load = |value: &str| {
        let request = parsed(&[format!("--max-load={value}").as_str(), "a", "b"])?;
        Ok::<_, String>(request.max_load.map(NonZeroU8::get))
    };
    for (value, expected) in [("1", 1), ("20", 20), ("100", 100)] {
        assert_eq!(load(value), Ok(Some(expected)));
    }
    for value in ["0", "101", "256", "-1", "+1", "1.5", "5%", " 5", "abc", ""] {
        let message = format!("invalid percentage '{value}' for '--max-load': a whole number from 1 to 100");
        assert_eq!(load(value), Err(message));
    }
    assert!(parsed(&["--max-load"]).is_err());
    for words in [&["--apply=x"][..], &["--undo=.ferry-trash/x"], &["--dry-run", "a", "b"]] {
        let request = parsed(&[&["--max-load=5"][..], words].concat());
        assert_eq!(request.map(|request| request.max_load.map(NonZeroU8::get)), Ok(Some(5)), "{words:?}");
    }
}

#[test]
fn a_plan_needs_no_operands() {
    assert!(matches!(parsed(&["--apply", "x"]).map(|request| request.task), Ok(Task::Apply(_))));
}
