//! The modules of a tree of files and which of them name which, for the layers and the circles.
//!
//! A name that a module only passes on (`pub use child::Name`) counts for the file that defines it:
//! a parent that declares and re-exports its children does not depend on them, and whoever takes a
//! child's name from the parent depends on the child.

use crate::source::{Source, Word};
use std::collections::{BTreeMap, BTreeSet};

/// A path of names in the code, and its line.
type Named<'a> = (usize, Vec<&'a str>);

/// One file.
struct Module<'a> {
    path: &'a str,
    /// What its `use` lines bring in, by its name in this file.
    names: BTreeMap<&'a str, Vec<&'a str>>,
    paths: Vec<Named<'a>>,
}

/// The files by their place in the tree, which is the path without `src/`, `.rs` and `mod`:
/// `core/api/chart`. The root is the empty one.
pub struct Tree<'a>(BTreeMap<String, Module<'a>>);

/// One file names something that another defines.
#[derive(Debug)]
pub struct Edge {
    pub from: String,
    pub to: String,
    /// Where: `file:line`.
    pub at: String,
}

/// Entries of one directory that import each other; `mod` is the directory's own file.
pub struct Circle {
    pub directory: String,
    pub entries: Vec<String>,
    /// Who names whom, and where.
    pub steps: Vec<String>,
}

impl<'a> Tree<'a> {
    pub fn new(sources: &'a [Source]) -> Tree<'a> {
        let modules = sources
            .iter()
            .filter(|source| source.is_test.is_empty() || source.is_test.contains(&false));
        Tree(modules.map(|source| (place(&source.path), Module::new(source))).collect())
    }

    /// Every place where one file names something of another.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (from, module) in &self.0 {
            for (line, path) in &module.paths {
                let to = self.absolute(from, path, 8).map(|path| self.defining(&path, 8));
                if let Some(to) = to.filter(|to| to != from) {
                    let (from, at) = (from.clone(), format!("{}:{}", module.path, line + 1));
                    edges.push(Edge { from, to, at });
                }
            }
        }
        edges
    }

    /// Every circle: between the entries of one directory, a directory below it counting as one
    /// entry. The file that a directory belongs to (`mod.rs`) is an entry of it too.
    pub fn circles(&self) -> Vec<Circle> {
        let edges = self.edges();
        let mut circles = Vec::new();
        let root = String::new();
        let inner = self.0.keys().filter(|place| !place.is_empty());
        for parent in [&root].into_iter().chain(inner) {
            let between = edges.iter().filter_map(|edge| {
                let (from, to) = (entry(parent, &edge.from)?, entry(parent, &edge.to)?);
                (from != to).then_some((from, to, edge.at.as_str()))
            });
            circles.extend(strongly_connected(parent, &between.collect::<Vec<_>>()));
        }
        circles
    }

    /// The path from the root; `None` for that of another crate.
    fn absolute(&self, place: &str, path: &[&'a str], depth: u8) -> Option<Vec<&'a str>> {
        let (first, rest) = path.split_first()?;
        let module = self.0.get_key_value(place)?;
        let below = |ups: usize, rest: &[&'a str]| {
            let parts: Vec<&str> = module.1.home();
            let kept = parts.len().checked_sub(ups)?;
            Some([&parts[..kept], rest].concat())
        };
        match *first {
            "crate" | "marketd" => Some(rest.to_vec()),
            "self" => below(0, rest),
            "super" => {
                let ups = path.iter().take_while(|part| **part == "super").count();
                below(ups, &path[ups..])
            }
            child if self.0.contains_key(&joined(place, child)) => below(0, path),
            alias => {
                let target = module.1.names.get(alias).filter(|_| depth > 0)?;
                let target = self.absolute(place, target, depth - 1)?;
                Some([&target[..], rest].concat())
            }
        }
    }

    /// The file that defines what this path from the root names.
    fn defining(&self, path: &[&'a str], depth: u8) -> String {
        let mut place = String::new();
        for (at, part) in path.iter().enumerate() {
            let child = joined(&place, part);
            if self.0.contains_key(&child) {
                place = child;
                continue;
            }
            let passed_on = self.0.get(&place).and_then(|module| module.names.get(part));
            let target = passed_on.and_then(|target| self.absolute(&place, target, depth));
            return match target {
                Some(target) if depth > 0 => {
                    self.defining(&[&target[..], &path[at + 1..]].concat(), depth - 1)
                }
                _ => place,
            };
        }
        place
    }
}

impl<'a> Module<'a> {
    fn new(source: &'a Source) -> Module<'a> {
        let words = source.words();
        let (mut names, mut paths, mut passed_on) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut rest = BTreeSet::new();
        let mut at = 0;
        while at < words.len() {
            if words[at].text == "use" {
                let is_public = at > 0 && ["pub", ")"].contains(&words[at - 1].text);
                let mut leaves = Vec::new();
                at += 1;
                read_use(&words, &mut at, &[], &mut leaves);
                for (name, path) in leaves {
                    names.insert(name, path.1.clone());
                    if is_public { passed_on.push((name, path)) } else { paths.push(path) }
                }
                continue;
            }
            rest.insert(words[at].text);
            let inner = at > 0 && ["::", "."].contains(&words[at - 1].text);
            let path = path_at(&words[at..]);
            if !inner && path.len() > 1 {
                paths.push((words[at].line, path));
            }
            at += 1;
        }
        // A name that is passed on and used here as well is used.
        let used = passed_on.into_iter().filter(|(name, _)| rest.contains(name));
        paths.extend(used.map(|(_, path)| path));
        Module { path: &source.path, names, paths }
    }

    fn home(&self) -> Vec<&'a str> {
        let path = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        let parts = path.split('/');
        parts.filter(|part| !["mod", "lib"].contains(part)).collect()
    }
}

fn place(path: &str) -> String {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    path.trim_end_matches("/mod").trim_end_matches("lib").to_string()
}

/// Which entry of the directory `parent` the place lies in; the directory's own file is the empty one.
fn entry<'p>(parent: &str, place: &'p str) -> Option<&'p str> {
    let rest = place.strip_prefix(parent)?;
    let below = parent.is_empty() || rest.is_empty() || rest.starts_with('/');
    rest.trim_start_matches('/').split('/').next().filter(|_| below)
}

