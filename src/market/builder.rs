//! The chart builder: makes a chart body row by row, over as many turns as it takes.
//!
//! It makes the charts that are not stored rows as they are: candles rolled up from shorter ones, flat
//! candles in gaps, decimals as strings. Each step does a bounded amount of work. It makes candles only from
//! buckets that are fully known, and from the forming one.
//!
//! Stages: *locating* the first row, if the newest rows are asked for (it looks at which candles exist, not
//! into them) -> *making* rows, oldest first -> done. A builder that needs more than a turn continues on a
//! copy of the series, which shares the rows. So a body shows the series at one moment, whatever arrives
//! meanwhile.

use super::chart::{ChartBody, ChartInfo, ChartSpec, Pieces};
use super::known::BucketState;
use super::rollup::Rollup;
use super::series::Series;
use super::window::{FoundRows, Window};
use crate::decimal::Decimal;
use crate::fingerprint::{Fingerprint, Part};
use crate::time::UnixMs;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The cost of visiting one bucket, in rolled-up rows: two searches in a tree.
const BUCKET_COST: usize = 6;

/// The least size of a piece of the body in bytes, except the last piece.
const PIECE: usize = 16 * 1024;

/// A chart body in the making.
#[derive(Clone, Debug)]
pub struct ChartBuilder<'s> {
    spec: ChartSpec,
    /// From where it may take candles.
    window: Window,
    now: UnixMs,
    keep: i64,
    /// The series that the body is made from; `None` if it was not open.
    series: Option<Cow<'s, Series>>,
    stage: Stage,
    rows: ChartRows,
    info: Option<ChartInfo>,
}

#[derive(Clone, Debug)]
enum Stage {
    Locating(Locating),
    Making(Making),
}

/// Walks back from the newest candle.
#[derive(Clone, Debug)]
struct Locating {
    /// All buckets from this slot on have been visited.
    cursor: i64,
    /// Where flat candles behind the next visited candle end: at the first slot of the candle visited last,
    /// at first at the upper end.
    above: i64,
    /// The number of rows from `start` on.
    rows: usize,
    /// First slot of the oldest visited bucket that makes a row.
    start: i64,
}

/// Walks forward and makes rows.
#[derive(Clone, Debug)]
struct Making {
    /// First slot of the next bucket.
    cursor: i64,
    /// Close of the candle before it, if all slots between are known to be empty.
    previous: Option<Vec<u8>>,
}

/// What one step works on.
struct View<'a> {
    series: &'a Series,
    spec: &'a ChartSpec,
    window: Window,
    now: UnixMs,
    /// First slot of the newest candle's bucket. No flat candle follows it.
    newest: i64,
}

impl<'s> ChartBuilder<'s> {
    /// Starts a body of the series as it is now. `now` is the exchange's clock, `keep` the kept window in
    /// base slots.
    pub fn new(
        series: Option<&'s Series>,
        spec: ChartSpec,
        now: UnixMs,
        keep: i64,
    ) -> ChartBuilder<'s> {
        debug_assert!(series.is_none_or(|series| series.interval() == spec.interval.base()));
        let window = Window::new(&spec).reach(series, &spec, now, keep);
        let mut rows = ChartRows::default();
        let stage = match series {
            Some(series) => {
                rows.made_of.add(Part::Source(series.key().source.0));
                View::new(series, &spec, window, now).begin()
            }
            None => Stage::Making(Making { cursor: i64::MAX, previous: None }),
        };
        let series = series.map(Cow::Borrowed);
        ChartBuilder { series, stage, rows, window, now, keep, info: None, spec }
    }

    /// This builder with its own copy of the series as it is now. A finished body needs no series.
    pub fn detached(self) -> ChartBuilder<'static> {
        let series = self.series.filter(|_| self.info.is_none());
        let series = series.map(|series| Cow::Owned(series.into_owned()));
        let ChartBuilder { spec, window, now, keep, stage, rows, info, .. } = self;
        ChartBuilder { series, spec, window, now, keep, stage, rows, info }
    }

    /// The bytes of memory that the builder takes.
    pub fn held(&self) -> usize {
        self.rows.held() + self.series.as_ref().map_or(0, |series| series.copied())
    }

    /// Works for about as long as it takes to roll up `budget_rows` stored candles. Returns true if
    /// the body is done.
    pub fn step(&mut self, budget_rows: usize) -> bool {
        if self.info.is_some() {
            return true;
        }
        if let Some(series) = &self.series {
            let view = View::new(series, &self.spec, self.window, self.now);
            let mut budget = budget_rows.max(BUCKET_COST);
            if let Stage::Locating(locating) = &mut self.stage {
                let Some(start) = locating.walk(&view, &mut budget) else {
                    return false;
                };
                self.stage = view.making_from(start);
            }
            if let Stage::Making(making) = &mut self.stage
                && !making.walk(&view, &mut self.rows, &mut budget)
            {
                return false;
            }
        }
        let (found, series) = (&self.rows.found, self.series.as_deref());
        self.info = Some(found.info(series, &self.spec, self.window.end, self.now, self.keep));
        true
    }

    /// The chart; `None` before it is done.
    pub fn finished(mut self) -> Option<ChartBody> {
        self.rows.cut();
        Some(ChartBody::of(self.rows.pieces, self.rows.made_of, self.info?))
    }
}

