//! The report that a probe prints, and the records of a response.

use crate::config::Secret;
use crate::config::forms::SYMBOL;
use crate::decimal::Decimal;
use crate::exchange::{Explained, Reject, Sink};
use crate::interval::Stored;
use crate::record::{Candle, MarketInfo, Stats, Ticker};
use crate::time::UnixMs;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;

/// Writes a line of a report: `say!(report, "{} of them", count)`.
macro_rules! say {
    ($report:expr, $($line:tt)+) => { $report.say(format_args!($($line)+)) };
}
pub(super) use say;

pub(super) struct ProbeReport {
    pub(super) text: String,
    /// False if something could not be read.
    pub(super) is_good: bool,
    /// True if the report is also not good if something looks wrong.
    is_strict: bool,
    /// The key of the source, which an exchange may repeat.
    key: Option<Secret>,
}

/// True if this character affects a terminal: a control character, or one that changes the
/// direction of text.
fn is_of_terminal(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl ProbeReport {
    pub(super) fn new(is_strict: bool, key: Option<Secret>) -> ProbeReport {
        ProbeReport { text: String::new(), is_good: true, is_strict, key }
    }

    pub(super) fn say(&mut self, line: impl Display) {
        // Text of an exchange must not move the cursor of a terminal, nor look like a line of the report.
        let line = line.to_string();
        let line = self.key.as_ref().map_or(line.clone(), |key| key.hide_in(&line));
        let text = line.trim_start_matches('\n');
        self.text += &line[..line.len() - text.len()];
        self.text += &text.replace(is_of_terminal, " ");
        self.text.push('\n');
    }

    /// Reports something that looks wrong, although it could be read.
    pub(super) fn wrong(&mut self, what: impl Display) {
        self.is_good &= !self.is_strict;
        say!(self, "  LOOKS WRONG: {what}");
    }

    /// Reports something that looks wrong, if `is_odd`.
    pub(super) fn doubt(&mut self, is_odd: bool, what: &str) {
        if is_odd {
            self.wrong(what);
        }
    }

    /// Reports something that could not be read.
    pub(super) fn fail(&mut self, what: &str, why: impl Display) {
        self.is_good = false;
        say!(self, "  CANNOT BE READ: {what}: {why}");
    }

    /// Reports the items of an answer that are rejected or ignored. Items that are wrong in the
    /// same way are shown once.
    pub(super) fn say_rejected(&mut self, kept: &Kept) {
        match kept.rejected.len() {
            0 => {}
            1 => self.wrong("1 item is rejected"),
            count => self.wrong(format_args!("{count} items are rejected")),
        }
        let mut seen = HashSet::new();
        let reasons = kept.rejected.iter().filter(|reason| seen.insert(*reason));
        for reason in reasons.take(SHOWN) {
            say!(self, "    {reason}");
        }
        if kept.unlisted > 0 {
            say!(self, "  not in the market list: {}, ignored", kept.unlisted);
        }
    }

    /// Prints and checks the figures of a ticker. `what` says which answers they are from.
    pub(super) fn judge_ticker(&mut self, what: &str, ticker: &Ticker) {
        let mut line = format!("  {what}: last {}", ticker.last);
        for (name, number) in Ticker::FIGURES.iter().zip(ticker.figures()) {
            line += &format!(", {name} {}", or_null(number));
        }
        say!(self, "{line}, timestamp {}", or_null(&ticker.timestamp));
        let above = |a: &Option<Decimal>, b: &Option<Decimal>| a.is_some() && b.is_some() && a > b;
        let last = Some(ticker.last.clone());
        let is_crossed = above(&ticker.bid, &ticker.ask);
        self.doubt(is_crossed, "bid is above ask: check which is which");
        let is_outside = above(&ticker.low, &ticker.high)
            || above(&last, &ticker.high)
            || above(&ticker.low, &last);
        self.doubt(is_outside, "last is not between low and high: check which is which");
        // A figure that is missing, or has too many digits for a division, is not checked.
        let is_far = |part: Option<Decimal>, least: i64, most: i64| {
            part.is_some_and(|it| it < Decimal::from(least) || it > Decimal::from(most))
        };
        let of_last = |price: &Option<Decimal>| price.as_ref()?.percent_of(&ticker.last, 0);
        let is_apart =
            [&ticker.bid, &ticker.ask].map(of_last).into_iter().any(|it| is_far(it, 20, 500));
        self.doubt(is_apart, "bid or ask is far from last: check which is the price");
        // A change below half a percent is not checked, because its rounded percentage is too
        // inexact.
        let of_change = |change: &Decimal| {
            let open = ticker.last.checked_sub(change)?;
            change.percent_of(&open, 0).filter(|whole| !whole.is_zero())?;
            ticker.percentage.as_ref()?.percent_of(&change.percent_of(&open, 6)?, 0)
        };
        let is_other = is_far(ticker.change.as_ref().and_then(of_change), 10, 1000);
        self.doubt(is_other, "percentage is not that of change: check `percentage` and `ratio`");
        let mean = |ticker: &Ticker| {
            let hundred =
                ticker.quote_volume.as_ref()?.percent_of(ticker.base_volume.as_ref()?, 12)?;
            hundred.percent_of(&ticker.last, 0)
        };
        let is_swapped = is_far(mean(ticker), 2_000, 50_000);
        self.doubt(is_swapped, "quoteVolume is not baseVolume at the price: check which is which");
    }

    /// Prints and checks a market list.
    pub(super) fn judge_markets(&mut self, kept: &Kept) {
        let active = kept.markets.iter().filter(|market| market.active).count();
        say!(self, "  markets: {}, {active} of them active", kept.markets.len());
        for market in kept.markets.iter().take(SHOWN) {
            let status = if market.active { "active" } else { "not active" };
            say!(self, "    {} is {}, {status}", symbol(market), market.ticker_id);
        }
        let what = "no market is active: check markets.open and the field `status`";
        self.doubt(active == 0, what);
        let mut odd = kept.odd();
        if let Some(first) = odd.next() {
            let count = 1 + odd.count();
            let what = format_args!("{count} have names that are no symbols, and are skipped");
            self.wrong(format_args!("{what}: {first}"));
        }
    }

    /// Prints and checks candles. `asked`: the first and the last open time that was asked for, unless the
    /// answer was recorded.
    pub(super) fn judge_candles(
        &mut self,
        kept: &Kept,
        interval: Stored,
        asked: Option<(UnixMs, UnixMs)>,
    ) {
        let (name, rows) = (interval.name(), &kept.candles);
        let is_asked =
            |row: &&Candle| asked.is_none_or(|(from, to)| (from..=to).contains(&row.open_time));
        let (count, within) = (rows.len(), rows.iter().filter(is_asked).count());
        say!(self, "  candles {name}: {count}, {within} of the {CANDLES} asked for");
        let time = |candle: &&Candle| candle.open_time;
        let ends = rows.iter().min_by_key(time).zip(rows.iter().max_by_key(time));
        let Some((first, last)) = ends else {
            return self.wrong("no candle: check the target, its ends, and candles.time");
        };
        let Candle { open_time: at, open, high, low, close, volume } = last;
        say!(self, "  from {} to {at}", first.open_time);
        self.explain(kept, "", "");
        let row = format!("open {open} high {high} low {low} close {close} volume {volume}");
        say!(self, "  read, the newest: {at} {row}");
        let is_between = |row: &Candle| row.open_time.0 % interval.length_ms() != 0;
        let is_odd = |row: &Candle| {
            [&row.open, &row.close].iter().any(|it| **it < row.low || **it > row.high)
        };
        let what = "some do not begin at the interval's slots: check intervals and candles.time";
        self.doubt(rows.iter().any(is_between), what);
        let what = "none is of the range that was asked for: check the target and candles.time";
        self.doubt(within == 0, what);
        if let Some(row) = rows.iter().find(|row| is_absurd(row.open_time)) {
            let what = "the open time is of no exchange: check candles.time";
            self.wrong(format_args!("{}: {what}", row.open_time));
        }
        let what = "some open or close is not between low and high: check the columns";
        self.doubt(rows.iter().any(is_odd), what);
    }

    /// Prints the item with this text in this field (or the first item), field by field. A field that none of
    /// several items has looks wrong.
    pub(super) fn explain(&mut self, kept: &Kept, field: &str, text: &str) {
        let all = &kept.explained;
        let is_wanted = |item: &&Explained| text.is_empty() || item.sent(field) == text;
        let Some(Explained { item, fields }) = all.iter().find(is_wanted) else {
            return;
        };
        say!(self, "  raw: {item}");
        for (name, sent) in fields {
            let shown = if sent.is_empty() { "(nothing)" } else { sent };
            say!(self, "    {name:<14} {shown}");
            let is_nowhere = all.len() > 1 && all.iter().all(|item| item.sent(name).is_empty());
            if is_nowhere {
                self.wrong(format_args!("no item has the member of `{name}`: check its path"));
            }
        }
    }
}

/// A value, or `null`.
pub(super) fn or_null(value: &Option<impl Display>) -> String {
    value.as_ref().map_or("null".to_string(), |value| value.to_string())
}

/// True for a time that only a wrong unit gives: before 2009, or after 2100.
pub(super) fn is_absurd(time: UnixMs) -> bool {
    !(1_230_768_000_000..4_102_444_800_000).contains(&time.0)
}

/// How many candles a request asks for.
pub(super) const CANDLES: i64 = 10;

/// How many items of a kind are shown.
pub(super) const SHOWN: usize = 5;

/// The records of one response.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) tickers: Vec<(String, Ticker)>,
    pub(super) stats: Option<Stats>,
    pub(super) candles: Vec<Candle>,
    pub(super) markets: Vec<MarketInfo>,
    pub(super) times: Vec<UnixMs>,
    pub(super) stamp: Option<UnixMs>,
    pub(super) rejected: Vec<String>,
    /// The items as they were sent.
    pub(super) explained: Vec<Explained>,
    /// The ids of the market list, once it is known, and the assets of each.
    pub(super) listed: HashMap<String, [String; 2]>,
    /// True if tickers of markets that are not in the list are only counted.
    pub(super) is_of_all: bool,
    pub(super) unlisted: usize,
    /// The first ids of these markets.
    pub(super) others: Vec<String>,
}