fn joined(place: &str, child: &str) -> String {
    format!("{place}/{child}").trim_start_matches('/').to_string()
}

/// The words up to where no further `::` follows.
fn path_at<'a>(words: &[Word<'a>]) -> Vec<&'a str> {
    let is_name = |text: &str| text.starts_with(|c: char| c == '_' || c.is_alphabetic());
    let mut path = Vec::new();
    for pair in words.chunks(2) {
        if !is_name(pair[0].text) {
            break;
        }
        path.push(pair[0].text);
        if pair.get(1).is_none_or(|next| next.text != "::") {
            break;
        }
    }
    path
}

/// Reads what follows `use`, or an item of its group, into one entry for each name.
fn read_use<'a>(
    words: &[Word<'a>],
    at: &mut usize,
    prefix: &[&'a str],
    into: &mut Vec<(&'a str, Named<'a>)>,
) {
    let mut path = prefix.to_vec();
    while let Some(word) = words.get(*at) {
        *at += 1;
        match word.text {
            "::" => {}
            "{" => {
                while words.get(*at).is_some_and(|word| word.text != "}") {
                    read_use(words, at, &path, into);
                    *at += usize::from(words.get(*at).is_some_and(|word| word.text == ","));
                }
                *at += 1;
                return;
            }
            "self" if !path.is_empty() => {}
            text => path.push(text),
        }
        let next = words.get(*at).map_or("", |word| word.text);
        if next == "as" {
            *at += 2;
            into.push((words[*at - 1].text, (word.line, path)));
            return;
        }
        if next != "::" && word.text != "::" {
            into.push((path[path.len() - 1], (word.line, path)));
            return;
        }
    }
}

/// The circles among the entries of one directory.
fn strongly_connected(parent: &str, edges: &[(&str, &str, &str)]) -> Vec<Circle> {
    let mut reach: BTreeSet<(&str, &str)> = edges.iter().map(|edge| (edge.0, edge.1)).collect();
    let all: BTreeSet<&str> = edges.iter().flat_map(|edge| [edge.0, edge.1]).collect();
    for via in &all {
        for from in &all {
            let onward = all.iter().filter(|to| reach.contains(&(via, to)));
            let onward: Vec<_> = onward.filter(|_| reach.contains(&(from, via))).collect();
            reach.extend(onward.into_iter().map(|to| (*from, *to)));
        }
    }
    let both = |a: &str, b: &str| reach.contains(&(a, b)) && reach.contains(&(b, a));
    let circle = |first: &&str| {
        let entries: Vec<&str> = all.iter().copied().filter(|other| both(first, other)).collect();
        if entries.first() != Some(first) {
            return None;
        }
        let inside =
            |edge: &&(&str, &str, &str)| entries.contains(&edge.0) && entries.contains(&edge.1);
        let shown = |name: &str| if name.is_empty() { "mod" } else { name }.to_string();
        let steps = edges.iter().filter(inside);
        let steps: BTreeMap<_, _> = steps.map(|edge| ((edge.0, edge.1), edge.2)).collect();
        let step = |((from, to), at): ((&str, &str), &str)| {
            format!("{} -> {} ({at})", shown(from), shown(to))
        };
        Some(Circle {
            directory: format!("src/{parent}").trim_end_matches('/').to_string(),
            entries: entries.into_iter().map(shown).collect(),
            steps: steps.into_iter().map(step).collect(),
        })
    };
    all.iter().filter_map(circle).collect()
}
