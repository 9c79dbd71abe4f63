//! Binance.US, Bitstamp, Crypto.com, HTX, MEXC and Upbit: the target of each call, bodies of errors,
//! and what no recording shows.

use super::testing::{
    BINANCEUS, BITSTAMP, CRYPTOCOM, HTX, MEXC, UPBIT, candles, check_refusals, check_targets,
    check_time, read,
};
use crate::exchange::{Call, RefusalKind::*};
use crate::interval::Stored;

/// Of two hours in May of 2020, seen from then.
const HOURS: (i64, i64) = (1_588_280_400_000, 1_588_284_000_000);

#[test]
fn their_calls_have_their_targets() {
    let (from, to) = HOURS;
    let hours = || candles(Stored::H1, from, to, to);
    check_targets(
        &BINANCEUS,
        &[
            (Call::Ticker { id: "A" }, "/api/v3/ticker/24hr?symbol=A"),
            (
                hours(),
                "/api/v3/klines?symbol=A-B&interval=1h&startTime=1588280400000&endTime=1588284000000&limit=1000",
            ),
        ],
    );
    check_targets(
        &BITSTAMP,
        &[
            (Call::Ticker { id: "A/B" }, "/api/v2/ticker/ab/"),
            (hours(), "/api/v2/ohlc/A-B/?step=3600&end=1588284000&limit=2"),
            (Call::Time, "/api/v2/ticker/btcusd/"),
        ],
    );
    check_targets(
        &CRYPTOCOM,
        &[(
            candles(Stored::D1, 0, 86_400_000, to),
            "/exchange/v1/public/get-candlestick?instrument_name=A-B&timeframe=1D&start_ts=0&end_ts=86400001&count=300",
        )],
    );
    check_targets(
        &HTX,
        &[
            (Call::Ticker { id: "ab" }, "/market/detail/merged?symbol=ab"),
            (hours(), "/market/history/kline?symbol=A-B&period=60min&size=2"),
            // The newest alone: as many as there are until now.
            (
                candles(Stored::H1, from, from, to + 10 * 3_600_000),
                "/market/history/kline?symbol=A-B&period=60min&size=12",
            ),
            (
                candles(Stored::H1, from, to, i64::MAX),
                "/market/history/kline?symbol=A-B&period=60min&size=2000",
            ),
        ],
    );
    check_targets(
        &MEXC,
        &[(
            hours(),
            "/api/v3/klines?symbol=A-B&interval=60m&startTime=1588280400000&endTime=1588284000000&limit=500",
        )],
    );
    check_targets(
        &UPBIT,
        &[
            (Call::Ticker { id: "KRW-BTC" }, "/v1/ticker?markets=KRW-BTC"),
            (hours(), "/v1/candles/minutes/60?market=A-B&to=2020-04-30T22:00:01Z&count=2"),
            (
                candles(Stored::D1, 0, 86_400_000, to),
                "/v1/candles/days?market=A-B&to=1970-01-02T00:00:01Z&count=2",
            ),
        ],
    );
    assert!(UPBIT.has_interval(Stored::D1) && !HTX.has_interval(Stored::D1));
}

#[test]
fn their_errors_are_refusals_whatever_was_asked() {
    let limited = r#"{"status":"error","reason":"Request rate limit exceeded.","code":"400.002"}"#;
    let words = "Request rate limit exceeded.";
    check_refusals(&BITSTAMP, &[(400, limited, "400.002", words, RateLimited)]);
    let unknown = r#"{"id":-1,"code":40004,"message":"Invalid instrument_name"}"#;
    let words = "Invalid instrument_name";
    check_refusals(&CRYPTOCOM, &[(400, unknown, "40004", words, UnknownMarket)]);
    let unknown = r#"{"ts":1,"status":"error","err-code":"invalid-parameter","err-msg":"invalid symbol","data":null}"#;
    let other =
        r#"{"status":"error","err-code":"invalid-parameter","err-msg":"invalid size","data":null}"#;
    check_refusals(
        &HTX,
        &[
            (200, unknown, "invalid-parameter", "invalid symbol", UnknownMarket),
            (200, other, "invalid-parameter", "invalid size", Other),
        ],
    );
    let unknown = r#"{"code":-1121,"msg":"Invalid symbol."}"#;
    let refusals = [(400, unknown, "-1121", "Invalid symbol.", UnknownMarket)];
    check_refusals(&MEXC, &refusals);
    check_refusals(&BINANCEUS, &refusals);
    let unknown = r#"{"error":{"name":404,"message":"Code not found"}}"#;
    let limited = r#"{"error":{"message":"Too many API requests.","name":"too_many_requests"}}"#;
    check_refusals(
        &UPBIT,
        &[
            (404, unknown, "404", "Code not found", UnknownMarket),
            (429, limited, "too_many_requests", "Too many API requests.", RateLimited),
        ],
    );
}

#[test]
fn a_clock_may_be_read_from_a_ticker() {
    check_time(&HTX, r#"{"status":"ok","data":1629715504949}"#, 1_629_715_504_949);
    check_time(&BITSTAMP, r#"{"timestamp":"1710328241","open":"1"}"#, 1_710_328_241_000);
    check_time(&UPBIT, r#"[{"market":"KRW-BTC","timestamp":1710328237828}]"#, 1_710_328_237_828);
    let ticker = r#"{"id":-1,"code":0,"result":{"data":[{"i":"BTC_USDT","t":1613580710768}]}}"#;
    check_time(&CRYPTOCOM, ticker, 1_613_580_710_768);
}

#[test]
fn contracts_are_left_out_and_assets_in_lower_case_are_raised() {
    let list = r#"{"code":0,"result":{"data":[
        {"symbol":"BTCUSD-PERP","inst_type":"PERPETUAL_SWAP","base_ccy":"BTC","quote_ccy":"USD","tradable":true},
        {"symbol":"BTC_USD","inst_type":"CCY_PAIR","base_ccy":"BTC","quote_ccy":"USD","tradable":false},
        {"symbol":"X","base_ccy":"BTC","quote_ccy":"USD"}]}}"#;
    let (notes, end) = read(&CRYPTOCOM, &Call::Markets, list);
    assert_eq!((end, notes.rejected.len()), (Ok(()), 0));
    let markets: Vec<_> = notes.markets.iter().map(|it| (&*it.ticker_id, it.active)).collect();
    assert_eq!(markets, [("BTC_USD", false)]);
    let list = r#"{"status":"ok","data":[{"symbol":"gtcusdt","base-currency":"gtc","quote-currency":"usdt","state":"online"},
        {"symbol":"btcusdt","base-currency":"btc","quote-currency":"usdt","state":"suspend"}]}"#;
    let (notes, _) = read(&HTX, &Call::Markets, list);
    let markets: Vec<_> =
        notes.markets.iter().map(|it| (&*it.base, &*it.quote, it.active)).collect();
    assert_eq!(markets, [("GAMECOM", "USDT", true), ("BTC", "USDT", false)]);
}
