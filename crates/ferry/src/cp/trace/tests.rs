use ferry_io::Errno;

use super::*;

fn recorded() -> Recorded {
    Recorded {
        file: "t".into(),
        instead_of: None,
        events: 900,
        lost: 0,
        faults: Vec::new(),
        failure: None,
        is_whole: true,
    }
}

#[test]
fn only_what_is_wrong_is_told() {
    assert_eq!(warning(&recorded()), None);
    let told = |recorded: &Recorded| warning(recorded).unwrap();
    let mut lossy = Recorded { lost: 100, faults: vec!["not told".to_owned()], ..recorded() };
    let incomplete = "warning: the recording 't' is incomplete: 100 of 1,000 events were lost";
    assert_eq!(told(&lossy), incomplete);
    lossy.failure = Some(Errno::NOSPC);
    assert!(told(&lossy).contains("No space left on device; 100 of"), "{}", told(&lossy));
    lossy.is_whole = false;
    assert_eq!(told(&lossy), "warning: cannot record to 't': No space left on device");
    let faulty = Recorded { faults: vec!["1 queued, 0 taken".to_owned()], ..recorded() };
    assert_eq!(told(&faulty), "warning: the recording 't' is inconsistent: 1 queued, 0 taken");
    assert_eq!(elsewhere(&recorded()), None);
    let moved = Recorded { file: "t.2".into(), instead_of: Some("t".into()), ..recorded() };
    let said = "warning: recorded to 't.2', because 't' may not be replaced";
    assert_eq!((elsewhere(&moved).as_deref(), warning(&moved)), (Some(said), None));
}

#[test]
fn the_option_goes_before_the_environment() {
    assert_eq!(file(None, None), None);
    assert_eq!(file(None, Some("".into())), None);
    assert_eq!(file(None, Some("e".into())), Some("e".into()));
    assert_eq!(file(None, Some("e.%n".into())), Some("e.%n".into()));
    assert_eq!(file(Some(Path::new("o")), Some("e".into())), Some("o".into()));
}
