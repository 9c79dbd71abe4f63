//! Whether a chart is true. Its closed rows are the last that the exchange has said, or what a naive
//! roll-up makes of them; the others are made of quotes of their own time. What it claims beside its
//! rows is compared with what was really traded, and with the exchange's real clock:
//!
//! - complete: of every slot of the asked range that has closed, some answer told, and each in which
//!   something was traded is here; the range is not older than what is kept
//! - gaps: no more than there really are, and just as many where it is complete
//! - last closed: has closed, and was said to
//! - an hour's keeping: all of it is final

use super::answers::read_json;
use super::grammar::{address, decimals, filled};
use super::ledger::{Candles, Ledger, Offsets, Span, Tri};
use super::quotes::Books;
use super::trace::{Verdict, ensure};
use super::truth::{REREAD, Truth};
use crate::support::Json;
use crate::support::naive::{base_of, candle_at, fixed, length_ms, plain, roll_up};

/// A request for a chart.
#[derive(Clone, Debug, Default)]
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

impl ChartAsk {
    /// All of a range.
    pub fn of(
        market: usize,
        interval: &'static str,
        (from, to): (Option<i64>, Option<i64>),
    ) -> ChartAsk {
        ChartAsk { market, interval, from, to, limit: 5000, ..ChartAsk::default() }
    }

    /// Its address, for a market of that name and a source of that id.
    pub fn target(&self, symbol: &str, source: &str) -> String {
        let parameters = [
            ("symbol", Some(symbol.to_string())),
            ("interval", Some(self.interval.to_string())),
            ("source", Some(source.to_string())),
            ("limit", Some(self.limit.to_string())),
            ("from", self.from.map(|from| from.to_string())),
            ("to", self.to.map(|to| to.to_string())),
            ("fill", filled(self.fill)),
            ("decimals", decimals(self.text)),
        ];
        address("/api/ecosystem/chart", &parameters)
    }
}

/// What the fields of a chart's answer say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartFields {
    pub source: String,
    pub last_closed: Option<i64>,
    pub gaps: u64,
    pub complete: bool,
    pub next: Option<String>,
    /// Seconds for which caches may keep it.
    pub max_age: Option<u64>,
}

/// Whether a chart's coverage calls it complete.
pub fn is_complete(coverage: Option<&str>) -> Result<bool, String> {
    match coverage {
        Some("complete") => Ok(true),
        Some("partial") => Ok(false),
        other => Err(format!("its coverage is {other:?}")),
    }
}

/// A row: open time and open, high, low, close, volume.
pub type ChartRow = (i64, [String; 5]);

/// Takes a body apart. Strict: no blank, no member more or less, no needless digit.
pub fn read_rows(body: &[u8], text: bool) -> Result<Vec<ChartRow>, String> {
    let json = read_json(body)?;
    let is_list = matches!(json, Json::Array(_)) && json.to_string().as_bytes() == body;
    ensure(is_list, || "the body is no list, or has blanks".to_string())?;
    let figure = |it: &Json| match it {
        Json::Number(digits) if !text => Some(digits.clone()).filter(|it| plain(it) == *it),
        Json::Text(digits) if text => Some(digits.clone()).filter(|it| plain(it) == *it),
        _ => None,
    };
    let row = |it: &Json| {
        let (open, figures) = it.items().split_first()?;
        let figures: Option<Vec<String>> = figures.iter().map(figure).collect();
        Some((open.integer()?, figures?.try_into().ok()?))
    };
    json.items().iter().map(|it| row(it).ok_or_else(|| format!("a row is {it}"))).collect()
}

/// One answer, ready to be checked.
pub struct Chart<'a> {
    pub ask: &'a ChartAsk,
    pub truth: &'a Truth,
    /// What the exchange has said. `None`: what was traded is all that is known.
    pub ledger: Option<&'a Ledger>,
    pub rows: &'a [ChartRow],
    pub fields: &'a ChartFields,
    pub span: Span,
    /// The exchange's clock when the answer was begun, at least, and when it was made, at most.
    pub clock: (i64, i64),
    /// How many slots of the stored interval are kept.
    pub keep: i64,
}

