//! Generates a scene from a seed: a tree, a command line, answers and a user.

use std::collections::HashSet;
use std::fmt;

use ferry_tree::fill::SplitMix64;
use ferry_tree::{Acl, Node, Tree};

use crate::scene::OLD;

pub(crate) const NOBODY: u32 = 65_534;

pub(crate) struct Scene {
    pub(crate) tree: Tree,
    pub(crate) arguments: Vec<String>,
    /// Operands of the command line.
    pub(crate) sources: Vec<String>,
    pub(crate) target: String,
    pub(crate) answers: String,
    pub(crate) umask: String,
    pub(crate) environment: Vec<(&'static str, &'static str)>,
    pub(crate) is_nobody: bool,
    /// FIFOs that the copy reads.
    pub(crate) fifos: Vec<String>,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whom = if self.is_nobody { "nobody" } else { "whoever tests" };
        write!(f, "by {whom}, umask {}: cp {}", self.umask, self.arguments.join(" "))?;
        self.environment.iter().try_for_each(|(name, value)| write!(f, ", with {name}={value}"))
    }
}

impl Scene {
    /// Command line after the effect of `--strip-trailing-slashes`.
    pub(crate) fn stripped(&self) -> Vec<String> {
        let strips = self.arguments.iter().any(|word| word == "--strip-trailing-slashes");
        let last = self.arguments.len() - usize::from(self.arguments.last() == Some(&self.target));
        let words = self.arguments.iter().enumerate();
        let is_source = |index, word| strips && index < last && self.sources.contains(word);
        words
            .map(|(index, word)| match is_source(index, word) {
                true => word.trim_end_matches('/').to_owned(),
                false => word.clone(),
            })
            .collect()
    }
}

/// Few names, so that sources and targets collide.
const NAMES: [&str; 5] = ["a", "b", "c", "it's", "é"];

struct Maker {
    numbers: SplitMix64,
    tree: Tree,
    /// Files that links may lead to.
    files: Vec<String>,
    is_root: bool,
    /// True if sources are in `s` and targets in `t`. With `-r`, the order of entries would matter otherwise.
    is_apart: bool,
    /// Files in `s` with several names; the order decides which name is copied first.
    linked: HashSet<String>,
    is_itself: bool,
    has_fifos: bool,
    /// True if FIFOs are read. Then the target has none, because writing to one would block.
    is_read: bool,
    fifos: Vec<String>,
}

