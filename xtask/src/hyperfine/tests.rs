use super::{median, report, times_of_hyperfine, times_of_lab};

#[test]
fn times_of_both_programs_are_found() {
    let csv = "experiment,cell,command,line,cache,cache_proved,round,started,returned_s,user_s\n\
               run,md5sum,md5sum,md5sum file,warm,,0,2026-11-27T22:00:00.000Z,0.5,0.4\n\
               run,sha256sum,sha256sum,sha256sum file,warm,,0,2026-11-27T22:00:01.000Z,0.7,0.6\n\
               run,md5sum,md5sum,md5sum file,warm,,1,2026-11-27T22:00:02.000Z,0.25,0.2\n";
    assert_eq!(times_of_lab(csv), Some([vec![0.5, 0.25], vec![0.7]]));
    assert_eq!(times_of_lab("experiment,cell\n"), None);
    assert_eq!(times_of_lab(&csv.replace("sha256sum", "b3sum")), None);
    let json = "{\n  \"results\": [\n    {\n      \"median\": 9.0,\n      \"times\": [\n        0.5,\n        0.25\n      ],\n\
                      \"exit_codes\": [\n        0,\n        0\n      ]\n    },\n    {\n      \"times\": [\n        0.7\n      ]\n    }\n  ]\n}\n";
    assert_eq!(times_of_hyperfine(json), Some([vec![0.5, 0.25], vec![0.7]]));
    assert_eq!(times_of_hyperfine("{}"), None);
}

#[test]
fn medians_that_differ_by_more_than_the_limit_are_counted() {
    let lab = [vec![0.500, 0.509, 0.520], vec![1.0, 1.2]];
    let hyperfine = [vec![0.500], vec![1.1, 1.1]];
    let expected = "\
md5sum: ferry lab run 509.0 ms (3 runs), hyperfine 500.0 ms (1 runs): 1.018
sha256sum: ferry lab run 1100.0 ms (2 runs), hyperfine 1100.0 ms (2 runs): 1.000
";
    assert_eq!(report(&lab, &hyperfine), Some((expected.to_owned(), 0)));
    assert_eq!(report(&lab, &[vec![0.490], vec![1.1]]).unwrap().1, 1);
    assert_eq!(report(&lab, &[vec![0.490], vec![1.2]]).unwrap().1, 2);
    assert_eq!(report(&lab, &[vec![], vec![1.1]]), None);
}

#[test]
fn the_median_of_an_even_number_is_the_middle_of_two() {
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
}
