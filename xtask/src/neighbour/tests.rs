use super::{Figures, figures, report, spread};

/// Output of fio 3.33, cut behind the percentiles.
const OUTPUT: &str = "3;fio-3.33;neighbour;0;0;262144;32768;8192;8000;0;0;0.0;0.0;80;9000;120.5;30.1;1.000000%=84;\
5.000000%=88;10.000000%=92;20.000000%=98;30.000000%=102;40.000000%=108;50.000000%=112;60.000000%=118;70.000000%=124;\
80.000000%=134;90.000000%=150;95.000000%=171;99.000000%=276;99.500000%=382;99.900000%=1810;99.950000%=2179;\
99.990000%=4145;0%=0;0%=0;0%=0;83;9004;122.3;30.3;0;0\n";

#[test]
fn figures_of_fio_are_found() {
    assert_eq!(figures(OUTPUT), Some((8192.0, 276.0)));
    assert_eq!(figures("fio: engine not found\n"), None);
}

#[test]
fn ratios_are_taken_within_a_round() {
    let round = |reads: [f64; 3], p99: [f64; 3], copied: [f64; 3]| {
        std::array::from_fn(|at| Figures { reads: reads[at], p99_us: p99[at], copied: copied[at] })
    };
    let rounds = [
        round([1000.0, 250.0, 800.0], [200.0, 2000.0, 300.0], [0.0, 80.0, 20.0]),
        round([500.0, 200.0, 450.0], [400.0, 2000.0, 480.0], [0.0, 60.0, 10.0]),
        round([800.0, 240.0, 600.0], [200.0, 1600.0, 240.0], [0.0, 90.0, 30.0]),
    ];
    let expected = "\
beside sync the neighbour keeps 0.30 (0.25-0.40) of its reads, and its p99 grows to 8.00 (5.00-10.00) times
beside sync --max-load=10 it keeps 0.80 (0.75-0.90), and its p99 grows to 1.20 (1.20-1.50) times
--max-load=10 makes the sync 4.00 (3.00-6.00) times as slow
";
    assert_eq!(report("10", &rounds), expected);
}

#[test]
fn the_median_of_an_even_number_is_the_middle_of_two() {
    assert_eq!(spread(vec![4.0, 1.0, 3.0, 2.0]), "2.50 (1.00-4.00)");
}