impl Maker {
    fn one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.numbers.index(choices.len())]
    }

    /// Uses few different times, so that some are equal.
    fn dated(&mut self, node: Node) -> Node {
        let age = self.one(&[0, 0, 1000, 2000]);
        let node = node.mtime(OLD + age, self.one(&[0, 500]));
        if self.is_root && self.numbers.percent(30) { node.owner(NOBODY, NOBODY) } else { node }
    }

    fn file(&mut self) -> Node {
        let content = match self.numbers.below(10) {
            0 => Node::file(""),
            1 => Node::sparse(300_000, 5, [(100_000, 4096)]),
            2 => Node::seeded(200_000, self.numbers.next_u64()),
            _ => Node::file(format!("text {}", self.numbers.below(100))),
        };
        let mode = self.one(&[0o644, 0o644, 0o600, 0o666, 0o444, 0o755, 0o4755, 0o2755, 0o000]);
        let node = self.dated(content).mode(mode);
        if self.numbers.percent(10) { node.xattr("user.color", "blue") } else { node }
    }

    fn folder(&mut self) -> Node {
        let mode = self.one(&[0o755, 0o755, 0o755, 0o700, 0o777, 0o2775, 0o2777, 0o1777, 0o555]);
        let node = self.dated(Node::directory()).mode(mode);
        if self.numbers.percent(12) { node.default_acl(Acl::from_mode(0o750).user(1000, 7)) } else { node }
    }

    fn link(&mut self, above: &str, depth: usize) -> Node {
        if above.starts_with("t/") {
            // Each link has its own destination.
            let aside = format!("x/{}", self.tree.count());
            if self.numbers.percent(50) {
                let file = self.file();
                self.tree.insert(aside.as_bytes(), file);
            }
            return Node::symlink(format!("{}{aside}", "../".repeat(above.matches('/').count())));
        }
        let name = self.one(&["a", "b", "c", "nowhere", "a/b", "b/a", "."]);
        let top = usize::from(self.is_apart);
        let up = if depth > top && self.numbers.percent(50) { "../" } else { "" };
        Node::symlink(format!("{up}{name}"))
    }

    fn fill(&mut self, above: &str, depth: usize) {
        for name in NAMES {
            let path = format!("{above}{name}");
            if above.starts_with("t/") && self.linked.contains(path.get(1..).unwrap_or_default()) {
                continue;
            }
            match self.numbers.below(100) {
                0..30 => {
                    let file = self.file();
                    self.tree.insert(path.as_bytes(), file);
                    self.files.push(path);
                }
                30..55 if depth < 3 => {
                    let folder = self.folder();
                    self.tree.insert(path.as_bytes(), folder);
                    self.fill(&format!("{path}/"), depth + 1);
                }
                55..67 => {
                    let link = self.link(above, depth);
                    self.tree.insert(path.as_bytes(), link);
                }
                67..77 if above.starts_with("t/") => {
                    let file = self.file();
                    self.tree.insert(path.as_bytes(), file);
                }
                67..77 if !self.files.is_empty() => {
                    let first = self.files[self.numbers.index(self.files.len())].clone();
                    let names = [&path, &first].map(|name| name.get(1..).unwrap_or_default().to_owned());
                    self.linked.extend(names);
                    self.tree.insert(path.as_bytes(), Node::hard_link(first));
                }
                77..79 if self.is_root => {
                    let device = self.dated(Node::character_device(1, 3)).mode(0o666);
                    self.tree.insert(path.as_bytes(), device);
                }
                79..81 => {
                    let socket = self.dated(Node::socket());
                    self.tree.insert(path.as_bytes(), socket);
                }
                _ => {}
            }
        }
        for backup in ["a~", "b.~1~", "b.~7~"] {
            // A source must not have the name of a backup, because the order would matter.
            if self.numbers.percent(5) && !above.starts_with("s/") {
                let file = self.file();
                self.tree.insert(format!("{above}{backup}").as_bytes(), file);
            }
        }
        // A unique name, so that nothing is written to it.
        if depth > 0 && self.has_fifos && self.numbers.percent(if self.is_read { 50 } else { 10 }) {
            let (path, fifo) = (format!("{above}fifo"), self.dated(Node::fifo()));
            if above.starts_with("s/") || !self.is_read {
                self.tree.insert(path.as_bytes(), fifo);
                self.fifos.push(path);
            }
        }
    }

    fn source(&mut self) -> String {
        match self.numbers.below(8) {
            0 => "s".to_owned(),
            1 => "s/".to_owned(),
            2 | 3 => "s/.".to_owned(),
            _ => format!("s/{}", self.name()),
        }
    }

    fn target(&mut self) -> String {
        match self.numbers.below(8) {
            0 | 1 => "t".to_owned(),
            2 => "t/".to_owned(),
            3 if !self.is_itself => "t/.".to_owned(),
            4 => "new".to_owned(),
            5 => "t/new/".to_owned(),
            _ => format!("t/{}", self.name()),
        }
    }

    /// Returns an existing or possible name.
    fn name(&mut self) -> String {
        let mut name = self.one(&NAMES).to_owned();
        while self.numbers.percent(30) && name.len() < 8 {
            let next = self.one(&["a", "b", "c"]);
            name = format!("{name}/{next}");
        }
        match self.numbers.below(30) {
            0 => format!("./{name}"),
            1 | 2 => format!("{name}/"),
            3 | 4 => format!("{name}/."),
            5 if !self.is_apart => format!("{name}/../{name}"),
            6 => "missing".to_owned(),
            7 => "a~".to_owned(),
            _ => name,
        }
    }

    fn options(&mut self) -> Vec<String> {
        const WORDS: [(u64, &str); 35] = [
            (25, "-a"),
            (35, "-r"),
            (15, "-p"),
            (12, "-f"),
            (10, "-i"),
            (5, "-n"),
            (10, "-u"),
            (12, "-b"),
            (20, "-v"),
            (7, "-d"),
            (5, "-P"),
            (5, "-L"),
            (5, "-H"),
            (6, "-l"),
            (4, "-s"),
            (4, "-x"),
            (8, "--remove-destination"),
            (6, "--parents"),
            (8, "-T"),
            (5, "--strip-trailing-slashes"),
            (5, "--attributes-only"),
            (3, "--copy-contents"),
            (3, "--backup=t"),
            (3, "--backup=existing"),
            (2, "-S.old"),
            (3, "--sparse=always"),
            (2, "--sparse=never"),
            (3, "--reflink=never"),
            (3, "--preserve=mode"),
            (3, "--preserve=links"),
            (3, "--preserve=timestamps,ownership"),
            (2, "--preserve=xattr"),
            (3, "--no-preserve=mode"),
            (2, "--no-preserve=links,timestamps"),
            (1, "-Z"),
        ];
        let mut options: Vec<String> = Vec::new();
        for (percent, word) in WORDS {
            if self.numbers.percent(percent) {
                options.push(word.to_owned());
            }
        }
        // The order of options matters.
        for index in (1..options.len()).rev() {
            options.swap(index, self.numbers.index(index + 1));
        }
        options
    }

    fn environment(&mut self) -> Vec<(&'static str, &'static str)> {
        let mut environment = Vec::new();
        if self.numbers.percent(5) {
            environment.push(("VERSION_CONTROL", self.one(&["t", "nil"])));
        }
        if self.numbers.percent(3) {
            environment.push(("SIMPLE_BACKUP_SUFFIX", ".bak"));
        }
        if self.numbers.percent(3) {
            environment.push(("POSIXLY_CORRECT", "1"));
        }
        environment
    }
}

