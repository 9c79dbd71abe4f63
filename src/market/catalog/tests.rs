//! The catalog's rules, each tried, and all of them against a naive model.

mod naive;

use super::roster::MAX_HALT;
use super::*;
use crate::config::{EcosystemMarket, SourceConfig};
use crate::market::testing::{config, decimal, info, source};
use crate::record::{Bounds, MarketRules};
use crate::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

const A: SourceId = SourceId(0);
const B: SourceId = SourceId(1);
const T1: UnixMs = UnixMs(1_000);
const T2: UnixMs = UnixMs(2_000);
const T3: UnixMs = UnixMs(3_000);

fn catalog(sources: &[SourceConfig]) -> Catalog {
    Catalog::new(&config(sources.to_vec()))
}

/// Ends a list and applies it.
fn end_list(catalog: &mut Catalog, source: SourceId, now: UnixMs) -> Result<ListChange, EmptyList> {
    catalog.end_list(source)?;
    Ok(catalog.refresh_list(source, now))
}

/// Reads and applies a whole list.
fn list(catalog: &mut Catalog, source: SourceId, markets: &[&str], now: UnixMs) -> ListChange {
    catalog.drop_list(source);
    for text in markets {
        catalog.list(source, info(text));
    }
    end_list(catalog, source, now).expect("a usable list")
}

fn names(catalog: &Catalog, symbols: &[SymbolId]) -> Vec<String> {
    let name = |symbol: &SymbolId| catalog.name(*symbol).as_str().to_string();
    symbols.iter().map(name).collect()
}

fn categories(catalog: &Catalog) -> Vec<String> {
    let line = |category: &Category| {
        format!("{}: {}", category.id, names(catalog, &category.symbols).join(" "))
    };
    catalog.categories().iter().map(line).collect()
}

fn known(catalog: &Catalog) -> String {
    names(catalog, catalog.known()).join(" ")
}

fn id(catalog: &Catalog, text: &str) -> SymbolId {
    match catalog.find(text.as_bytes()) {
        Lookup::Known(symbol) => symbol,
        other => panic!("{text}: {other:?}"),
    }
}

fn entry<'a>(catalog: &'a Catalog, text: &str) -> EcosystemEntry<'a> {
    let entry = catalog.ecosystem_entry(id(catalog, text));
    entry.expect("in the ecosystem")
}

#[test]
fn what_is_remembered_of_an_earlier_list_is_known_until_the_first_list() {
    let mut catalog = catalog(&[source("a", &["BTC/USDT"], &["USDT"]), source("b", &[], &[])]);
    list(&mut catalog, B, &["ETH/BTC"], T1);
    let version = catalog.version();
    let number = |catalog: &mut Catalog, text: &str| catalog.number_of(text).expect("a name");
    let [btc, eth, luna, eur] =
        ["BTC/USDT", "ETH/USDT", "LUNA/USDT", "BTC/EUR"].map(|text| number(&mut catalog, text));
    // A does not want euros.
    catalog.remember(A, vec![eur]);
    assert_eq!(known(&catalog), "BTC/USDT ETH/BTC");
    assert_eq!(catalog.version(), version);
    catalog.remember(A, vec![luna, eth, btc, eth]);
    assert_eq!(known(&catalog), "BTC/USDT ETH/BTC ETH/USDT LUNA/USDT");
    assert!(catalog.version() > version);
    assert_eq!(catalog.sources_of(luna), [A]);
    assert_eq!(catalog.listing(A, luna), None);
    assert!(catalog.active(luna), "nobody says otherwise yet");

    let change = list(&mut catalog, A, &["BTC/USDT", "ETH/USDT"], T2);
    assert_eq!((change.added, change.removed), (vec![], vec![luna]));
    assert_eq!(known(&catalog), "BTC/USDT ETH/BTC ETH/USDT");
    assert_eq!(catalog.created_at(eth), Some(T2));
}

