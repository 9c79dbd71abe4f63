//! The charts that streams follow, and their newest candles.
//!
//! Owns one entry for each chart that is followed, with the events of its newest candle and of the candles
//! that have closed last: rendered once for all readers. It asks for the candles that a chart lacks, as a
//! request for it does.

use crate::core::api::chart::Followed;
use crate::core::api::stream::write_candle;
use crate::core::api::{Candles, View};
use crate::core::clients::streams::events::Events;
use crate::core::clients::streams::readers::Readers;
use crate::interval::Interval;
use crate::json::Decimals;
use crate::market::{SeriesKey, SourceId, SymbolId};
use crate::table::Key;
use crate::time::UnixMs;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Closed candles of one chart that are sent together: of a client that was away, there may be thousands.
const CLOSES_A_PART: usize = 32;

/// Charts without a series that are asked for again in one second. Each costs a request or two.
const ASKED_A_SECOND: usize = 16;

/// What a look at a chart costs, in notes: its newest candle is found and rendered.
const REFRESH_COST: usize = 400;

/// See the module's page.
#[derive(Default)]
pub struct FollowedCharts {
    all: BTreeMap<Followed, Chart>,
    /// Behind this one, the charts without a series are asked for next.
    asked_last: Option<Followed>,
}

/// A chart as it was last looked at.
#[derive(Default)]
struct Chart {
    /// With the place that each has it at.
    readers: Readers,
    /// Increases whenever its newest candle or its newest closed one changes.
    version: u64,
    newest: Option<Newest>,
    /// Events of this version, by the form of decimals.
    rendered: [Rendered; 2],
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

/// Events in one form of decimals, once they are rendered.
#[derive(Default)]
struct Rendered {
    newest: Option<Vec<u8>>,
    closes: Option<Closes>,
}

/// Events of candles that have closed one behind the other.
struct Closes {
    /// Open time of the closed candle before them.
    from: UnixMs,
    /// Open time of the last of them.
    to: UnixMs,
    events: Vec<Vec<u8>>,
}

/// A chart, and what was sent of it.
#[derive(Debug)]
pub struct ChartPlace {
    /// The chart.
    pub followed: Followed,
    /// The version of its newest candle.
    pub sent: u64,
    /// Its newest candle that was sent as closed, or the newest closed one when the stream began.
    pub closed: Option<UnixMs>,
}

impl FollowedCharts {
    /// A stream follows a chart at this place. Returns the candles that it lacks.
    pub fn add(
        &mut self,
        followed: Followed,
        (stream, place): (Key, usize),
        view: &View<'_>,
    ) -> Option<Candles> {
        let chart = self.all.entry(followed).or_default();
        // Where others follow it, they may not have been told of its newest candle yet.
        if chart.readers.is_empty() {
            chart.refresh(&followed, view);
        }
        chart.readers.insert(stream, place as u32);
        missing(&followed, view)
    }

