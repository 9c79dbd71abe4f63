//! Normalization: checks and completes a ticker before it is stored.
//!
//! [`normalize`] has the rules by which figures are refused, treated as unknown, or computed. It never rounds
//! a figure that the exchange sent. It computes only figures that follow exactly. The percentage is the
//! exception: it is rounded to a fixed number of places.

use crate::decimal::Decimal;
use crate::record::Ticker;

/// Decimal places of a computed percentage.
const PERCENTAGE_PLACES: u32 = 12;

/// An item that is refused as a whole: its last price is not positive, or another price or a volume is
/// negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuoteReject;

/// Refuses impossible figures, clears unknown ones, and computes missing ones. A second call
/// changes nothing.
pub(super) fn normalize(ticker: &mut Ticker) -> Result<(), QuoteReject> {
    let Ticker { bid, ask, open, high, low, .. } = &*ticker;
    let Ticker { bid_volume, ask_volume, base_volume, quote_volume, .. } = &*ticker;
    let figures = [bid, ask, open, high, low, bid_volume, ask_volume, base_volume, quote_volume];
    if !ticker.last.is_positive() || figures.into_iter().flatten().any(Decimal::is_negative) {
        return Err(QuoteReject);
    }
    // A price of zero means that the exchange has no price.
    let Ticker { bid, ask, open, high, low, .. } = ticker;
    for price in [bid, ask, open, high, low] {
        price.take_if(|price| price.is_zero());
    }
    // A volume of zero is a fact and stays. A volume without a price is unknown.
    if ticker.bid.is_none() {
        ticker.bid_volume = None;
    }
    if ticker.ask.is_none() {
        ticker.ask_volume = None;
    }
    // Some exchanges send zero if they have no time.
    ticker.timestamp = ticker.timestamp.filter(|time| time.0 > 0);
    compute(ticker);
    Ok(())
}

/// Computes the figures that the exchange did not send: change, open and percentage.
fn compute(ticker: &mut Ticker) {
    match (&ticker.change, &ticker.open) {
        (None, Some(open)) => ticker.change = ticker.last.checked_sub(open),
        (Some(change), None) => {
            ticker.open = ticker.last.checked_sub(change).filter(Decimal::is_positive);
        }
        _ => {}
    }
    if let (None, Some(change), Some(open)) = (&ticker.percentage, &ticker.change, &ticker.open) {
        ticker.percentage = change.percent_of(open, PERCENTAGE_PLACES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::testing::{decimal, ticker};
    use crate::time::UnixMs;

    /// Reads and writes a ticker as `last=1 bid=2 ...`, in the order of the fields.
    fn read(text: &str) -> Ticker {
        let mut read = ticker("1");
        for pair in text.split_whitespace() {
            let (name, value) = pair.split_once('=').expect("name=value");
            if name == "timestamp" {
                read.timestamp = Some(UnixMs(value.parse().expect("milliseconds")));
            } else if name == "last" {
                read.last = decimal(value);
            } else {
                *field(&mut read, name) = Some(decimal(value));
            }
        }
        read
    }

    fn field<'a>(ticker: &'a mut Ticker, name: &str) -> &'a mut Option<Decimal> {
        match name {
            "bid" => &mut ticker.bid,
            "ask" => &mut ticker.ask,
            "bid_volume" => &mut ticker.bid_volume,
            "ask_volume" => &mut ticker.ask_volume,
            "open" => &mut ticker.open,
            "high" => &mut ticker.high,
            "low" => &mut ticker.low,
            "change" => &mut ticker.change,
            "percentage" => &mut ticker.percentage,
            "base_volume" => &mut ticker.base_volume,
            "quote_volume" => &mut ticker.quote_volume,
            other => panic!("{other} is no field"),
        }
    }

    /// What is sent, and what it becomes. `None`: the item is refused.
    const RULES: [(&str, Option<&str>); 37] = [
        // Without a positive last price there is no item.
        ("last=0", None),
        ("last=0.000", None),
        ("last=-1", None),
        ("last=0.00000001", Some("last=0.00000001")),
        // A negative price or volume refuses it.
        ("bid=-1", None),
        ("ask=-0.1", None),
        ("open=-1", None),
        ("high=-1", None),
        ("low=-1", None),
        ("bid=1 bid_volume=-1", None),
        ("bid_volume=-1", None),
        ("ask_volume=-1", None),
        ("base_volume=-1", None),
        ("quote_volume=-1", None),
        ("change=-1 percentage=-50 open=2", Some("change=-1 percentage=-50 open=2")),
        // A price of zero is unknown and takes its volume along.
        ("bid=0 ask=0.00 high=0 low=0 open=0 bid_volume=3 ask_volume=0", Some("")),
        ("bid_volume=3 ask_volume=4", Some("")),
        ("bid=1 bid_volume=0 ask=2 ask_volume=4", Some("bid=1 bid_volume=0 ask=2 ask_volume=4")),
        ("timestamp=0", Some("")),
        ("timestamp=-5", Some("")),
        ("timestamp=5", Some("timestamp=5")),
        // A traded volume of zero stays zero.
        ("base_volume=0 quote_volume=0", Some("base_volume=0 quote_volume=0")),
        // What the exchange sends is kept even when it does not add up.
        ("last=10 open=8 change=3 percentage=7", Some("last=10 open=8 change=3 percentage=7")),
        ("last=10 open=8 percentage=7", Some("last=10 open=8 change=2 percentage=7")),
        ("last=10 open=8 change=4", Some("last=10 open=8 change=4 percentage=50")),
        ("last=10 percentage=7", Some("last=10 percentage=7")),
        // What follows exactly is computed.
        ("last=10 open=8", Some("last=10 open=8 change=2 percentage=25")),
        ("last=10 change=2", Some("last=10 open=8 change=2 percentage=25")),
        ("last=10 change=2 open=0", Some("last=10 open=8 change=2 percentage=25")),
        ("last=8 open=8", Some("last=8 open=8 change=0 percentage=0")),
        (
            "last=6705.82 open=6872.64",
            Some("last=6705.82 open=6872.64 change=-166.82 percentage=-2.427305955208"),
        ),
        ("last=4 open=3", Some("last=4 open=3 change=1 percentage=33.333333333333")),
        // An open that would not be positive stays unknown.
        ("last=2 change=2", Some("last=2 change=2")),
        ("last=2 change=3", Some("last=2 change=3")),
        // Arithmetic that does not fit stays unknown.
        ("last=1e40 open=1e-20", Some("last=1e40 open=1e-20")),
        ("last=1e-40 change=-1e20", Some("last=1e-40 change=-1e20")),
        // The difference fits 38 digits. A product on the way to its percentage does not.
        (
            "last=5000000000000000000000000.5 open=1e24",
            Some("last=5000000000000000000000000.5 open=1e24 change=4000000000000000000000000.5"),
        ),
    ];

    #[test]
    fn an_item_becomes_what_follows_from_it_or_is_refused() {
        for (sent, expected) in RULES {
            let mut normalized = read(sent);
            let decision = normalize(&mut normalized);
            let Some(expected) = expected else {
                assert_eq!(decision, Err(QuoteReject), "{sent}");
                continue;
            };
            assert_eq!((decision, &normalized), (Ok(()), &read(expected)), "{sent}");
            let once = normalized.clone();
            assert_eq!(normalize(&mut normalized), Ok(()));
            assert_eq!(normalized, once, "normalized twice: {sent}");
        }
    }
}
