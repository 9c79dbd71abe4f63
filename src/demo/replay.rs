//! Recorded candles, played as if they happened now.
//!
//! Owns the candles of each source and market. A candle that has ended is the recorded one, or is joined from
//! shorter ones. A forming candle is joined from the shorter ones so far. Inside a minute nothing is
//! recorded: in the four quarters of a minute, the price is at its open, high, low and close, and a quarter
//! of its volume is traded in each. So the last quarter shows the recorded candle.

use crate::decimal::Decimal;
use crate::interval::{Interval, Stored};
use crate::record::{Candle, Ticker};
use crate::time::{DAY_MS, UnixMs};
use std::collections::BTreeMap;
use std::ops::Range;

/// The candles of one market, by stored interval, oldest first.
#[derive(Clone, Debug, Default)]
pub struct RecordedMarket {
    lists: [Vec<Candle>; 3],
    /// The most decimal places of a price and of a volume.
    pub(super) places: (u32, u32),
}

/// The markets of a source, by symbol.
pub type RecordedMarkets = BTreeMap<String, RecordedMarket>;

impl RecordedMarket {
    /// Adds a candle. It must be later than the others of its interval.
    pub fn push(&mut self, interval: Stored, candle: &Candle) {
        let [prices @ .., volume] = candle.figures();
        let places = prices.map(Decimal::places).into_iter().max().unwrap_or_default();
        self.places = (self.places.0.max(places), self.places.1.max(volume.places()));
        self.lists[interval as usize].push(candle.clone());
    }

    /// The candle that opens at `open`, as of `now`.
    pub(super) fn candle(&self, interval: Interval, open: UnixMs, now: UnixMs) -> Option<Candle> {
        let (end, base) = (interval.end_of(open), interval.base());
        let list = if interval.is_stored() { &self.lists[base as usize][..] } else { &[] };
        let at = list.binary_search_by_key(&open, |it| it.open_time).ok();
        let recorded = at.map(|at| &list[at]);
        if end <= now && recorded.is_some() {
            return recorded.cloned();
        }
        let shorter = match interval {
            Interval::M1 => None,
            Interval::H1 => Some(Interval::M1),
            Interval::D1 => Some(Interval::H1),
            _ => Some(base.interval()),
        };
        let made = shorter.and_then(|it| join(self.candles(it, open..end.min(now + 1), now)));
        let made = made.map(|it| Candle { open_time: open, ..it });
        made.or_else(|| recorded.map(|whole| forming(whole, end, now)))
    }

    /// The first time, `open` or later, at which a candle opens. No candle opens between two such times.
    pub(super) fn next_open(&self, interval: Interval, open: UnixMs) -> Option<UnixMs> {
        let lists = &self.lists[..=interval.base() as usize];
        let next = lists.iter().filter_map(|list| {
            let at = list.partition_point(|it| it.open_time < open);
            Some(interval.open_of(list.get(at)?.open_time))
        });
        next.min()
    }

    /// The candles that open in these times, as of `now`.
    fn candles(
        &self,
        interval: Interval,
        times: Range<UnixMs>,
        now: UnixMs,
    ) -> impl Iterator<Item = Candle> {
        let next = move |open| self.next_open(interval, open);
        let opens =
            std::iter::successors(next(times.start), move |open| next(interval.end_of(*open)));
        let opens = opens.take_while(move |open| *open < times.end);
        opens.filter_map(move |open| self.candle(interval, open, now))
    }

    /// The figures of the last 24 hours, to the minute. Bid and ask are not recorded.
    pub(super) fn ticker(&self, now: UnixMs) -> Option<Ticker> {
        let start = Interval::M1.end_of(Interval::M1.open_of(now - DAY_MS));
        let hour = Interval::H1.end_of(Interval::H1.open_of(start - 1));
        let minutes = self.candles(Interval::M1, start..hour, now);
        let window = join(minutes.chain(self.candles(Interval::H1, hour..now + 1, now)));
        let today = || self.candle(Interval::D1, Interval::D1.open_of(now), now);
        Some(Ticker { timestamp: self.moved_at(now), ..Ticker::of_window(window.or_else(today)?) })
    }

    /// When the last price was reached.
    fn moved_at(&self, now: UnixMs) -> Option<UnixMs> {
        let interval = Stored::ALL.into_iter().find(|it| !self.lists[*it as usize].is_empty())?;
        let list = &self.lists[interval as usize];
        let last = list.partition_point(|it| it.open_time <= now).checked_sub(1)?;
        let (open, length) = (list[last].open_time, interval.length_ms());
        Some(open + quarter(open, length, now) * length / 4)
    }
}

/// The quarter of a candle in which a time is, from 0 to 3.
fn quarter(open: UnixMs, length: i64, now: UnixMs) -> i64 {
    ((now - open) * 4 / length).clamp(0, 3)
}

/// A recorded candle as it looks at `now`, while it forms.
fn forming(whole: &Candle, end: UnixMs, now: UnixMs) -> Candle {
    let quarter = quarter(whole.open_time, end - whole.open_time, now);
    let Candle { open, high, low, close, volume, .. } = whole;
    let [open, high, low, close] = [
        [open, open, open, open],
        [open, high, open, high],
        [open, high, low, low],
        [open, high, low, close],
    ][quarter as usize]
        .map(Clone::clone);
    let part = volume.percent_of(&Decimal::from(400), volume.places()).unwrap_or_default();
    let parts = (0..=quarter).try_fold(Decimal::ZERO, |sum, _| sum.checked_add(&part));
    let volume = parts.filter(|_| quarter < 3).unwrap_or_else(|| volume.clone());
    Candle { open_time: whole.open_time, open, high, low, close, volume }
}

/// Joins consecutive candles into one.
fn join(candles: impl Iterator<Item = Candle>) -> Option<Candle> {
    candles.reduce(|whole, next| Candle {
        high: whole.high.max(next.high),
        low: whole.low.min(next.low),
        close: next.close,
        volume: whole.volume.checked_add(&next.volume).unwrap_or(whole.volume),
        ..whole
    })
}