impl<'a> View<'a> {
    fn new(series: &'a Series, spec: &'a ChartSpec, window: Window, now: UnixMs) -> View<'a> {
        let newest = series.candle_slots(0..i64::MAX).next_back();
        View {
            series,
            spec,
            window,
            now,
            newest: newest.map_or(0, |slot| spec.interval.bucket_of(slot).start),
        }
    }

    fn begin(&self) -> Stage {
        match self.window.keeps_oldest {
            true => self.making_from(self.window.start),
            false => Stage::Locating(Locating {
                cursor: self.window.end,
                above: self.window.end.min(self.newest),
                rows: 0,
                start: self.window.start,
            }),
        }
    }

    fn making_from(&self, start: i64) -> Stage {
        Stage::Making(Making { cursor: start, previous: self.close_before(start) })
    }

    /// The price of flat rows from this slot on: the close of the last candle before it. `None` if
    /// that candle is not closed, or if the slots between are not known to be empty.
    fn close_before(&self, start: i64) -> Option<Vec<u8>> {
        if !self.spec.fill_previous {
            return None;
        }
        let slot = self.series.candle_slots(0..start).next_back()?;
        let bucket = self.bucket_of(slot);
        let is_empty = self.series.covered().covers(bucket.end..start);
        let is_closed = self.series.state_of(&bucket) == BucketState::Closed;
        if !is_empty || !is_closed {
            return None;
        }
        let (prices, _) = self.candle(&bucket, &mut 0)?;
        Some(prices[3].to_vec())
    }

    fn bucket_of(&self, slot: i64) -> Range<i64> {
        self.spec.interval.bucket_of(slot)
    }

    /// The number of flat candles between this bucket and the slot `above`, and where they end.
    fn flats_behind(&self, bucket: &Range<i64>, above: i64) -> (usize, i64) {
        if !self.spec.fill_previous || above <= bucket.end {
            return (0, bucket.end);
        }
        let span = self.series.covered().within(bucket.end..above).next();
        match span {
            Some(span) if span.start == bucket.end => {
                let end = self.bucket_of(span.end).start;
                let count = self.spec.interval.buckets_in(bucket.end..end);
                (count.max(0) as usize, end)
            }
            _ => (0, bucket.end),
        }
    }

    /// Open, high, low and close of a bucket, and its volume. `None` if the volume has too many digits. Each
    /// row after the first takes one from the budget.
    fn candle(&self, bucket: &Range<i64>, budget: &mut usize) -> Option<([&'a [u8]; 4], Decimal)> {
        let mut rows = self.series.rows(bucket.clone(), self.now);
        let mut rollup = Rollup::new(rows.next()?);
        for row in rows {
            rollup.add(row);
            *budget = budget.saturating_sub(1);
        }
        rollup.finish()
    }
}

