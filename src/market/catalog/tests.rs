//! The catalog's rules, each tried, and all of them against a naive model.

use super::*;
use crate::config::{CategoryConfig, EcosystemMarket, SourceConfig};
use crate::market::testing::{Random, config, decimal, info, source};
use crate::record::{Bounds, MarketRules};
use std::collections::{BTreeMap, BTreeSet};

const A: SourceId = SourceId(0);
const B: SourceId = SourceId(1);
const T1: UnixMs = UnixMs(1_000);
const T2: UnixMs = UnixMs(2_000);
const T3: UnixMs = UnixMs(3_000);

fn catalog(sources: &[SourceConfig]) -> Catalog {
    Catalog::new(&config(sources.to_vec()))
}

/// Ends a list and takes it over, slice by slice.
fn end_list(catalog: &mut Catalog, source: SourceId, now: UnixMs) -> Result<ListChange, EmptyList> {
    catalog.end_list(source)?;
    loop {
        if let Some(change) = catalog.refresh_list(source, now) {
            return Ok(change);
        }
    }
}

/// Remembers these symbols of a source.
fn remember(catalog: &mut Catalog, source: SourceId, symbols: &[SymbolId]) {
    while !catalog.remember(source, || symbols.to_vec(), T1) {}
}

/// Hands a whole list over.
fn list(catalog: &mut Catalog, source: SourceId, markets: &[&str], now: UnixMs) -> ListChange {
    catalog.begin_list(source);
    for text in markets {
        catalog.list(source, info(text));
    }
    end_list(catalog, source, now).expect("a usable list")
}

