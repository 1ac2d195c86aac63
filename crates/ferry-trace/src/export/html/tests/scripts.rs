//! Names shared by the page's scripts: an earlier script exports each, and the script that uses it imports it.

use std::collections::{BTreeSet, HashMap};
use std::iter::Peekable;
use std::str::Chars;

use crate::export::html::SCRIPTS;

/// Names in the braces of each statement that begins with `keyword`, with the rest of its line.
fn listed<'s>(script: &'s str, keyword: &str) -> Vec<(BTreeSet<&'s str>, &'s str)> {
    let statements = script.split(keyword).skip(1);
    let parts = statements.map(|rest| {
        let (names, after) = rest.split_once('}').unwrap();
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        (names.collect(), after.lines().next().unwrap_or_default())
    });
    parts.collect()
}

fn exports(script: &str) -> BTreeSet<&str> {
    listed(script, "\nexport {").into_iter().flat_map(|(names, _)| names).collect()
}

/// Code of a script without strings, comments and the text of templates.
fn code(script: &str) -> String {
    let mut code = String::new();
    let lines = script.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text = lines.collect::<Vec<_>>().join("\n");
    expression(&mut text.chars().peekable(), &mut code);
    code
}

/// Reads up to the brace that closes the expression, or to the end.
fn expression(text: &mut Peekable<Chars<'_>>, code: &mut String) {
    let mut open = 0;
    while let Some(letter) = text.next() {
        match letter {
            '\'' | '"' => string(text, letter),
            '`' => template(text, code),
            '/' if text.peek() == Some(&'*') => {
                let mut last = ' ';
                while let Some(next) = text.next().filter(|next| (last, *next) != ('*', '/')) {
                    last = next;
                }
            }
            '}' if open == 0 => return,
            _ => {}
        }
        open += u32::from(letter == '{');
        open -= u32::from(letter == '}');
        code.push(if matches!(letter, '\'' | '"' | '`') { ' ' } else { letter });
    }
}

/// Reads up to the quote that ends the string.
fn string(text: &mut Peekable<Chars<'_>>, quote: char) {
    while let Some(letter) = text.next().filter(|letter| *letter != quote) {
        if letter == '\\' {
            text.next();
        }
    }
}

fn template(text: &mut Peekable<Chars<'_>>, code: &mut String) {
    while let Some(letter) = text.next().filter(|letter| *letter != '`') {
        if letter == '\\' {
            text.next();
        } else if letter == '$' && text.next_if_eq(&'{').is_some() {
            code.push(' ');
            expression(text, code);
            code.push(' ');
        }
    }
}

/// Words used as variables, not as members (`a.b`) or keys (`{ a: b }`).
fn variables(code: &str) -> BTreeSet<&str> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = BTreeSet::new();
    let mut end = 0;
    while let Some(start) = code[end..].find(is_of_word).map(|at| end + at) {
        end = code[start..].find(|letter| !is_of_word(letter)).map_or(code.len(), |size| start + size);
        let (before, after) = (code[..start].trim_end(), code[end..].trim_start());
        let is_member = before.ends_with('.') && !before.ends_with("...");
        let is_key = after.starts_with(':') && before.ends_with(['{', ',']);
        if !is_member && !is_key {
            found.insert(&code[start..end]);
        }
    }
    found
}

#[test]
fn scripts_import_what_earlier_ones_export() {
    let mut earlier = HashMap::new();
    for (name, script) in SCRIPTS {
        for (names, from) in listed(script, "\nimport {") {
            let from = from.trim().strip_prefix("from './").and_then(|rest| rest.strip_suffix(".js';"));
            let from = from.unwrap_or_else(|| panic!("{name}.js: an import that is not understood"));
            let known = earlier
                .get(from)
                .unwrap_or_else(|| panic!("{name}.js imports from {from}.js, which is not earlier"));
            let unknown: Vec<_> = names.difference(known).collect();
            assert!(unknown.is_empty(), "{name}.js imports what {from}.js does not export: {unknown:?}");
        }
        assert!(script.matches("\nexport {").count() <= 1, "{name}.js");
        earlier.insert(name, exports(script));
    }
}

#[test]
fn scripts_import_the_names_of_others_that_they_use_and_no_more() {
    for (name, script) in SCRIPTS {
        let imported: BTreeSet<&str> =
            listed(script, "\nimport {").into_iter().flat_map(|(names, _)| names).collect();
        let own = exports(script);
        let last_import = script.rfind("\nimport {").unwrap_or(0);
        let begin = script[last_import..].find(".js';").map_or(0, |size| last_import + size + ".js';".len());
        let body = code(script[begin..].split("\nexport {").next().unwrap());
        let used = variables(&body);
        let others = SCRIPTS.iter().filter(|(other, _)| *other != name);
        let of_others: BTreeSet<&str> = others.flat_map(|(_, other)| exports(other)).collect();
        let needed: BTreeSet<&str> =
            used.intersection(&of_others).copied().filter(|word| !own.contains(word)).collect();
        assert_eq!(needed, imported, "{name}.js");
    }
}