impl Locating {
    /// Returns the first slot of the first row; `None` if the budget is used up.
    fn walk(&mut self, view: &View<'_>, budget: &mut usize) -> Option<i64> {
        loop {
            *budget = budget.checked_sub(BUCKET_COST)?;
            let slot = view.series.candle_slots(view.window.start..self.cursor).next_back();
            let bucket = slot.map(|slot| view.bucket_of(slot));
            let Some(bucket) = bucket.filter(|bucket| bucket.start >= view.window.start) else {
                return Some(self.start);
            };
            self.cursor = bucket.start;
            if view.series.state_of(&bucket) != BucketState::Unknown {
                let left = view.spec.limit - self.rows;
                let (flats, end) = view.flats_behind(&bucket, self.above);
                if flats >= left {
                    return Some(view.spec.interval.bucket_after(end, -(left as i64)));
                }
                self.rows += flats + 1;
                self.start = bucket.start;
                if self.rows >= view.spec.limit {
                    return Some(self.start);
                }
            }
            self.above = bucket.start;
        }
    }
}

impl Making {
    /// Returns true if all rows are made, false if the budget is used up.
    fn walk(&mut self, view: &View<'_>, rows: &mut ChartRows, budget: &mut usize) -> bool {
        let (series, end) = (view.series, view.window.end);
        while self.cursor < end && rows.found.rows < view.spec.limit {
            let Some(left) = budget.checked_sub(BUCKET_COST) else {
                return false;
            };
            *budget = left;
            let slot = series.candle_slots(self.cursor..end).next();
            let bucket = slot.map(|slot| view.bucket_of(slot));
            if let Some(close) = &self.previous
                && self.cursor < view.newest
                && bucket.as_ref().is_none_or(|bucket| bucket.start > self.cursor)
            {
                let flat = view.bucket_of(self.cursor);
                if series.covered().covers(flat.clone()) {
                    let open = series.open_of(flat.start);
                    rows.push((flat.start, open), [close; 4], &Decimal::ZERO, view.spec.quoted);
                    rows.made_of.add(Part::Flat(flat.start));
                    rows.made_of.add(Part::Text(close));
                    self.cursor = flat.end;
                    continue;
                }
            }
            let Some(bucket) = bucket else {
                break;
            };
            self.make(view, &bucket, rows, budget);
            self.cursor = bucket.end;
        }
        true
    }

    /// Makes the row of a bucket that holds a candle.
    fn make(
        &mut self,
        view: &View<'_>,
        bucket: &Range<i64>,
        rows: &mut ChartRows,
        budget: &mut usize,
    ) {
        self.previous = None;
        let state = view.series.state_of(bucket);
        if state == BucketState::Unknown || bucket.start < view.window.start {
            return;
        }
        rows.found.begin.get_or_insert(bucket.start);
        rows.found.closed += u64::from(state == BucketState::Closed);
        let Some((prices, volume)) = view.candle(bucket, budget) else {
            return;
        };
        let open = view.series.open_of(bucket.start);
        rows.push((bucket.start, open), prices, &volume, view.spec.quoted);
        match state {
            BucketState::Closed => view.series.add_stored(bucket, &mut rows.made_of),
            _ => rows.made_of.add(Part::Series(view.series.version())),
        }
        rows.made_of.add(Part::Row(bucket.start));
        if view.spec.fill_previous && state == BucketState::Closed {
            self.previous = Some(prices[3].to_vec());
        }
    }
}

/// The rows made so far: their bytes, their fingerprint, and the counts reported about them. The bytes are
/// cut into pieces of whole rows: a single growing buffer would be copied again and again.
#[derive(Clone, Debug, Default)]
struct ChartRows {
    pieces: Pieces,
    /// The rows that are not in a piece yet, with a comma after each.
    rest: Vec<u8>,
    made_of: Fingerprint,
    found: FoundRows,
}

