//! Checks that a catalog to which lists were applied equals a catalog that is computed from scratch.

use super::*;

/// The catalog's rules, computed from scratch from the configuration and each source's last list.
struct Naive<'a> {
    sources: &'a [SourceConfig],
    lists: Vec<Option<Vec<MarketInfo>>>,
    /// True if the last list of each source is as the collector of a cluster sent it.
    is_sent: Vec<bool>,
    /// The symbols that each source tracked before its last list came.
    before: Vec<BTreeSet<String>>,
    /// Since which of its own lists each source has halted a market.
    halted_since: Vec<BTreeMap<String, u64>>,
    /// The step of the last list of each source.
    step: Vec<u64>,
    /// When each symbol was first listed, and when its shown data last changed.
    times: BTreeMap<String, [Option<UnixMs>; 2]>,
}

/// What is shown of a symbol: sources, status and rules.
type Shown = (Vec<SourceId>, bool, MarketRules);

/// For how many steps a halted market stays.
const LONG: u64 = 8;

/// Some have long names that begin alike, and some are not valid symbols.
const SYMBOLS: [&str; 15] = [
    "A/X",
    "AB/X",
    "A/BX",
    "B/X",
    "C/Y",
    "D/Y",
    "E/Z",
    "F/Z",
    "AAAAAAAAAAAAAAAAAAAA/X",
    "AAAAAAAAAAAAAAAAAAAA/Y",
    "AAAAAAAAAAAAAAAAAAAB/X",
    "AAAAAAAAAAAAAA/X",
    "a/X",
    "/X",
    "AAAAAAAAAAAAAAAAAAAAA/X",
];

fn is_usable(text: &str) -> bool {
    let is_asset = |it: &str| {
        (1..=20).contains(&it.len())
            && it.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit())
    };
    text.split('/').all(is_asset)
}

fn symbol_of(market: &MarketInfo) -> String {
    format!("{}/{}", market.base, market.quote)
}

impl Naive<'_> {
    /// The tracked symbols of a source, with the listing that counts, if there is one.
    fn tracked(&self, at: usize) -> BTreeMap<String, Option<&MarketInfo>> {
        let source = &self.sources[at];
        let named = |symbol: &String| source.symbols.contains(symbol);
        let all = source.quote_assets.is_empty() && source.symbols.is_empty();
        let mut tracked: BTreeMap<String, Option<&MarketInfo>> =
            source.symbols.iter().map(|text| (text.clone(), None)).collect();
        for market in self.lists[at].iter().flatten() {
            let symbol = symbol_of(market);
            let quoted = all || source.quote_assets.contains(&market.quote.to_string());
            let stays = self.is_sent[at] && quoted || self.before[at].contains(&symbol);
            if !is_usable(&symbol) || !(named(&symbol) || stays || quoted && market.active) {
                continue;
            }
            let slot = tracked.entry(symbol).or_default();
            if slot.is_none_or(|first| !first.active && market.active) {
                *slot = Some(market);
            }
        }
        tracked.retain(|symbol, _| {
            let since = self.halted_since[at].get(symbol).filter(|_| !self.is_sent[at]);
            named(symbol) || since.is_none_or(|since| self.step[at] - since < LONG)
        });
        tracked
    }

    fn all_tracked(&self) -> Vec<BTreeMap<String, Option<&MarketInfo>>> {
        (0..self.sources.len()).map(|at| self.tracked(at)).collect()
    }

    /// What is shown of each known symbol, and whether somebody lists it.
    fn shown(&self) -> BTreeMap<String, (Shown, bool)> {
        let tracked = self.all_tracked();
        let all: BTreeSet<&String> = tracked.iter().flat_map(|markets| markets.keys()).collect();
        let shown = all.into_iter().map(|text| {
            let tracking = (0..tracked.len()).filter(|at| tracked[*at].contains_key(text));
            let is_halted = |at: &usize| tracked[*at][text].is_some_and(|it| !it.active);
            let (halted, others): (Vec<usize>, Vec<usize>) = tracking.partition(is_halted);
            let tracking = others.into_iter().chain(halted);
            let first = tracking.clone().find_map(|at| tracked[at][text]);
            let waiting = tracking.clone().any(|at| self.lists[at].is_none());
            let active = first.map_or(waiting, |listing| listing.active);
            let rules = first.map(|listing| listing.rules.clone()).unwrap_or_default();
            let ids = tracking.map(|at| SourceId(at as u16)).collect();
            (text.clone(), ((ids, active, rules), first.is_some()))
        });
        shown.collect()
    }

    /// Applies a list. Returns the symbols that its source newly tracks, and no longer tracks.
    fn apply(
        &mut self,
        at: usize,
        (list, is_sent): (Vec<MarketInfo>, bool),
        step: u64,
    ) -> [Vec<String>; 2] {
        let now = UnixMs(step as i64);
        let names = |it: &Naive| it.tracked(at).into_keys().collect::<BTreeSet<String>>();
        let (before, names_before) = (self.shown(), names(self));
        (self.lists[at], self.is_sent[at]) = (Some(list), is_sent);
        self.before[at] = names_before.clone();
        self.step[at] = step;
        let since_before = std::mem::take(&mut self.halted_since[at]);
        let tracked = self.tracked(at).into_iter();
        let halted = tracked.filter(|(_, it)| it.is_some_and(|it| !it.active));
        let since = halted.filter_map(|(symbol, _)| {
            let since = since_before.get(&symbol).filter(|_| names_before.contains(&symbol));
            let since = since.copied().or((!is_sent).then_some(step))?;
            Some((symbol, since))
        });
        self.halted_since[at] = since.collect();
        for (text, (shown, is_listed)) in self.shown() {
            let times = self.times.entry(text.clone()).or_default();
            let is_created = is_listed && times[0].is_none();
            if is_created || before.get(&text).is_none_or(|it| it.0 != shown) {
                *times = [times[0].or(is_created.then_some(now)), Some(now)];
            }
        }
        let names = names(self);
        let (added, removed) = (names.difference(&names_before), names_before.difference(&names));
        [added.cloned().collect(), removed.cloned().collect()]
    }
}

