//! Compares what marketd claims with what was traded and what time it is.
//!
//! Owns the list of what was false. It knows the exchanges' truth and the contract, and none of the rules
//! by which marketd comes to its claims.

use super::super::answers::chart_fields;
use super::super::charts::{ChartFields, ChartRow, read_rows};
use super::super::trace::{Verdict, ensure};
use super::host::{DAY_MS, HOUR_MS, MINUTE_MS, Market};
use crate::support::Json;
use crate::virtual_time::Answer;
use std::collections::BTreeMap;

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// More units than the budget of a host.
    OverBudget,
    /// Asked while the exchange refuses: within a `Retry-After`, or again and again.
    Hammered,
    /// A claim that is not true.
    FalseClaim,
    /// A stored candle that is gone.
    Lost,
    /// A fault that lasts and is not named, or one that is named and over.
    Health,
    /// More lines in the log than faults have begins and ends.
    Flood,
}

/// Of each fault, so many are told.
const TOLD: usize = 3;

#[derive(Debug, Default)]
pub struct Judge {
    /// How far marketd may be wrong about the exchange's time.
    pub tolerance_ms: i64,
    pub counts: BTreeMap<Fault, u64>,
    /// The first ones in words.
    pub told: Vec<String>,
}

/// A chart that a client asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub source: usize,
    pub market: usize,
    pub interval: &'static str,
    pub from: Option<i64>,
    pub to: Option<i64>,
    /// The exchange's time when it was asked for, and when it was answered.
    pub clock: (i64, i64),
    pub us: u64,
    /// Whether all has been well for so long that it is all there.
    pub is_calm: bool,
}

impl Judge {
    /// Notes a fault unless this holds.
    pub fn check(&mut self, holds: bool, fault: Fault, us: u64, why: impl FnOnce() -> String) {
        if holds {
            return;
        }
        let count = self.counts.entry(fault).or_default();
        *count += 1;
        if *count <= TOLD as u64 {
            self.told.push(format!("after {} s: {fault:?}: {}", us / 1_000_000, why()));
        }
    }

    /// Nothing was false.
    pub fn acquit(&self) {
        assert!(self.counts.is_empty(), "{:?}\n{}", self.counts, self.told.join("\n"));
    }

    /// Judges a chart. `stored`: slots that it must show, because they are in the file.
    pub fn chart(&mut self, asked: &Asked, market: &Market, stored: &[i64], answer: &Answer) {
        let length = length_of(asked.interval);
        let rows = read_rows(answer.body.as_bytes(), false).expect("a chart is a list of rows");
        let fields = chart_fields(&answer.head).expect("a chart has these fields");
        let (rows, fields, tolerance_ms) = (&rows, &fields, self.tolerance_ms);
        let chart = Chart { asked, market, length, rows, stored, fields, tolerance_ms };
        for (fault, why) in chart.faults() {
            self.check(false, fault, asked.us, || {
                let Asked { source, interval, from, to, clock, .. } = asked;
                format!(
                    "source {source} {} {interval} from {from:?} to {to:?}, at {clock:?}: {why}; {} rows \
                     from {:?} to {:?} {fields:?}",
                    market.symbol,
                    rows.len(),
                    rows.first().map(|row| row.0),
                    rows.last().map(|row| row.0),
                )
            });
        }
    }

    /// Judges a quote that calls itself fresh: its price was that of the last minute.
    pub fn quote(&mut self, quote: &Json, market: &Market, clock: i64, stale_ms: i64, us: u64) {
        if quote["stale"] != Json::Bool(false) {
            return;
        }
        let shown = match &quote["last"] {
            Json::Number(text) => text.clone(),
            other => other.to_string(),
        };
        let oldest = clock - stale_ms - self.tolerance_ms;
        let price = |ms: i64| market.last(ms).map(super::host::price);
        let mut times = (oldest..=clock).step_by(500).chain([clock]);
        self.check(
            times.any(|ms| price(ms).as_ref() == Some(&shown)),
            Fault::FalseClaim,
            us,
            || format!("{quote} is called fresh at {clock}, and the price is {:?}", price(clock)),
        );
    }
}

pub fn length_of(interval: &str) -> i64 {
    match interval {
        "1m" => MINUTE_MS,
        "1h" => HOUR_MS,
        _ => DAY_MS,
    }
}

