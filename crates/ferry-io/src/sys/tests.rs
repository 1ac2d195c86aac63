use super::*;

#[test]
fn a_call_that_a_filter_forbids_is_tried_the_older_way() {
    let newer = Newer::new();
    assert_eq!(newer.answer(|| Err::<(), _>(Errno::PERM)), None);
    assert_eq!(newer.instead(Err::<(), _>(Errno::PERM)), Err(Errno::PERM));
    assert_eq!(newer.answer(|| Err::<(), _>(Errno::PERM)), None, "both said no: it may be meant");
    assert_eq!(newer.instead(Ok(1)), Ok(1));
    assert_eq!(newer.answer(|| -> Result<(), _> { panic!("it is not tried again") }), None);
}

#[test]
fn a_call_that_has_worked_is_believed() {
    let newer = Newer::new();
    assert_eq!(newer.answer(|| Ok(1)), Some(Ok(1)));
    assert_eq!(newer.answer(|| Err::<(), _>(Errno::PERM)), Some(Err(Errno::PERM)));
    assert_eq!(newer.answer(|| Err::<(), _>(Errno::NOSYS)), None);
}