    /// A stream does not follow it any more.
    pub fn remove(&mut self, followed: Followed, stream: Key) {
        if let Some(chart) = self.all.get_mut(&followed) {
            chart.readers.remove(stream);
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
        mut note: impl FnMut(Key, usize),
    ) -> usize {
        let mut cost = 0;
        let first = Followed { symbol, interval: Interval::M1, source: None };
        let of_symbol = self.all.range_mut(first..);
        for (followed, chart) in of_symbol.take_while(|(it, _)| it.symbol == symbol) {
            cost += REFRESH_COST;
            if chart.refresh(followed, view) {
                chart.readers.iter().for_each(|(key, place)| note(key, place as usize));
                cost += chart.readers.len();
            }
        }
        cost
    }

    /// Some of the charts that have no series: it could not be opened yet, or was closed for another one.
    pub fn without_series(&mut self, view: &View<'_>) -> Vec<Candles> {
        let behind = self.asked_last.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.all.range((behind, Bound::Unbounded));
        let mut found = Vec::new();
        self.asked_last = None;
        for (followed, _) in rest.take(4 * ASKED_A_SECOND) {
            self.asked_last = Some(*followed);
            let key = followed.series(view).ok();
            if let Some(key) = key.filter(|key| view.market.charts.get(*key).is_none()) {
                found.extend(followed.missing(view, key).map(|slots| (key, slots)));
            } else if let Some(key) = key {
                // It stays open as long as somebody reads it.
                let now = view.exchange_time(key.source);
                view.market.charts.touch(key, now);
            }
            if found.len() == ASKED_A_SECOND {
                break;
            }
        }
        found
    }

    /// Appends what the reader of a chart lacks: candles that have closed first. Returns false if there is
    /// more.
    pub fn write(
        &mut self,
        place: &mut ChartPlace,
        decimals: Decimals,
        view: &View<'_>,
        events: &mut Events<'_>,
    ) -> bool {
        let followed = &place.followed;
        let Some(chart) = self.all.get_mut(followed) else {
            return true;
        };
        let Some(newest) = &chart.newest else {
            return true;
        };
        let rendered = &mut chart.rendered[decimals as usize];
        let is_new = place.closed.is_none();
        // Without a closed candle, the first one to be told is the one that forms now.
        let before = || followed.interval.step(newest.open, -1);
        place.closed = place.closed.or(newest.closed).or_else(|| Some(before()));
        while let (Some(from), Some(to)) = (place.closed, newest.closed)
            && from < to
        {
            if events.is_full() {
                return false;
            }
            let closes = rendered.closes(followed, newest, (from, to), decimals, view);
            for event in &closes.events {
                events.next().extend_from_slice(event);
            }
            place.closed = Some(closes.to);
        }
        let is_wanted = newest.is_forming() && place.closed < Some(newest.open) || is_new;
        if std::mem::replace(&mut place.sent, chart.version) != chart.version && is_wanted {
            let event = rendered.newest(followed, newest, decimals, view);
            events.next().extend_from_slice(event);
        }
        true
    }
}

/// The candles that a chart lacks.
fn missing(followed: &Followed, view: &View<'_>) -> Option<Candles> {
    let key = followed.series(view).ok()?;
    Some((key, followed.missing(view, key)?))
}

impl Chart {
    /// Looks at its newest candle. Returns true if that has changed.
    fn refresh(&mut self, followed: &Followed, view: &View<'_>) -> bool {
        let newest = Newest::of(followed, view);
        let has_changed = newest.is_some() && newest != self.newest;
        if has_changed {
            self.newest = newest;
            self.rendered = Default::default();
            self.version += 1;
        }
        has_changed
    }
}

impl Newest {
    fn of(followed: &Followed, view: &View<'_>) -> Option<Newest> {
        let key = followed.series(view).ok()?;
        let (rows, info) = followed.rows(view, key, (None, 1), Decimals::Number)?;
        Some(Newest { key, rows, open: info.last?, closed: info.last_closed })
    }

    fn is_forming(&self) -> bool {
        self.closed.is_none_or(|closed| closed < self.open)
    }
}

impl Rendered {
    /// The event of the newest candle.
    fn newest(
        &mut self,
        followed: &Followed,
        newest: &Newest,
        decimals: Decimals,
        view: &View<'_>,
    ) -> &[u8] {
        self.newest.get_or_insert_with(|| {
            let quoted;
            let rows = match decimals {
                Decimals::Number => &newest.rows,
                Decimals::String => {
                    quoted = followed.rows(view, newest.key, (None, 1), decimals);
                    quoted.as_ref().map_or(&newest.rows, |(rows, _)| rows)
                }
            };
            let mut event = Vec::new();
            for row in each_row(rows) {
                let row = (row, !newest.is_forming());
                write_candle(&mut event, view, followed, newest.key.source, row);
            }
            event
        })
    }

    /// The events of the first candles that have closed behind `from`.
    fn closes(
        &mut self,
        followed: &Followed,
        newest: &Newest,
        (from, to): (UnixMs, UnixMs),
        decimals: Decimals,
        view: &View<'_>,
    ) -> &Closes {
        let closes = self.closes.take_if(|closes| closes.from == from);
        self.closes.insert(closes.unwrap_or_else(|| {
            let first = followed.interval.step(from, 1);
            let range = (Some((first, to)), CLOSES_A_PART);
            let found = followed.rows(view, newest.key, range, decimals);
            let rows = found.as_ref().map_or(&b""[..], |(rows, _)| rows);
            let source: SourceId = newest.key.source;
            let events = each_row(rows).map(|row| {
                let mut event = Vec::new();
                write_candle(&mut event, view, followed, source, (row, true));
                event
            });
            let events = events.collect();
            // Those that are not in memory any more are left out.
            let info = found.as_ref().map(|(_, info)| info);
            let last = info.and_then(|info| info.next_from.and(info.last));
            let to = last.unwrap_or(to).max(first);
            Closes { from, to, events }
        }))
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