struct Chart<'a> {
    asked: &'a Asked,
    market: &'a Market,
    length: i64,
    rows: &'a [ChartRow],
    stored: &'a [i64],
    fields: &'a ChartFields,
    tolerance_ms: i64,
}

impl Chart<'_> {
    fn faults(&self) -> Vec<(Fault, String)> {
        let checks =
            [self.check_closed(), self.check_gaps(), self.check_complete(), self.check_figures()];
        let false_claims = checks.into_iter().filter_map(Result::err);
        let mut faults: Vec<_> = false_claims.map(|why| (Fault::FalseClaim, why)).collect();
        if let Some(slot) = self.stored.iter().find(|slot| self.shows(**slot).is_none()) {
            let open = slot * self.length;
            faults.push((Fault::Lost, format!("{open} is in the file and not in the chart")));
        }
        faults
    }

    /// The slots of the asked range that have surely closed: from the first to behind the last.
    fn closed(&self) -> std::ops::Range<i64> {
        let first = match (self.asked.from, self.rows.first()) {
            (Some(from), _) => (from + self.length - 1).div_euclid(self.length),
            (None, Some((open, _))) => open / self.length,
            (None, None) => i64::MAX / self.length,
        };
        let end = (self.asked.clock.0 - self.tolerance_ms).div_euclid(self.length);
        let end = self.asked.to.map_or(end, |to| end.min(to.div_euclid(self.length) + 1));
        first..end.max(first)
    }

    /// Only what has closed is called closed, and something was traded in it.
    fn check_closed(&self) -> Verdict {
        let Some(last) = self.fields.last_closed else { return Ok(()) };
        if last + self.length > self.asked.clock.1 + self.tolerance_ms {
            return Err(format!("{last} is called closed"));
        }
        let mut closed = self.rows.iter().map(|(open, _)| *open).filter(|open| *open <= last);
        let hollow = closed.find(|open| !self.market.traded(self.length, open / self.length));
        hollow.map_or(Ok(()), |open| Err(format!("nothing was traded at {open}")))
    }

    fn check_gaps(&self) -> Verdict {
        // A slot that forms has no candle yet either.
        let closed = self.closed();
        let end = self.asked.clock.1.div_euclid(self.length) + 1;
        let empty = (closed.start..end.max(closed.start))
            .filter(|slot| !self.market.traded(self.length, *slot));
        // Without a begin, the answered range may reach back further than its rows.
        let most = match self.asked.from {
            Some(_) => empty.count() as u64,
            None => u64::MAX,
        };
        if self.fields.gaps > most {
            return Err(format!("{} gaps, and there are {most}", self.fields.gaps));
        }
        Ok(())
    }

    fn shows(&self, slot: i64) -> Option<&[String; 5]> {
        let found = self.rows.binary_search_by_key(&(slot * self.length), |row| row.0);
        found.ok().map(|at| &self.rows[at].1)
    }

    /// What is complete lacks nothing that was traded.
    fn check_complete(&self) -> Verdict {
        if !self.fields.complete {
            return ensure(!self.asked.is_calm, || {
                "it is not complete, though all has been well for long".to_string()
            });
        }
        let mut slots = self.closed();
        let missing = slots
            .find(|slot| self.market.traded(self.length, *slot) && self.shows(*slot).is_none());
        missing.map_or(Ok(()), |slot| Err(format!("{} is missing", slot * self.length)))
    }

    /// What is settled is final, and everything else was told at some time.
    fn check_figures(&self) -> Verdict {
        for slot in self.closed() {
            let Some(shown) = self.shows(slot) else { continue };
            let open = slot * self.length;
            if self.fields.last_closed.is_none_or(|last| open > last) {
                continue;
            }
            let truth = self.market.candle(self.length, slot);
            let is_final = truth.as_ref() == Some(shown);
            let is_settled = self.fields.max_age >= Some(3600);
            let must_be = is_settled || self.asked.is_calm;
            if is_final || !must_be && self.market.was_told(self.length, slot, shown) {
                continue;
            }
            return Err(format!("{open} is {shown:?} (settled: {is_settled}), truly {truth:?}"));
        }
        Ok(())
    }
}