impl Books<'_> {
    pub fn check_chart(&self, ask: &ChartAsk, rows: &[ChartRow], fields: &ChartFields) -> Verdict {
        let ledger = self.ledgers.iter().position(|l| l.id == fields.source);
        let source = ledger.ok_or_else(|| format!("Chart-Source is {:?}", fields.source))?;
        if ask.source.is_some_and(|asked| asked != source) {
            return Err(format!("another source than {:?} answers", ask.source));
        }
        let ledger = &self.ledgers[source];
        let is_tracked = ledger.tracks(ask.market, self.span) != Tri::No
            // What is stored of a market can be read while it is not listed.
            || ledger.remembers && ledger.may_want(ask.market, self.span);
        ensure(is_tracked, || format!("{} does not track it", fields.source))?;
        let offsets: Offsets = self.offsets(source);
        let chart = Chart {
            ask,
            truth: self.truth(source),
            ledger: Some(ledger),
            rows,
            fields,
            span: self.span,
            clock: (offsets.at(self.span.0).0, offsets.at(self.span.1).1),
            keep: self.keep(base_of(ask.interval)),
        };
        chart.check_shape()?;
        chart.check_rows(ledger)?;
        chart.check_claims()
    }
}

impl Books<'_> {
    /// That of all that was traded in closed candles from `begin` to the end of what was asked, all is shown.
    /// Without a beginning it is all that is kept. The `newest` slots may be missing.
    pub fn check_all_shown(
        &self,
        ask: &ChartAsk,
        rows: &[ChartRow],
        begin: Option<i64>,
        newest: i64,
    ) -> Verdict {
        let source = ask.source.ok_or("no source")?;
        let (base, offsets) = (base_of(ask.interval), self.offsets(source));
        let length = length_ms(base).expect("stored");
        let clock = (offsets.at(self.span.0).0, offsets.at(self.span.1).1);
        let keep = self.keep(base);
        let kept = (clock.1.div_euclid(length) - keep + 2).max(0) * length;
        let from = Some(begin.map_or(kept, |begin| begin.max(kept)));
        // That nothing was traded where a candle is shown is judged with what was said.
        let ask = &ChartAsk { from, fill: true, ..ask.clone() };
        let (truth, ledger, fields) = (self.truth(source), None, &ChartFields::default());
        let clock = (clock.0 - newest * length, clock.1);
        let chart = Chart { ask, truth, ledger, rows, fields, span: (0, 1), clock, keep };
        chart.check_complete()?;
        Ok(())
    }
}

