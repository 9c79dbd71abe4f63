//! Categories, and the markets of the ecosystem.

use super::*;

fn category(id: &str, symbols: &[&str]) -> CategoryConfig {
    CategoryConfig {
        id: id.to_string(),
        name: format!("The {id}"),
        description: Some("For tests".to_string()),
        symbols: symbols.iter().map(|text| text.to_string()).collect(),
    }
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
    let markets = ["ETH/EUR", "ETH/BTC", "BTC/USDT", "BTC/EUR", "X/1INCH", "!ADA/ADA"];
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
    let ids: Vec<_> = catalog.categories_of(btc).map(|category| &*category.id).collect();
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
        price: Bounds { min: Some(decimal(price_min)), max: None },
        taker: Some(decimal("0.001")),
        ..MarketRules::default()
    }
}

#[test]
fn without_configured_entries_every_known_market_is_one_of_the_ecosystem() {
    let mut catalog = catalog(&[source("a", &["LUNA/USDT"], &["USDT"]), source("b", &[], &[])]);
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
        catalog.drop_list(source);
        let market = MarketInfo { active, rules, ..info("BTC/USDT") };
        catalog.list(source, market);
        end_list(catalog, source, now).expect("usable");
        let entry = entry(catalog, "BTC/USDT");
        (entry.status, entry.rules, catalog.version())
    };
    let (status, shown, first) = give(&mut catalog, B, false, rules(1, "0.1"), T1);
    assert_eq!((status, shown), (false, rules(1, "0.1")), "only b has a list");
    let (status, shown, second) = give(&mut catalog, A, true, rules(2, "0.2"), T2);
    assert_eq!((status, shown), (true, rules(2, "0.2")));
    assert!(second > first);
    let (_, shown, third) = give(&mut catalog, B, true, rules(3, "0.3"), T3);
    assert_eq!(shown, rules(2, "0.2"));
    assert_eq!(third, second, "what b says is not shown");
    let btc = id(&catalog, "BTC/USDT");
    assert_eq!((catalog.created_at(btc), catalog.updated_at(btc)), (Some(T1), Some(T2)));
    list(&mut catalog, A, &["ETH/USDT"], T3);
    assert_eq!(entry(&catalog, "BTC/USDT").rules, rules(3, "0.3"), "a no longer lists it");
    assert_eq!(catalog.sources_of(btc), [A, B], "but still names it");
    assert_eq!(catalog.updated_at(btc), Some(T3));
}

#[test]
fn configured_entries_are_all_there_are_and_override_field_by_field() {
    let mut config = config(vec![source("a", &[], &[])]);
    let given = MarketRules {
        amount_places: Some(9),
        price: Bounds { min: None, max: Some(decimal("5")) },
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
    ]);
    let mut catalog = Catalog::new(&config);
    assert_eq!(catalog.ecosystem(), []);
    catalog.drop_list(A);
    for text in ["ADA/USDT", "BTC/USDT", "ETH/USDT", "SOL/USDT"] {
        let rules = rules(2, "0.2");
        catalog.list(A, MarketInfo { rules, ..info(text) });
    }
    end_list(&mut catalog, A, T1).expect("usable");
    let order = ["ETH/USDT", "BTC/USDT", "ADA/USDT"];
    assert_eq!(names(&catalog, catalog.ecosystem()), order);
    let ether = entry(&catalog, "ETH/USDT");
    assert_eq!((&*ether.id, ether.is_trending, ether.is_hot), ("ether", true, true));
    assert_eq!((ether.icon, ether.status), (Some("https://example.com/eth.svg"), false));
    let merged = MarketRules {
        amount_places: Some(9),
        price: Bounds { min: Some(decimal("0.2")), max: Some(decimal("5")) },
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
        catalog.drop_list(A);
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
    assert_eq!(give(2, "0.1", "x", T2), (first, Some(T1)), "overridden places");
    assert_eq!(give(2, "0.1", "y", T2), (first, Some(T1)), "an id that nobody sees");
    assert_eq!(give(2, "0.2", "y", T3), (first + 1, Some(T3)), "a shown limit");
}
