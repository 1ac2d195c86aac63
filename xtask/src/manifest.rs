//! Reads the name and the dependencies of a Cargo manifest, in the part of TOML that manifests use for them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// The code that a dependency is for. A build script's dependencies count as the crate's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Crate,
    Tests,
}

/// A manifest's statements about imports.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    /// The package's name by purpose and the name in the manifest.
    pub(crate) dependencies: BTreeMap<(Purpose, String), String>,
}

impl Manifest {
    /// Reads a manifest. The workspace's `[workspace.dependencies]` count as a crate's.
    pub(crate) fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut table = Table::Other;
        for statement in statements(text) {
            if let Some(header) = statement.strip_prefix('[') {
                table = Table::parse(header);
                if let Table::Dependency(purpose, key) = &table {
                    manifest.add(*purpose, key, "");
                }
            } else if let Some((key, value)) = statement.split_once('=') {
                manifest.take(&table, &segments(key), value.trim());
            }
        }
        manifest
    }

    fn take(&mut self, table: &Table, key: &[String], value: &str) {
        match (table, key) {
            (Table::Package, [key]) if key == "name" => self.name = unquoted(value),
            (Table::Dependencies(purpose), [key, rest @ ..]) => {
                let package = match rest {
                    [] => inline_package(value),
                    [field] if field == "package" => unquoted(value),
                    _ => String::new(),
                };
                self.add(*purpose, key, &package);
            }
            (Table::Dependency(purpose, key), [field]) if field == "package" => {
                self.add(*purpose, key, &unquoted(value));
            }
            _ => {}
        }
    }

    /// An empty `package` stands for the key, unless another line names the package.
    fn add(&mut self, purpose: Purpose, key: &str, package: &str) {
        let known = self.dependencies.entry((purpose, key.to_owned())).or_insert_with(|| key.to_owned());
        if !package.is_empty() {
            package.clone_into(known);
        }
    }
}

/// The table that a line of a manifest belongs to.
enum Table {
    Package,
    Dependencies(Purpose),
    Dependency(Purpose, String),
    Other,
}

impl Table {
    /// `header` is the table's first line without the opening bracket.
    fn parse(header: &str) -> Self {
        let path = segments(header.trim_end_matches(']'));
        if let [.., table] = path.as_slice()
            && let Some(purpose) = purpose(table)
        {
            return Self::Dependencies(purpose);
        }
        if let [.., table, key] = path.as_slice()
            && let Some(purpose) = purpose(table)
        {
            return Self::Dependency(purpose, key.clone());
        }
        if path == ["package"] { Self::Package } else { Self::Other }
    }
}

fn purpose(table: &str) -> Option<Purpose> {
    match table {
        "dependencies" | "build-dependencies" => Some(Purpose::Crate),
        "dev-dependencies" => Some(Purpose::Tests),
        _ => None,
    }
}

/// Returns the lines without comments. A line with open brackets is joined with the next ones.
fn statements(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut statement = String::new();
    for line in text.lines() {
        statement.push_str(without_comment(line).trim());
        if is_complete(&statement) {
            if !statement.is_empty() {
                found.push(std::mem::take(&mut statement));
            }
        } else {
            statement.push(' ');
        }
    }
    found.extend((!statement.is_empty()).then_some(statement));
    found
}

fn without_comment(line: &str) -> &str {
    let comment = unquoted_characters(line).find(|&(_, character)| character == '#');
    comment.map_or(line, |(index, _)| &line[..index])
}

fn is_complete(statement: &str) -> bool {
    let count = |wanted: [char; 2]| {
        unquoted_characters(statement).filter(|(_, character)| wanted.contains(character)).count()
    };
    count(['[', '{']) <= count([']', '}'])
}

/// Returns the characters outside of quotes, each with its index in bytes.
fn unquoted_characters(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut open = None;
    text.char_indices().filter(move |&(_, character)| match open {
        Some(quote) => {
            if character == quote {
                open = None;
            }
            false
        }
        None if character == '"' || character == '\'' => {
            open = Some(character);
            false
        }
        None => true,
    })
}

/// Returns the parts of a dotted key, without quotes.
fn segments(key: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut start = 0;
    for (index, character) in unquoted_characters(key) {
        if character == '.' {
            found.push(unquoted(&key[start..index]));
            start = index + 1;
        }
    }
    found.push(unquoted(&key[start..]));
    found
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

/// Returns the `package` of an inline table, or an empty text.
fn inline_package(value: &str) -> String {
    let fields = value.trim_matches(['{', '}', ' ']);
    let named = fields.split(',').filter_map(|field| field.split_once('='));
    named.filter(|(key, _)| key.trim() == "package").map(|(_, package)| unquoted(package)).collect()
}