fn names(catalog: &Catalog, symbols: &[SymbolId]) -> Vec<String> {
    let name = |symbol: &SymbolId| catalog.name(*symbol).as_str().to_string();
    symbols.iter().map(name).collect()
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

/// What a source of these settings tracks of one list.
fn check_tracked(symbols: &[&str], quote_assets: &[&str], markets: &[&str], expected: &str) {
    let mut catalog = catalog(&[source("a", symbols, quote_assets)]);
    list(&mut catalog, A, markets, T1);
    assert_eq!(
        known(&catalog),
        expected,
        "{symbols:?} {quote_assets:?} of {markets:?}"
    );
    for symbol in catalog.known() {
        assert_eq!(catalog.sources_of(*symbol), [A]);
    }
}

#[test]
fn a_source_tracks_what_it_was_told_to() {
    let markets = ["ETH/USDT", "!LUNA/USDT", "BTC/USDT", "ETH/BTC", "BTC/EUR"];
    check_tracked(&[], &[], &markets, "BTC/EUR BTC/USDT ETH/BTC ETH/USDT");
    check_tracked(&[], &["*"], &markets, "BTC/EUR BTC/USDT ETH/BTC ETH/USDT");
    check_tracked(&[], &["USDT"], &markets, "BTC/USDT ETH/USDT");
    check_tracked(&[], &["BTC", "EUR"], &markets, "BTC/EUR ETH/BTC");
    check_tracked(&["LUNA/USDT"], &[], &markets, "LUNA/USDT");
    check_tracked(&["LUNA/USDT"], &["EUR"], &markets, "BTC/EUR LUNA/USDT");
    check_tracked(
        &["LUNA/USDT"],
        &["*"],
        &markets,
        "BTC/EUR BTC/USDT ETH/BTC ETH/USDT LUNA/USDT",
    );
    check_tracked(&["FOO/BAR"], &[], &markets, "FOO/BAR");
    check_tracked(&[], &["GBP"], &markets, "");
}

#[test]
fn named_symbols_are_known_before_the_first_list() {
    let mut catalog = catalog(&[source("a", &["BTC/USDT"], &["EUR"]), source("b", &[], &[])]);
    assert_eq!(known(&catalog), "BTC/USDT");
    let btc = id(&catalog, "btcusdt");
    assert_eq!(catalog.sources_of(btc), [A]);
    assert_eq!(catalog.listing(A, btc), None);
    assert_eq!(catalog.by_ticker_id(A, "BTCUSDT"), None);
    assert!(!catalog.has_list(A));
    assert!(catalog.active(btc), "nobody says otherwise yet");
    assert_eq!(catalog.created_at(btc), None);
    assert_eq!(catalog.updated_at(btc), None);

    list(&mut catalog, A, &["BTC/USDT", "BTC/EUR"], T1);
    assert_eq!(known(&catalog), "BTC/EUR BTC/USDT");
    let listing = catalog.listing(A, btc).expect("listed");
    assert!(listing.named);
    assert_eq!(
        (&*listing.ticker_id, listing.candle_id()),
        ("BTCUSDT", "BTCUSDT")
    );
    let eur = id(&catalog, "BTC/EUR");
    assert!(!catalog.listing(A, eur).expect("listed").named);
    assert_eq!(catalog.by_ticker_id(A, "BTCEUR"), Some(eur));
    assert_eq!(catalog.by_ticker_id(B, "BTCEUR"), None);
    assert!(catalog.has_list(A) && !catalog.has_list(B));
    assert_eq!(catalog.created_at(btc), Some(T1));
}

#[test]
fn what_is_remembered_of_an_earlier_list_is_known_until_the_first_list() {
    let mut catalog = catalog(&[source("a", &["BTC/USDT"], &["USDT"]), source("b", &[], &[])]);
    list(&mut catalog, B, &["ETH/BTC"], T1);
    let version = catalog.version();
    let number = |catalog: &mut Catalog, text: &str| catalog.number_of(text).expect("a name");
    let [btc, eth, luna, eur] =
        ["BTC/USDT", "ETH/USDT", "LUNA/USDT", "BTC/EUR"].map(|text| number(&mut catalog, text));
    // The list of B has come, and A does not want euros.
    remember(&mut catalog, B, &[eur]);
    remember(&mut catalog, A, &[eur]);
    assert_eq!(known(&catalog), "BTC/USDT ETH/BTC");
    assert_eq!(catalog.version(), version);
    remember(&mut catalog, A, &[luna, eth, btc, eth]);
    assert_eq!(known(&catalog), "BTC/USDT ETH/BTC ETH/USDT LUNA/USDT");
    assert!(catalog.version() > version);
    assert_eq!(catalog.sources_of(luna), [A]);
    assert_eq!(catalog.listing(A, luna), None);
    assert!(catalog.active(luna), "nobody says otherwise yet");

    let change = list(&mut catalog, A, &["BTC/USDT", "ETH/USDT"], T2);
    assert_eq!((change.added, change.removed), (vec![], vec![luna]));
    assert_eq!(known(&catalog), "BTC/USDT ETH/BTC ETH/USDT");
    assert_eq!(catalog.created_at(eth), Some(T2));
    remember(&mut catalog, A, &[luna]);
    assert_eq!(known(&catalog), "BTC/USDT ETH/BTC ETH/USDT");
}

#[test]
fn the_first_listing_of_a_named_symbol_shows_by_its_times_alone() {
    let mut catalog = catalog(&[source("a", &["BTC/USDT"], &[])]);
    let (btc, version) = (id(&catalog, "BTC/USDT"), catalog.version());
    list(&mut catalog, A, &["BTC/USDT"], T1);
    assert_eq!(catalog.created_at(btc), Some(T1));
    assert_eq!(catalog.updated_at(btc), Some(T1));
    assert_eq!(catalog.version(), version + 1);
}

#[test]
fn nothing_served_changes_before_a_list_ends() {
    let mut catalog = catalog(&[source("a", &[], &[])]);
    list(&mut catalog, A, &["BTC/USDT", "AB/C"], T1);
    let version = catalog.version();
    let check_unchanged = |catalog: &Catalog, when: &str| {
        assert_eq!(known(catalog), "AB/C BTC/USDT", "{when}");
        assert_eq!(catalog.version(), version, "{when}");
        assert_eq!(catalog.find(b"ETH/USDT"), Lookup::Unknown, "{when}");
        assert_eq!(
            catalog.find(b"ABC"),
            Lookup::Known(id(catalog, "AB/C")),
            "{when}"
        );
        assert_eq!(catalog.by_ticker_id(A, "ETHUSDT"), None, "{when}");
        assert_eq!(catalog.categories().len(), 2, "{when}");
    };
    catalog.begin_list(A);
    assert_eq!(catalog.list(A, info("ETH/USDT")), Listed::Tracked);
    assert_eq!(catalog.list(A, info("A/BC")), Listed::Tracked);
    check_unchanged(&catalog, "while it is read");
    catalog.abandon_list(A);
    check_unchanged(&catalog, "abandoned");
    assert_eq!(end_list(&mut catalog, A, T2), Err(EmptyList));
    check_unchanged(&catalog, "ended without a begin");
    catalog.begin_list(A);
    catalog.list(A, info("ETH/USDT"));
    let change = list(&mut catalog, A, &["BTC/USDT", "AB/C"], T3);
    assert_eq!(change, ListChange::default());
    check_unchanged(&catalog, "begun again");
}

#[test]
fn a_list_without_a_usable_market_is_refused() {
    let mut catalog = catalog(&[source("a", &["BTC/USDT"], &["USDT"])]);
    list(&mut catalog, A, &["BTC/USDT", "ETH/USDT"], T1);
    for markets in [&[][..], &["btc/usdt", "X.Y/USDT"]] {
        catalog.begin_list(A);
        for text in markets {
            assert_eq!(catalog.list(A, info(text)), Listed::Skipped);
        }
        assert_eq!(end_list(&mut catalog, A, T2), Err(EmptyList), "{markets:?}");
        assert_eq!(known(&catalog), "BTC/USDT ETH/USDT");
    }
    // One of markets that nobody wants is a list like any other.
    let change = list(&mut catalog, A, &["ETH/BTC"], T2);
    assert_eq!(names(&catalog, &change.removed), ["ETH/USDT"]);
    assert_eq!(known(&catalog), "BTC/USDT");
}

#[test]
fn a_symbol_that_nobody_tracks_any_more_is_unknown_and_comes_back_with_its_number() {
    let mut catalog = catalog(&[source("a", &[], &[]), source("b", &[], &[])]);
    list(&mut catalog, A, &["BTC/USDT", "ETH/USDT"], T1);
    list(&mut catalog, B, &["BTC/USDT"], T1);
    let (btc, eth) = (id(&catalog, "BTC/USDT"), id(&catalog, "ETH/USDT"));
    assert_eq!(catalog.sources_of(btc), [A, B]);
    let change = list(&mut catalog, A, &["SOL/USDT", "!ETH/USDT"], T2);
    assert_eq!(names(&catalog, &change.added), ["SOL/USDT"]);
    assert_eq!(change.removed, [btc, eth]);
    assert_eq!(known(&catalog), "BTC/USDT SOL/USDT");
    assert_eq!(catalog.sources_of(btc), [B]);
    assert_eq!(catalog.sources_of(eth), []);
    assert_eq!(catalog.find(b"ETHUSDT"), Lookup::Unknown);
    assert_eq!(catalog.by_ticker_id(A, "ETHUSDT"), None);
    assert_eq!(catalog.by_ticker_id(B, "BTCUSDT"), Some(btc));
    assert_eq!(catalog.ecosystem_entry(eth), None);
    list(&mut catalog, A, &["SOL/USDT", "ETH/USDT"], T3);
    assert_eq!(id(&catalog, "ETH/USDT"), eth);
    assert_eq!(catalog.created_at(eth), Some(T1), "first tracked then");
    assert_eq!(catalog.updated_at(eth), Some(T3));
}

#[test]
fn a_named_symbol_that_the_list_lacks_stays_known_without_a_listing() {
    let mut catalog = catalog(&[source("a", &["FOO/BAR", "BTC/USDT"], &[])]);
    let foo = id(&catalog, "FOO/BAR");
    let version = catalog.version();
    let change = list(&mut catalog, A, &["BTC/USDT"], T1);
    assert_eq!((change.added, change.removed), (vec![], vec![]));
    assert_eq!(known(&catalog), "BTC/USDT FOO/BAR");
    assert_eq!(catalog.listing(A, foo), None);
    assert!(!catalog.active(foo), "its exchange does not have it");
    assert!(catalog.version() > version);
    assert_eq!(catalog.created_at(foo), None);
    assert_eq!(catalog.updated_at(foo), Some(T1));
    assert_eq!(catalog.rosters[0].newly_missing(), [], "warned of once");

    let btc = id(&catalog, "BTC/USDT");
    let change = list(&mut catalog, A, &["FOO/BAR"], T2);
    assert_eq!(change.removed, [], "named is tracked");
    assert_eq!(catalog.listing(A, btc), None);
    assert_eq!(catalog.by_ticker_id(A, "BTCUSDT"), None);
    assert!(catalog.active(foo));
    assert_eq!(catalog.created_at(foo), Some(T2));
}

#[test]
fn markets_whose_symbol_cannot_be_written_are_skipped_and_counted() {
    let mut catalog = catalog(&[source("a", &[], &["USDT"])]);
    let long = format!("{}/USDT", "A".repeat(21));
    let odd = [
        "XBT.M/USDT",
        "\u{5e01}/USDT",
        "a/USDT",
        "/USDT",
        "BTC/",
        &long,
    ];
    let mut markets = odd.to_vec();
    markets.push("BTC/USDT");
    let change = list(&mut catalog, A, &markets, T1);
    assert_eq!(change.skipped, odd.len() as u32);
    assert_eq!(known(&catalog), "BTC/USDT");
    let change = list(&mut catalog, A, &markets, T2);
    assert_eq!(change.skipped, odd.len() as u32);
}

/// Of two markets with one symbol, given by their ticker ids with `!` for inactive ones.
fn check_duplicate(first: &str, second: &str, expected: &str, taken: Listed) {
    let mut catalog = catalog(&[source("a", &["BTC/USDT"], &[])]);
    for _again in 0..2 {
        catalog.begin_list(A);
        let mut decision = Listed::Skipped;
        for ticker_id in [first, second] {
            let mut market = info("BTC/USDT");
            market.active = !ticker_id.starts_with('!');
            market.ticker_id = ticker_id.trim_start_matches('!').into();
            decision = catalog.list(A, market);
        }
        assert_eq!(decision, taken, "{first} {second}");
        let change = end_list(&mut catalog, A, T1).expect("usable");
        assert_eq!(change.duplicates, 1, "{first} {second}");
        let btc = id(&catalog, "BTC/USDT");
        let listing = catalog.listing(A, btc).expect("listed");
        assert_eq!(&*listing.ticker_id, expected, "{first} {second}");
        assert_eq!(catalog.by_ticker_id(A, expected), Some(btc));
        let other = if expected == "one" { "two" } else { "one" };
        assert_eq!(catalog.by_ticker_id(A, other), None);
    }
}

#[test]
fn of_two_markets_with_one_symbol_the_first_wins_but_an_active_one_beats_an_inactive() {
    check_duplicate("one", "two", "one", Listed::Skipped);
    check_duplicate("one", "!two", "one", Listed::Skipped);
    check_duplicate("!one", "two", "two", Listed::Tracked);
    check_duplicate("!one", "!two", "one", Listed::Skipped);
}

#[test]
fn ticker_ids_that_trade_places_are_routed_to_their_new_symbols() {
    let mut catalog = catalog(&[source("a", &[], &[])]);
    let give = |catalog: &mut Catalog, pairs: [(&str, &str); 2]| {
        catalog.begin_list(A);
        for (symbol, ticker_id) in pairs {
            let mut market = info(symbol);
            market.ticker_id = ticker_id.into();
            catalog.list(A, market);
        }
        end_list(catalog, A, T1).expect("usable");
        pairs.map(|(symbol, ticker_id)| {
            catalog.by_ticker_id(A, ticker_id) == Some(id(catalog, symbol))
        })
    };
    assert_eq!(
        give(&mut catalog, [("A/X", "1"), ("B/X", "2")]),
        [true, true]
    );
    assert_eq!(
        give(&mut catalog, [("A/X", "2"), ("B/X", "1")]),
        [true, true]
    );
    assert_eq!(
        give(&mut catalog, [("A/X", "2"), ("B/X", "2")]),
        [true, false]
    );
    assert_eq!(
        give(&mut catalog, [("A/X", "3"), ("B/X", "2")]),
        [true, true]
    );
}

#[test]
fn the_cap_on_symbols_holds_over_all_sources() {
    let mut config = config(vec![source("a", &[], &[]), source("b", &[], &[])]);
    config.limits.symbols = 3;
    let mut catalog = Catalog::new(&config);
    list(&mut catalog, A, &["A/X", "B/X"], T1);
    let change = list(&mut catalog, B, &["A/X", "C/X", "D/X", "E/X"], T1);
    assert_eq!(change.over_cap, 2);
    assert_eq!(known(&catalog), "A/X B/X C/X");
    assert_eq!(catalog.find(b"D/X"), Lookup::Unknown);
    let version = catalog.version();
    let change = list(&mut catalog, B, &["A/X", "C/X", "D/X", "E/X"], T2);
    assert_eq!((change.over_cap, catalog.version()), (2, version));
}

#[test]
fn joined_forms_shared_by_two_known_symbols_are_off_until_one_leaves() {
    let mut catalog = catalog(&[source("a", &[], &[])]);
    list(&mut catalog, A, &["AB/C", "BTC/USDT"], T1);
    assert_eq!(catalog.find(b"abc"), Lookup::Known(id(&catalog, "AB/C")));
    list(&mut catalog, A, &["AB/C", "BTC/USDT", "A/BC"], T2);
    assert_eq!(catalog.find(b"ABC"), Lookup::Unknown);
    assert_eq!(catalog.find(b"A-BC"), Lookup::Known(id(&catalog, "A/BC")));
    assert_eq!(
        catalog.find(b"BTCUSDT"),
        Lookup::Known(id(&catalog, "BTC/USDT"))
    );
    list(&mut catalog, A, &["BTC/USDT", "A/BC"], T3);
    assert_eq!(catalog.find(b"ABC"), Lookup::Known(id(&catalog, "A/BC")));
    assert_eq!(catalog.find(b"A BC"), Lookup::Malformed);
}

fn category(id: &str, symbols: &[&str]) -> CategoryConfig {
    CategoryConfig {
        id: id.to_string(),
        name: format!("The {id}"),
        description: Some("For tests".to_string()),
        symbols: symbols.iter().map(|text| text.to_string()).collect(),
    }
}

fn categories(catalog: &Catalog) -> Vec<String> {
    let line = |category: &Category| {
        format!(
            "{}: {}",
            category.id,
            names(catalog, &category.symbols).join(" ")
        )
    };
    catalog.categories().iter().map(line).collect()
}

#[test]
fn configured_categories_come_first_then_one_for_each_quote_asset() {
    let mut config = config(vec![source("a", &["SOL/USDT"], &["*"])]);
    config.categories = vec![
        category("majors", &["SOL/USDT", "GONE/USDT", "BTC/USDT"]),
        category("empty", &[]),
        category("eur", &["BTC/EUR"]),
    ];
    let mut catalog = Catalog::new(&config);
    let before = ["majors: SOL/USDT", "empty: ", "eur: ", "usdt: SOL/USDT"];
    assert_eq!(categories(&catalog), before);
    let markets = [
        "ETH/EUR", "ETH/BTC", "BTC/USDT", "BTC/EUR", "X/1INCH", "!ADA/ADA",
    ];
    list(&mut catalog, A, &markets, T1);
    let after = [
        "majors: SOL/USDT BTC/USDT",
        "empty: ",
        "eur: BTC/EUR",
        "1inch: X/1INCH",
        "btc: ETH/BTC",
        "usdt: BTC/USDT SOL/USDT",
    ];
    assert_eq!(categories(&catalog), after);

    let majors = catalog.category(b"majors").expect("configured");
    assert_eq!(&*majors.name, "The majors");
    assert_eq!(majors.description.as_deref(), Some("For tests"));
    let usdt = catalog.category(b"usdt").expect("generated");
    assert_eq!((&*usdt.name, &usdt.description), ("USDT", &None));
    assert_eq!(catalog.category(b"USDT"), None);
    assert_eq!(catalog.category(b"\xff"), None);
    let btc = id(&catalog, "BTC/USDT");
    let ids: Vec<_> = catalog
        .categories_of(btc)
        .map(|category| &*category.id)
        .collect();
    assert_eq!(ids, ["majors", "usdt"]);
}

fn ecosystem_market(symbol: &str, id: Option<&str>) -> EcosystemMarket {
    EcosystemMarket {
        symbol: symbol.to_string(),
        id: id.map(str::to_string),
        is_trending: false,
        is_hot: false,
        icon: None,
        status: None,
        rules: MarketRules::default(),
    }
}

fn rules(amount_places: u8, price_min: &str) -> MarketRules {
    MarketRules {
        amount_places: Some(amount_places),
        price: Bounds {
            min: Some(decimal(price_min)),
            max: None,
        },
        taker: Some(decimal("0.001")),
        ..MarketRules::default()
    }
}

#[test]
fn without_configured_entries_every_known_market_is_one_of_the_ecosystem() {
    let mut catalog = catalog(&[
        source("a", &["LUNA/USDT"], &["USDT"]),
        source("b", &[], &[]),
    ]);
    list(&mut catalog, A, &["ETH/USDT", "!LUNA/USDT", "BTC/USDT"], T1);
    let order = ["BTC/USDT", "ETH/USDT", "LUNA/USDT"];
    assert_eq!(names(&catalog, catalog.ecosystem()), order);
    let expected = EcosystemEntry {
        symbol: id(&catalog, "BTC/USDT"),
        id: "BTC-USDT".into(),
        is_trending: false,
        is_hot: false,
        icon: None,
        status: true,
        rules: MarketRules::default(),
    };
    assert_eq!(entry(&catalog, "BTC/USDT"), expected);
    assert!(!entry(&catalog, "LUNA/USDT").status);
    for text in ["BTC-USDT", "btc-usdt", "BTC/USDT", "BTCUSDT", "btc_usdt"] {
        let found = catalog.ecosystem_market(text.as_bytes());
        assert_eq!(found, Some(expected.symbol), "{text}");
    }
    assert_eq!(catalog.ecosystem_market(b"FOO-BAR"), None);
    assert_eq!(catalog.ecosystem_market(b"\xff"), None);
}

#[test]
fn figures_come_from_the_first_source_in_failover_order_that_lists_the_market() {
    let named = ["BTC/USDT"];
    let mut catalog = catalog(&[source("a", &named, &[]), source("b", &named, &[])]);
    let give = |catalog: &mut Catalog, source, active, rules, now| {
        catalog.begin_list(source);
        let market = MarketInfo {
            active,
            rules,
            ..info("BTC/USDT")
        };
        catalog.list(source, market);
        end_list(catalog, source, now).expect("usable");
        let entry = entry(catalog, "BTC/USDT");
        (entry.status, entry.rules, catalog.version())
    };
    let (status, shown, first) = give(&mut catalog, B, false, rules(1, "0.1"), T1);
    assert_eq!(
        (status, shown),
        (false, rules(1, "0.1")),
        "only b has a list"
    );
    let (status, shown, second) = give(&mut catalog, A, true, rules(2, "0.2"), T2);
    assert_eq!((status, shown), (true, rules(2, "0.2")));
    assert!(second > first);
    let (_, shown, third) = give(&mut catalog, B, true, rules(3, "0.3"), T3);
    assert_eq!(shown, rules(2, "0.2"));
    assert_eq!(third, second, "what b says is not shown");
    let btc = id(&catalog, "BTC/USDT");
    assert_eq!(
        (catalog.created_at(btc), catalog.updated_at(btc)),
        (Some(T1), Some(T2))
    );
    list(&mut catalog, A, &["ETH/USDT"], T3);
    assert_eq!(
        entry(&catalog, "BTC/USDT").rules,
        rules(3, "0.3"),
        "a no longer lists it"
    );
    assert_eq!(catalog.sources_of(btc), [A, B], "but still names it");
    assert_eq!(catalog.updated_at(btc), Some(T3));
}

#[test]
fn configured_entries_are_all_there_are_and_override_field_by_field() {
    let mut config = config(vec![source("a", &[], &[])]);
    let given = MarketRules {
        amount_places: Some(9),
        price: Bounds {
            min: None,
            max: Some(decimal("5")),
        },
        maker: Some(decimal("0")),
        ..MarketRules::default()
    };
    config.ecosystem.markets = Some(vec![
        EcosystemMarket {
            is_trending: true,
            is_hot: true,
            icon: Some("https://example.com/eth.svg".to_string()),
            status: Some(false),
            rules: given,
            ..ecosystem_market("ETH/USDT", Some("ether"))
        },
        ecosystem_market("GONE/USDT", Some("gone")),
        ecosystem_market("BTC/USDT", None),
        ecosystem_market("ADA/USDT", Some("BTC-USDT")),
        ecosystem_market("ETH/USDT", Some("again")),
    ]);
    let mut catalog = Catalog::new(&config);
    assert_eq!(catalog.ecosystem(), []);
    catalog.begin_list(A);
    for text in ["ADA/USDT", "BTC/USDT", "ETH/USDT", "SOL/USDT"] {
        let rules = rules(2, "0.2");
        catalog.list(
            A,
            MarketInfo {
                rules,
                ..info(text)
            },
        );
    }
    end_list(&mut catalog, A, T1).expect("usable");
    let order = ["ETH/USDT", "BTC/USDT", "ADA/USDT"];
    assert_eq!(names(&catalog, catalog.ecosystem()), order);
    let ether = entry(&catalog, "ETH/USDT");
    assert_eq!(
        (&*ether.id, ether.is_trending, ether.is_hot),
        ("ether", true, true)
    );
    assert_eq!(
        (ether.icon, ether.status),
        (Some("https://example.com/eth.svg"), false)
    );
    let merged = MarketRules {
        amount_places: Some(9),
        price: Bounds {
            min: Some(decimal("0.2")),
            max: Some(decimal("5")),
        },
        taker: Some(decimal("0.001")),
        maker: Some(decimal("0")),
        ..MarketRules::default()
    };
    assert_eq!(ether.rules, merged);
    assert_eq!(entry(&catalog, "BTC/USDT").rules, rules(2, "0.2"));
    let check = |text: &str, expected: Option<&str>| {
        let found = catalog.ecosystem_market(text.as_bytes());
        let name = found.map(|symbol| catalog.name(symbol).as_str());
        assert_eq!(name, expected, "{text}");
    };
    check("ether", Some("ETH/USDT"));
    check("Ether", None);
    check("eth-usdt", Some("ETH/USDT"));
    check("BTC-USDT", Some("ADA/USDT"));
    check("btc-usdt", Some("BTC/USDT"));
    check("gone", None);
    check("SOL-USDT", None);
    assert_eq!(catalog.ecosystem_entry(id(&catalog, "SOL/USDT")), None);
}

#[test]
fn the_version_counts_only_what_is_shown() {
    let mut config = config(vec![source("a", &[], &[])]);
    let mut market = ecosystem_market("BTC/USDT", None);
    market.rules.amount_places = Some(8);
    config.ecosystem.markets = Some(vec![market]);
    let mut catalog = Catalog::new(&config);
    let mut give = |places, price_min: &str, ticker_id: &str, now| {
        catalog.begin_list(A);
        let mut btc = info("BTC/USDT");
        btc.rules = rules(places, price_min);
        btc.ticker_id = ticker_id.into();
        catalog.list(A, btc);
        let mut eth = info("ETH/USDT");
        eth.rules = rules(places, price_min);
        catalog.list(A, eth);
        end_list(&mut catalog, A, now).expect("usable");
        let btc = id(&catalog, "BTC/USDT");
        (catalog.version(), catalog.updated_at(btc))
    };
    let (first, _) = give(1, "0.1", "x", T1);
    assert_eq!(give(1, "0.1", "x", T2), (first, Some(T1)), "the same list");
    assert_eq!(
        give(2, "0.1", "x", T2),
        (first, Some(T1)),
        "overridden places"
    );
    assert_eq!(
        give(2, "0.1", "y", T2),
        (first, Some(T1)),
        "an id that nobody sees"
    );
    assert_eq!(
        give(2, "0.2", "y", T3),
        (first + 1, Some(T3)),
        "a shown limit"
    );
}

/// The same rules made anew from the configuration and each source's last list.
struct Naive<'a> {
    sources: &'a [SourceConfig],
    lists: Vec<Option<Vec<MarketInfo>>>,
}