#[test]
fn what_a_first_list_lacks_of_an_earlier_one_is_known_until_another_list() {
    let mut catalog = catalog(&[source("a", &[], &[])]);
    let names: Vec<String> = (10..22).map(|number| format!("A{number}/USDT")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let ids: Vec<SymbolId> =
        names.iter().map(|name| catalog.number_of(name).expect("a name")).collect();
    list(&mut catalog, A, &names[..10], T1);
    catalog.remember(A, ids[..10].to_vec());
    assert_eq!((catalog.known().len(), catalog.take_doubted(A)), (10, 0));
    catalog.remember(A, ids.clone());
    assert_eq!((catalog.known().len(), catalog.take_doubted(A)), (12, 2));
    assert_eq!(catalog.take_doubted(A), 0);
    names[..10].iter().for_each(|text| catalog.list(A, info(text)));
    catalog.doubt_list(A, Mono::default(), |_| true);
    let change = end_list(&mut catalog, A, T2).expect("a usable list");
    assert_eq!(change.removed, ids[10..]);
    assert_eq!(catalog.known().len(), 10);
}

#[test]
fn a_halted_market_stays_until_that_has_lasted_long_and_another_source_that_trades_it_answers() {
    let all: Vec<String> = (0..21).map(|at| format!("A{at}/X")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let (none, one, old) = (|| 0..0, || 20..21, || 18..20);
    // Each list: the markets that it halts, when it comes in tenths of `MAX_HALT`, and how many markets are
    // tracked then. The first one is named.
    for (what, lists) in [
        ("a market is halted", vec![(one(), 0, 21), (one(), 9, 21), (one(), 10, 20)]),
        (
            "a break ends in stages",
            vec![(0..21, 0, 21), (9..21, 1, 21), (one(), 2, 21), (none(), 3, 21)],
        ),
        (
            "it trades meanwhile",
            vec![(one(), 0, 21), (none(), 5, 21), (one(), 9, 21), (one(), 18, 21)],
        ),
        ("some are delisted", vec![(old(), 0, 21), (old(), 10, 19), (none(), 20, 21)]),
        ("all are", vec![(0..21, 0, 21), (0..21, 10, 1)]),
    ] {
        let mut catalog = catalog(&[source("a", &["A0/X"], &["X"]), source("b", &[], &[])]);
        list(&mut catalog, A, &all, T1);
        list(&mut catalog, B, &all, T1);
        for (halted, tenths, tracked) in lists {
            for (at, text) in all.iter().enumerate() {
                catalog.list(A, MarketInfo { active: !halted.contains(&at), ..info(text) });
            }
            catalog.doubt_list(A, Mono::default() + MAX_HALT * tenths / 10, |_| true);
            let order = |catalog: &Catalog| -> BTreeMap<SymbolId, Vec<SourceId>> {
                let ids = all.iter().map(|text| id(catalog, text));
                ids.map(|symbol| (symbol, catalog.sources_of(symbol).to_vec())).collect()
            };
            let mut before = order(&catalog);
            let change = end_list(&mut catalog, A, T1).expect("a usable list");
            before.retain(|id, was| {
                let is = catalog.sources_of(*id);
                is.len() == was.len() && is != &was[..]
            });
            let moved: BTreeSet<SymbolId> = change.moved.into_iter().collect();
            assert_eq!(moved, before.into_keys().collect(), "{what} {tenths}");
            let doubted = catalog.take_doubted(A);
            assert_eq!((catalog.listed_by(A), doubted), (tracked, 0), "{what} {tenths}");
            for (at, text) in all.iter().enumerate() {
                let (symbol, is_halted) = (id(&catalog, text), halted.contains(&at));
                let listing = catalog.listing(A, symbol);
                assert!(listing.is_none_or(|it| it.active != is_halted), "{what} {tenths} {text}");
                let first = if is_halted { B } else { A };
                assert_eq!(catalog.sources_of(symbol)[0], first, "{what} {tenths} {text}");
                assert!(catalog.active(symbol), "{what} {tenths} {text}");
            }
        }
    }
}

#[test]
fn names_of_the_history_file_alone_take_no_place_of_a_listed_market() {
    let mut config = config(vec![source("a", &[], &[])]);
    config.limits.symbols = 3;
    let mut catalog = Catalog::new(&config);
    let recalled = |catalog: &mut Catalog, at: usize| catalog.number_of(&format!("OLD{at}/X"));
    for at in 0..3 {
        assert!(recalled(&mut catalog, at).is_some());
    }
    assert_eq!(recalled(&mut catalog, 3), None, "they have a limit, too");
    let markets = ["A/X", "OLD1/X", "B/X", "C/X"];
    assert_eq!(list(&mut catalog, A, &markets, T1).over_cap, 1);
    assert_eq!(known(&catalog), "A/X B/X OLD1/X");
    let version = catalog.version();
    let change = list(&mut catalog, A, &markets, T2);
    assert_eq!((change.over_cap, catalog.version()), (1, version));
    assert!(recalled(&mut catalog, 3).is_some(), "one of them is listed by now");
}

#[test]
fn long_lists_replace_what_was_remembered_and_each_other() {
    let names = |range: std::ops::Range<usize>| -> Vec<String> {
        range.map(|at| format!("M{}/Q{}", at, at % 7)).collect()
    };
    let mut catalog = catalog(&[source("a", &["M3/Q3"], &["*"]), source("b", &[], &[])]);
    let check = |catalog: &Catalog, range| {
        let mut expected = names(range);
        expected.push("M3/Q3".into());
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(super::tests::names(catalog, catalog.known()), expected);
        for name in expected {
            assert_eq!(catalog.sources_of(id(catalog, &name)), [A], "{name}");
        }
    };
    let remembered = names(0..900);
    let remembered = remembered.iter().map(|text| catalog.number_of(text).expect("a name"));
    let remembered: Vec<SymbolId> = remembered.collect();
    catalog.remember(A, remembered.clone());
    check(&catalog, 0..900);
    // The first list has all remembered symbols. The others lack many symbols, and have many new ones.
    for (range, now) in [(0..1000, T1), (600..2000, T2), (0..900, T3)] {
        let texts = names(range.clone());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        list(&mut catalog, A, &texts, now);
        check(&catalog, range);
    }
}

#[test]
fn what_is_remembered_is_known_until_the_lists_of_its_source_and_of_others_have_come() {
    let mut catalog = catalog(&[source("a", &[], &[]), source("b", &[], &[])]);
    let luna = catalog.number_of("LUNA/USDT").expect("a name");
    for source in [A, B] {
        catalog.drop_list(source);
        catalog.list(source, info("BTC/USDT"));
        assert_eq!(catalog.end_list(source), Ok(()));
    }
    catalog.remember(A, vec![luna]);
    assert_eq!(known(&catalog), "LUNA/USDT");
    catalog.refresh_list(A, T1);
    assert_eq!(known(&catalog), "BTC/USDT");
    catalog.refresh_list(B, T1);
    assert_eq!(catalog.sources_of(id(&catalog, "BTC/USDT")), [A, B]);
}

#[test]
fn the_version_counts_only_what_is_shown() {
    let mut config = config(vec![source("a", &[], &[])]);
    let rules = |amount_places: u8, price_min: &str| MarketRules {
        amount_places: Some(amount_places),
        price: Bounds { min: Some(decimal(price_min)), max: None },
        ..MarketRules::default()
    };
    config.ecosystem.markets = Some(vec![EcosystemMarket {
        symbol: "BTC/USDT".to_string(),
        id: None,
        is_trending: false,
        is_hot: false,
        icon: None,
        status: None,
        rules: MarketRules { amount_places: Some(8), ..MarketRules::default() },
    }]);
    let mut catalog = Catalog::new(&config);
    let mut give = |places, price_min: &str, ticker_id: &str, now| {
        catalog.drop_list(A);
        let rules = rules(places, price_min);
        let btc = MarketInfo { rules: rules.clone(), ..info("BTC/USDT") };
        catalog.list(A, MarketInfo { ticker_id: ticker_id.into(), ..btc });
        catalog.list(A, MarketInfo { rules, ..info("ETH/USDT") });
        end_list(&mut catalog, A, now).expect("usable");
        let btc = id(&catalog, "BTC/USDT");
        (catalog.version(), catalog.updated_at(btc))
    };
    let (first, _) = give(1, "0.1", "x", T1);
    assert_eq!(give(1, "0.1", "x", T2), (first, Some(T1)), "the same list");
    assert_eq!(give(2, "0.1", "x", T2), (first, Some(T1)), "overridden places");
    assert_eq!(give(2, "0.1", "y", T2), (first, Some(T1)), "an id that nobody sees");
    assert_eq!(give(2, "0.2", "y", T3), (first + 1, Some(T3)), "a shown limit");
}
