//! Whether a chart says what the exchange said: its rows equal the exchange's own or what a naive
//! roll-up makes of them, and where it calls itself complete, none is missing.

use super::ledger::{Ledger, Moment, Span};
use super::naive::{base_of, candle_at, length_ms, roll_up};
use super::quotes::Books;

/// A request for a chart.
#[derive(Clone, Debug)]
pub struct ChartAsk {
    pub market: usize,
    pub interval: &'static str,
    /// In milliseconds, both included.
    pub from: Option<i64>,
    pub to: Option<i64>,
    pub limit: usize,
    pub fill: bool,
    pub text: bool,
    pub source: Option<usize>,
}

/// What the fields of a chart's answer say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartFields {
    pub source: String,
    pub last_closed: Option<i64>,
    pub gaps: u64,
    pub complete: bool,
    pub next: Option<String>,
}

/// A row: open time and open, high, low, close, volume.
pub type ChartRow = (i64, [String; 5]);

/// What of the history is kept, in slots of the stored interval.
pub type Keep<'a> = &'a dyn Fn(&'static str) -> i64;

/// Takes a body apart. Strict: no blank, no member more or less.
pub fn read_rows(body: &[u8], text: bool) -> Result<Vec<ChartRow>, String> {
    let body = std::str::from_utf8(body).map_err(|_| "the body is no text")?;
    let inner = body
        .strip_prefix('[')
        .and_then(|body| body.strip_suffix(']'));
    let inner = inner.ok_or("the body is no list")?;
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    let inner = inner.strip_prefix('[').and_then(|i| i.strip_suffix(']'));
    let inner = inner.ok_or("a row is no list")?;
    inner.split("],[").map(|row| read_row(row, text)).collect()
}

fn read_row(row: &str, text: bool) -> Result<ChartRow, String> {
    let fault = || format!("a row is [{row}]");
    let mut parts = row.split(',');
    let open = parts.next().and_then(|open| open.parse().ok());
    let open = open.ok_or_else(fault)?;
    let mut figures: [String; 5] = Default::default();
    for figure in &mut figures {
        let part = parts.next().ok_or_else(fault)?;
        let bare = match text {
            true => part.strip_prefix('"').and_then(|p| p.strip_suffix('"')),
            false => Some(part),
        };
        let bare = bare.filter(|bare| is_plain(bare)).ok_or_else(fault)?;
        *figure = bare.to_string();
    }
    match parts.next() {
        Some(_) => Err(fault()),
        None => Ok((open, figures)),
    }
}

/// Whether it is a decimal as they are to leave: nothing needless.
fn is_plain(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => {
            let lean = whole == "0" || !whole.starts_with('0');
            digits(whole) && digits(fraction) && lean && !fraction.ends_with('0')
        }
        None => digits(text) && (text == "0" || !text.starts_with('0')),
    }
}

/// One answer, ready to be checked.
struct Chart<'a> {
    ask: &'a ChartAsk,
    ledger: &'a Ledger,
    rows: &'a [ChartRow],
    fields: &'a ChartFields,
    span: Span,
    base: &'static str,
    /// Length of a slot of the stored interval.
    length: i64,
    /// The slot that is forming, by the exchange's clock, when the answer was begun and made.
    present: (i64, i64),
    keep: i64,
}

impl Books<'_> {
    /// A chart that was made in this span, the clocks being `now` at its end.
    pub fn check_chart(
        &self,
        ask: &ChartAsk,
        rows: &[ChartRow],
        fields: &ChartFields,
        now: Moment,
        keep: Keep<'_>,
    ) -> Result<(), String> {
        let ledger = self.sources.iter().position(|l| l.id == fields.source);
        let source = ledger.ok_or_else(|| format!("Chart-Source is {:?}", fields.source))?;
        if ask.source.is_some_and(|asked| asked != source) {
            return Err(format!("another source than {:?} answers", ask.source));
        }
        let ledger = &self.sources[source];
        let base = base_of(ask.interval);
        let length = length_ms(base).expect("stored");
        let begun = Moment {
            us: self.span.0,
            unix_ms: now.unix_ms - ((now.us - self.span.0) / 1000) as i64,
        };
        let slot_at = |moment| ledger.exchange_ms(moment).div_euclid(length);
        let chart = Chart {
            ask,
            ledger,
            rows,
            fields,
            span: self.span,
            base,
            length,
            present: (slot_at(begun).min(slot_at(now)), slot_at(now)),
            keep: keep(base),
        };
        chart.check_shape()?;
        chart.check_rows()?;
        chart.check_last_closed()?;
        if fields.complete {
            chart.check_complete()?;
        }
        Ok(())
    }
}

