//! `ferry lab report`: refusals, replaced files, and the page in a browser.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::measured::quick_in;
use crate::scene::{FERRY, ferry, skip, text};

const MOST_BYTES: u64 = 2_000_000;

fn report(place: &Path, arguments: &[&str]) -> Output {
    ferry(place, &[&["lab", "report"], arguments].concat())
}

fn tree(place: &Path, name: &str) {
    let (made, json) = (format!("{name}.made"), format!("--json={name}"));
    let output = ferry(place, &["lab", "tree", "empty:10:2", &made, "--quick", &json]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// A record of small copies, cold if possible.
fn copy(place: &Path, name: &str, seed: &str) {
    let options = ["--quick", "--trees=small,large", "--fewer-levels=3", "--dd-size=1M"];
    let vs = ["--vs=cp -a {source} {target}", "--vs=sh -c 'exit <1>&\"2\"' {source} {target}"];
    let json = format!("--json={name}");
    let output = ferry(place, &[&["lab", "copy", seed, &json], &options[..], &vs[..]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

fn names(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_record_that_cannot_be_used_is_refused_and_nothing_is_written() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    tree(place, "good");
    let good = fs::read_to_string(place.join("good")).unwrap();
    fs::write(place.join("newer"), good.replacen("\"schema\": 1", "\"schema\": 2", 1)).unwrap();
    fs::write(place.join("other"), good.replacen("\"tree\"", "\"alchemy\"", 1)).unwrap();
    fs::write(place.join("broken"), &good[..good.len() / 2]).unwrap();
    fs::write(place.join("page.html"), "as it was").unwrap();
    let before = names(place);
    let refusals: &[(&[&str], i32, &str)] = &[
        (&["good", "none"], 1, "cannot read 'none': No such file or directory"),
        (
            &["good", "newer"],
            1,
            "cannot use 'newer': it is a record of version 2; this program knows versions up to 1",
        ),
        (&["other"], 1, "cannot use 'other': its experiment is unknown to this version of the program"),
        (&["good.made"], 1, "cannot read 'good.made': Is a directory"),
        (&["broken"], 1, "cannot use 'broken': it is not JSON"),
        (&[], 2, "missing record"),
    ];
    for (records, code, line) in refusals {
        let output = report(place, &[records, &["--output=page.html"][..]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{said}");
        // A wrong use names the experiment, whose help is meant.
        let program = if *code == 2 { "ferry lab report" } else { "ferry lab" };
        assert!(said.starts_with(&format!("{program}: {line}")), "{said}");
        assert_eq!(fs::read_to_string(place.join("page.html")).unwrap(), "as it was");
    }
    let output = report(place, &["good"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("ferry lab report: missing '--output FILE'\n"));
    assert_eq!(names(place), before);
}

#[test]
fn speeds_of_an_unusable_record_are_refused_and_nothing_is_drawn() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    tree(place, "good");
    let before = names(place);
    let refusals: &[(&[&str], i32, &str)] = &[
        (&["good"], 1, "cannot use 'good': it is a record of 'lab tree', not of 'lab copy'"),
        (&["good", "none"], 1, "cannot read 'none': No such file or directory"),
        (&[], 2, "missing record"),
    ];
    for (records, code, line) in refusals {
        let output = ferry(place, &[&["lab", "speeds", "--svg=chart"], *records].concat());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said), (Some(*code), format!("ferry lab: {line}\n").as_str()));
        assert!(output.stdout.is_empty());
    }
    assert_eq!(names(place), before);
}

#[test]
fn only_a_regular_file_that_is_no_record_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    tree(place, "record");
    fs::create_dir(place.join("folder.html")).unwrap();
    symlink("record", place.join("link.html")).unwrap();
    symlink("/dev/null", place.join("null.html")).unwrap();
    for (output, line) in [
        ("folder.html", "cannot write 'folder.html': it exists and is not a regular file"),
        ("null.html", "cannot write 'null.html': it exists and is not a regular file"),
        ("link.html", "cannot write 'link.html': it is one of the records"),
        ("none/page.html", "cannot write 'none/page.html': No such file or directory"),
    ] {
        let ended = report(place, &["record", "--output", output]);
        assert_ne!(ended.status.code(), Some(0));
        assert_eq!(text(&ended.stderr), format!("ferry lab: {line}\n"));
    }
    fs::write(place.join("page.html"), "old").unwrap();
    symlink("page.html", place.join("to-page.html")).unwrap();
    let ended = report(place, &["record", "--output", "to-page.html"]);
    assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(0), ""));
    assert!(place.join("to-page.html").is_symlink());
    assert!(fs::read_to_string(place.join("page.html")).unwrap().starts_with("<!doctype html>"));
    assert_eq!(
        names(place),
        ["folder.html", "link.html", "null.html", "page.html", "record", "record.made", "to-page.html"]
    );
}

#[test]
fn a_plot_is_drawn_of_one_record() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments/records");
    fs::copy(records.join("when.json"), place.join("when")).unwrap();
    fs::write(place.join("old.svg"), "as it was").unwrap();
    let before = names(place);
    let titles =
        "'two-devices', 'buffered', 'small-memory', 'durable', 'latency', 'beside-read', 'beside-sync'";
    let refusals: &[(&[&str], String)] = &[
        (
            &["when", "--plot=none", "--output=old.svg"],
            format!("ferry lab: the record has no plot 'none'; choose one of {titles}\n"),
        ),
        (
            &["when", "when", "--output=old.svg"],
            "ferry lab report: a plot shows one record: extra operand 'when'\n".to_owned(),
        ),
        (
            &["when", "--output=figures.md"],
            "ferry lab report: the extension of 'figures.md' selects no format; choose one of .html, .svg\n"
                .to_owned(),
        ),
        (
            &["when", "--plot=durable", "--output=new.html"],
            "ferry lab report: '--plot' needs an output whose name ends in .svg\n".to_owned(),
        ),
    ];
    for (arguments, line) in refusals {
        let output = report(place, arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.starts_with(line), "{said}");
        assert_eq!(fs::read_to_string(place.join("old.svg")).unwrap(), "as it was");
    }
    assert_eq!(names(place), before);
    // Without a title, the plot of the answer.
    for (arguments, title) in [
        (&["when", "--output=old.svg"][..], "two-devices"),
        (&["when", "--plot=durable", "-o", "old.svg"], "durable"),
    ] {
        let output = report(place, arguments);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
        let svg = fs::read_to_string(place.join("old.svg")).unwrap();
        assert!(svg.starts_with("<svg xmlns=") && svg.contains(&format!("<title>{title}</title>")), "{svg}");
    }
}

/// Returns the commands of a page that draw its plots, each in a line of its own.
fn plot_commands(page: &str) -> Vec<&str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix('`')?.strip_suffix('`'));
    lines.filter(|line| line.starts_with("ferry lab report ")).collect()
}