impl Naive<'_> {
    /// By symbol: the listing that counts, where there is one.
    fn tracked(&self, at: usize) -> BTreeMap<String, Option<MarketInfo>> {
        let source = &self.sources[at];
        let named = |symbol: &String| source.symbols.contains(symbol);
        let all = source.quote_assets.is_empty() && source.symbols.is_empty();
        let mut tracked: BTreeMap<String, Option<MarketInfo>> = source
            .symbols
            .iter()
            .map(|text| (text.clone(), None))
            .collect();
        for market in self.lists[at].iter().flatten() {
            let symbol = format!("{}/{}", market.base, market.quote);
            let quoted = all || source.quote_assets.contains(&market.quote.to_string());
            if !(named(&symbol) || quoted && market.active) {
                continue;
            }
            let slot = tracked.entry(symbol).or_default();
            if slot
                .as_ref()
                .is_none_or(|first| !first.active && market.active)
            {
                *slot = Some(market.clone());
            }
        }
        tracked
    }
}

fn compare(catalog: &Catalog, naive: &Naive, seed: u64) {
    let tracked: Vec<_> = (0..naive.sources.len())
        .map(|at| naive.tracked(at))
        .collect();
    let all: BTreeSet<&String> = tracked.iter().flat_map(|markets| markets.keys()).collect();
    let expected: Vec<&String> = all.iter().copied().collect();
    assert_eq!(
        names(catalog, catalog.known()),
        expected
            .iter()
            .map(|text| text.as_str())
            .collect::<Vec<_>>(),
        "seed {seed}"
    );
    assert_eq!(catalog.ecosystem(), catalog.known(), "seed {seed}");
    let mut quotes: BTreeMap<String, usize> = BTreeMap::new();
    for text in all {
        let symbol = id(catalog, text);
        let tracking: Vec<usize> = (0..tracked.len())
            .filter(|at| tracked[*at].contains_key(text))
            .collect();
        let ids: Vec<_> = tracking.iter().map(|at| SourceId(*at as u16)).collect();
        assert_eq!(catalog.sources_of(symbol), ids, "seed {seed} {text}");
        for (at, markets) in tracked.iter().enumerate() {
            let listing = markets.get(text).and_then(Option::as_ref);
            let got = catalog.listing(SourceId(at as u16), symbol);
            assert_eq!(got.is_some(), listing.is_some(), "seed {seed} {text}");
            if let (Some(got), Some(listing)) = (got, listing) {
                assert_eq!(
                    (&got.ticker_id, got.active),
                    (&listing.ticker_id, listing.active)
                );
                assert_eq!(got.rules, listing.rules, "seed {seed} {text}");
                let route = catalog.by_ticker_id(SourceId(at as u16), &got.ticker_id);
                assert_eq!(route, Some(symbol), "seed {seed} {text}");
            }
        }
        let first = tracking.iter().find_map(|at| tracked[*at][text].as_ref());
        let waiting = tracking.iter().any(|at| naive.lists[*at].is_none());
        let active = first.map_or(waiting, |listing| listing.active);
        let entry = entry(catalog, text);
        assert_eq!(entry.status, active, "seed {seed} {text}");
        let rules = first
            .map(|listing| listing.rules.clone())
            .unwrap_or_default();
        assert_eq!(entry.rules, rules, "seed {seed} {text}");
        let quote = text.split_once('/').expect("canonical").1.to_lowercase();
        *quotes.entry(quote).or_default() += 1;
    }
    let counted = |category: &Category| (category.id.to_string(), category.symbols.len());
    let got: Vec<_> = catalog.categories().iter().map(counted).collect();
    assert_eq!(got, quotes.into_iter().collect::<Vec<_>>(), "seed {seed}");
}