/// Generates the scene of a seed; without root, all files belong to one user.
pub(crate) fn scene(seed: u64, is_root: bool) -> Scene {
    // Consecutive seeds would generate overlapping streams.
    let numbers = SplitMix64::new(SplitMix64::new(seed).next_u64());
    let mut maker = Maker {
        numbers,
        tree: Tree::new(),
        files: Vec::new(),
        is_root,
        is_apart: false,
        is_itself: false,
        has_fifos: false,
        is_read: false,
        fifos: Vec::new(),
        linked: HashSet::new(),
    };
    maker.tree = Tree::new().root(Node::directory().mode(0o777).mtime(OLD, 0));
    let mut arguments = maker.options();
    maker.is_apart = arguments.iter().any(|option| matches!(option.as_str(), "-r" | "-a"));
    maker.is_itself = arguments.iter().any(|option| option == "-T");
    maker.is_read = arguments.iter().any(|option| option == "--copy-contents");
    // Each FIFO is fed once, so no link may lead to it again.
    maker.has_fifos = maker.is_apart && !(maker.is_read && arguments.iter().any(|option| option == "-L"));
    if maker.is_apart {
        for side in ["s", "t", "x"] {
            let folder = maker.folder();
            maker.tree.insert(side.as_bytes(), folder.mode(0o777));
        }
        maker.fill("s/", 1);
        maker.files.clear();
        maker.fill("t/", 1);
    } else {
        maker.fill("", 0);
    }
    let count = maker.one(&[1, 1, 1, 1, 2, 3]);
    let sources: Vec<String> =
        (0..count).map(|_| if maker.is_apart { maker.source() } else { maker.name() }).collect();
    let mut sources = sources;
    if maker.is_apart {
        // Entries of nested sources would be copied in an undefined order.
        sources.dedup_by_key(|source| source.trim_end_matches("/.").trim_end_matches('/').to_owned());
        let is_whole =
            sources.iter().any(|source| source.trim_end_matches("/.").trim_end_matches('/') == "s");
        if is_whole || maker.is_read {
            sources.truncate(1);
        }
    }
    let target = match maker.numbers.below(10) {
        _ if maker.is_apart => maker.target(),
        0 => "new".to_owned(),
        1 => "a/new".to_owned(),
        2 if count == 1 => sources[0].clone(),
        3 => ".".to_owned(),
        _ => maker.name(),
    };
    if maker.numbers.percent(10) {
        arguments.push(format!("-t{target}"));
        arguments.extend(sources.clone());
    } else {
        arguments.extend(sources.clone());
        arguments.push(target.clone());
    }
    let answers = (0..8).map(|_| maker.one(&["y\n", "y\n", "n\n", "\n"])).collect();
    let umask = maker.one(&["022", "022", "077", "002", "000", "027"]).to_owned();
    let environment = maker.environment();
    let is_nobody = is_root && maker.numbers.percent(35);
    let fifos = if maker.is_read { maker.fifos } else { Vec::new() };
    Scene { tree: maker.tree, arguments, sources, target, answers, umask, environment, is_nobody, fifos }
}
