//! Candles: rows of columns, each exchange's in an order of its own.

use crate::decoders::decode::{
    Differences, Differs, at, check_digits, decode_good, is_near, sent, text_at, theirs,
};
use crate::decoders::recordings;
use crate::support::Json;
use marketd::decimal::Decimal;
use marketd::exchange::Call;
use marketd::interval::Stored;
use marketd::record::Candle;
use marketd::time::UnixMs;

/// A recording, and where its figures stand. Some are of intervals that are never asked for, or of
/// derivatives: the rows are the same.
pub struct Recorded {
    pub file: &'static str,
    pub dialect: &'static str,
    /// Where the rows are.
    pub rows: &'static str,
    /// The columns or members of time, open, high, low, close and base volume.
    pub columns: [&'static str; 6],
    /// Milliseconds of a unit of time; 0: it is a date.
    pub unit_ms: i64,
    /// The column that says whether the candle is closed, and how it says yes.
    pub closed: Option<(usize, &'static str)>,
}

const BINANCE: Recorded = Recorded {
    file: "binance.fetchOHLCV.btcusdt-5m-24",
    dialect: "binance",
    rows: "",
    columns: ["0", "1", "2", "3", "4", "5"],
    unit_ms: 1,
    closed: None,
};

const COINBASE: Recorded = Recorded {
    file: "coinbaseexchange.fetchOHLCV.btcusd-1m-2018",
    dialect: "coinbase",
    columns: ["0", "3", "2", "1", "4", "5"],
    unit_ms: 1000,
    ..BINANCE
};

const BITSTAMP: Recorded = Recorded {
    file: "bitstamp.fetchOHLCV.btcusd-1d-1000",
    dialect: "bitstamp",
    rows: "data/ohlc",
    columns: ["timestamp", "open", "high", "low", "close", "volume"],
    unit_ms: 1000,
    ..BINANCE
};

pub static RECORDED: [Recorded; 17] = [
    BINANCE,
    Recorded { file: "binance.fetchOHLCV.btcusdt-1h-1000", ..BINANCE },
    Recorded { file: "binance.fetchOHLCV.btcusdt-1d-365", ..BINANCE },
    Recorded {
        file: "okx.fetchOHLCV.sample",
        dialect: "okx",
        rows: "data",
        closed: Some((8, "1")),
        ..BINANCE
    },
    Recorded {
        file: "bybit.fetchOHLCV.inverse-1h",
        dialect: "bybit",
        rows: "result/list",
        ..BINANCE
    },
    Recorded {
        file: "kraken.fetchOHLCV.btcusd-1m-720",
        dialect: "kraken",
        rows: "result/XXBTZUSD",
        columns: ["0", "1", "2", "3", "4", "6"],
        unit_ms: 1000,
        ..BINANCE
    },
    COINBASE,
    Recorded { file: "coinbaseexchange.fetchOHLCV.btcusdt-1h-1", ..COINBASE },
    Recorded {
        file: "kucoin.fetchOHLCV.sample",
        dialect: "kucoin",
        rows: "data",
        columns: ["0", "1", "3", "4", "2", "5"],
        unit_ms: 1000,
        ..BINANCE
    },
    Recorded {
        file: "gate.fetchOHLCV.one",
        dialect: "gate",
        columns: ["0", "5", "3", "4", "2", "6"],
        unit_ms: 1000,
        closed: Some((7, "true")),
        ..BINANCE
    },
    Recorded { file: "bitget.fetchOHLCV.sample", dialect: "bitget", rows: "data", ..BINANCE },
    BITSTAMP,
    Recorded { file: "bitstamp.fetchOHLCV.btcusdt-1h-1", ..BITSTAMP },
    Recorded {
        file: "cryptocom.fetchOHLCV.sample",
        dialect: "cryptocom",
        rows: "result/data",
        columns: ["t", "o", "h", "l", "c", "v"],
        ..BINANCE
    },
    Recorded {
        file: "htx.fetchOHLCV.btcusdt-5m",
        dialect: "htx",
        rows: "data",
        columns: ["id", "open", "high", "low", "close", "amount"],
        unit_ms: 1000,
        ..BINANCE
    },
    Recorded { file: "mexc.fetchOHLCV.btcusdt-1h-1", dialect: "mexc", ..BINANCE },
    Recorded {
        file: "upbit.fetchOHLCV.btcusdt-1h-1",
        dialect: "upbit",
        columns: [
            "candle_date_time_utc",
            "opening_price",
            "high_price",
            "low_price",
            "trade_price",
            "candle_acc_trade_volume",
        ],
        unit_ms: 0,
        ..BINANCE
    },
];

/// Where CCXT has another figure.
static DIFFERS: [Differs; 1] = [Differs {
    dialect: "bybit",
    figures: &["volume"],
    why: "the recording is of an inverse contract, whose base volume is in the next column; of \
          spot it is in this one",
}];

const CALL: Call<'static> = Call::Candles {
    id: "of the call",
    interval: Stored::H1,
    from: UnixMs(0),
    to: UnixMs(0),
    now: UnixMs(0),
};

const FIGURES: [&str; 5] = ["open", "high", "low", "close", "volume"];

pub fn files() -> Vec<&'static str> {
    RECORDED.iter().map(|recorded| recorded.file).collect()
}

