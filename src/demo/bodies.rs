//! The response bodies of the demo exchange. They have the members of Binance's bodies that its
//! dialect reads.
//!
//! This module writes the tickers, candles and markets that its callers pass in. It never sees a request.

use super::assets::DemoMarket;
use super::replay::RecordedMarket;
use crate::decimal::Decimal;
use crate::json::{Array, Decimals, Object, Value, json};
use crate::record::{Candle, Ticker};
use crate::time::UnixMs;

/// The members of a ticker, in the order of [`Ticker::figures`].
#[rustfmt::skip] // a table is read by its rows
const FIGURES: [&str; 11] = [
    "bidPrice", "askPrice", "bidQty", "askQty", "openPrice", "highPrice", "lowPrice",
    "priceChange", "priceChangePercent", "volume", "quoteVolume",
];

/// The source of a market's prices that the script does not give.
#[derive(Clone, Copy)]
pub(super) enum Prices<'a> {
    Made(&'static DemoMarket),
    Recorded(&'a RecordedMarket),
    None,
}

/// One market of the list, with its rules for orders.
#[derive(Clone)]
pub(super) struct DemoListing<'a> {
    /// The canonical symbol.
    pub(super) symbol: String,
    pub(super) status: String,
    /// Decimal places of a price and of an amount.
    pub(super) places: (u32, u32),
    /// The largest amount of an order, in units of its last place.
    pub(super) most: i64,
    /// The least cost of an order, in 10^-8 of the quote asset.
    pub(super) least_cost: i64,
    pub(super) prices: Prices<'a>,
}

impl<'a> DemoListing<'a> {
    /// A market that trades, with these decimal places.
    pub(super) fn new(symbol: &str, places: (u32, u32), prices: Prices<'a>) -> DemoListing<'a> {
        let (symbol, status) = (symbol.to_string(), "TRADING".to_string());
        DemoListing { symbol, status, places, most: 1_000_000_000, least_cost: 1, prices }
    }

    /// A market whose prices are generated.
    pub(super) fn made(market: &'static DemoMarket) -> DemoListing<'a> {
        let symbol = format!("{}/{}", market.base.name, market.quote.name);
        let (most, least_cost) = (market.daily_volume / 20, market.quote.min_order);
        let places = (market.price_places, market.amount_places);
        DemoListing { most, least_cost, ..DemoListing::new(&symbol, places, Prices::Made(market)) }
    }

    /// Binance's name of the market: both assets, joined.
    pub(super) fn joined(&self) -> String {
        self.symbol.replace('/', "")
    }

    /// Writes the market as an item of the list.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (base, quote) = self.symbol.split_once('/').unwrap_or_default();
        let price = |ticks| decimal(ticks, self.places.0);
        let amount = |steps| decimal(steps, self.places.1);
        let filters = |out: &mut Vec<u8>| {
            let mut filters = Array::open(out);
            json!(filters.item(), {
                "filterType": "PRICE_FILTER",
                "minPrice": price(1),
                "maxPrice": price(100_000_000),
                "tickSize": price(1),
            });
            json!(filters.item(), {
                "filterType": "LOT_SIZE",
                "minQty": amount(1),
                "maxQty": amount(self.most),
                "stepSize": amount(1),
            });
            json!(filters.item(), {
                "filterType": "NOTIONAL",
                "minNotional": decimal(self.least_cost, 8),
                "maxNotional": decimal(9_000_000, 0),
            });
            filters.close();
        };
        json!(out, {
            "symbol": self.joined().as_str(),
            "status": self.status.as_str(),
            "baseAsset": base,
            "quoteAsset": quote,
            "filters": filters,
        });
    }
}

/// Writes the 24-hour statistics of a market.
pub(super) fn ticker(joined: &str, ticker: &Ticker, out: &mut Vec<u8>) {
    let mut body = Object::open(out);
    body.put("symbol", joined);
    body.put("lastPrice", Decimals::String.value(&ticker.last));
    for (name, figure) in FIGURES.into_iter().zip(ticker.figures()) {
        if let Some(figure) = figure {
            body.put(name, Decimals::String.value(figure));
        }
    }
    if let Some(time) = ticker.timestamp {
        body.put("closeTime", time);
    }
    body.close();
}

/// Writes a row of a page of candles. Columns without a value, such as the number of trades, are zero.
pub(super) fn row(candle: &Candle, close_time: UnixMs, out: &mut Vec<u8>) {
    let mut row = Array::open(out);
    candle.open_time.write(row.item());
    for figure in candle.figures() {
        Decimals::String.value(figure).write(row.item());
    }
    close_time.write(row.item());
    row.item().extend_from_slice(br#""0",0,"0","0","0""#);
    row.close();
}

/// `units / 10^places`, as a string.
fn decimal(units: i64, places: u32) -> impl Value {
    let decimal = Decimal::from_parts(i128::from(units), places);
    move |out: &mut Vec<u8>| Decimals::String.value(decimal.as_ref()).write(out)
}