/// Everything that answers are made of.
fn picture(catalog: &Catalog) -> String {
    let mut picture = categories(catalog).join("\n");
    for symbol in catalog.known() {
        let entry = catalog.ecosystem_entry(*symbol);
        let sources = catalog.sources_of(*symbol);
        let times = (catalog.created_at(*symbol), catalog.updated_at(*symbol));
        picture += &format!("\n{entry:?} {sources:?} {times:?}");
    }
    picture
}

#[test]
fn whatever_lists_arrive_the_catalog_equals_one_made_anew_in_every_seed() {
    let symbols = ["A/X", "AB/X", "A/BX", "B/X", "C/Y", "D/Y", "E/Z", "F/Z"];
    for seed in 0..150 {
        let mut random = Random(seed);
        let sources: Vec<SourceConfig> = (0..3)
            .map(|_| {
                let named = symbols.iter().filter(|_| random.below(4) == 0);
                let named: Vec<&str> = named.copied().collect();
                let assets = ["X", "Y", "Z"].into_iter().filter(|_| random.below(3) == 0);
                source("s", &named, &assets.collect::<Vec<_>>())
            })
            .collect();
        let mut catalog = catalog(&sources);
        let mut naive = Naive {
            sources: &sources,
            lists: vec![None, None, None],
        };
        compare(&catalog, &naive, seed);
        for step in 0..40 {
            let at = random.below(3) as usize;
            let id = SourceId(at as u16);
            let mut markets = Vec::new();
            for (number, text) in symbols.iter().enumerate() {
                for copy in 0..random.below(8).saturating_sub(5) + u64::from(random.below(4) > 0) {
                    let mut market = info(text);
                    market.active = random.below(4) > 0;
                    market.ticker_id = format!("{number}-{copy}").into();
                    market.rules.amount_places = Some(random.below(2) as u8);
                    markets.push(market);
                }
            }
            let (before, version) = (picture(&catalog), catalog.version());
            catalog.begin_list(id);
            for market in &markets {
                catalog.list(id, market.clone());
            }
            if random.below(5) == 0 {
                catalog.abandon_list(id);
            } else if end_list(&mut catalog, id, UnixMs(step)).is_ok() {
                naive.lists[at] = Some(markets);
            }
            compare(&catalog, &naive, seed);
            let changed = before != picture(&catalog);
            assert_eq!(
                catalog.version() > version,
                changed,
                "seed {seed} step {step}"
            );
        }
    }
}