impl ChartRows {
    /// Appends the row of the bucket that begins with this slot and opens at this time, with this open,
    /// high, low and close. Decimals are written in quotes if `quoted`.
    fn push(
        &mut self,
        (slot, open): (i64, UnixMs),
        prices: [&[u8]; 4],
        volume: &Decimal,
        quoted: bool,
    ) {
        if self.rest.len() >= PIECE {
            self.cut();
        }
        let body = &mut self.rest;
        let quote: &[u8] = if quoted { b"\"" } else { b"" };
        body.push(b'[');
        Decimal::from(open.0).write(body);
        for number in prices {
            body.push(b',');
            body.extend_from_slice(quote);
            body.extend_from_slice(number);
            body.extend_from_slice(quote);
        }
        body.push(b',');
        body.extend_from_slice(quote);
        volume.write(body);
        body.extend_from_slice(quote);
        body.extend_from_slice(b"],");
        let found = &mut self.found;
        found.rows += 1;
        found.begin.get_or_insert(slot);
        found.first.get_or_insert(slot);
        found.last = Some(slot);
    }

    /// The bytes of memory that the rows take.
    fn held(&self) -> usize {
        let bytes: usize = self.pieces.iter().map(|(bytes, _)| bytes.len()).sum();
        bytes + size_of_val(&*self.pieces) + self.rest.capacity()
    }

    fn cut(&mut self) {
        if !self.rest.is_empty() {
            let piece = Arc::from(&self.rest[..]);
            self.pieces.push((piece, 0..self.rest.len()));
            self.rest.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use crate::fingerprint::Fingerprint;
    use crate::interval::{Interval, Stored};
    use crate::market::testing::{all_of, key, known, minute, minutes};
    use crate::market::{Reported, SeriesKey, SourceId};
    use crate::time::Mono;

    fn series(slots: Range<i64>) -> Series {
        let mut series = Series::new(key(Stored::M1), 0);
        series.ingest_whole(slots.clone(), &minutes(slots.clone()), minute(slots.end), None);
        series
    }

    /// The body and what it is made of, made in steps as small as they get.
    fn made(mut builder: ChartBuilder<'_>) -> (String, Fingerprint) {
        let mut steps = 1;
        while !builder.step(0) {
            steps += 1;
            assert!(steps < 1000, "it never ends");
        }
        let body = builder.finished().expect("it is done");
        (body.text(), body.made_of)
    }

    fn builder<'s>(series: &'s Series, spec: &ChartSpec) -> ChartBuilder<'s> {
        ChartBuilder::new(Some(series), spec.clone(), minute(600), 1000)
    }

    #[test]
    fn a_body_is_that_of_the_moment_when_it_was_begun() {
        // A hole, flat rows and a forming candle. The series changes while the body is made.
        let mut specs = [all_of(Interval::M5), all_of(Interval::M1)];
        (specs[1].fill_previous, specs[1].from) = (true, Some(minute(10)));
        for spec in specs {
            let mut series = Series::new(key(Stored::M1), 0);
            let tell = |series: &mut Series, slots: Range<i64>, found: Vec<i64>| {
                known(series, slots, &minutes(found), minute(600));
            };
            tell(&mut series, 0..50, vec![10, 20]);
            tell(&mut series, 150..590, (150..590).step_by(3).collect());
            series.tick(&Decimal::from(5), minute(595));
            let expected = made(builder(&series, &spec));
            let mut builder = builder(&series, &spec).detached();
            let mut steps = 0;
            while !builder.step(20) {
                match steps % 4 {
                    0 => tell(&mut series, 50..150, (50..150).collect()),
                    1 => tell(&mut series, 0..590, vec![10, 30 + steps]),
                    2 => _ = series.tick(&Decimal::from(steps), minute(595)),
                    _ => _ = series.forget_before(steps),
                }
                steps += 1;
            }
            assert!(steps > 4, "{steps}");
            let body = builder.finished().expect("it is done");
            assert_eq!((body.text(), body.made_of), expected);
            assert!(!body.info.complete, "of the hole nothing is claimed");
            assert!(body.info.gaps > 0, "of the others all is known");
        }
    }