impl Chart<'_> {
    /// What it says beside its rows.
    pub fn check_claims(&self) -> Verdict {
        self.check_last_closed()?;
        self.check_gaps()?;
        if self.fields.complete {
            self.check_complete()?;
        }
        match self.fields.max_age {
            Some(3600..) => self.check_final(),
            Some(2..) if !self.fields.complete => Err("kept while it lacks candles".to_string()),
            _ => Ok(()),
        }
    }

    /// The stored interval.
    fn base(&self) -> &'static str {
        base_of(self.ask.interval)
    }

    /// Length of a slot of it.
    fn length(&self) -> i64 {
        length_ms(self.base()).expect("stored")
    }

    /// The slot that is forming: at least and at most.
    pub fn present(&self) -> (i64, i64) {
        (self.clock.0.div_euclid(self.length()), self.clock.1.div_euclid(self.length()))
    }

    pub fn check_shape(&self) -> Verdict {
        let ask = self.ask;
        if self.rows.len() > ask.limit {
            return Err(format!("{} rows, {} allowed", self.rows.len(), ask.limit));
        }
        if let Some(pair) = self.rows.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            return Err(format!("{} is followed by {}", pair[0].0, pair[1].0));
        }
        for (open, _) in self.rows {
            ensure(candle_at(ask.interval, *open).0 == *open, || format!("{open} is not aligned"))?;
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
        (open / self.length(), end / self.length())
    }

    fn traded(&self, slot: i64) -> bool {
        self.truth.traded(self.ask.market, self.base(), slot)
    }

    /// Whether anything was traded in these slots.
    fn is_hollow(&self, slots: (i64, i64)) -> bool {
        !(slots.0..slots.1).any(|slot| self.traded(slot))
    }

    /// All that may be served as the closed candle of these slots: what was said of each of them in
    /// which something was traded. `None`: nothing was said of some.
    fn closed(&self, slots: (i64, i64), ledger: &Ledger) -> Option<Vec<[String; 5]>> {
        let mut choices: Vec<Option<[String; 5]>> = vec![None];
        for slot in slots.0..slots.1 {
            let words = ledger.words(self.ask.market, self.base(), slot, self.span);
            if words.is_empty() && !self.traded(slot) {
                continue;
            }
            let before = std::mem::take(&mut choices);
            for word in words {
                let with_it = |whole: &Option<[String; 5]>| {
                    let rows = whole.iter().cloned().chain([word.figures().clone()]);
                    Some(roll_up(&rows.collect::<Vec<_>>()))
                };
                choices.extend(before.iter().map(with_it));
            }
            // More are not looked at.
            choices.truncate(MOST_CHOICES + 1);
            if choices.is_empty() {
                return None;
            }
        }
        choices.into_iter().collect()
    }

    fn check_rows(&self, ledger: &Ledger) -> Verdict {
        let last_closed = self.fields.last_closed.unwrap_or(i64::MIN);
        let mut previous: Option<&ChartRow> = None;
        for row in self.rows {
            let (open, figures) = row;
            let slots = self.slots_of(*open);
            let closed = self.closed(slots, ledger);
            let fits = |all: &Vec<_>| all.contains(figures) || all.len() > MOST_CHOICES;
            let known = closed.as_ref().is_some_and(fits);
            let verdict = if known {
                Ok(())
            } else if self.ask.fill && self.is_hollow(slots) {
                // A candle may have been begun by a quote, and forgotten as the clock was set.
                let forming = *open > last_closed;
                self.check_flat(previous, row, ledger).or_else(|why| match forming {
                    true => self.check_open(row, ledger),
                    false => Err(why),
                })
            } else if *open <= last_closed {
                Err(format!("the exchange said {closed:?}"))
            } else {
                self.check_open(row, ledger)
            };
            verdict.map_err(|why| format!("the candle {row:?}: {why}"))?;
            previous = Some(row);
        }
        Ok(())
    }

    /// What could be known of its series.
    fn seen(&self) -> impl Iterator<Item = &Candles> {
        let ledger = self.ledger.into_iter();
        ledger.flat_map(|it| it.seen(self.ask.market, self.base(), self.span))
    }

    /// A candle that is forming or provisional is made of what was said of its market at its time.
    fn check_open(&self, (open, figures): &ChartRow, ledger: &Ledger) -> Verdict {
        let (first, end) = self.slots_of(*open);
        ensure(first <= self.present().1, || "it has not begun".to_string())?;
        let rows = self.seen().flat_map(|candles| candles.said.range(first..end));
        let rows = rows.flat_map(|(_, words)| words);
        let told: Vec<&String> = rows.flat_map(|(_, _, row)| row.figures()).collect();
        let span = (first * self.length() - AT_ITS_TIME_MS, end * self.length() + AT_ITS_TIME_MS);
        let ticks = &ledger.ticks[self.ask.market];
        let quoted = |figure: &String| {
            ticks.iter().enumerate().any(|(at, (told, price))| {
                // The last one before its time begins it.
                let lasts = || ticks.get(at + 1).is_none_or(|next| next.0.1 >= span.0);
                price == figure && told.0 <= span.1 && (told.1 >= span.0 || lasts())
            })
        };
        let stored = self.base() == self.ask.interval;
        for figure in &figures[..if stored { 5 } else { 4 }] {
            if figure != "0" && !told.contains(&figure) && !quoted(figure) {
                return Err(format!("nobody said {figure} at its time"));
            }
        }
        let [o, h, l, c, _] = figures.each_ref().map(|figure| fixed(figure));
        if l > o || l > c || h < o || h < c {
            return Err("its prices contradict each other".to_string());
        }
        Ok(())
    }

    /// A candle where nothing was traded: flat, at the close before it.
    fn check_flat(
        &self,
        previous: Option<&ChartRow>,
        (open, figures): &ChartRow,
        ledger: &Ledger,
    ) -> Verdict {
        let [o, h, l, c, v] = figures;
        let flat = o == h && h == l && l == c && v == "0";
        let joined = match previous {
            Some((_, before)) => before[3] == *o,
            // The newest before the range.
            None => {
                let slot = self.slots_of(*open).0;
                let found = (slot - FLAT_FOR..slot).rfind(|slot| self.traded(*slot));
                found.is_none_or(|slot| {
                    let words = ledger.words(self.ask.market, self.base(), slot, self.span);
                    words.is_empty() || words.iter().any(|row| row.figures()[3] == *o)
                })
            }
        };
        ensure(flat && joined, || format!("it is no flat candle after {previous:?}"))
    }

    fn check_last_closed(&self) -> Verdict {
        let Some(last) = self.fields.last_closed else {
            return Ok(());
        };
        let (open, end) = candle_at(self.ask.interval, last);
        if open != last || end > self.clock.1 {
            let clock = self.clock.1;
            return Err(format!("{last} is called closed, and it is {clock}"));
        }
        let ledger = self.ledger.filter(|it| self.base() == self.ask.interval && !it.has_left);
        let Some(ledger) = ledger else { return Ok(()) };
        let newest = ledger.newest_row(self.ask.market, self.base(), self.span);
        let expected = newest.map(|slot| slot.map(|slot| slot * self.length()));
        ensure((expected[0]..=expected[1]).contains(&Some(last)), || {
            format!("the newest closed candle is one of {expected:?}")
        })
    }

    /// The candles of the asked interval between these slots, each by its slots.
    fn targets(&self, (first, end): (i64, i64)) -> impl Iterator<Item = (i64, i64)> + '_ {
        let mut slot = first;
        std::iter::from_fn(move || {
            let target = self.slots_of(slot * self.length());
            slot = target.1;
            (target.1 <= end).then_some(target)
        })
    }

    /// Only where nothing was traded is a gap.
    fn check_gaps(&self) -> Verdict {
        let Some((first, _)) = self.range() else {
            return Ok(());
        };
        let to = self.ask.to.unwrap_or(i64::MAX).min(self.clock.1).max(0);
        let end = self.slots_of(to).1.min(self.present().1 + 1);
        let begin = self.rows.first().map_or(first, |row| first.min(row.0 / self.length()));
        // At the end of what is kept, the daemon may look a little further.
        let begin = self.slots_of((begin - 3).max(0) * self.length()).0;
        // What was never asked is none.
        let asked = self.seen().filter_map(|candles| candles.asked.first()).min();
        let asked = asked.copied().unwrap_or(if self.ledger.is_some() { end } else { 0 });
        let begin = self.slots_of(begin.max(asked) * self.length()).0;
        let hollow = self.targets((begin, end)).filter(|it| self.is_hollow(*it));
        let most = hollow.count() as u64;
        ensure(self.fields.gaps <= most, || {
            format!("{} gaps, and there are {most}", self.fields.gaps)
        })
    }

    /// Of every closed slot of the asked range some answer told, and what was traded is here.
    fn check_complete(&self) -> Verdict {
        let Some((first, end)) = self.range() else {
            return Ok(());
        };
        let mut hollow = 0;
        let mut at = 0;
        for target in self.targets((first, end)) {
            let open = target.0 * self.length();
            let asked = |slot| {
                let mut seen = self.seen();
                self.ledger.is_none() || seen.any(|candles| candles.asked.contains(&slot))
            };
            if let Some(slot) = (target.0..target.1).find(|slot| !asked(*slot)) {
                let slot = slot * self.length();
                return Err(format!("complete, but {slot} was never answered"));
            }
            while self.rows.get(at).is_some_and(|row| row.0 < open) {
                at += 1;
            }
            let shown = self.rows.get(at).is_some_and(|row| row.0 == open);
            if !shown && !self.is_hollow(target) {
                return Err(format!("complete, but {open} was traded and is missing"));
            }
            if shown && !self.ask.fill && self.is_hollow(target) {
                return Err(format!("nothing was traded at {open}"));
            }
            hollow += u64::from(self.is_hollow(target));
        }
        let is_sharp = self.span.0 == self.span.1 && self.present().0 == self.present().1;
        if self.ask.from.is_some() && is_sharp && hollow != self.fields.gaps {
            return Err(format!("{hollow} gaps, not {}", self.fields.gaps));
        }
        Ok(())
    }

    /// It never changes again: it has an end, all of it is final, and is what is final.
    fn check_final(&self) -> Verdict {
        let why = "may be kept for an hour, but";
        ensure(self.fields.complete, || format!("it {why} is not complete"))?;
        let cut = self.fields.next.as_ref().and(self.rows.last());
        let to = (self.ask.to).or(cut.map(|row| row.0)).unwrap_or(i64::MAX);
        let behind = match to {
            ..0 => 0,
            to => candle_at(self.ask.interval, to.min(LAST_TIME)).1,
        };
        if behind + (REREAD * self.length()) > self.clock.1 {
            return Err(format!("it {why} {to} is not past what is read again"));
        }
        for (open, figures) in self.rows {
            let (start, behind) = self.slots_of(*open);
            let row = |slot| self.truth.row(self.ask.market, self.base(), slot);
            let rows = (start..behind).filter_map(row).map(|row| row.figures().clone());
            let rows: Vec<_> = rows.collect();
            let right = (!rows.is_empty()).then(|| roll_up(&rows));
            if right.as_ref().is_some_and(|right| right != figures) {
                return Err(format!("it {why} {figures:?} at {open} becomes {right:?}"));
            }
        }
        Ok(())
    }

    /// The closed slots that a complete answer holds for certain: first, and behind the last.
    fn range(&self) -> Option<(i64, i64)> {
        let ask = self.ask;
        let target_end = |time: i64| candle_at(ask.interval, time).1 / self.length();
        let mut end = self.present().0;
        if let Some(to) = ask.to {
            end = end.min(target_end(to.clamp(-1, LAST_TIME)));
        }
        if self.fields.next.is_some() {
            end = end.min(target_end(self.rows.last()?.0));
        }
        let kept = (self.present().1 - self.keep + 1).max(0);
        let first = match (ask.from, self.rows.first()) {
            (Some(from), _) => (from.max(0) + self.length() - 1).div_euclid(self.length()),
            (None, Some((open, _))) if self.rows.len() >= ask.limit => open / self.length(),
            (None, row) => {
                // As many candles back from the end as were asked for.
                let mut open = ask.to.unwrap_or(i64::MAX).min(self.present().1 * self.length());
                for _ in 0..ask.limit.min(5000) {
                    if open / self.length() <= kept {
                        break;
                    }
                    open = candle_at(ask.interval, open).0 - 1;
                }
                let back = ((open + 1).div_euclid(self.length()) + 1).max(kept);
                row.map_or(back, |row| back.min(row.0 / self.length()))
            }
        };
        // Whole candles of the asked interval only.
        let (start, behind) = self.slots_of(first * self.length());
        Some((if start == first { first } else { behind }, end))
    }
}

/// Where more candles than these are as good as what was said, whatever is shown passes: the clock was
/// in doubt for long.
const MOST_CHOICES: usize = 256;

/// How far from its slot a quote may have been told that is part of its candle: a round trip, since
/// the exchange's clock may be believed to be behind by one.
const AT_ITS_TIME_MS: i64 = 9000;

/// How far back the candle is looked for that a flat one continues.
const FLAT_FOR: i64 = 3000;

/// 9999-12-31.
const LAST_TIME: i64 = 253_402_300_799_999;
