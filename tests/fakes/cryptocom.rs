//! Crypto.com: public market data of "Exchange API v1".

use crate::fakes::places::*;
use crate::fakes::shop::*;
use crate::support::*;

pub const FAKE: Fake = Fake {
    name: "cryptocom",
    id: |base, quote| format!("{base}_{quote}"),
    digits: plain,
    places: &[
        Place::markets(
            "/exchange/v1/public/get-tickers",
            "instrument_name",
            r#"{"i":"$id","h":"$high","l":"$low","a":"$last","v":"$baseVolume","vv":"1","oi":"0","c":"0.01","b":"$bid","k":"$ask","t":$now}"#,
            LIST,
        ),
        // Contracts have the same assets.
        Place::markets(
            "/exchange/v1/public/get-instruments",
            "",
            r#"{"symbol":"$id","inst_type":"CCY_PAIR","display_name":"$base/$quote","base_ccy":"$base","quote_ccy":"$quote","quote_decimals":$places,"quantity_decimals":4,"price_tick_size":"$tick","qty_tick_size":"0.0001","max_leverage":"50","tradable":true}"#,
            r#"{"id":-1,"method":"public/get","code":0,"result":{"data":[{"symbol":"BTCUSDT-PERP","inst_type":"PERPETUAL_SWAP","base_ccy":"BTC","quote_ccy":"USDT","tradable":true},$items]}}"#,
        ),
        // Oldest first, the newest of the range, whose end is left out.
        Place::candles(
            "/exchange/v1/public/get-candlestick",
            &Candles {
                market: "instrument_name",
                interval: ("timeframe", ["1m", "1h", "1D"]),
                from: Bound::May("start_ts", 0),
                to: Bound::May("end_ts", -1),
                rows: Rows::Asked("count", 300, 25),
                ..CANDLES
            },
            r#"{"o":"$open","h":"$high","l":"$low","c":"$close","v":"$volume","t":$time}"#,
            LIST,
        ),
    ],
    unknown: Refusal(400, r#"{"id":-1,"code":40004,"message":"Invalid instrument_name"}"#),
    wrong: Refusal(400, r#"{"id":-1,"code":10004,"message":"BAD_REQUEST"}"#),
    too_many: Refusal(429, r#"{"id":-1,"code":42901,"message":"RATE_LIMIT"}"#),
    charge,
    sends: "last bid ask high low baseVolume",
};

const LIST: &str = r#"{"id":-1,"method":"public/get","code":0,"result":{"data":[$items]}}"#;

/// Each address alone.
fn charge(asked: &Asked) -> Charge {
    let pool = match asked.path() {
        "/exchange/v1/public/get-tickers" => "tickers",
        "/exchange/v1/public/get-candlestick" => "candlestick",
        _ => "instruments",
    };
    Charge { pool, units: 1, most: 100, span_ms: 1_000 }
}
