//! The charts that streams follow, and their newest candles.
//!
//! Owns one entry for each chart that is followed, with the events of its newest candle and of the candles
//! that have closed last. The events are rendered once for all readers that have got as far. It tells which
//! candles a chart lacks, so that they are fetched as for a request of the chart.

use crate::core::api::chart::Followed;
use crate::core::api::stream::write_candle;
use crate::core::api::{SeriesSlots, View};
use crate::core::clients::streams::readers::Readers;
use crate::interval::Interval;
use crate::json::Decimals;
use crate::market::{SeriesKey, SymbolId};
use crate::table::Key;
use crate::time::UnixMs;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Closed candles of one chart that are sent together. A client that was away may lack many.
const CLOSES_A_PART: usize = 32;

/// A client that was away is told the closes of this many slots before the newest closed candle: as many as a
/// chart that is requested without a limit has. A client that was away for longer has to read the chart
/// anyway.
const MISSED_CLOSES: i64 = 500;

/// Charts whose missing candles are asked for again in one second. Each may cost a request or two.
const ASKED_A_SECOND: usize = 16;

/// What a look at a chart costs, in notes: its newest candle is found and rendered.
const REFRESH_COST: usize = 400;

/// See the module's page.
#[derive(Default)]
pub struct FollowedCharts {
    all: BTreeMap<Followed, Chart>,
    /// From this chart on, or from the first one, missing candles are asked for next.
    asked_next: Option<Followed>,
}

/// A chart as it was last looked at.
#[derive(Default)]
struct Chart {
    /// The streams that follow this chart, and its place in each of them.
    readers: Readers,
    newest: Option<Newest>,
    /// Events up to the newest candle, by the form of decimals, once they are rendered.
    rendered: [Option<Rendered>; 2],
}

/// The newest candle.
#[derive(Debug, PartialEq, Eq)]
struct Newest {
    key: SeriesKey,
    /// Its row, in brackets.
    rows: Vec<u8>,
    /// Its open time.
    open: UnixMs,
    /// The open time of the newest closed candle.
    closed: Option<UnixMs>,
}

/// Events of the candles behind a closed one: the candles that have closed since, and the forming one.
struct Rendered {
    behind: UnixMs,
    events: Vec<Vec<u8>>,
    /// The last candle of `events`, if more candles have closed.
    cut_at: Option<UnixMs>,
}

impl FollowedCharts {
    /// A stream follows a chart at this place. Returns the candles that the chart lacks.
    pub fn add(
        &mut self,
        followed: Followed,
        (stream, place): (Key, usize),
        view: &View<'_>,
    ) -> Option<SeriesSlots> {
        let chart = self.all.entry(followed).or_default();
        // With other readers, a refresh here would hide the change that they have not been told of yet.
        if chart.readers.is_empty() {
            chart.refresh(&followed, view);
        }
        chart.readers.insert(stream.index() as u32, place as u32);
        let key = followed.series(view).ok()?;
        Some((key, followed.missing(view, key)?))
    }

    /// A chart is not served any more: it begins anew with its next candle.
    pub fn gone(&mut self, followed: Followed) {
        if let Some(chart) = self.all.get_mut(&followed) {
            (chart.newest, chart.rendered) = Default::default();
        }
    }

    /// A stream does not follow a chart any more.
    pub fn remove(&mut self, followed: Followed, stream: Key) {
        if let Some(chart) = self.all.get_mut(&followed) {
            chart.readers.remove(&(stream.index() as u32));
            if chart.readers.is_empty() {
                self.all.remove(&followed);
            }
        }
    }

    /// Looks at the charts of a symbol whose candles have changed, and passes their readers to `note`.
    /// Returns what that has cost, in notes.
    pub fn changed(
        &mut self,
        symbol: SymbolId,
        view: &View<'_>,
        mut note: impl FnMut(u32, usize),
    ) -> usize {
        let mut cost = 0;
        let first = Followed { symbol, interval: Interval::M1, source: None };
        let of_symbol = self.all.range_mut(first..);
        for (followed, chart) in of_symbol.take_while(|(it, _)| it.symbol == symbol) {
            cost += REFRESH_COST;
            if chart.refresh(followed, view) {
                chart.readers.iter().for_each(|(index, place)| note(*index, *place as usize));
                cost += chart.readers.len();
            }
        }
        cost
    }