fn figures(candle: &Candle) -> [&Decimal; 5] {
    let Candle { open, high, low, close, volume, .. } = candle;
    [open, high, low, close, volume]
}

#[test]
fn recorded_candles_equal_the_body_digit_for_digit() {
    for (recorded, fixture) in recordings(&RECORDED, |recorded| recorded.file) {
        let file = recorded.file;
        let kept = decode_good(recorded.dialect, &fixture, &CALL);
        let body = sent(&fixture);
        let rows = at(&body, recorded.rows).expect("the rows are there").items();
        assert!(!rows.is_empty() && kept.candles.len() == rows.len(), "{file}");
        for (row, (candle, is_forming)) in rows.iter().zip(&kept.candles) {
            let [time, columns @ ..] = recorded.columns;
            let time = text_at(row, time).expect("a time");
            if recorded.unit_ms == 0 {
                let ours = candle.open_time.to_string();
                assert_eq!(ours, format!("{time}.000Z"), "{file}");
            } else {
                let time: i64 = time.parse().expect("a whole number");
                assert_eq!(candle.open_time, UnixMs(time * recorded.unit_ms), "{file}");
            }
            for (column, ours) in columns.iter().zip(figures(candle)) {
                check_digits(Some(ours), text_at(row, column), file);
            }
            let says_no = |(column, yes): (usize, &str)| {
                text_at(row, &column.to_string()).is_some_and(|word| word != yes)
            };
            assert_eq!(*is_forming, recorded.closed.is_some_and(says_no), "{file}");
        }
    }
}

#[test]
fn recorded_candles_equal_ccxt_where_that_is_right() {
    let mut differences = Differences::new(&DIFFERS);
    for (recorded, fixture) in recordings(&RECORDED, |recorded| recorded.file) {
        let mut kept = decode_good(recorded.dialect, &fixture, &CALL).candles;
        // CCXT gives them oldest first, whatever the exchange does.
        kept.sort_by_key(|(candle, _)| candle.open_time);
        let theirs = theirs(&fixture);
        assert_eq!(kept.len(), theirs.items().len(), "{}", recorded.file);
        for ((candle, _), theirs) in kept.iter().zip(theirs.items()) {
            let time = candle.open_time.0.to_string();
            assert_eq!(Some(time.as_str()), text_at(theirs, "0"), "{}", recorded.file);
            for (index, ours) in figures(candle).into_iter().enumerate() {
                let theirs: Option<&Json> = theirs.items().get(index + 1);
                let same = is_near(Some(ours), theirs);
                let what = format!("{} {time}", recorded.file);
                differences.check(recorded.dialect, FIGURES[index], same, &what);
            }
        }
    }
    differences.all_met();
}

#[test]
fn recorded_candles_come_in_the_order_of_the_page() {
    for (recorded, fixture) in recordings(&RECORDED, |recorded| recorded.file) {
        let kept = decode_good(recorded.dialect, &fixture, &CALL).candles;
        let times: Vec<UnixMs> = kept.iter().map(|(candle, _)| candle.open_time).collect();
        let in_order = match recorded.dialect {
            "bybit" | "coinbase" | "htx" | "kucoin" | "okx" => times.iter().rev().is_sorted(),
            _ => times.is_sorted(),
        };
        assert!(in_order, "{}", recorded.file);
    }
}