#[test]
fn names_that_begin_alike_are_sorted_by_what_follows() {
    let names = [
        "AAAAAAAAAAAAAAAAAAAB/B",
        "AAAAAAAAAAAAAAAAAAAA/C",
        "AAAAAAAAAAAAAAAAAAAA/BB",
        "AAAAAAAAAAAAAAAAAAAA/B",
        "AAAAAAAAAAAAAA/B",
        "A0/B",
        "A/B",
    ];
    let mut catalog = catalog(&[source("a", &[], &[])]);
    list(&mut catalog, A, &names, T1);
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(known(&catalog), sorted.join(" "));
}

#[test]
fn of_two_markets_with_one_ticker_id_the_lower_symbol_has_it_in_every_list() {
    let with_id = |text: &str, id: &str| MarketInfo {
        ticker_id: id.into(),
        ..info(text)
    };
    let mut catalog = catalog(&[source("a", &["B/B", "A/A"], &["*"])]);
    let (low, high) = (id(&catalog, "B/B"), id(&catalog, "A/A"));
    // The first list makes its routes as it comes, also from items that an active one replaces.
    for now in [T1, T2] {
        catalog.begin_list(A);
        catalog.list(A, with_id("A/A", "x"));
        catalog.list(A, with_id("B/B", "x"));
        catalog.list(A, with_id("!C/C", "gone"));
        catalog.list(A, with_id("C/C", "here"));
        end_list(&mut catalog, A, now).expect("a usable list");
        assert_eq!(catalog.by_ticker_id(A, "x"), Some(low));
        assert_eq!(catalog.by_ticker_id(A, "gone"), None);
        assert_eq!(catalog.by_ticker_id(A, "here"), Some(id(&catalog, "C/C")));
    }
    catalog.begin_list(A);
    catalog.list(A, with_id("A/A", "x"));
    catalog.list(A, with_id("B/B", "y"));
    end_list(&mut catalog, A, T3).expect("a usable list");
    assert_eq!(catalog.by_ticker_id(A, "x"), Some(high));
    assert_eq!(catalog.by_ticker_id(A, "y"), Some(low));
}

