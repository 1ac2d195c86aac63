use super::{Source, page};
use crate::experiments;
use crate::record::tests::record;
use crate::record::warning::{Warning, WarningKind};

fn source(record: crate::record::Record) -> Source {
    Source::new("'record.json'".to_owned(), record).unwrap()
}

#[test]
fn a_page_has_a_section_for_each_record() {
    let html = page(&[source(record()), source(record())]);
    for part in [
        "<title>ferry lab: copy, 1 of 2; copy, 2 of 2</title>",
        "<h2 id=\"record-1\">copy, 1 of 2</h2>",
        "<nav aria-labelledby=\"contents\">\n<details><summary><h2 id=\"contents\">",
        "<a href=\"#record-2-claims\">Claims</a>",
        "Document 004: 780 MB in files of 1 MiB",
        "&#39;rsync&#39; is not found on the PATH",
        "<strong>discards</strong><br>remount it",
        "<td>0.05<td",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
}

#[test]
fn records_of_one_experiment_are_distinguished_by_file_and_parameters() {
    let named = |name: &str| Source::new(format!("'{name}'"), record()).unwrap();
    let titles =
        |names: &[&str]| super::title::all(&names.iter().map(|name| named(name)).collect::<Vec<_>>());
    assert_eq!(titles(&["records/copy-large.json"]), ["copy"]);
    assert_eq!(
        titles(&["a/copy.json", "a/copy-large.json", "before"]),
        ["copy", "copy-large", "copy, before"]
    );
    assert_eq!(titles(&["a/copy.json", "b/copy.json"]), ["copy, a/copy.json", "copy, b/copy.json"]);
    assert_eq!(titles(&["copy.json", "copy.json"]), ["copy, 1 of 2", "copy, 2 of 2"]);

    let mut other = named("large.json");
    other.record.parameters.insert("trees".to_owned(), crate::record::Value::Texts(vec!["large".to_owned()]));
    let html = page(&[named("small.json"), other]);
    assert!(html.contains("<h2 id=\"record-2\">copy, large</h2>"), "{html}");
    assert!(html.contains("<br>This record: trees large.</p>"), "{html}");
    assert!(!page(&[named("small.json")]).contains("This record:"));
}

#[test]
fn sizes_that_distinguish_records_have_units() {
    let of = |bytes: u64| {
        let mut ring = record();
        ring.experiment = "ring".to_owned();
        ring.parameters.insert("file-size".to_owned(), bytes.into());
        Source::new(bytes.to_string(), ring).unwrap()
    };
    let sources = [of(1 << 30), of(64 << 20)];
    assert_eq!(super::title::differences(&sources, &sources[1]), "file size 64M");
}

#[test]
fn the_answer_and_its_plot_come_first_and_the_rest_is_folded() {
    let mut record = record();
    for cell in &mut record.cells {
        cell.name = cell.name.replacen("small/", "small/warm/", 1);
        cell.base = cell.base.as_ref().map(|base| base.replacen("small/", "small/warm/", 1));
        cell.parameters.insert("cache".to_owned(), "warm".into());
    }
    let html = page(&[source(record)]);
    let section = html.split("<section class=\"record\"").nth(1).unwrap();
    let (shown, folded) = section.split_once("<details").unwrap();
    let answer = "<p class=\"headline\">ferry is 2.00x as fast as cp on small files, warm (3 runs: decides nothing).</p>";
    assert!(shown.contains(answer), "{shown}");
    assert!(
        shown.contains("<svg class=\"plot wide\"") && shown.contains("<title>small, warm</title>"),
        "{shown}"
    );
    // The overview has the answer, too.
    let overview = html.split_once("<h2 id=\"overview\">").unwrap().1.split_once("</section>").unwrap().0;
    assert!(overview.contains("<dt>copy</dt><dd>ferry is 2.00x as fast as cp on small files"), "{overview}");
    for (id, class) in [("claims", "printed"), ("tables", "part"), ("how", "part"), ("runs", "part")] {
        let part = format!("<details class=\"{class}\"><summary><h3 id=\"record-1-{id}\">");
        assert!(html.contains(&part), "{part} in {html}");
    }
    // Its table stands beside the documents' one, and what could not be measured below all tables.
    let beside = folded.split_once("<div class=\"beside\">").unwrap().1;
    let (own, published) = beside.split_once("Document 000: 3,905 files of 4 KiB").unwrap();
    assert!(published.contains("117 ms"), "{published}");
    let note = "<p class=\"note\">Not measured: small/warm/rsync (&#39;rsync&#39; is not found on the PATH).</p>\n</details>";
    assert!(!own.contains("Not measured") && published.matches(note).count() == 1, "{own}{published}");
}

#[test]
fn warnings_that_doubt_the_figures_are_open() {
    let opened =
        |html: &str| html.contains("<details class=\"screen\" open><summary><h3 id=\"record-1-warnings\">");
    let html = page(&[source(record())]);
    assert!(!opened(&html) && !html.contains("class=\"notice\""), "{html}");
    let mut doubted = record();
    doubted.warnings.push(Warning::note(WarningKind::Noisy, "noise", "take more runs").distrusted());
    let html = page(&[source(doubted.clone())]);
    assert!(opened(&html) && html.contains("Do not trust these figures"), "{html}");
    doubted.scale = crate::record::Scale::Quick;
    let html = page(&[source(doubted)]);
    assert!(html.contains("<strong><code>--quick</code> decides nothing:</strong>"), "{html}");
}

#[test]
fn every_id_is_there_once_and_every_link_leads_to_one() {
    let mut doubted = record();
    doubted.warnings.push(Warning::note(WarningKind::Noisy, "noise", "take more runs").distrusted());
    let html = page(&[source(record()), source(doubted)]);
    let after = |mark: &str| -> Vec<String> {
        let parts = html.split(mark).skip(1);
        parts.map(|part| part.split('"').next().unwrap().to_owned()).collect()
    };
    let mut ids = after(" id=\"");
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for id in after("href=\"#").into_iter().chain(after("aria-labelledby=\"")) {
        assert!(ids.contains(&id), "{id} in {ids:?}");
    }
}

#[test]
fn texts_of_a_record_are_never_markup() {
    const EVIL: &str = "<script>alert('&\"')</script>\u{0}";
    let mut record = record();
    for cell in &mut record.cells {
        cell.name = format!("{EVIL}/{}", cell.name);
        cell.parameters.insert(EVIL.to_owned(), EVIL.into());
        cell.runs.iter_mut().for_each(|run| EVIL.clone_into(&mut run.started));
    }
    EVIL.clone_into(&mut record.started);
    EVIL.clone_into(&mut record.taken_by);
    EVIL.clone_into(&mut record.machine.kernel);
    EVIL.clone_into(&mut record.machine.place.source);
    EVIL.clone_into(&mut record.measures[0].about);
    record.tools.insert(EVIL.to_owned(), EVIL.to_owned());
    record.parameters.insert(EVIL.to_owned(), EVIL.into());
    record.warnings.push(Warning::note(WarningKind::Experiment, EVIL, EVIL).about(EVIL));
    let html = page(&[Source::new(EVIL.to_owned(), record).unwrap()]);
    assert!(!html.contains("<script") && !html.contains('\u{0}'), "{html}");
    assert!(html.contains("&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;\u{fffd}"), "{html}");
}

#[test]
fn the_page_names_nothing_to_load() {
    let html = page(&[source(record())]);
    for mark in ["http://", "https://", " src=", "url(", "@import", "<script"] {
        assert!(!html.contains(mark), "{mark}");
    }
}

#[test]
fn what_is_the_same_for_many_cells_is_said_once() {
    let mut record = record();
    let warning = || Warning::note(WarningKind::Outliers, "1 run far from the others", "look at the plot");
    record.warnings = vec![warning().about("small/cp"), warning().about("small/ferry").distrusted()];
    record.warnings.push(warning().about("small/rsync"));
    let wide = |percent: u64| {
        let message = format!("the confidence interval of its median is ±{percent} %");
        Warning::note(WarningKind::Noisy, message, "take more runs").about("small/cp").distrusted()
    };
    record.warnings.extend([wide(20), wide(30)]);
    let html = page(&[source(record)]);
    assert_eq!(html.matches("<strong>take more runs</strong>").count(), 1);
    assert!(
        html.contains("<li><code>small/cp</code> the confidence interval of its median is ±30 %"),
        "{html}"
    );
    assert_eq!(html.matches("<strong>1 run far from the others</strong>").count(), 2);
    assert!(html.contains("<code>small/cp</code>, <code>small/rsync</code>"), "{html}");
    assert!(html.contains("Do not trust these figures"), "{html}");
}

#[test]
fn a_record_of_an_unknown_experiment_is_no_source() {
    let mut unknown = record();
    unknown.experiment = "alchemy".to_owned();
    assert!(Source::new(String::new(), unknown).is_none());
}

#[test]
fn every_experiment_makes_a_section_of_nothing() {
    for experiment in experiments::ALL {
        let mut empty = record();
        empty.experiment = experiment.spec().name.to_owned();
        empty.cells.clear();
        let html = page(&[source(empty)]);
        assert!(html.contains(&format!("<h2 id=\"record-1\">{}</h2>", experiment.spec().name)));
    }
}
