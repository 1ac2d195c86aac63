use super::*;

#[test]
fn a_completion_is_met_by_the_call_in_which_it_arrived() {
    let mut meeting = Meeting { found: 1, ..Meeting::default() };
    let met = |meeting: &Meeting| [0, 1, 2, 3].map(|place| meeting.of(place));
    meeting.sleep(1, 3);
    // The last one arrives in a further call, without a sleep.
    let [peek, slept, at_once] = [CompletionMet::Peek, CompletionMet::Slept, CompletionMet::AtOnce];
    assert_eq!(met(&meeting), [peek, slept, slept, at_once]);
    meeting.sleep(3, 4);
    assert_eq!(met(&meeting), [peek, slept, slept, slept]);
}