impl Chart<'_> {
    fn check_shape(&self) -> Result<(), String> {
        let ask = self.ask;
        if self.rows.len() > ask.limit {
            return Err(format!("{} rows, {} allowed", self.rows.len(), ask.limit));
        }
        if let Some(pair) = self.rows.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!("{} is followed by {}", pair[0].0, pair[1].0));
        }
        for (open, _) in self.rows {
            if candle_at(ask.interval, *open).0 != *open {
                return Err(format!("{open} is not aligned"));
            }
            let early = ask.from.is_some_and(|from| *open < from);
            if early || ask.to.is_some_and(|to| *open > to) {
                return Err(format!("{open} was not asked for"));
            }
        }
        Ok(())
    }

    /// The slots of the candle that opens then: first, and behind the last.
    fn slots_of(&self, open: i64) -> (i64, i64) {
        let (open, end) = candle_at(self.ask.interval, open);
        (open / self.length, end / self.length)
    }

    /// All that may be served as the closed candle of these slots: each `None` where the exchange
    /// had none. `None`: some slot was never answered.
    fn closed(&self, slots: (i64, i64)) -> Option<Vec<Option<[String; 5]>>> {
        let mut choices: Vec<Vec<[String; 5]>> = vec![Vec::new()];
        for slot in slots.0..slots.1 {
            let words = self
                .ledger
                .words(self.ask.market, self.base, slot, self.span)?;
            let before = std::mem::take(&mut choices);
            for word in words {
                for choice in &before {
                    let row = word.map(|row| row.figures.clone());
                    choices.push(choice.iter().cloned().chain(row).collect());
                }
            }
        }
        let rolled = |rows: Vec<[String; 5]>| (!rows.is_empty()).then(|| roll_up(&rows));
        Some(choices.into_iter().map(rolled).collect())
    }

    fn check_rows(&self) -> Result<(), String> {
        let last_closed = self.fields.last_closed.unwrap_or(i64::MIN);
        let mut previous: Option<&ChartRow> = None;
        for row in self.rows {
            let (open, figures) = row;
            let closed = self.closed(self.slots_of(*open));
            let known = closed.as_ref().is_some_and(|choices| {
                (choices.iter()).any(|choice| choice.as_ref() == Some(figures))
            });
            let hollow = closed
                .as_ref()
                .is_some_and(|choices| choices.iter().any(Option::is_none));
            let verdict = if known {
                Ok(())
            } else if hollow && self.ask.fill {
                // What was said by a clock that ran ahead may be forgotten, and begun anew.
                let forming = self.ledger.has_left && *open > last_closed;
                check_flat(previous, row).or_else(|why| match forming {
                    true => self.check_open(row),
                    false => Err(why),
                })
            } else if *open <= last_closed {
                Err(format!("the exchange said {closed:?}"))
            } else {
                self.check_open(row)
            };
            verdict.map_err(|why| format!("the candle {row:?}: {why}"))?;
            previous = Some(row);
        }
        Ok(())
    }

    /// A candle that is forming or provisional is made of what was said of its market.
    fn check_open(&self, (open, figures): &ChartRow) -> Result<(), String> {
        let said = &self.ledger.prices[self.ask.market];
        let stored = self.base == self.ask.interval;
        let (first, end) = self.slots_of(*open);
        if first > self.present.1 {
            return Err("it has not begun".to_string());
        }
        if end <= self.present.0 - MOST_PROVISIONAL {
            return Err("it closed long ago".to_string());
        }
        for figure in &figures[..if stored { 5 } else { 4 }] {
            if figure != "0" && !said.contains(figure) {
                return Err(format!("nobody said {figure}"));
            }
        }
        let [o, h, l, c, _] = figures.each_ref().map(|f| super::naive::fixed(f));
        if l > o || l > c || h < o || h < c {
            return Err("its prices contradict each other".to_string());
        }
        Ok(())
    }

    fn check_last_closed(&self) -> Result<(), String> {
        if self.base != self.ask.interval || self.ledger.has_left {
            return Ok(());
        }
        let newest = |at| {
            let slot = self.ledger.newest_row(self.ask.market, self.base, at);
            slot.map(|slot| slot * self.length)
        };
        let expected = [newest(self.span.0), newest(self.span.1)];
        match expected.contains(&self.fields.last_closed) {
            true => Ok(()),
            false => Err(format!("the newest closed candle is one of {expected:?}")),
        }
    }

    /// Of every closed slot that the answer depends on, the exchange has said something, and what
    /// it said is here.
    fn check_complete(&self) -> Result<(), String> {
        let Some((first, end)) = self.range() else {
            return Ok(());
        };
        let mut empty = 0;
        let mut slot = first;
        let mut at = 0;
        while slot < end {
            let (start, behind) = self.slots_of(slot * self.length);
            if behind > end {
                break;
            }
            let open = start * self.length;
            let Some(choices) = self.closed((start, behind)) else {
                return Err(format!("complete, but {open} was never answered"));
            };
            while self.rows.get(at).is_some_and(|row| row.0 < open) {
                at += 1;
            }
            let present = self.rows.get(at).is_some_and(|row| row.0 == open);
            if !present && choices.iter().all(Option::is_some) {
                return Err(format!("complete, but {open} is missing: {choices:?}"));
            }
            if present && !self.ask.fill && choices.iter().all(Option::is_none) {
                return Err(format!("the exchange has no candle at {open}"));
            }
            empty += u64::from(choices.iter().any(Option::is_none));
            slot = behind;
        }
        let whole = self.ask.from.is_some() && self.base == self.ask.interval;
        if whole && self.span.0 == self.span.1 && first > self.floor() + 1 {
            let begun = self.ask.from.map_or(0, |from| ceil(from, self.length));
            if begun == first && empty != self.fields.gaps {
                let gaps = self.fields.gaps;
                return Err(format!("{empty} slots without a candle, not {gaps}"));
            }
        }
        Ok(())
    }

    /// The closed slots that a complete answer holds for certain: first, and behind the last.
    fn range(&self) -> Option<(i64, i64)> {
        let ask = self.ask;
        let target_end = |time: i64| candle_at(ask.interval, time).1 / self.length;
        let mut end = self.present.0;
        if let Some(to) = ask.to {
            end = end.min(target_end(to.max(0)));
        }
        if self.fields.next.is_some() {
            end = end.min(target_end(self.rows.last()?.0));
        }
        let kept = self.floor() + 1;
        let first = match (ask.from, self.rows.first()) {
            (Some(from), _) => ceil(from, self.length).max(kept),
            (None, Some((open, _))) if self.rows.len() >= ask.limit => {
                (open / self.length).max(kept)
            }
            (None, _) => {
                // As many candles back from the end as were asked for.
                let mut open = ask.to.unwrap_or(i64::MAX).min(self.present.1 * self.length);
                for _ in 0..ask.limit.min(5000) {
                    if open / self.length <= kept {
                        break;
                    }
                    open = candle_at(ask.interval, open).0 - 1;
                }
                ((open + 1).div_euclid(self.length) + 1).max(kept)
            }
        };
        // Whole candles of the asked interval only.
        let (start, behind) = self.slots_of(first * self.length);
        Some((if start == first { first } else { behind }, end))
    }

    fn floor(&self) -> i64 {
        self.present.1 - self.keep
    }
}

/// Provisional candles that a series holds at most, and one.
const MOST_PROVISIONAL: i64 = 241;

fn ceil(time: i64, length: i64) -> i64 {
    -(-time).div_euclid(length)
}

/// A candle where the exchange had none: flat, at the close before it.
fn check_flat(previous: Option<&ChartRow>, (_, figures): &ChartRow) -> Result<(), String> {
    let [o, h, l, c, v] = figures;
    let flat = o == h && h == l && l == c && v == "0";
    let joined = previous.is_none_or(|(_, before)| before[3] == *o);
    match flat && joined {
        true => Ok(()),
        false => Err(format!("it is no flat candle after {previous:?}")),
    }
}