    #[test]
    fn flat_rows_that_a_quote_lets_appear_change_what_a_body_is_made_of() {
        let mut spec = all_of(Interval::M1);
        (spec.fill_previous, spec.from, spec.to) = (true, Some(minute(10)), Some(minute(30)));
        let mut series = Series::new(key(Stored::M1), 0);
        known(&mut series, 0..40, &minutes([10, 20]), minute(45));
        let before = made(builder(&series, &spec));
        series.tick(&Decimal::from(5), minute(40));
        let after = made(builder(&series, &spec));
        assert_ne!(before.0, after.0);
        assert_ne!(before.1, after.1);
        // Another quote does not change the flat rows.
        series.tick(&Decimal::from(6), minute(40));
        assert_eq!(made(builder(&series, &spec)), after);
    }

    #[test]
    fn no_flat_row_follows_what_is_unknown() {
        let mut spec = all_of(Interval::M1);
        (spec.fill_previous, spec.from, spec.to) = (true, Some(minute(30)), Some(minute(35)));
        let mut series = Series::new(key(Stored::M1), 0);
        known(&mut series, 0..20, &minutes([10]), minute(45));
        known(&mut series, 25..45, &minutes([40]), minute(45));
        assert_eq!(made(builder(&series, &spec)).0, "[]");
        known(&mut series, 20..25, &minutes([]), minute(45));
        assert_ne!(made(builder(&series, &spec)).0, "[]");
    }

    #[test]
    fn flat_rows_of_another_price_or_source_are_made_of_something_else() {
        let mut spec = all_of(Interval::M1);
        (spec.fill_previous, spec.from, spec.to) = (true, Some(minute(30)), Some(minute(35)));
        let mut candles = minutes([10, 40]);
        let of = |candles: &[Reported], source: u16| {
            let key = SeriesKey { source: SourceId(source), ..key(Stored::M1) };
            let mut series = Series::new(key, 0);
            known(&mut series, 0..45, &minutes([10, 40]), minute(45));
            known(&mut series, 0..45, candles, minute(45));
            made(builder(&series, &spec))
        };
        let before = of(&candles, 0);
        assert_ne!(before.1, of(&candles, 1).1);
        candles[0].candle.close = candles[0].candle.low.clone();
        candles[0].candle.open = candles[0].candle.low.clone();
        let after = of(&candles, 0);
        assert_ne!(before.0, after.0);
        assert_ne!(before.1, after.1);
    }

    #[test]
    fn a_series_that_is_not_open_makes_a_body_that_claims_nothing() {
        let mut builder = ChartBuilder::new(None, all_of(Interval::M5), minute(600), 1000);
        assert!(builder.step(0));
        let body = builder.finished().expect("it is done");
        assert_eq!((body.text(), body.info.complete), ("[]".to_string(), false));
    }

    #[test]
    fn what_a_builder_holds_includes_the_sets_of_its_copy_and_the_places_of_its_pieces() {
        let mut series = series(0..20_000);
        let spec = ChartSpec { quoted: true, from: Some(minute(0)), ..all_of(Interval::M1) };
        let mut whole = ChartBuilder::new(Some(&series), spec.clone(), minute(20_000), 1_000_000);
        assert!(whole.step(usize::MAX));
        let rows = &whole.rows;
        let bytes = rows.pieces.iter().map(|(bytes, _)| bytes.len()).sum::<usize>();
        assert!(rows.pieces.len() > 9);
        let place = size_of::<(Arc<[u8]>, Range<usize>)>();
        assert_eq!(rows.held(), bytes + place * rows.pieces.len() + rows.rest.capacity());
        let before = builder(&series, &spec).detached().held();
        for at in 0..100 {
            series.archived.insert(2 * at..2 * at + 1).expect("it is not full");
            series.silences.note_open(40_000 + 2 * at..40_001 + 2 * at, Mono(at as u64));
        }
        let more = builder(&series, &spec).detached().held() - before;
        // A range of slots each, and the parts of silences, of which 64 are kept.
        assert!(more >= 100 * 16 + 64 * size_of::<(Range<i64>, Mono)>(), "{more}");
    }

    #[test]
    fn an_unfinished_body_is_not_handed_out() {
        assert!(builder(&series(0..600), &all_of(Interval::M5)).finished().is_none());
    }
}
