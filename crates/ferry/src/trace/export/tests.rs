use std::ffi::OsString;

use super::ExportFormat::{self, Html, Perfetto, Svg};
use super::parse;
use crate::arguments::Parsed;

fn format(line: &str) -> Result<ExportFormat, String> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    match parse(&arguments) {
        Ok(Parsed::Run(export)) => Ok(export.format),
        Ok(Parsed::Print(..)) => Err("it prints".to_owned()),
        Err(usage) => Err(usage.message),
    }
}

#[test]
fn the_extension_of_the_output_selects_the_format() {
    let table = [
        ("-o a.html r", Html),
        ("--output=b/a.SVG r", Svg),
        ("r -o a.perfetto-trace", Perfetto),
        ("r -oa.b.pftrace", Perfetto),
        ("-f svg -o a.html r", Svg),
        ("-o a.txt --format=perfetto r", Perfetto),
    ];
    for (line, expected) in table {
        assert_eq!(format(line), Ok(expected), "{line}");
    }
}

#[test]
fn an_extension_that_selects_no_format_is_refused() {
    for (line, name) in
        [("-o a r", "a"), ("-o a.json r", "a.json"), ("-o .html r", ".html"), ("-o d.svg/a r", "d.svg/a")]
    {
        let expected = format!(
            "the extension of '{name}' selects no format; choose one of .html, .svg, .perfetto-trace, .pftrace; or \
             add '--format FORMAT'"
        );
        assert_eq!(format(line), Err(expected), "{line}");
    }
    assert_eq!(format("r"), Err("missing '--format FORMAT' or '--output FILE'".to_owned()));
}
