use super::*;

#[test]
fn the_fate_of_incomplete_files_is_told() {
    let text = |removed, kept| Incomplete { removed, kept }.text();
    assert_eq!(text(0, 0), "complete files kept");
    assert_eq!(text(34_000_000, 0), "34 MB of incomplete files removed, complete ones kept");
    assert_eq!(text(0, 34_000_000), "34 MB of incomplete files kept, and all complete ones");
    assert_eq!(
        text(5_000, 34_000_000),
        "34 MB of incomplete files kept, and all complete ones; 5.0 kB are copied again"
    );
}

#[test]
fn the_way_on_names_what_the_command_lacks() {
    assert_eq!(way_on(Cause::Signal, None), "the same command continues");
    assert_eq!(way_on(Cause::TimeLimit, Some("-u")), "with -u the same command continues");
    for device in [Cause::Device(Side::Source), Cause::Operand] {
        assert_eq!(way_on(device, None), "once the device is back, the same command continues");
    }
    assert_eq!(way_on(Cause::Space, Some("-uT")), "once there is space, with -uT the same command continues");
}
