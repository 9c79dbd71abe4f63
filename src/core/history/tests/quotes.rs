//! Quotes that are saved and put back.

use super::*;

#[test]
fn quotes_are_saved_when_they_have_changed_and_put_back_as_stale() {
    let mut bench = Bench::new();
    let symbol = bench.key("BTC/USDT").symbol;
    let price = Decimal::from(5);
    let quote = ticker(&price);
    let now = bench.cx.now;
    let applied = (bench.cx.market.quotes).apply(SourceId(0), symbol, quote.clone(), now);
    assert!(applied.is_ok());
    bench.pass(302);
    let batch = bench.write();
    assert_eq!(batch.quotes.len(), 1);
    bench.pass(302);
    assert!(bench.jobs.is_empty(), "it has not changed");

    let mut later = Bench::unopened(|_| {});
    later.open();
    let list: Vec<(QuoteName, SavedQuote)> = batch.quotes.into_iter().collect();
    later.tell(Reply::Quotes(list));
    later.tell(Reply::Loaded(Ok(Loaded::default())));
    let symbol: SymbolId = later.key("BTC/USDT").symbol;
    let restored = later.cx.market.quotes.of(SourceId(0), symbol);
    assert!(restored.is_some_and(|it| it.stale() && it.ticker.last == price));
}

#[test]
fn markets_that_only_a_list_tells_of_are_back_with_their_quotes_until_it_comes() {
    let mut bench = Bench::unopened(|config| {
        config.sources[0].symbols.clear();
        config.sources[0].quote_assets = vec!["USDT".to_string()];
    });
    bench.open();
    let now = bench.cx.now.unix;
    let saved = |symbol: &str, received_at: UnixMs| {
        let (source, symbol) = ("binance".into(), symbol.into());
        let ticker = ticker(&Decimal::from(5));
        let quote = SavedQuote { ticker, received_at };
        (QuoteName { source, symbol }, quote)
    };
    // Not wanted any more; and one that had left the list before.
    let others =
        vec![saved("ETH/BTC", now), saved("LUNA/USDT", now - saved_quotes::DELISTED_AFTER_MS)];
    let list = vec![saved("BTC/USDT", now), saved("SOL/USDT", now - 300_000)];
    bench.tell(Reply::Quotes(others));
    bench.tell(Reply::Quotes(list));
    bench.loaded();
    let shown = |bench: &Bench| {
        let Market { catalog, quotes, .. } = &bench.cx.market;
        let known = catalog.known().iter();
        let quote = |symbol: &SymbolId| quotes.of(SourceId(0), *symbol).map(|it| it.stale());
        known
            .map(|symbol| (catalog.name(*symbol).as_str().to_string(), quote(symbol)))
            .collect::<Vec<_>>()
    };
    let stale = |symbol: &str| (symbol.to_string(), Some(true));
    assert_eq!(shown(&bench), [stale("BTC/USDT"), stale("SOL/USDT")]);
}

#[test]
fn many_quotes_come_back_in_slices_behind_their_markets() {
    let mut bench = Bench::unopened(|config| config.sources[0].symbols.clear());
    bench.open();
    let count = 300;
    let saved = |at: usize| {
        let (source, symbol) = ("binance".into(), format!("M{at}/USDT").into());
        let quote =
            SavedQuote { ticker: ticker(&Decimal::from(5)), received_at: bench.cx.now.unix };
        (QuoteName { source, symbol }, quote)
    };
    let list: Vec<(QuoteName, SavedQuote)> = (0..count).map(saved).collect();
    bench.tell(Reply::Quotes(list));
    let loaded = Reply::Loaded(Ok(Loaded::default()));
    bench.with(|history, cx| history.handle(loaded, cx));
    let (mut back, mut slices) = (0, 0);
    while bench.history.has_work() {
        bench.with(History::work);
        let (known, counts) =
            (bench.cx.market.catalog.known().len(), bench.cx.market.quotes.counts());
        assert!(known == count || (known, counts.cached) == (0, 0), "{known}");
        let came = counts.cached - back;
        (back, slices) = (counts.cached, slices + usize::from(came > 0));
        assert!(came < count / 2, "{came} at once");
    }
    assert_eq!((back, slices), (count, 3));
}
