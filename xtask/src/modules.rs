//! The modules of one crate, and the imports between their files.
//!
//! A re-export counts as an import of the file that defines the name, so that a crate's root is no detour. Code that
//! only tests or loom's models see is left out. Calls of methods need no import and leave no trace here.

mod resolve;
mod source;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::workspace;
use resolve::{Found, Target, resolve};
use source::ModulePath;

/// The files of a crate that are neither tests nor models, and the imports between them.
#[derive(Default)]
pub(crate) struct Graph {
    /// Paths beneath the crate's `src`, sorted.
    pub(crate) files: Vec<String>,
    /// One import for each pair of importing and imported file, by index.
    pub(crate) imports: BTreeMap<(usize, usize), Import>,
}

/// One place where a file names an item of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// Counted from one.
    pub(crate) line: usize,
    /// The path in the source's words.
    pub(crate) path: String,
}

impl Graph {
    /// Reads a crate's modules, from `src/lib.rs` or else `src/main.rs`. A crate without either has no files.
    pub(crate) fn read(folder: &Path) -> Result<Self, Failure> {
        let source = folder.join("src");
        let root =
            ["lib.rs", "main.rs"].map(|name| source.join(name)).into_iter().find(|path| path.is_file());
        let Some(root) = root else { return Ok(Self::default()) };
        let mut files = Vec::new();
        let mut modules = BTreeMap::new();
        let mut wanted = vec![(ModulePath::new(), root)];
        while let Some((path, file)) = wanted.pop() {
            let index = files.len();
            files.push(file.strip_prefix(&source).unwrap_or(&file).display().to_string());
            let read = source::read(&path, &workspace::read(&file)?);
            for child in read.outside {
                if let Some(file) = file_of(&source, &child) {
                    wanted.push((child, file));
                }
            }
            for (path, module) in read.modules {
                modules.insert(path, Found { module, file: index });
            }
        }
        Ok(Self { imports: imports(&modules), files }.sorted())
    }

    /// Returns the graph without imports of a module from its own submodules.
    pub(crate) fn without_submodules(&self) -> Self {
        let is_submodule = |&(from, to): &(usize, usize)| {
            let folder = self.files[from].strip_suffix(".rs").map(|path| format!("{path}/"));
            let is_root = ["lib.rs", "main.rs"].contains(&self.files[from].as_str());
            is_root || folder.is_some_and(|folder| self.files[to].starts_with(&folder))
        };
        let imports = self.imports.iter().filter(|(import, _)| !is_submodule(import));
        Self {
            imports: imports.map(|(import, place)| (*import, place.clone())).collect(),
            files: self.files.clone(),
        }
    }

    /// Renumbers the files in the order of their names.
    fn sorted(self) -> Self {
        let files: BTreeSet<String> = self.files.iter().cloned().collect();
        let files: Vec<String> = files.into_iter().collect();
        let index = |old: usize| files.binary_search(&self.files[old]).unwrap_or(0);
        let renumbered =
            self.imports.into_iter().map(|((from, to), import)| ((index(from), index(to)), import));
        Self { imports: renumbered.collect(), files }
    }
}

/// Returns the file of a module that is declared as `mod name;`.
fn file_of(source: &Path, module: &[String]) -> Option<PathBuf> {
    let path: PathBuf = module.iter().collect();
    let file = source.join(&path).with_extension("rs");
    let inside = source.join(path).join("mod.rs");
    [file, inside].into_iter().find(|file| file.is_file())
}

fn imports(modules: &BTreeMap<ModulePath, Found>) -> BTreeMap<(usize, usize), Import> {
    let mut imports = BTreeMap::new();
    for (path, found) in modules {
        for named in &found.module.named {
            let target = resolve(modules, path, &named.path);
            let defining = match target {
                // A module's name alone, in a `use`: the items used are named elsewhere.
                Some(Target::Module(module)) => named.is_glob.then_some(module),
                Some(Target::Item(module)) => Some(module),
                None => None,
            };
            let Some(imported) = defining.and_then(|module| modules.get(&module)) else { continue };
            if imported.file != found.file {
                let import = Import { line: named.line, path: named.path.join("::") };
                imports.entry((found.file, imported.file)).or_insert(import);
            }
        }
    }
    imports
}
