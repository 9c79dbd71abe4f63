//! The newest candles of a chart, for streams: which series they are from, and their rows.

use super::{ROWS_A_PART, choose, is_followed, now_and_keep, settled, uncovered};
use crate::core::api::error::Error;
use crate::core::api::view::View;
use crate::interval::Interval;
use crate::json::Decimals;
use crate::market::{ChartBuilder, ChartInfo, ChartSpec, SeriesKey, SourceId, SymbolId, needed};
use crate::time::UnixMs;
use std::ops::Range;

/// Candles that decide which source a chart is from: the same as for a request without a limit.
const CHOSEN_BY: usize = 500;

/// Parts that finding the newest candle may take. It takes more only where many candles in turn are not
/// wholly known, and then there is none that can be sent.
const MOST_PARTS: usize = 8;

/// A chart whose newest candles are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Followed {
    /// Of this market.
    pub symbol: SymbolId,
    /// The interval of its candles.
    pub interval: Interval,
    /// Of this source, if given.
    pub source: Option<SourceId>,
}

impl Followed {
    /// The series that its candles are from now, by the rules of a request for the newest ones.
    pub fn series(&self, view: &View<'_>) -> Result<SeriesKey, Error> {
        let spec = self.spec(Decimals::Number, None, CHOSEN_BY);
        choose(view, &super::Asked::new(self.symbol, spec, self.source))
    }

    /// The slots of the series that lack for the newest candle. `None` if it comes by itself.
    pub fn missing(&self, view: &View<'_>, key: SeriesKey) -> Option<Range<i64>> {
        let series = view.market.charts.get(key);
        let (now, keep) = now_and_keep(view, key);
        let needed = needed(&self.spec(Decimals::Number, None, 1), now, keep);
        if needed.end == key.interval.slot_of(now) && !is_followed(series, key, now) {
            return uncovered(series, &(needed.start.min(needed.end - 1)..needed.end));
        }
        uncovered(series, &settled(key, now, needed))
    }

    /// The newest candles, oldest first, at most `limit` of them: the last ones, or if `from` is given, the
    /// first ones from there up to `to`.
    pub fn rows(
        &self,
        view: &View<'_>,
        key: SeriesKey,
        (range, limit): (Option<(UnixMs, UnixMs)>, usize),
        decimals: Decimals,
    ) -> Option<(Vec<u8>, ChartInfo)> {
        let series = view.market.charts.get(key)?;
        let (now, keep) = now_and_keep(view, key);
        let mut builder = ChartBuilder::new(self.spec(decimals, range, limit), now, keep);
        let mut parts = 0..MOST_PARTS;
        parts.find(|_| builder.step(Some(series), ROWS_A_PART))?;
        let plan = builder.finished()?;
        let mut body = Vec::new();
        plan.write(&mut body);
        Some((body, plan.info().clone()))
    }

    fn spec(&self, decimals: Decimals, range: Option<(UnixMs, UnixMs)>, limit: usize) -> ChartSpec {
        ChartSpec {
            interval: self.interval,
            from: range.map(|(from, _)| from),
            to: range.map(|(_, to)| to),
            limit,
            fill_previous: false,
            quoted: decimals == Decimals::String,
        }
    }
}
