//! A catalog that lists were applied to equals one that is made anew.

use super::*;

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
        let mut tracked: BTreeMap<String, Option<MarketInfo>> =
            source.symbols.iter().map(|text| (text.clone(), None)).collect();
        for market in self.lists[at].iter().flatten() {
            let symbol = format!("{}/{}", market.base, market.quote);
            let quoted = all || source.quote_assets.contains(&market.quote.to_string());
            if !(named(&symbol) || quoted && market.active) {
                continue;
            }
            let slot = tracked.entry(symbol).or_default();
            if slot.as_ref().is_none_or(|first| !first.active && market.active) {
                *slot = Some(market.clone());
            }
        }
        tracked
    }
}

fn compare(catalog: &Catalog, naive: &Naive, seed: u64) {
    let tracked: Vec<_> = (0..naive.sources.len()).map(|at| naive.tracked(at)).collect();
    let all: BTreeSet<&String> = tracked.iter().flat_map(|markets| markets.keys()).collect();
    let expected: Vec<&String> = all.iter().copied().collect();
    assert_eq!(
        names(catalog, catalog.known()),
        expected.iter().map(|text| text.as_str()).collect::<Vec<_>>(),
        "seed {seed}"
    );
    assert_eq!(catalog.ecosystem(), catalog.known(), "seed {seed}");
    let mut quotes: BTreeMap<String, usize> = BTreeMap::new();
    for text in all {
        let symbol = id(catalog, text);
        let tracking: Vec<usize> =
            (0..tracked.len()).filter(|at| tracked[*at].contains_key(text)).collect();
        let ids: Vec<_> = tracking.iter().map(|at| SourceId(*at as u16)).collect();
        assert_eq!(catalog.sources_of(symbol), ids, "seed {seed} {text}");
        for (at, markets) in tracked.iter().enumerate() {
            let listing = markets.get(text).and_then(Option::as_ref);
            let got = catalog.listing(SourceId(at as u16), symbol);
            assert_eq!(got.is_some(), listing.is_some(), "seed {seed} {text}");
            if let (Some(got), Some(listing)) = (got, listing) {
                assert_eq!((&got.ticker_id, got.active), (&listing.ticker_id, listing.active));
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
        let rules = first.map(|listing| listing.rules.clone()).unwrap_or_default();
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
        let mut random = Rng::new(seed);
        let sources: Vec<SourceConfig> = (0..3)
            .map(|_| {
                let named = symbols.iter().filter(|_| random.below(4) == 0);
                let named: Vec<&str> = named.copied().collect();
                let assets = ["X", "Y", "Z"].into_iter().filter(|_| random.below(3) == 0);
                source("s", &named, &assets.collect::<Vec<_>>())
            })
            .collect();
        let mut catalog = catalog(&sources);
        let mut naive = Naive { sources: &sources, lists: vec![None, None, None] };
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
            catalog.drop_list(id);
            for market in &markets {
                catalog.list(id, market.clone());
            }
            if random.below(5) == 0 {
                catalog.drop_list(id);
            } else if end_list(&mut catalog, id, UnixMs(step)).is_ok() {
                naive.lists[at] = Some(markets);
            }
            compare(&catalog, &naive, seed);
            let changed = before != picture(&catalog);
            assert_eq!(catalog.version() > version, changed, "seed {seed} step {step}");
        }
    }
}
