use super::*;

const REAL: &str = "some avg10=0.20 avg60=0.27 avg300=1.78 total=297997539\n\
                    full avg10=0.00 avg60=0.03 avg300=0.69 total=96160014\n";

#[test]
fn the_total_of_some_is_read() {
    assert_eq!(parse(REAL), Some(Duration::from_micros(297_997_539)));
    let idle = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    assert_eq!(parse(idle), Some(Duration::ZERO));
    let busy = "some avg10=100.00 avg60=99.99 avg300=42.00 total=18446744073709551615\n";
    assert_eq!(parse(busy), Some(Duration::from_micros(u64::MAX)));
}

#[test]
fn the_time_of_reads_is_read() {
    let stat = "  402  17  9184  123  8823  123456  998877 5544332 0 44556 5555555 1 2 3 4 5 6\n";
    assert_eq!(parse_reading(stat), Some(Duration::from_millis(123)));
    for damaged in ["", "1 2 3", "1 2 3 x 5", "1 2 3 -4"] {
        assert_eq!(parse_reading(damaged), None, "{damaged:?}");
    }
}

#[test]
fn a_place_that_does_not_exist_is_on_the_device_of_its_folder() {
    let there = device_of("/usr".as_ref());
    assert_eq!(device_of("/usr/none/at all".as_ref()), there);
    assert_eq!(device_of("/proc/none".as_ref()), None);
    assert!(there.is_none_or(|device| reading(&device).is_some()));
}

#[test]
fn damaged_text_has_no_total() {
    for damaged in [
        "",
        "\n",
        "some\n",
        "some \n",
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=+1\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1.5\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0x1\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551616\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1 more=2\n",
        "some avg10=0.00 avg300=0.00 avg60=0.00 total=1\n",
        "some avg10=0.00  avg60=0.00 avg300=0.00 total=1\n",
        "some avg10=x avg60=0.00 avg300=0.00 total=1\n",
        "some avg10=.5 avg60=0.00 avg300=0.00 total=1\n",
        " some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
        "SOME avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
    ] {
        assert_eq!(parse(damaged), None, "{damaged:?}");
    }
}

#[test]
fn text_that_is_cut_off_has_no_wrong_total() {
    let line = REAL.find('\n').unwrap();
    for size in 0..REAL.len() {
        let total = (size > line).then(|| Duration::from_micros(297_997_539));
        assert_eq!(parse(&REAL[..size]), total, "{size} bytes");
    }
}

#[test]
fn pauses_are_reported_if_there_were_any() {
    let pauses = |count, milliseconds| Pauses {
        count,
        time: Duration::from_millis(milliseconds),
        measured: count + 1,
    };
    assert_eq!(closing(pauses(0, 0), Duration::from_secs(41)), None);
    let line = closing(pauses(2, 3_200), Duration::from_secs(41));
    assert_eq!(line.as_deref(), Some("paused 3.2 s of 41.0 s because other programs waited for I/O"));
}
