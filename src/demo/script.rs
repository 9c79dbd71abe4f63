//! A script: data that the demo exchange serves instead of generated data.
//!
//! Owns the form of the file. Data that is not in the file is generated. A list of candles replaces all slots
//! from its first to its last row: a slot that it leaves out is a gap.

use crate::config::forms::{AMOUNT, FIGURE, PLACES, SYMBOL, TIME, TextForm, WORDS, form};
use crate::config::members::{count, millis};
use crate::config::values::{FileObject, KeyType, Visit, Wrong, object, read_text};
use crate::config::{ConfigFault, Node, Report};
use crate::decimal::Decimal;
use crate::interval::Interval;
use crate::record::{Candle, Ticker};
use crate::time::UnixMs;
use std::collections::BTreeMap;
use std::time::Duration;

object! {
    /// The whole of a script.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DemoScript {
        /// What the exchange's clock shows when the script is read.
        at: Option<UnixMs>, "at" TIME;
        /// Additional markets of the list; `null`: this market is not in the list.
        markets: BTreeMap<String, Option<ScriptMarket>>, "markets" (SYMBOL, ());
        /// Quotes; `null`: this market has no quote.
        quotes: BTreeMap<String, Option<Ticker>>, "quotes" (SYMBOL, ());
        /// Candles by interval.
        candles: BTreeMap<String, BTreeMap<Interval, Vec<Candle>>>, "candles" (SYMBOL, (INTERVAL, ()));
        /// Which requests fail.
        fail: FailingKinds, "fail";
    }
}

object! {
    /// A market of the list.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ScriptMarket {
        /// `TRADING`, or Binance's status of a market that is halted.
        status: String = "TRADING".to_string(), "status" WORDS;
        /// Decimal places of a price.
        price_places: u8 = 2, "pricePlaces" PLACES;
        /// Decimal places of an amount.
        amount_places: u8 = 4, "amountPlaces" PLACES;
    }
}

object! {
    /// The failures, by kind of request.
    #[derive(Clone, Debug, PartialEq)]
    pub struct FailingKinds {
        /// Tickers.
        quotes: Option<Failure>, "quotes";
        /// Pages of candles.
        candles: Option<Failure>, "candles";
        /// The market list.
        markets: Option<Failure>, "markets";
        /// The clock.
        time: Option<Failure>, "time";
    }
}

object! {
    /// How a request fails.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Failure {
        /// The status of the response; null: the usual response.
        status: Option<u16>, "status" count(400, 599);
        /// How much later the response comes.
        delay: Duration, "delayMs" millis(0, 600_000);
        /// The seconds of `Retry-After`.
        retry_after: Option<u32>, "retryAfter" count(0, 86_400);
        /// True: the connection closes without a response.
        drop: bool, "drop";
        /// True: the response is a list without items.
        empty: bool, "empty";
        /// How many requests fail; null: all.
        times: Option<u32>, "times" count(0, 1_000_000);
    }
}

/// An interval by its name.
const INTERVAL: TextForm<Interval> =
    form("1m", |name| Interval::parse(name.as_bytes()).ok_or(None));

impl DemoScript {
    /// Reads the text of a file with this name.
    ///
    /// # Errors
    /// All faults, each with its line.
    pub fn read(file: &str, text: &str) -> Result<DemoScript, Vec<ConfigFault>> {
        let (mut script, mut report) = (DemoScript::default(), Report::default());
        read_text(&mut (&mut script, &()), file, text, &mut report);
        for list in script.candles.values_mut().flat_map(BTreeMap::values_mut) {
            list.sort_by_key(|candle| candle.open_time);
        }
        report.close().map(|_| script)
    }
}

/// A candle is a row like the rows of a chart.
impl KeyType for Candle {
    type Rule = ();

    fn expected((): &()) -> String {
        "[time, open, high, low, close, volume] of a sound candle".to_string()
    }

    fn read((): &(), node: &Node, report: &mut Report) -> Result<Candle, Wrong> {
        let row = node.items().ok_or(None)?;
        let [time, figures @ ..] = &row[..] else { return Err(None) };
        let open_time = UnixMs::read(&TIME, time, report)?;
        let figures = figures.iter().map(|figure| Decimal::read(&AMOUNT, figure, report));
        let figures = figures.collect::<Result<Vec<_>, _>>()?;
        let [open, high, low, close, volume] = figures.try_into().map_err(|_| None)?;
        let candle = Candle { open_time, open, high, low, close, volume };
        Some(candle).filter(Candle::is_sound).ok_or(None)
    }
}

impl FileObject for Ticker {
    const NEEDED: &'static [&'static str] = &["last"];

    fn keys(&mut self, visit: &mut Visit<'_>) {
        visit("last", "", &mut (&mut self.last, &AMOUNT));
        for (name, figure) in Ticker::FIGURES.into_iter().zip(self.figures_mut()) {
            visit(name, "", &mut (figure, &FIGURE));
        }
        visit("timestamp", "", &mut (&mut self.timestamp, &TIME));
    }
}