/// The symbol of a market.
pub(super) fn symbol(market: &MarketInfo) -> String {
    format!("{}/{}", market.base, market.quote)
}

impl Kept {
    /// The names of markets whose assets are not valid in a symbol.
    pub(super) fn odd(&self) -> impl Iterator<Item = String> {
        self.markets.iter().map(symbol).filter(|name| SYMBOL.parse(name).as_ref() != Ok(name))
    }

    fn is_listed(&mut self, id: &str) -> bool {
        let is_listed = !self.is_of_all || self.listed.is_empty() || self.listed.contains_key(id);
        self.unlisted += usize::from(!is_listed);
        if !is_listed && self.others.len() < SHOWN {
            self.others.push(id.to_owned());
        }
        is_listed
    }
}

impl Sink for Kept {
    fn wants(&mut self, ticker_id: &str) -> bool {
        self.is_listed(ticker_id)
    }
    fn assets(&self, ticker_id: &str) -> Option<[&str; 2]> {
        self.listed.get(ticker_id).map(|both| both.each_ref().map(String::as_str))
    }
    fn ticker(&mut self, ticker_id: &str, ticker: Ticker) {
        self.tickers.push((ticker_id.to_owned(), ticker));
    }
    fn stats(&mut self, _: &str, stats: Stats) {
        self.stats = Some(stats);
    }
    fn candle(&mut self, candle: Candle, _: bool) {
        self.candles.push(candle);
    }
    fn market(&mut self, info: MarketInfo) {
        self.markets.push(info);
    }
    fn stamp(&mut self, time: UnixMs) {
        self.stamp = Some(time);
    }
    fn time(&mut self, time: UnixMs) {
        self.times.push(time);
    }
    fn explained(&mut self, item: Explained) {
        self.explained.push(item);
    }
    fn rejected(&mut self, reason: Reject<'_>) {
        if reason.id.is_none_or(|id| self.is_listed(id)) {
            self.rejected.push(reason.to_string());
        }
    }
}