#[test]
fn the_plots_of_the_documents_are_those_of_their_records() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments");
    let place = tempfile::tempdir().unwrap();
    let mut path = Path::new(FERRY).parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    for page in ["000-004.md", "001.md", "002.md", "003.md"] {
        let text = fs::read_to_string(pages.join(page)).unwrap();
        let commands = plot_commands(&text);
        assert!(!commands.is_empty(), "{page} has no plot");
        for command in commands {
            let (drawing, plot) = command.split_once(" -o ").unwrap();
            assert!(text.contains(&format!("]({plot})")), "{page} does not show {plot}");
            let drawn = place.path().join("drawn.svg");
            let line = format!("{drawing} -o {}", drawn.display());
            let status =
                Command::new("sh").args(["-c", &line]).current_dir(&pages).env("PATH", &path).status();
            assert!(status.unwrap().success(), "{line}");
            let [drawn, committed] =
                [&drawn, &pages.join(plot)].map(|path| fs::read_to_string(path).unwrap());
            assert!(drawn == committed, "{plot} is not what this draws: {command}");
        }
    }
}

/// Debian's name, and others'.
fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut programs = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    programs.find(|program| program.is_file()).or_else(|| skip("there is no chromium"))
}

/// Runs the browser on a page.
fn browse(browser: &Path, place: &Path, page: &Path, options: &[&str]) -> Output {
    Command::new("timeout")
        .arg("120")
        .arg(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--enable-logging=stderr", "--v=0"])
        .args(options)
        .arg(format!("--user-data-dir={}", place.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap()
}

/// DOM of the page in the browser, and the browser's log.
fn opened(browser: &Path, place: &Path, page: &Path) -> (String, String) {
    let output = browse(browser, place, page, &["--dump-dom"]);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    (String::from_utf8(output.stdout).unwrap(), log)
}

/// Number of pages on paper.
fn printed_pages(browser: &Path, place: &Path, page: &Path) -> usize {
    let paper = place.join("page.pdf");
    let print = format!("--print-to-pdf={}", paper.display());
    let output = browse(browser, place, page, &["--no-pdf-header-footer", &print]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = fs::read(&paper).unwrap();
    // The objects of a PDF's pages begin with such a line.
    bytes.split(|byte| *byte == b'\n').filter(|line| line.ends_with(b"/Type /Page")).count()
}

/// Text between the tags, with entities decoded.
fn words(dom: &str) -> String {
    let mut out = String::new();
    for part in dom.split('<') {
        out += part.split_once('>').map_or(part, |(_, text)| text);
        out.push(' ');
    }
    out.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ").replace("&amp;", "&")
}

/// Expects each figure of each run with all digits.
fn assert_holds(words: &str, record: &Value) {
    let tokens: std::collections::HashSet<&str> = words.split_whitespace().collect();
    let mut count = 0;
    for cell in record["cells"].as_array().unwrap() {
        assert!(words.contains(cell["name"].as_str().unwrap()), "{}", cell["name"]);
        if let Some(why) = cell["missing"].as_str() {
            assert!(words.contains(why), "{why}");
        }
        for run in cell["runs"].as_array().unwrap() {
            assert!(tokens.contains(run["started"].as_str().unwrap()), "{run}");
            for (name, figure) in run["figures"].as_object().unwrap() {
                let figure = figure.as_f64().unwrap().to_string();
                assert!(tokens.contains(figure.as_str()), "{name} {figure} of {}", cell["name"]);
                count += 1;
            }
        }
    }
    assert!(count > 0);
    for warning in record["warnings"].as_array().unwrap() {
        for part in ["message", "advice"] {
            assert!(words.contains(warning[part].as_str().unwrap()), "{warning}");
        }
    }
    assert!(words.contains(record["machine"]["kernel_version"].as_str().unwrap()));
}

/// Makes a quick record of each experiment.
fn quick_records(place: &Path) -> Vec<&'static str> {
    let names = ferry_lab::experiments::ALL.iter().map(|experiment| experiment.spec().name);
    for name in names.clone() {
        let operands: &[&str] = match name {
            "tree" => &["small", "made"],
            // A copy larger than its cgroup is killed where the device is slow to write.
            "when" => &["--size=32M"],
            "run" => &["--", "sleep", "0.01", "--", "sleep", "0.02"],
            _ => &[],
        };
        quick_in(place, name, operands, name);
    }
    names.collect()
}

#[test]
fn a_browser_shows_every_figure_of_every_experiment_without_errors_or_network() {
    let Some(browser) = browser() else { return };
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = &place.path().canonicalize().unwrap();
    if ferry_lab::needs::ring().is_err() || !ferry_lab::needs::has_direct_io(place) {
        return skip("not every experiment can be had here").unwrap_or_default();
    }
    // Two records of one experiment, with text that needs escaping.
    copy(place, "one", "--seed=1");
    copy(place, "two", "--seed=2");
    let mut records = vec!["one", "two"];
    records.extend(quick_records(place));
    let ended = report(place, &[&records[..], &["--output=page.html"]].concat());
    assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(0), ""));
    let page = place.join("page.html");
    assert!(fs::metadata(&page).unwrap().len() < MOST_BYTES);
    let html = fs::read_to_string(&page).unwrap();
    for mark in ["http://", "https://", "<script", " src="] {
        assert!(!html.contains(mark), "{mark}");
    }

    let (dom, log) = opened(&browser, place, &page);
    assert!(!log.contains("CONSOLE"), "{log}");
    for id in
        ["overview", "machines", "record-1", "record-2", "record-10", "record-1-claims", "record-1-warnings"]
    {
        assert!(dom.contains(&format!(" id=\"{id}\"")), "{id}");
    }
    for id in ["plots", "tables", "published", "how", "runs"] {
        assert!(dom.contains(&format!("<h3 id=\"record-2-{id}\"")), "{id}");
    }
    // A parser that repairs the page would change the number of elements.
    for tag in ["<section", "<table", "<svg", "<details", "<tr", "<h2", "<h3", "<li"] {
        assert_eq!(dom.matches(tag).count(), html.matches(tag).count(), "{tag}");
    }
    assert!(dom.matches("<svg").count() >= 30);
    let words = words(&dom);
    for name in records {
        assert_holds(&words, &serde_json::from_slice(&fs::read(place.join(name)).unwrap()).unwrap());
    }
}

/// Warnings of these records were printed in full, on 47 pages.
#[test]
fn the_committed_records_are_printed_on_few_pages() {
    let Some(browser) = browser() else { return };
    let place = tempfile::tempdir().unwrap();
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments/records");
    let records: Vec<String> =
        names(&records).iter().map(|name| records.join(name).to_str().unwrap().to_owned()).collect();
    let arguments: Vec<&str> = records.iter().map(String::as_str).chain(["--output=page.html"]).collect();
    let ended = report(place.path(), &arguments);
    assert_eq!((ended.status.code(), text(&ended.stderr)), (Some(0), ""));
    let pages = printed_pages(&browser, place.path(), &place.path().join("page.html"));
    assert!((12..=24).contains(&pages), "{pages} pages of {} records", records.len());
}

#[test]
fn a_console_message_would_be_seen() {
    let Some(browser) = browser() else { return };
    let place = tempfile::tempdir().unwrap();
    let page = place.path().join("page.html");
    fs::write(&page, "<script>console.error('seen')</script><p id=\"there\">words").unwrap();
    let (dom, log) = opened(&browser, place.path(), &page);
    assert!(log.contains("CONSOLE") && log.contains("seen"), "{log}");
    assert!(dom.contains("id=\"there\""), "{dom}");
}
