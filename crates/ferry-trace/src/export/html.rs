//! A trace as a page that draws itself, without network or other files. Text of the trace never becomes markup.
//!
//! Small data (names of threads, words, counters, call chains) is JSON. The rest is columns of numbers, delta-encoded,
//! compressed, in base64. The page's policy admits its script and style by their hashes, so nothing else can run,
//! whatever names the trace contains.

mod columns;
mod head;

use std::io::{self, Write};

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use self::columns::Columns;
use crate::model::Trace;

/// Template of the page, with placeholders between `@@`.
const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");

/// Scripts of the page, each after those that it imports from. Each is an ES module with its imports at the beginning
/// and one `export` at the end.
const SCRIPTS: [(&str, &str); 25] = [
    ("frame", include_str!("html/frame.js")),
    ("data", include_str!("html/data.js")),
    ("dom", include_str!("html/dom.js")),
    ("words", include_str!("html/words.js")),
    ("steps", include_str!("html/steps.js")),
    ("view", include_str!("html/view.js")),
    ("lanes", include_str!("html/lanes.js")),
    ("layout", include_str!("html/layout.js")),
    ("tracks", include_str!("html/tracks.js")),
    ("search", include_str!("html/search.js")),
    ("colours", include_str!("html/colours.js")),
    ("draw", include_str!("html/draw.js")),
    ("bands", include_str!("html/bands.js")),
    ("rows", include_str!("html/rows.js")),
    ("overview", include_str!("html/overview.js")),
    ("labels", include_str!("html/labels.js")),
    ("places", include_str!("html/places.js")),
    ("timeline", include_str!("html/timeline.js")),
    ("story", include_str!("html/story.js")),
    ("select", include_str!("html/select.js")),
    ("hit", include_str!("html/hit.js")),
    ("summary", include_str!("html/summary.js")),
    ("legend", include_str!("html/legend.js")),
    ("input", include_str!("html/input.js")),
    ("main", include_str!("html/main.js")),
];

/// Writes a trace as an HTML page.
///
/// # Errors
/// Those of `out`.
pub fn html(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    let script = joined();
    let columns = Columns::of(trace);
    for (index, piece) in PAGE.split("@@").enumerate() {
        if index % 2 == 0 {
            out.write_all(piece.as_bytes())?;
            continue;
        }
        match piece {
            "policy" => write!(out, "script-src {}; style-src {}", hash(&script), hash(STYLE))?,
            "style" => out.write_all(STYLE.as_bytes())?,
            "head" => out.write_all(head::json(trace, &columns.names)?.as_bytes())?,
            "columns" => packed(&columns.bytes, out)?,
            "script" => out.write_all(script.as_bytes())?,
            other => return Err(io::Error::other(format!("the page asks for '{other}'"))),
        }
    }
    out.flush()
}

/// Joins all scripts; each becomes a function with its own scope. Inline modules cannot import each other, so an
/// `import` becomes a look-up among the exports of earlier scripts, and the `export` becomes the function's result.
fn joined() -> String {
    let mut all = "'use strict';\nconst scripts = {};\n".to_owned();
    for (name, text) in SCRIPTS {
        let text = text.replace("import {", "const {").replace("} from './", "} = scripts['./");
        let text = text.replace(".js';", ".js'];").replace("export {", "return {");
        all += &format!("scripts['./{name}.js'] = (() => {{\n{text}}})();\n");
    }
    all
}

/// Hash by which a policy admits a script or style (CSP level 2).
fn hash(text: &str) -> String {
    format!("'sha256-{}'", Base64Display::new(&Sha256::digest(text.as_bytes()), &STANDARD))
}

/// Writes compressed base64: for a million events of a simulated copy 4 MB rather than 18.
fn packed(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut packer = GzEncoder::new(EncoderWriter::new(out, &STANDARD), Compression::default());
    packer.write_all(bytes)?;
    packer.finish()?.finish().map(|_| ())
}

#[cfg(test)]
mod tests;
