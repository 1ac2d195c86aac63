//! One source file: the modules that it declares, what they import and define, and the paths in their code.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{Token, tokens};

/// Names from the crate's root to a module; the root's is empty.
pub(super) type ModulePath = Vec<String>;

/// One module's own text.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// By the name that a `use` brings in: the path that it stands for.
    pub(super) uses: BTreeMap<String, Vec<String>>,
    /// Modules that a `use` imports as a whole.
    pub(super) globs: Vec<Vec<String>>,
    /// Functions, types, constants and macros.
    pub(super) items: BTreeSet<String>,
    /// Every path, in a `use` or in code.
    pub(super) named: Vec<Named>,
}

#[derive(Debug)]
pub(super) struct Named {
    pub(super) line: usize,
    pub(super) path: Vec<String>,
    /// True for `use path::*`.
    pub(super) is_glob: bool,
}

#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) modules: BTreeMap<ModulePath, Module>,
    /// Modules that are declared here and have files of their own.
    pub(super) outside: Vec<ModulePath>,
}

/// Keywords before an item's name.
const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];

/// Reads a file that holds `module`.
pub(super) fn read(module: &[String], source: &str) -> Read {
    let tokens = tokens(source);
    let mut reader =
        Reader { tokens: &tokens, at: 0, depth: 0, open: vec![(module.to_vec(), 0)], read: Read::default() };
    reader.read.modules.insert(module.to_vec(), Module::default());
    while reader.at < tokens.len() {
        reader.step();
    }
    reader.read
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// Number of open braces.
    depth: usize,
    /// The modules around the current token, each with the depth of its items.
    open: Vec<(ModulePath, usize)>,
    read: Read,
}

impl<'a> Reader<'a> {
    fn text(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| token.text)
    }

    fn before(&self, count: usize) -> &'a str {
        self.at.checked_sub(count).map_or("", |index| self.text(index))
    }

    fn path(&self) -> ModulePath {
        self.open.last().map(|(path, _)| path.clone()).unwrap_or_default()
    }

    fn module(&mut self) -> &mut Module {
        self.read.modules.entry(self.path()).or_default()
    }

    fn step(&mut self) {
        match self.text(self.at) {
            "#" => self.attribute(),
            "mod" => self.declaration(),
            "use" if self.text(self.at + 1) != "<" => {
                self.at += 1;
                self.use_tree(&[]);
            }
            "{" => {
                self.depth += 1;
                self.at += 1;
            }
            "}" => {
                self.depth = self.depth.saturating_sub(1);
                if self.open.len() > 1 && self.open.last().is_some_and(|(_, depth)| *depth > self.depth) {
                    self.open.pop();
                }
                self.at += 1;
            }
            word if ITEMS.contains(&word) => self.item(),
            word if is_word(word) => self.code_path(),
            _ => self.at += 1,
        }
    }

    /// Passes an attribute, and the item behind it if only tests or models have that, or if its file stands in for another
    /// module's (`#[path]`).
    fn attribute(&mut self) {
        let open = if self.text(self.at + 1) == "!" { self.at + 2 } else { self.at + 1 };
        if self.text(open) != "[" {
            self.at += 1;
            return;
        }
        let end = self.closing(open);
        let is_hiding = |index: usize| {
            let is_negated = self.text(index - 2) == "not" && self.text(index - 1) == "(";
            ["test", "loom"].contains(&self.text(index)) && !is_negated
        };
        let is_hidden = match self.text(open + 1) {
            "cfg" => (open + 2..end).any(is_hiding),
            attribute => attribute == "path",
        };
        self.at = end;
        if is_hidden {
            self.pass_item();
        }
    }

    /// Index behind the bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for index in open..self.tokens.len() {
            match self.text(index) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return index + 1;
            }
        }
        self.tokens.len()
    }

    /// Passes an item, a statement, a field or a variant.
    fn pass_item(&mut self) {
        while self.text(self.at) == "#" {
            self.at = self.closing(self.at + 1);
        }
        // Only visibility and qualifiers stand before an item's keyword.
        let keyword = (self.at..self.at + 6).map(|index| self.text(index)).find(|text| is_keyword(text));
        let (is_use, is_part) = (keyword == Some("use"), keyword.is_none());
        while self.at < self.tokens.len() {
            match self.text(self.at) {
                "{" if !is_use => {
                    self.at = self.closing(self.at);
                    return;
                }
                "(" | "[" | "{" => self.at = self.closing(self.at),
                // The end of the item that the field or variant is part of.
                ")" | "]" | "}" => return,
                ";" => {
                    self.at += 1;
                    return;
                }
                "," if is_part => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Reads `mod name;` or `mod name {`.
    fn declaration(&mut self) {
        let mut child = self.path();
        child.push(self.text(self.at + 1).to_owned());
        match self.text(self.at + 2) {
            ";" => self.read.outside.push(child),
            "{" => {
                self.depth += 1;
                self.read.modules.insert(child.clone(), Module::default());
                self.open.push((child, self.depth));
            }
            _ => {}
        }
        self.at += 3;
    }

    fn item(&mut self) {
        let is_own = self.open.last().is_some_and(|(_, depth)| *depth == self.depth);
        let is_macro = self.text(self.at) == "macro_rules";
        let name = self.text(self.at + if is_macro { 2 } else { 1 }).to_owned();
        if is_own && is_word(&name) {
            self.module().items.insert(name);
        }
        self.at += 1;
    }

    /// Reads a path in code: `first::second`.
    fn code_path(&mut self) {
        let line = self.tokens[self.at].line;
        let is_continued = ["::", "."].contains(&self.before(1));
        let is_visibility = self.before(1) == "in" && self.before(2) == "(";
        let mut path = vec![self.text(self.at).to_owned()];
        self.at += 1;
        while self.text(self.at) == "::" && is_word(self.text(self.at + 1)) {
            path.push(self.text(self.at + 1).to_owned());
            self.at += 2;
        }
        if path.len() > 1 && !is_continued && !is_visibility {
            self.module().named.push(Named { line, path, is_glob: false });
        }
    }

    /// Reads one tree of a `use`, or of its braces, up to the next comma or closing brace.
    fn use_tree(&mut self, prefix: &[String]) {
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        let mut path = prefix.to_vec();
        let is_foreign = self.text(self.at) == "::";
        loop {
            match self.text(self.at) {
                "::" => self.at += 1,
                "*" => {
                    self.at += 1;
                    self.module().globs.push(path.clone());
                    self.module().named.push(Named { line, path, is_glob: true });
                    return self.use_end();
                }
                "{" => {
                    self.at += 1;
                    while !["}", ";", ""].contains(&self.text(self.at)) {
                        self.use_tree(&path);
                        if self.text(self.at) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return self.use_end();
                }
                word if is_word(word) && word != "as" => {
                    path.push(word.to_owned());
                    self.at += 1;
                }
                _ => break,
            }
        }
        if path.len() > prefix.len() && path.len() > 1 && path.last().is_some_and(|name| name == "self") {
            path.pop();
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if self.text(self.at) == "as" {
            self.text(self.at + 1).clone_into(&mut name);
            self.at += 2;
        }
        if !is_foreign {
            self.module().uses.insert(name, path.clone());
            self.module().named.push(Named { line, path, is_glob: false });
        }
        self.use_end();
    }

    /// Passes the semicolon of a whole `use`.
    fn use_end(&mut self) {
        if self.text(self.at) == ";" {
            self.at += 1;
        }
    }
}

fn is_keyword(text: &str) -> bool {
    ITEMS.contains(&text) || ["use", "mod", "impl", "extern", "let"].contains(&text)
}

fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}
