//! Records of `ferry lab`: each is refused in one line, or preserved and exported in every format.
#![no_main]

use ferry_lab::experiments;
use ferry_lab::export::{csv, current_bench, markdown};
use ferry_lab::record::read::parse;
use ferry_lab::record::store::json;
use ferry_lab::report::{Source, page};
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|text: &str| -> Corpus {
    let record = match parse(text) {
        Err(why) => {
            assert!(!why.is_empty() && !why.contains('\n'), "{why:?}");
            return Corpus::Keep;
        }
        Ok(record) => record,
    };
    assert_eq!(parse(&json(&record)).as_ref(), Ok(&record));
    let lines = csv(&record);
    assert!(lines.ends_with('\n'), "{lines:?}");
    assert!(current_bench(&record).is_array() || current_bench(&record).is_object());
    if let Some(experiment) = experiments::named(&record.experiment) {
        assert!(markdown(experiment, &record).starts_with("## ferry lab "));
        let source = Source::new("record.json".to_owned(), record).expect("its experiment is known");
        let page = page(&[source]);
        // The page has no script of its own, so any script would come from the record.
        assert!(!page.contains("<script") && page.ends_with("</html>\n"), "{page}");
    }
    Corpus::Keep
});
