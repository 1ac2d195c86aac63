use super::axis::Axis;
use super::{Line, Plot, PlotKind};
use crate::record::tests::record;
use crate::statistics::Interval;

fn plot() -> Plot {
    let record = record();
    Plot::strips(&record, "small & warm", "returned_s", "small/", &record.cells)
}

#[test]
fn every_run_is_a_dot_and_every_median_a_figure() {
    let svg = plot().file();
    assert_eq!(svg.matches("<circle").count(), 6);
    assert_eq!(svg.matches(r#"class="median""#).count(), 2);
    for part in [
        "<title>small &amp; warm</title>",
        ">200 ms</text>",
        ">100 ms</text>",
        "<desc>time until it returned, medians: cp 200 ms; ferry 100 ms.</desc>",
        "prefers-color-scheme:dark",
        "time until it returned (ms)",
    ] {
        assert!(svg.contains(part), "{part} in {svg}");
    }
    assert!(!plot().svg().contains("<style>"));
}

#[test]
fn intervals_are_drawn_of_enough_runs_only() {
    let mut record = record();
    let strips = |record: &crate::record::Record| {
        Plot::strips(record, "t", "returned_s", "small/", &record.cells).file()
    };
    assert!(!strips(&record).contains("class=\"interval\""));
    let runs = record.cells[0].runs.clone();
    record.cells[0].runs.extend(runs);
    let svg = strips(&record);
    assert_eq!(svg.matches("class=\"interval\"").count(), 1);
    assert!(svg.contains("medians and 95 % intervals: cp 200 ms (100-300); ferry 100 ms."), "{svg}");

    let point = |count| {
        let interval = Interval { middle: 1.0, low: 0.5, high: 2.0, count };
        [(1.0, "1"), (2.0, "2")].map(|(at, text)| (at, text.to_owned(), interval)).to_vec()
    };
    for (count, whiskers) in [(4, 0), (5, 6)] {
        let lines = vec![Line { label: "one".to_owned(), points: point(count) }];
        let kind = PlotKind::Lines { parameter: "depth".to_owned(), lines };
        let plot = Plot { title: "t".into(), measure: "time".into(), unit: "s".into(), kind };
        assert_eq!(plot.file().matches("class=\"whisker\"").count(), whiskers);
        let ratio = Interval { middle: 1.0, low: 0.5, high: 2.0, count };
        let bars = vec![super::Bar { label: "row".to_owned(), ratio, marks: [None, None] }];
        let kind = PlotKind::Bars { names: ["a", "b", "c"].map(str::to_owned), bars };
        let plot = Plot { kind, ..plot };
        assert_eq!(plot.file().matches("class=\"whisker\"").count(), usize::from(whiskers > 0));
    }
}

#[test]
fn a_page_has_a_picture_for_wide_screens_as_well_as_one_for_phones() {
    let title = "large (2 levels fewer), cold: the documents' programs by block size";
    let plot = Plot { title: title.to_owned(), ..plot() };
    let svg = plot.svg();
    let (wide, narrow) = svg.split_once("</svg>").unwrap();
    assert!(wide.contains("class=\"plot wide\"") && wide.contains("width=\"720\""));
    assert!(narrow.contains("class=\"plot narrow\"") && narrow.contains("width=\"350\""));
    assert_eq!((wide.matches("class=\"title\"").count(), narrow.matches("class=\"title\"").count()), (1, 2));
    for figure in ["200 ms</text>", "100 ms</text>", ">ferry</text>"] {
        assert!(wide.contains(figure) && narrow.contains(figure), "{figure}");
    }
    assert!(!plot.file().contains("narrow\""));
}

#[test]
fn lines_have_their_names_apart() {
    let interval = |middle: f64| Interval { middle, low: middle * 0.9, high: middle * 1.1, count: 9 };
    let line = |label: &str, shift: f64| Line {
        label: label.to_owned(),
        points: [(4096.0, "4K"), (65_536.0, "64K"), (1_048_576.0, "1M")]
            .map(|(at, text)| (at, text.to_owned(), interval(1.0 + shift)))
            .to_vec(),
    };
    let lines = vec![line("one", 0.0), line("two", 0.001), line("three", 0.002)];
    let kind = PlotKind::Lines { parameter: "block_bytes".to_owned(), lines };
    let plot = Plot { title: "t".into(), measure: "time".into(), unit: "s".into(), kind };
    let svg = plot.file();
    let heights: Vec<f64> = ["one", "two", "three"]
        .iter()
        .map(|label| {
            let before = svg.split(&format!(">{label}</text>")).next().unwrap();
            let y = before.rsplit("y=\"").next().unwrap();
            y.split('"').next().unwrap().parse().unwrap()
        })
        .collect();
    assert!(heights[0] - heights[1] >= 14.9 && heights[1] - heights[2] >= 14.9, "{heights:?}");
    assert!(svg.contains(">64K</text>") && svg.contains(">block size (bytes)</text>"));
    assert!(
        plot.words().contains("one by block size (bytes) 4K: 1.00 s (900 ms-1.10 s), 64K"),
        "{}",
        plot.words()
    );
}

#[test]
fn series_with_the_same_figures_do_not_hide_each_other() {
    let interval = Interval { middle: 1.0, low: 0.9, high: 1.1, count: 9 };
    let line = |label: &str| Line {
        label: label.to_owned(),
        points: vec![(1.0, "1".to_owned(), interval), (2.0, "2".to_owned(), interval)],
    };
    let kind = PlotKind::Lines { parameter: "depth".to_owned(), lines: vec![line("one"), line("two")] };
    let svg = Plot { title: "t".into(), measure: "time".into(), unit: "s".into(), kind }.file();
    let paths: Vec<&str> = svg.lines().filter(|line| line.contains("class=\"line\"")).collect();
    assert_eq!(paths.len(), 2);
    let path = |line: &str| line.split(" d=").nth(1).unwrap().to_owned();
    assert_ne!(path(paths[0]), path(paths[1]));
}

#[test]
fn lines_of_one_point_are_rows() {
    let mut record = record();
    record.cells.iter_mut().for_each(|cell| drop(cell.parameters.insert("depth".into(), 16_u64.into())));
    let lines = |record: &crate::record::Record| {
        Plot::lines(record, "t", "returned_s", "depth", |cell| cell.text("tool"), &record.cells).kind
    };
    let PlotKind::Strips(strips) = lines(&record) else { panic!("lines of one point") };
    assert_eq!(strips.iter().map(|strip| strip.label.as_str()).collect::<Vec<_>>(), ["cp", "ferry"]);
    assert_eq!(strips[0].figures.len(), 3);
    record.cells[1].parameters.insert("depth".into(), 32_u64.into());
    assert!(matches!(lines(&record), PlotKind::Lines { .. }));
}

#[test]
fn axes_have_round_ticks_in_a_fitting_unit() {
    let ticks = |figures: &[f64], unit| {
        let axis = Axis::of(figures, unit);
        let texts: Vec<String> = axis.ticks.iter().map(|(_, text)| text.clone()).collect();
        (texts.join(" "), axis.title("m"))
    };
    assert_eq!(ticks(&[0.05, 0.21], "s"), ("0 50 100 150 200 250".into(), "m (ms)".into()));
    assert_eq!(ticks(&[4e5, 1.3e6], "B/s"), ("0 0.5 1 1.5".into(), "m (MB/s)".into()));
    assert_eq!(ticks(&[0.02, 1.5], "s"), ("0.02 0.05 0.1 0.2 0.5 1 2".into(), "m (s), logarithmic".into()));
    assert_eq!(
        ticks(&[2.0, 90_000.0], ""),
        ("1 10 100 1,000 10,000 100,000".into(), "m, logarithmic".into())
    );
    assert_eq!(ticks(&[0.0, 30.0, 4000.0], "").0, "0 10 100 1,000 10,000");
    assert_eq!(ticks(&[0.0, 30.0, 40.0], "").0, "0 10 20 30 40");
    assert_eq!(ticks(&[], "s").0, "0");
    let axis = Axis::of(&[0.0, 10.0], "");
    assert!((axis.place(5.0) - 0.5).abs() < 1e-9);
    let axis = Axis::of(&[0.0, 10.0, 1000.0], "");
    let places = [0.0, 10.0, 100.0, 1000.0].map(|figure| (axis.place(figure) * 100.0).round());
    assert_eq!(places.map(|place| format!("{place}")), ["0", "10", "55", "100"]);
}