/// All that can be asked of these symbols, and of all.
fn served(catalog: &Catalog, texts: &[String]) -> String {
    let mut told = format!("{} {:?}", known(catalog), catalog.categories());
    told += &format!("{:?} {}", catalog.ecosystem(), catalog.version());
    for text in texts {
        let found = catalog.find(text.as_bytes());
        told += &format!(
            "\n{found:?} {:?}",
            catalog.by_ticker_id(A, &info(text).ticker_id)
        );
        if let Lookup::Known(symbol) = found {
            told += &format!(
                " {:?} {:?} {:?} {:?} {:?}",
                catalog.sources_of(symbol),
                catalog.listing(A, symbol),
                catalog.ecosystem_entry(symbol),
                catalog.created_at(symbol),
                catalog.updated_at(symbol),
            );
        }
    }
    told
}

/// Takes over what is pending, a slice at a time: what is served changes in one of them.
#[track_caller]
fn check_one_switch(
    catalog: &mut Catalog,
    texts: &[String],
    mut slice: impl FnMut(&mut Catalog) -> bool,
) {
    let (mut seen, mut slices) = (vec![served(catalog, texts)], 0);
    let mut is_over = false;
    while !is_over {
        is_over = slice(catalog);
        slices += 1;
        let now = served(catalog, texts);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    assert_eq!(seen.len(), 2, "it was served in {} steps", seen.len() - 1);
    assert!(slices > 6, "{slices} slices");
}

#[test]
fn a_long_list_is_taken_over_in_slices_and_served_all_at_once() {
    let names = |range: std::ops::Range<usize>| -> Vec<String> {
        range.map(|at| format!("M{}/Q{}", at, at % 7)).collect()
    };
    let all = names(0..2000);
    let mut catalog = catalog(&[source("a", &["M3/Q3"], &["*"]), source("b", &[], &[])]);
    let read = |catalog: &mut Catalog, source, range| {
        catalog.begin_list(source);
        for text in names(range) {
            catalog.list(source, info(&text));
        }
        catalog.end_list(source).expect("a usable list");
    };
    let remembered = (names(0..900).iter())
        .map(|text| catalog.number_of(text).expect("a name"))
        .collect::<Vec<_>>();
    check_one_switch(&mut catalog, &all, |catalog| {
        catalog.remember(A, || remembered.clone(), T1)
    });
    // First, much as remembered; then most are others, and many have left.
    for (range, now) in [(0..1000, T1), (600..2000, T2), (0..900, T3)] {
        read(&mut catalog, A, range);
        check_one_switch(&mut catalog, &all, |catalog| {
            catalog.refresh_list(A, now).is_some()
        });
    }
    assert_eq!(catalog.known().len(), 900);
}

#[test]
fn what_is_to_be_taken_over_waits_for_another_one_that_has_begun() {
    let mut catalog = catalog(&[source("a", &[], &[]), source("b", &[], &[])]);
    let luna = catalog.number_of("LUNA/USDT").expect("a name");
    for source in [A, B] {
        catalog.begin_list(source);
        catalog.list(source, info("BTC/USDT"));
        assert_eq!(catalog.end_list(source), Ok(()));
    }
    assert!(!catalog.remember(A, || vec![luna], T1));
    for _ in 0..20 {
        assert_eq!(catalog.refresh_list(A, T1), None);
        assert_eq!(catalog.refresh_list(B, T1), None);
    }
    assert_eq!(known(&catalog), "");
    while !catalog.remember(A, Vec::new, T1) {}
    assert_eq!(known(&catalog), "LUNA/USDT");
    while catalog.refresh_list(A, T1).is_none() {
        assert_eq!(catalog.refresh_list(B, T1), None);
    }
    assert_eq!(known(&catalog), "BTC/USDT");
    while catalog.refresh_list(B, T1).is_none() {}
    let btc = id(&catalog, "BTC/USDT");
    assert_eq!(catalog.sources_of(btc), [A, B]);
}
