//! Compares what marketd claims with what was traded and what time it is.
//!
//! It knows the exchanges' truth and the contract ([`Chart`]), and none of the rules by which marketd comes to
//! its claims.

use super::super::answers::chart_fields;
use super::super::charts::{Chart, ChartAsk, read_rows};
use super::super::trace::{Verdict, ensure};
use super::super::truth::Truth;
use super::host::Host;
use crate::support::generated::decimal;
use crate::support::naive::{length_ms, plain};
use crate::support::{Json, Response};

/// Ends the run unless this holds.
#[track_caller]
pub fn check(holds: bool, us: u64, why: impl FnOnce() -> String) {
    assert!(holds, "after {} s: {}", us / 1_000_000, why());
}

/// A chart that a client asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    pub source: usize,
    pub chart: ChartAsk,
    /// The exchange's time when it was asked for, at least, and when it was answered, at most.
    pub clock: (i64, i64),
    pub us: u64,
    /// Whether all has been well for so long that it is all there.
    pub is_calm: bool,
}

/// Judges a chart. `stored`: slots that it must show, because they are in the file; `keep`: how many are.
pub fn chart(asked: &Asked, host: &Host, (stored, keep): (&[i64], i64), answer: &Response) {
    let rows = &read_rows(&answer.body, false).expect("a chart is a list of rows");
    let fields = &chart_fields(&answer.headers).expect("a chart has these fields");
    let (ask, truth, ledger, span, clock) = (&asked.chart, &host.truth, None, (0, 0), asked.clock);
    let chart = Chart { ask, truth, ledger, rows, fields, span, clock, keep };
    let verdict = chart.check_shape().and_then(|()| chart.check_claims());
    let verdict = verdict.and_then(|()| chart.check_told(asked, host)).and_then(|()| {
        let is_there = fields.complete || !asked.is_calm;
        ensure(is_there, || "it is not complete, though all has been well for long".to_string())?;
        let length = length_ms(ask.interval).expect("stored");
        let is_shown = |open: i64| rows.binary_search_by_key(&open, |row| row.0).is_ok();
        let lost = stored.iter().map(|slot| slot * length).find(|open| !is_shown(*open));
        ensure(lost.is_none(), || format!("{lost:?} is in the file and not in the chart"))
    });
    check(verdict.is_ok(), asked.us, || {
        let ends = (rows.first().map(|row| row.0), rows.last().map(|row| row.0));
        format!("{asked:?}: {verdict:?}; {} rows {ends:?} {fields:?}", rows.len())
    });
}

/// Judges a quote that calls itself fresh: its price was that of the last `fresh_ms`.
pub fn quote(
    quote: &Json,
    (truth, market): (&Truth, usize),
    (clock, fresh_ms): (i64, i64),
    us: u64,
) {
    if quote["stale"] != Json::Bool(false) {
        return;
    }
    let shown = match &quote["last"] {
        Json::Number(text) => text.clone(),
        other => other.to_string(),
    };
    let oldest = clock - fresh_ms;
    let price = |ms: i64| truth.last_price(market, ms).map(|it| plain(&decimal(it)));
    // In each second the price changes once at most.
    let ends = (oldest.div_euclid(1000) * 1000 + 999..clock).step_by(1000);
    let mut times = [oldest, clock].into_iter().chain(ends);
    check(times.any(|ms| price(ms).as_ref() == Some(&shown)), us, || {
        format!("{quote} is called fresh at {clock}, and the price is {:?}", price(clock))
    });
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
