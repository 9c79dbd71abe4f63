//! Which module may import which, and that none do so in a circle.

use super::*;
use std::path::Path;
use std::sync::LazyLock;

/// The modules from the lowest layer to the highest, as the page on architecture draws them. A module may import
/// from the layers below its own and from itself, not from its neighbours. A file belongs to the longest name
/// that fits.
static LAYERS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let page = include_str!("../../src/docs/architecture.md");
    let picture = page.split("```text\n").nth(1).expect("a picture");
    let rows = picture.lines().take_while(|line| *line != "```");
    // What stands to the right of the names, or below them, says what they are.
    let rows = rows.filter(|line| !line.starts_with(' '));
    let rows: Vec<&str> = rows.filter_map(|line| line.split("  ").next()).collect();
    rows.into_iter().rev().collect()
});

/// Modules that know less than their layer lets them: this module and what lies below it.
/// `net` starts the store, which shares no code with those who decide what it keeps.
const CEILINGS: [(&str, &str); 1] = [("store", "history")];

#[test]
fn modules_import_only_from_lower_layers() {
    let others = ["time", "record", "http", "market", "exchange", "demo", "core", "net", "store"];
    let check = |path: &str, text: &str, expected: &[&str]| {
        let paths = others.map(|name| format!("src/{name}/mod.rs"));
        let mut files: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
        files.extend([("src/http/body.rs", "")]);
        files.retain(|file| file.0 != path);
        files.push((path, text));
        let found = upward(&made_up(&files));
        let mut found: Vec<_> = found.iter().map(|(key, _)| key.as_str()).collect();
        found.dedup();
        assert_eq!(found, expected, "{path}:\n{text}");
    };
    let http = "src/http/mod.rs";
    check(http, "use crate::market::Market;", &["http -> market"]);
    check(http, "use super::core;\nuse super::time;", &["http -> core"]);
    check("src/http/body.rs", "use super::market;\nuse super::super::market;", &["http -> market"]);
    check(
        "src/market/mod.rs",
        "use crate::{\n time::{self, net},\n net::Link,\n};",
        &["market -> net"],
    );
    check("src/core/mod.rs", "use crate as this;\nuse this::store;", &["core -> store"]);
    check("src/core/api/mod.rs", "use crate::core::clients::Client;", &["core/api -> core"]);
    check("src/store/mod.rs", "use crate::market::Market;", &["store -> market"]);
    check("src/cellar/mod.rs", "use crate::time::Mono;", &["cellar -> time"]);
    let sources = Source::all_below("src");
    none(except(&upward(sources), []));
    for name in LAYERS.iter().flat_map(|row| row.split(' ')) {
        let files = [format!("src/{name}.rs"), format!("src/{name}/mod.rs")];
        assert!(files.iter().any(|file| Path::new(file).exists()), "there is no {name}");
    }
}

/// What a module names that its layer does not let it, and where.
fn upward(sources: &[Source]) -> Vec<(String, String)> {
    let fits = |place: &str, name: &str| {
        let rest = place.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let layer = |place: &str| {
        let place = if place.is_empty() { "lib" } else { place };
        let rows = LAYERS.iter().enumerate();
        let names = rows.flat_map(|(row, names)| names.split(' ').map(move |name| (row, name)));
        let fitting = names.filter(|(_, name)| fits(place, name));
        fitting.max_by_key(|(_, name)| name.len())
    };
    let judged = Tree::new(sources).edges().into_iter().filter_map(|edge| {
        let (from, to) = (layer(&edge.from), layer(&edge.to));
        let allowed = from.zip(to).is_some_and(|((row, from), (other, to))| {
            let ceiling = CEILINGS.iter().find(|(name, _)| *name == from);
            let ceiling =
                ceiling.and_then(|(_, highest)| layer(highest)).map_or(row, |(row, _)| row + 1);
            from == to || other < row.min(ceiling)
        });
        let name = |place: &str, layer: Option<(usize, &str)>| {
            layer.map_or(place, |(_, name)| name).to_string()
        };
        let key = format!("{} -> {}", name(&edge.from, from), name(&edge.to, to));
        (!allowed).then_some((key, edge.at))
    });
    judged.collect()
}

#[test]
fn no_files_or_directories_import_each_other_in_a_circle() {
    let check = |files: &[(&str, &str)], expected: &[(&str, &str)]| {
        let circles = Tree::new(&made_up(files)).circles();
        let names = circles.iter().map(|it| format!("{} {}", it.directory, it.entries.join(" ")));
        let expected = expected.iter().map(|(directory, names)| format!("{directory} {names}"));
        assert!(names.eq(expected), "{files:?}");
    };
    let a = ("src/m/a.rs", "use super::b::B;\npub struct A;");
    let b = ("src/m/b.rs", "fn f() { super::a::A }");
    check(&[("src/m/mod.rs", "mod a; mod b;"), a, b], &[("src/m", "a b")]);
    // A parent that passes names on depends on nobody; who takes one from it depends on its file.
    let through = ("src/m/b.rs", "use crate::m::A;\npub struct B;");
    let passes_on = ("src/m/mod.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;");
    check(&[passes_on, a, through], &[("src/m", "a b")]);
    // A parent that uses its child's type, and a child that uses the parent's own.
    let uses = ("src/m.rs", "pub use self::b::B;\npub struct M(B);");
    check(&[uses, ("src/m/b.rs", "use super::M;\npub struct B;")], &[("src/m", "mod b")]);
    // Two directories through different files of theirs.
    let one = [("src/m/x/mod.rs", ""), ("src/m/x/p.rs", "use crate::m::y::q;")];
    let two = [
        ("src/m/y/mod.rs", ""),
        ("src/m/y/q.rs", ""),
        ("src/m/y/r.rs", "use crate::m::x;"),
        ("src/m/mod.rs", ""),
    ];
    check(&[one, [two[0], two[1]], [two[2], two[3]]].concat(), &[("src/m", "x y")]);

    let circles = Tree::new(Source::all_below("src")).circles();
    none(circles.iter().map(|circle| format!("{}: {}", circle.directory, circle.steps.join(", "))));
}
