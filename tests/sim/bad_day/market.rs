//! What was really traded at a made-up exchange: the truth that every claim is judged by.
//!
//! Owns every trade of each market from the first one on, made from a seed before the run. Quotes and
//! candles are sums over the same trades, so they never contradict each other: where a quote moves,
//! something was traded.

use crate::support::Rng;
use crate::support::naive::plain;

/// At most one trade of a market happens in so much time.
pub const CELL_MS: i64 = 20_000;

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// The last trade of a candle is booked so long after the candle's end, in one candle out of [`LATE_PART`].
pub const LATE_MS: i64 = 25_000;
const LATE_PART: i64 = 8;

/// One trade. Prices are in hundredths, amounts in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    pub at_ms: i64,
    pub price: u64,
    pub amount: u64,
}

/// See the module's page.
#[derive(Debug)]
pub struct Market {
    pub id: String,
    pub symbol: String,
    /// When the first trade may have been.
    pub born_ms: i64,
    /// By the time since then, in cells.
    trades: Vec<Option<Trade>>,
    /// Amounts of all trades up to the end of each cell.
    sums: Vec<u64>,
    /// The trades end here: the exchange has removed the market.
    pub gone_ms: i64,
}

impl Market {
    /// A market that is traded from `born_ms` to `end_ms`: at any time, or in some hours alone.
    pub fn new(at: usize, born_ms: i64, end_ms: i64, rng: &mut Rng) -> Market {
        let percent = *rng.pick(&[95, 95, 60, 6]);
        // Nobody trades for hours.
        let pauses = rng.chance(1, 3);
        let mut price = 1000 + rng.below(100_000);
        let cells = (end_ms - born_ms) / CELL_MS;
        let (mut trades, mut sums, mut sum) = (Vec::new(), Vec::new(), 0);
        for cell in 0..cells {
            let begin = born_ms + cell * CELL_MS;
            let is_pause = pauses && begin.div_euclid(HOUR_MS) % 5 > 1;
            let trade = (rng.chance(percent, 100) && !is_pause).then(|| {
                price = (price + rng.below(21)).saturating_sub(10).max(500);
                let amount = 1 + rng.below(50_000);
                Trade { at_ms: begin + rng.below(CELL_MS as u64) as i64, price, amount }
            });
            sum += trade.map_or(0, |trade| trade.amount);
            trades.push(trade);
            sums.push(sum);
        }
        let base = format!("M{at:02}");
        Market {
            id: format!("{base}USDT"),
            symbol: format!("{base}/USDT"),
            born_ms,
            trades,
            sums,
            gone_ms: i64::MAX,
        }
    }

    fn cell(&self, at_ms: i64) -> usize {
        let cell = (at_ms - self.born_ms).div_euclid(CELL_MS).max(0) as usize;
        cell.min(self.trades.len())
    }

    /// The trades in this span of time, the end excluded.
    fn within(&self, from_ms: i64, to_ms: i64) -> impl DoubleEndedIterator<Item = &Trade> {
        let to_ms = to_ms.min(self.gone_ms);
        let from = self.cell(from_ms);
        let cells = &self.trades[from..(self.cell(to_ms) + 1).min(self.trades.len()).max(from)];
        let trades = cells.iter().flatten();
        trades.filter(move |trade| (from_ms..to_ms).contains(&trade.at_ms))
    }

    /// The last price before this time.
    pub fn last(&self, at_ms: i64) -> Option<u64> {
        self.within(i64::MIN / 2, at_ms).next_back().map(|trade| trade.price)
    }

    /// The amount that was traded in the 24 hours before this time.
    pub fn volume(&self, at_ms: i64) -> u64 {
        let upto = |ms: i64| match self.cell(ms.min(self.gone_ms)) {
            0 => 0,
            cell => self.sums[cell - 1],
        };
        let last: u64 =
            self.within(at_ms - at_ms.rem_euclid(CELL_MS), at_ms).map(|it| it.amount).sum();
        upto(at_ms) + last - upto(at_ms - DAY_MS)
    }

    /// Whether anything was traded in a slot.
    pub fn traded(&self, length: i64, slot: i64) -> bool {
        self.within(slot * length, (slot + 1) * length).next().is_some()
    }

    /// The candle of a slot as the exchange tells it at this time: open, high, low, close, volume.
    pub fn row(&self, length: i64, slot: i64, at_ms: i64) -> Option<[String; 5]> {
        let (open_ms, end_ms) = (slot * length, (slot + 1) * length);
        let mut trades: Vec<&Trade> = self.within(open_ms, end_ms.min(at_ms)).collect();
        let is_draft = (end_ms..end_ms + LATE_MS).contains(&at_ms);
        if is_draft && slot % LATE_PART == 0 && trades.len() > 1 {
            trades.pop();
        }
        let prices = || trades.iter().map(|trade| trade.price);
        let volume: u64 = trades.iter().map(|trade| trade.amount).sum();
        Some([
            price(prices().next()?),
            price(prices().max()?),
            price(prices().min()?),
            price(prices().next_back()?),
            plain(&format!("{}.{:03}", volume / 1000, volume % 1000)),
        ])
    }

    /// The final candle of a slot.
    pub fn candle(&self, length: i64, slot: i64) -> Option<[String; 5]> {
        self.row(length, slot, i64::MAX)
    }

    /// True if a candle of a slot was told with these figures at some time.
    pub fn was_told(&self, length: i64, slot: i64, figures: &[String; 5]) -> bool {
        let (open_ms, end_ms) = (slot * length, (slot + 1) * length);
        let mut times = self.within(open_ms, end_ms).map(|trade| trade.at_ms + 1).rev();
        let is = |at_ms: i64| self.row(length, slot, at_ms).as_ref() == Some(figures);
        is(i64::MAX) || is(end_ms) || times.any(is)
    }
}

/// Cents as an exchange writes them.
pub fn cents(value: u64) -> String {
    format!("{}.{:02}000000", value / 100, value % 100)
}

/// Cents as marketd writes them.
pub fn price(value: u64) -> String {
    plain(&cents(value))
}
