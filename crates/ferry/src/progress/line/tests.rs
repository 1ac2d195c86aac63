use super::*;

fn facts() -> Facts {
    Facts {
        percent: Some(41),
        is_estimate: false,
        bytes: (261_000_000, Some(629_000_000)),
        entries: (1204, Some(2811)),
        rate: (63_000_000, Duration::from_secs(1)),
        left: Some(Duration::from_secs(6)),
        elapsed: Duration::from_secs(4),
    }
}

#[test]
fn the_line_has_what_there_is_room_for() {
    for (columns, expected) in [
        (
            120,
            "41 %  261/629 MB  63 MB/s  0:06 left  1,204/2,811 entries  [================>                       ]",
        ),
        (79, "41 %  261/629 MB  63 MB/s  0:06 left  1,204/2,811 entries  [=======>          ]"),
        (59, "41 %  261/629 MB  63 MB/s  0:06 left  1,204/2,811 entries"),
        (39, "41 %  261/629 MB  63 MB/s  0:06 left"),
        (30, "41 %  261/629 MB  0:06 left"),
        (20, "41 %  261/629 MB"),
        (10, "41 %"),
        (3, ""),
    ] {
        let line = with_bar(&facts(), columns);
        assert_eq!(line, expected, "{columns} columns");
        assert!(line.chars().count() <= columns);
    }
}

#[test]
fn what_is_unknown_is_left_out() {
    let unknown = Facts { percent: None, bytes: (0, None), entries: (0, None), left: None, ..facts() };
    assert_eq!(with_bar(&unknown, 79), "0 B  63 MB/s  0:04 elapsed  0 entries");
    let entries = Facts { bytes: (5_000, None), ..facts() };
    assert_eq!(plain(&entries, 79), "41 %  5.0 kB  63 MB/s  0:06 left  1,204/2,811 entries");
}

#[test]
fn units_stand_once_if_they_are_the_same() {
    for (done, all, expected) in [
        (0, 5, "0/5 B"),
        (8_500_000, 1_200_000_000, "8.5 MB/1.2 GB"),
        (1_100_000_000, 1_200_000_000, "1.1/1.2 GB"),
        // The source has grown.
        (700, 600, "700/700 B"),
    ] {
        assert_eq!(bytes_of((done, Some(all))), expected);
    }
}

#[test]
fn a_full_bar_has_no_arrow() {
    let line = with_bar(&Facts { percent: Some(100), ..facts() }, 79);
    assert!(line.ends_with("[=================]"), "{line}");
}

#[test]
fn an_estimate_is_marked() {
    let estimate = Facts { is_estimate: true, ..facts() };
    assert_eq!(plain(&estimate, 30), "~41 %  261/629 MB  0:06 left");
}
