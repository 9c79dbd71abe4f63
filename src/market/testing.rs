//! Helpers for the tests of this layer: configurations, records, candles and charts.

use super::builder::ChartBuilder;
use super::chart::{ChartBody, ChartInfo, ChartSpec};
use super::charts::Charts;
use super::report::{AllRows, CandleResponse, Evidence, IngestCounts, Reported};
use super::series::{Series, SeriesKey};
use super::symbol::{SourceId, SymbolId};
use crate::config::{Config, Poll, SourceConfig};
use crate::decimal::Decimal;
use crate::history::Changes;
use crate::interval::{Interval, Stored};
use crate::record::{Candle, MarketInfo, MarketRules, Ticker};
use crate::time::{Mono, UnixMs};
use std::ops::Range;
use std::time::Duration;

pub(super) fn decimal(text: &str) -> Decimal {
    Decimal::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// A source that tracks `symbols` and what is quoted in `quote_assets`; stale after 15 s, frozen
/// after 300 s.
pub(super) fn source(id: &str, symbols: &[&str], quote_assets: &[&str]) -> SourceConfig {
    SourceConfig {
        id: id.to_string(),
        symbols: symbols.iter().map(|text| text.to_string()).collect(),
        quote_assets: quote_assets.iter().map(|text| text.to_string()).collect(),
        poll: Poll::Every(Duration::from_secs(2)),
        stale_after: Duration::from_secs(15),
        frozen_after: Duration::from_secs(300),
        timeout: Duration::from_secs(5),
        ..SourceConfig::new("binance")
    }
}

pub(super) fn config(sources: Vec<SourceConfig>) -> Config {
    Config { sources, ..Config::default() }
}

/// The market `BASE/QUOTE` with the ticker id `BASEQUOTE`; a `!` in front makes it inactive.
pub(crate) fn info(text: &str) -> MarketInfo {
    let name = text.trim_start_matches('!');
    let (base, quote) = name.split_once('/').expect("BASE/QUOTE");
    MarketInfo {
        ticker_id: [base, quote].concat().into(),
        candle_id: None,
        base: base.into(),
        quote: quote.into(),
        active: !text.starts_with('!'),
        rules: MarketRules::default(),
    }
}

/// A ticker of which only the last price is known.
pub(super) fn ticker(last: &str) -> Ticker {
    Ticker::of_last(decimal(last))
}

impl AllRows {
    /// A response that has these rows and no others.
    pub(crate) fn of(interval: Stored, candles: &[Reported]) -> AllRows {
        let mut all = AllRows::default();
        candles.iter().for_each(|it| all.note(interval, &it.candle));
        all
    }
}

impl Series {
    /// Applies a whole response about the slots `asked`.
    pub fn ingest_whole(
        &mut self,
        asked: Range<i64>,
        candles: &[Reported],
        closed_before: UnixMs,
        changes: Option<&mut Changes>,
    ) -> IngestCounts {
        let all = AllRows::of(self.interval(), candles);
        let response = CandleResponse::of(&asked, candles, &all, mono(closed_before));
        let evidence = Evidence::Exchange(response);
        self.ingest(asked, candles, &evidence, closed_before, changes)
    }
}

impl Charts {
    /// Applies a whole response about the slots `asked` of a series.
    pub fn ingest_whole(
        &mut self,
        key: SeriesKey,
        asked: Range<i64>,
        candles: &[Reported],
        closed_before: UnixMs,
        changes: Option<&mut Changes>,
    ) -> Option<IngestCounts> {
        let all = AllRows::of(key.interval, candles);
        let response = CandleResponse::of(&asked, candles, &all, mono(closed_before));
        let evidence = Evidence::Exchange(response);
        self.ingest(key, asked, candles, &evidence, closed_before, changes)
    }
}

/// The monotonic time at which the exchange's clock shows this time, in these tests.
fn mono(time: UnixMs) -> Mono {
    Mono(time.0.max(0) as u64 * 1000)
}

impl ChartBody {
    /// A copy of the body.
    pub fn text(&self) -> String {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        String::from_utf8(bytes).expect("rows are ASCII")
    }
}

/// A candle of whole numbers: open, high, low, close.
pub(crate) fn candle(open_ms: i64, prices: [i64; 4], volume: i64) -> Candle {
    let [open, high, low, close] = prices.map(Decimal::from);
    Candle { open_time: UnixMs(open_ms), open, high, low, close, volume: Decimal::from(volume) }
}

/// The key of a series in tests where there is but one market.
pub(crate) fn key(interval: Stored) -> SeriesKey {
    SeriesKey { source: SourceId(0), symbol: SymbolId(0), interval }
}

/// Minute candles of these slots. The open is the slot's number (at least 2), the high 9 above and the low 1
/// below it.
pub(crate) fn minutes(slots: impl IntoIterator<Item = i64>) -> Vec<Reported> {
    let reported = |slot: i64| {
        let open = slot.max(2);
        Reported {
            candle: candle(slot * 60_000, [open, open + 9, open - 1, open + 1], 2),
            is_forming: false,
        }
    };
    slots.into_iter().map(reported).collect()
}

/// Applies proof, as of two responses, that these slots have these candles and no others.
pub(crate) fn known(series: &mut Series, slots: Range<i64>, candles: &[Reported], now: UnixMs) {
    series.ingest(slots, candles, &Evidence::Proven, now, None);
}

/// When a slot of minutes begins.
pub(crate) fn minute(slot: i64) -> UnixMs {
    Stored::M1.open_of(slot)
}

/// A request for the newest 5,000 candles of an interval, which is all in these tests.
pub(crate) fn all_of(interval: Interval) -> ChartSpec {
    ChartSpec { interval, from: None, to: None, limit: 5000, fill_previous: false, quoted: false }
}

/// The body of a chart, and what is reported about it.
pub(crate) fn chart(series: &Series, spec: &ChartSpec, now: UnixMs) -> (String, ChartInfo) {
    let mut builder = ChartBuilder::new(Some(series), spec.clone(), now, 1_000_000);
    while !builder.step(16) {}
    let body = builder.finished().expect("the last step said so");
    (body.text(), body.info.clone())
}

/// Open times of a chart's rows, in slots.
pub(crate) fn slots(series: &Series, spec: &ChartSpec, now: UnixMs) -> Vec<i64> {
    let (body, _) = chart(series, spec, now);
    let times = body.split('[').skip(2).map(|row| {
        let time = row.split(',').next().expect("a row begins with its time");
        let time = UnixMs(time.parse().expect("a time is an integer"));
        spec.interval.base().slot_of(time)
    });
    times.collect()
}

/// The ranges that a series covers.
pub(crate) fn covered(series: &Series) -> Vec<(i64, i64)> {
    let pairs = series.covered().iter().map(|span| (span.start, span.end));
    pairs.collect()
}
