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
fn each_step_has_its_operands() {
    let step = |words: &[&str]| parsed(words).map(|request| request.step);
    let split = Step::Split { parts: 3, range: Some(1 << 20), source: "a".into(), target: "b".into() };
    assert_eq!(step(&["--split", "3", "--range=1M", "a", "b", "lists"]), Ok(split));
    assert_eq!(step(&["--open", "lists"]), Ok(Step::Open));
    assert_eq!(step(&["--part=4096", "lists"]), Ok(Step::Part(4_096)));
    assert_eq!(step(&["--close", "--rest", "lists"]), Ok(Step::Close(true)));
}

#[test]
fn wrong_command_lines_are_refused_with_their_reason() {
    for (words, reason) in [
        (&["lists"][..], "name a step"),
        (&["--open", "--close", "lists"], "--open and --close exclude each other"),
        (&["--split=0", "a", "b", "lists"], "from 1 to 4096"),
        (&["--part=4097", "lists"], "from 1 to 4096"),
        (&["--split=2", "a", "b"], "missing LISTS"),
        (&["--split=2"], "missing SOURCE"),
        (&["--open"], "missing LISTS"),
        (&["--open", "lists", "more"], "extra operand 'more'"),
        (&["--open", "--rest", "lists"], "--rest needs --close"),
        (&["--part=1", "--range=1M", "lists"], "--range needs --split"),
        (&["--split=2", "--range=1K", "a", "b", "lists"], "not a multiple of 1M"),
        (&["--split=2", "--range=5000000", "a", "b", "lists"], "not a multiple of 1M"),
        (&["--split=2", "--fsync", "a", "b", "lists"], "--fsync is for the other steps"),
        (&["--open", ""], "an operand is empty"),
    ] {
        let refused = parsed(words).unwrap_err();
        assert!(refused.contains(reason), "{words:?}: {refused}");
    }
}

#[test]
fn options_are_passed_on() {
    let request =
        parsed(&["--part=1", "--fsync", "--workers", "3", "--backend=posix", "-v", "lists"]).unwrap();
    let sync = request.sync(vec!["a".into(), "b".into()]).unwrap();
    assert!(sync.acting.fsync && sync.verbose);
    assert_eq!(sync.io.backend, Backend::Posix);
}
