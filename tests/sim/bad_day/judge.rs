//! Compares what marketd claims with what was traded and what time it is.
//!
//! Owns the list of what was false. It knows the exchanges' truth and the contract ([`Chart`]), and none of the
//! rules by which marketd comes to its claims.

use super::super::answers::chart_fields;
use super::super::charts::{Chart, ChartAsk, read_rows};
use super::super::trace::Verdict;
use super::super::truth::Truth;
use super::host::Host;
use crate::support::Json;
use crate::support::generated::decimal;
use crate::support::naive::{length_ms, plain};
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
    pub chart: ChartAsk,
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

    /// Judges a chart. `stored`: slots that it must show, because they are in the file; `keep`: how many are.
    pub fn chart(
        &mut self,
        asked: &Asked,
        host: &Host,
        (stored, keep): (&[i64], i64),
        answer: &Answer,
    ) {
        let rows = read_rows(answer.body.as_bytes(), false).expect("a chart is a list of rows");
        let fields = chart_fields(&answer.head).expect("a chart has these fields");
        let clock = (asked.clock.0 - self.tolerance_ms, asked.clock.1 + self.tolerance_ms);
        let (ask, truth, ledger, span) = (&asked.chart, &host.truth, None, (0, 0));
        let chart = Chart { ask, truth, ledger, rows: &rows, fields: &fields, span, clock, keep };
        let mut faults: Vec<(Fault, String)> = Vec::new();
        let claims = [chart.check_shape(), chart.check_claims(), chart.check_told(asked, host)];
        faults.extend(claims.into_iter().filter_map(Result::err).map(|it| (Fault::FalseClaim, it)));
        if asked.is_calm && !fields.complete {
            let why = "it is not complete, though all has been well for long";
            faults.push((Fault::FalseClaim, why.to_string()));
        }
        let length = length_ms(ask.interval).expect("stored");
        let is_shown = |open: i64| rows.binary_search_by_key(&open, |row| row.0).is_ok();
        if let Some(slot) = stored.iter().find(|slot| !is_shown(**slot * length)) {
            let open = slot * length;
            faults.push((Fault::Lost, format!("{open} is in the file and not in the chart")));
        }
        for (fault, why) in faults {
            self.check(false, fault, asked.us, || {
                let ends = (rows.first().map(|row| row.0), rows.last().map(|row| row.0));
                format!("{asked:?}: {why}; {} rows {ends:?} {fields:?}", rows.len())
            });
        }
    }

    /// Judges a quote that calls itself fresh: its price was that of the last minute.
    pub fn quote(
        &mut self,
        quote: &Json,
        (truth, market): (&Truth, usize),
        (clock, stale_ms): (i64, i64),
        us: u64,
    ) {
        if quote["stale"] != Json::Bool(false) {
            return;
        }
        let shown = match &quote["last"] {
            Json::Number(text) => text.clone(),
            other => other.to_string(),
        };
        let oldest = clock - stale_ms - self.tolerance_ms;
        let price = |ms: i64| truth.last_price(market, ms).map(|it| plain(&decimal(it)));
        // In each second the price changes once at most.
        let ends = (oldest.div_euclid(1000) * 1000 + 999..clock).step_by(1000);
        let mut times = [oldest, clock].into_iter().chain(ends);
        self.check(
            times.any(|ms| price(ms).as_ref() == Some(&shown)),
            Fault::FalseClaim,
            us,
            || format!("{quote} is called fresh at {clock}, and the price is {:?}", price(clock)),
        );
    }
}

impl Chart<'_> {
    /// What has closed is final, or was told at some time.
    fn check_told(&self, asked: &Asked, host: &Host) -> Verdict {
        let (ask, length) = (self.ask, length_ms(self.ask.interval).expect("stored"));
        let last = self.fields.last_closed.unwrap_or(i64::MIN);
        let is_closed = |open: i64| open <= last && open / length < self.present().0;
        for (open, shown) in self.rows.iter().filter(|row| is_closed(row.0)) {
            let truth = self.truth.row(ask.market, ask.interval, open / length);
            let is_final = truth.as_ref().is_some_and(|row| row.figures() == shown);
            let drafts = host.drafts.get(&(ask.market, ask.interval, *open)).into_iter().flatten();
            let was_told = || drafts.map(|row| row.figures()).any(|it| it == shown);
            if !is_final && (asked.is_calm || !was_told()) {
                return Err(format!("{open} is {shown:?}, truly {truth:?}"));
            }
        }
        Ok(())
    }
}
