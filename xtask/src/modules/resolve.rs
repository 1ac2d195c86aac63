//! Resolves a path in a module to the module that defines the item.

use std::collections::BTreeMap;

use super::source::{Module, ModulePath};

/// Re-exports followed for one path; more are a circle of them.
const STEPS: usize = 32;

/// A module and the index of the file that holds it.
pub(super) struct Found {
    pub(super) module: Module,
    pub(super) file: usize,
}

/// The thing that a path names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Module(ModulePath),
    /// An item, or something inside of one, of this module.
    Item(ModulePath),
}

/// Returns nothing for names of other crates.
pub(super) fn resolve(
    modules: &BTreeMap<ModulePath, Found>,
    module: &[String],
    path: &[String],
) -> Option<Target> {
    Search { modules, steps: STEPS }.path(module, path)
}

struct Search<'a> {
    modules: &'a BTreeMap<ModulePath, Found>,
    steps: usize,
}

impl Search<'_> {
    fn path(&mut self, module: &[String], path: &[String]) -> Option<Target> {
        self.steps = self.steps.checked_sub(1)?;
        let (mut current, rest) = match path.split_first()? {
            (first, rest) if first == "crate" => (ModulePath::new(), rest),
            (first, rest) if first == "self" => (module.to_vec(), rest),
            (first, _) if first == "super" => above(module, path)?,
            (first, rest) => match self.name(module, first)? {
                Target::Module(found) => (found, rest),
                item @ Target::Item(_) => return Some(item),
            },
        };
        for name in rest {
            match self.name(&current, name) {
                Some(Target::Module(found)) => current = found,
                Some(item @ Target::Item(_)) => return Some(item),
                None => return Some(Target::Item(current)),
            }
        }
        Some(Target::Module(current))
    }

    /// Looks a name up in a module: among its children, its imports, its own items, and its glob imports.
    fn name(&mut self, module: &[String], name: &str) -> Option<Target> {
        let modules = self.modules;
        let here = &modules.get(module)?.module;
        let mut child = module.to_vec();
        child.push(name.to_owned());
        if modules.contains_key(&child) {
            return Some(Target::Module(child));
        }
        if let Some(path) = here.uses.get(name) {
            return self.path(module, path);
        }
        if here.items.contains(name) {
            return Some(Target::Item(module.to_vec()));
        }
        here.globs.iter().find_map(|path| match self.path(module, path)? {
            Target::Module(found) if found != module => self.name(&found, name),
            Target::Module(_) | Target::Item(_) => None,
        })
    }
}

/// Takes each leading `super` off a path.
fn above<'a>(module: &[String], path: &'a [String]) -> Option<(ModulePath, &'a [String])> {
    let count = path.iter().take_while(|name| *name == "super").count();
    let kept = module.len().checked_sub(count)?;
    Some((module[..kept].to_vec(), &path[count..]))
}