fn compare(catalog: &Catalog, naive: &Naive, seed: u64) {
    let (tracked, all) = (naive.all_tracked(), naive.shown());
    assert!(names(catalog, catalog.known()).iter().eq(all.keys()), "seed {seed}");
    assert_eq!(catalog.ecosystem(), catalog.known(), "seed {seed}");
    let mut quotes: BTreeMap<String, usize> = BTreeMap::new();
    for (text, ((sources, active, rules), _)) in &all {
        let symbol = id(catalog, text);
        assert_eq!(catalog.sources_of(symbol), sources, "seed {seed} {text}");
        for (at, markets) in tracked.iter().enumerate() {
            let got = catalog.listing(SourceId(at as u16), symbol);
            let got = got.map(|it| (&it.ticker_id, it.active, &it.rules));
            let listing = markets.get(text).copied().flatten();
            let listing = listing.map(|it| (&it.ticker_id, it.active, &it.rules));
            assert_eq!(got, listing, "seed {seed} {text}");
        }
        let entry = entry(catalog, text);
        assert_eq!((entry.status, &entry.rules), (*active, rules), "seed {seed} {text}");
        let times = [catalog.created_at(symbol), catalog.updated_at(symbol)];
        let expected = naive.times.get(text).copied().unwrap_or_default();
        assert_eq!(times, expected, "seed {seed} {text}");
        let quote = text.split_once('/').expect("canonical").1.to_lowercase();
        *quotes.entry(quote).or_default() += 1;
    }
    let counted = |category: &Category| (category.id.to_string(), category.symbols.len());
    let got: Vec<_> = catalog.categories().iter().map(counted).collect();
    assert_eq!(got, quotes.into_iter().collect::<Vec<_>>(), "seed {seed}");
    // A joined spelling that two known symbols share finds neither.
    for joined in SYMBOLS.iter().filter(|it| is_usable(it)).map(|it| it.replace('/', "")) {
        let mut meant = all.keys().filter(|it| it.replace('/', "") == joined);
        let expected = match (meant.next(), meant.next()) {
            (Some(text), None) => Lookup::Known(id(catalog, text)),
            _ => Lookup::Unknown,
        };
        assert_eq!(catalog.find(joined.to_lowercase().as_bytes()), expected, "seed {seed}");
    }
    // Of two markets with one ticker id, the one that was known first has it.
    for (at, markets) in tracked.iter().enumerate() {
        for ticker_id in ["0", "1", "2", "3", "4", "5"] {
            let has_it = |it: &MarketInfo| &*it.ticker_id == ticker_id;
            let markets = markets.iter().filter(|(_, it)| it.is_some_and(has_it));
            let expected = markets.map(|(text, _)| id(catalog, text)).min();
            let got = catalog.by_ticker_id(SourceId(at as u16), ticker_id);
            assert_eq!(got, expected, "seed {seed} {ticker_id}");
        }
    }
}