    /// The candles that some of the charts lack, in turn. A chart may lack candles that it has asked for: its
    /// series could not be opened or was closed for another one, or the history file was not loaded. The
    /// series of these charts stay open.
    pub fn missing(&mut self, view: &View<'_>) -> Vec<SeriesSlots> {
        let first = self.asked_next.map_or(Bound::Unbounded, Bound::Included);
        let mut rest = self.all.range((first, Bound::Unbounded));
        let mut found = Vec::new();
        for (followed, _) in rest.by_ref().take(4 * ASKED_A_SECOND) {
            if let Ok(key) = followed.series(view) {
                let series = view.market.charts.get(key);
                series.map(|series| series.touch(view.exchange_time(key.source)));
                found.extend(followed.missing(view, key).map(|slots| (key, slots)));
            }
            if found.len() == ASKED_A_SECOND {
                break;
            }
        }
        self.asked_next = rest.next().map(|(followed, _)| *followed);
        found
    }

    /// The next events that the reader of a chart lacks, closed candles first, and whether these are all.
    /// `closed`: as in the `ChartPlace` of the reader.
    pub fn events(
        &mut self,
        followed: &Followed,
        closed: &mut Option<UnixMs>,
        decimals: Decimals,
        view: &View<'_>,
    ) -> (&[Vec<u8>], bool) {
        let Some(Chart { newest: Some(newest), rendered, .. }) = self.all.get_mut(followed) else {
            return (&[], true);
        };
        // A stream that begins is told only the newest candle.
        let before = followed.interval.step(newest.open, -1);
        let missed = newest.closed.map(|newest| followed.interval.step(newest, -MISSED_CLOSES));
        let behind = closed.unwrap_or(before).max(missed.unwrap_or(before));
        *closed = closed.or(newest.closed).or(Some(before));
        if behind >= newest.open {
            return (&[], true);
        }
        let rendered = &mut rendered[decimals as usize];
        let known = rendered.take_if(|it| it.behind == behind);
        let part = known.unwrap_or_else(|| newest.render(followed, behind, decimals, view));
        let part = rendered.insert(part);
        *closed = part.cut_at.or((*closed).max(newest.closed));
        (&part.events, part.cut_at.is_none())
    }
}

impl Chart {
    /// Looks at the newest candle. Returns true if it has changed.
    fn refresh(&mut self, followed: &Followed, view: &View<'_>) -> bool {
        let newest = Newest::of(followed, view);
        let has_changed = newest.is_some() && newest != self.newest;
        if has_changed {
            self.newest = newest;
            self.rendered = Default::default();
        }
        has_changed
    }
}

impl Newest {
    fn of(followed: &Followed, view: &View<'_>) -> Option<Newest> {
        let key = followed.series(view).ok()?;
        let (rows, info) = followed.rows(view, key, None, 1, Decimals::Number)?;
        Some(Newest { key, rows, open: info.last?, closed: info.last_closed })
    }

    /// Renders the candles behind a candle. Closed candles that are not in memory any more are left out.
    fn render(
        &self,
        followed: &Followed,
        behind: UnixMs,
        decimals: Decimals,
        view: &View<'_>,
    ) -> Rendered {
        let mut part = Rendered { behind, events: Vec::new(), cut_at: None };
        let mut write = |body: &[u8], is_closed| {
            part.events.extend(each_row(body).map(|row| {
                let mut event = Vec::new();
                write_candle(&mut event, view, followed, self.key.source, row, is_closed);
                event
            }));
        };
        let rows = |range, limit| followed.rows(view, self.key, range, limit, decimals);
        if let Some(to) = self.closed.filter(|to| behind < *to) {
            let first = followed.interval.step(behind, 1);
            if let Some((body, info)) = rows(Some((first, to)), CLOSES_A_PART) {
                write(&body, true);
                part.cut_at = info.next_from.map(|next| followed.interval.step(next, -1));
            }
        }
        let is_forming = self.closed.is_none_or(|closed| closed < self.open);
        if is_forming
            && part.cut_at.is_none()
            && let Some((body, _)) = rows(None, 1)
        {
            write(&body, false);
        }
        part
    }
}

/// The rows of a chart's body. No row has brackets inside.
fn each_row(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let rows = body.strip_prefix(b"[").unwrap_or_default();
    let rows = rows.split_inclusive(|byte| *byte == b']');
    rows.filter_map(|row| {
        let begin = row.iter().position(|byte| *byte == b'[')?;
        Some(&row[begin..])
    })
}
