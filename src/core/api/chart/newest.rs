//! The newest candles of a chart, for streams: which series they are from, and their rows.

use super::{ChartRequest, ROWS_A_PART, SeriesView, choose};
use crate::core::api::error::Error;
use crate::core::api::view::View;
use crate::interval::Interval;
use crate::json::Decimals;
use crate::market::{ChartInfo, ChartSpec, SeriesKey, SourceId, SymbolId};
use crate::time::UnixMs;
use std::ops::Range;

/// Candles that decide which source a chart is from: the same as for a request without a limit.
const CHOSEN_BY: usize = 500;

/// Most parts of work to find the newest candle. More are needed only if many candles in a row are
/// incomplete; then none can be sent.
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
        choose(view, &ChartRequest { symbol: self.symbol, spec, source: self.source })
    }

    /// The slots that are missing for the newest candle. `None` if it comes without a request.
    pub fn missing(&self, view: &View<'_>, key: SeriesKey) -> Option<Range<i64>> {
        SeriesView::new(view, key).missing(&self.spec(Decimals::Number, None, 1))
    }

    /// The newest candles, oldest first, at most `limit` of them: the last ones, or if `from` is given, the
    /// first ones from there up to `to`.
    pub fn rows(
        &self,
        view: &View<'_>,
        key: SeriesKey,
        range: Option<(UnixMs, UnixMs)>,
        limit: usize,
        decimals: Decimals,
    ) -> Option<(Vec<u8>, ChartInfo)> {
        let at = SeriesView::new(view, key);
        at.series?;
        let mut builder = at.builder(self.spec(decimals, range, limit));
        let mut parts = 0..MOST_PARTS;
        parts.find(|_| builder.step(ROWS_A_PART))?;
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