/// All catalog data that responses show.
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
    for seed in 0..150 {
        let mut random = Rng::new(seed);
        let sources: Vec<SourceConfig> = (0..3)
            .map(|_| {
                let named = SYMBOLS.iter().filter(|it| is_usable(it) && random.below(5) == 0);
                let named: Vec<&str> = named.copied().collect();
                let assets = ["X", "Y", "Z"].into_iter().filter(|_| random.below(3) == 0);
                source("s", &named, &assets.collect::<Vec<_>>())
            })
            .collect();
        let mut catalog = catalog(&sources);
        let (lists, times) = (vec![None, None, None], BTreeMap::new());
        let (is_sent, before) = (vec![false; 3], vec![BTreeSet::new(); 3]);
        let (halted_since, step) = (vec![BTreeMap::new(); 3], vec![0; 3]);
        let sources = &sources;
        let mut naive = Naive { sources, lists, is_sent, before, halted_since, step, times };
        compare(&catalog, &naive, seed);
        for step in 0..40 {
            let at = random.below(3) as usize;
            let id = SourceId(at as u16);
            let mut markets = Vec::new();
            // Some lists have no usable market.
            let begin = if random.below(6) == 0 { 12 } else { 0 };
            for text in &SYMBOLS[begin..] {
                for _ in 0..random.below(8).saturating_sub(5) + u64::from(random.below(4) > 0) {
                    let mut market = info(text);
                    market.active = random.below(4) > 0;
                    market.ticker_id = random.below(6).to_string().into();
                    market.rules.amount_places = Some(random.below(2) as u8);
                    markets.push(market);
                }
            }
            let (before, version) = (picture(&catalog), catalog.version());
            catalog.drop_list(id);
            let is_sent = random.below(3) == 0;
            for market in &markets {
                match is_sent {
                    true => catalog.stage(id, market.clone(), true),
                    false => catalog.list(id, market.clone()),
                }
            }
            let usable = markets.iter().filter(|it| is_usable(&symbol_of(it))).count();
            if random.below(5) == 0 {
                catalog.drop_list(id);
            } else if usable == 0 {
                assert_eq!(end_list(&mut catalog, id, UnixMs(step)), Err(EmptyList));
            } else {
                if !is_sent {
                    catalog.rosters[at]
                        .drop_halted(Mono::default() + MAX_HALT * step as u32 / LONG as u32);
                }
                let change = end_list(&mut catalog, id, UnixMs(step)).expect("a usable list");
                assert_eq!(change.skipped as usize, markets.len() - usable, "seed {seed}");
                assert_eq!(catalog.rosters[at].newly_missing(), [], "they were told of");
                let changes = naive.apply(at, (markets, is_sent), step as u64);
                for (got, expected) in [change.added, change.removed].iter().zip(changes) {
                    let mut got = names(&catalog, got);
                    got.sort_unstable();
                    assert_eq!(got, expected, "seed {seed} step {step}");
                }
            }
            compare(&catalog, &naive, seed);
            let changed = before != picture(&catalog);
            assert_eq!(catalog.version() > version, changed, "seed {seed} step {step}");
        }
    }
}
