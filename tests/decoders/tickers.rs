//! Tickers: all of a body, or one.

use crate::decoders::decode::{
    Differences, Differs, Items, check_digits, decode_good, is_near, pairs, sent, shifted, text_at,
    theirs,
};
use crate::decoders::recordings;
use crate::support::{FIGURES, Json};
use marketd::decimal::Decimal;
use marketd::exchange::Call;
use marketd::record::Ticker;

/// A recording, and where its figures stand.
pub struct Recorded {
    pub file: &'static str,
    pub dialect: &'static str,
    pub call: Call<'static>,
    pub items: Items,
    /// Where the id is; empty: it is the item's name, or that of the call.
    pub id: &'static str,
    /// The names of figures and their places.
    pub figures: &'static str,
    /// Where the change is as a fraction.
    pub ratio: &'static str,
    pub time: Time,
}

/// Where a ticker's time stands.
pub enum Time {
    Nowhere,
    /// In the item, in milliseconds.
    Own(&'static str),
    /// In the item, in seconds.
    OwnSeconds(&'static str),
    /// In the item, as a date.
    OwnDate(&'static str),
    /// In the body, in milliseconds.
    OfAll(&'static str),
}

const BINANCE: Recorded = Recorded {
    file: "binance.fetchTickers.all6",
    dialect: "binance",
    call: Call::Tickers,
    items: Items::Elements(""),
    id: "symbol",
    figures: "last=lastPrice bid=bidPrice bidVolume=bidQty ask=askPrice askVolume=askQty open=openPrice high=highPrice low=lowPrice change=priceChange percentage=priceChangePercent baseVolume=volume quoteVolume=quoteVolume",
    ratio: "",
    time: Time::Own("closeTime"),
};

const KRAKEN: Recorded = Recorded {
    file: "kraken.fetchTickers.btcusd",
    dialect: "kraken",
    call: Call::Tickers,
    items: Items::Members("result"),
    id: "",
    figures: "last=c/0 bid=b/0 bidVolume=b/2 ask=a/0 askVolume=a/2 high=h/1 low=l/1 baseVolume=v/1",
    ratio: "",
    time: Time::Nowhere,
};

const GATE: Recorded = Recorded {
    file: "gate.fetchTickers.two",
    dialect: "gate",
    call: Call::Tickers,
    items: Items::Elements(""),
    id: "currency_pair",
    figures: "last=last bid=highest_bid ask=lowest_ask high=high_24h low=low_24h percentage=change_percentage baseVolume=base_volume quoteVolume=quote_volume",
    ratio: "",
    time: Time::Nowhere,
};

const MEXC: &str = "last=lastPrice bid=bidPrice ask=askPrice open=openPrice high=highPrice low=lowPrice change=priceChange baseVolume=volume";

/// Sizes and the quote volume are recorded as null or empty in the one, and as numbers in the other.
const MEXC_ONE: Recorded = Recorded {
    file: "mexc.fetchTicker.btcusdt",
    dialect: "mexc",
    figures: "last=lastPrice bid=bidPrice bidVolume=bidQty ask=askPrice askVolume=askQty open=openPrice high=highPrice low=lowPrice change=priceChange baseVolume=volume quoteVolume=quoteVolume",
    ratio: "priceChangePercent",
    ..BINANCE
};

pub static RECORDED: [Recorded; 19] = [
    BINANCE,
    Recorded {
        file: "binance.fetchTicker.btcusdt",
        call: Call::Ticker { id: "of the call" },
        items: Items::Itself(""),
        ..BINANCE
    },
    Recorded {
        file: "binance.fetchTicker.dogeusdt",
        call: Call::Ticker { id: "of the call" },
        items: Items::Itself(""),
        ..BINANCE
    },
    Recorded {
        // Derivatives: other markets than are ever asked for, in the same form.
        file: "okx.fetchTickers.sample",
        dialect: "okx",
        items: Items::Elements("data"),
        id: "instId",
        figures: "last=last bid=bidPx bidVolume=bidSz ask=askPx askVolume=askSz open=open24h high=high24h low=low24h baseVolume=vol24h quoteVolume=volCcy24h",
        time: Time::Own("ts"),
        ..BINANCE
    },
    Recorded {
        file: "bybit.fetchTickers.spot",
        dialect: "bybit",
        items: Items::Elements("result/list"),
        figures: "last=lastPrice bid=bid1Price bidVolume=bid1Size ask=ask1Price askVolume=ask1Size open=prevPrice24h high=highPrice24h low=lowPrice24h baseVolume=volume24h quoteVolume=turnover24h",
        ratio: "price24hPcnt",
        time: Time::OfAll("time"),
        ..BINANCE
    },
    KRAKEN,
    Recorded {
        file: "kraken.fetchTicker.btcusdt",
        call: Call::Ticker { id: "of the call" },
        ..KRAKEN
    },
    Recorded {
        file: "coinbaseexchange.fetchTicker.btcusdt",
        dialect: "coinbase",
        call: Call::Ticker { id: "BTC-USDT" },
        items: Items::Itself(""),
        id: "",
        figures: "last=price bid=bid ask=ask baseVolume=volume",
        time: Time::OwnDate("time"),
        ..BINANCE
    },
    Recorded {
        file: "kucoin.fetchTickers.sample",
        dialect: "kucoin",
        items: Items::Elements("data/ticker"),
        figures: "last=last bid=buy bidVolume=bestBidSize ask=sell askVolume=bestAskSize high=high low=low change=changePrice baseVolume=vol quoteVolume=volValue",
        ratio: "changeRate",
        time: Time::OfAll("data/time"),
        ..BINANCE
    },
    GATE,
    Recorded { file: "gate.fetchTicker.btcusdt", call: Call::Ticker { id: "of the call" }, ..GATE },
    Recorded {
        file: "bitget.fetchTickers.sample",
        dialect: "bitget",
        items: Items::Elements("data"),
        figures: "last=lastPr bid=bidPr bidVolume=bidSz ask=askPr askVolume=askSz open=open high=high24h low=low24h baseVolume=baseVolume quoteVolume=quoteVolume",
        ratio: "change24h",
        time: Time::Own("ts"),
        ..BINANCE
    },
    Recorded {
        file: "bitstamp.fetchTicker.btcusdt",
        dialect: "bitstamp",
        call: Call::Ticker { id: "BTC/USDT" },
        items: Items::Itself(""),
        id: "",
        figures: "last=last bid=bid ask=ask open=open_24 high=high low=low percentage=percent_change_24 baseVolume=volume",
        time: Time::OwnSeconds("timestamp"),
        ..BINANCE
    },
    Recorded {
        // Of a derivative, in the same form.
        file: "cryptocom.fetchTickers.sample",
        dialect: "cryptocom",
        items: Items::Elements("result/data"),
        id: "i",
        figures: "last=a bid=b ask=k high=h low=l baseVolume=v",
        time: Time::Own("t"),
        ..BINANCE
    },
    Recorded {
        file: "htx.fetchTickers.few",
        dialect: "htx",
        items: Items::Elements("data"),
        figures: "last=close bid=bid bidVolume=bidSize ask=ask askVolume=askSize open=open high=high low=low baseVolume=amount quoteVolume=vol",
        time: Time::OfAll("ts"),
        ..BINANCE
    },
    Recorded {
        file: "htx.fetchTicker.btcusdt",
        dialect: "htx",
        call: Call::Ticker { id: "btcusdt" },
        items: Items::Itself("tick"),
        id: "",
        figures: "last=close bid=bid/0 bidVolume=bid/1 ask=ask/0 askVolume=ask/1 open=open high=high low=low baseVolume=amount quoteVolume=vol",
        time: Time::OfAll("ts"),
        ..BINANCE
    },
    Recorded { file: "mexc.fetchTickers.sample", figures: MEXC, ..MEXC_ONE },
    Recorded { call: Call::Ticker { id: "of the call" }, items: Items::Itself(""), ..MEXC_ONE },
    Recorded {
        file: "upbit.fetchTicker.btcusdt",
        dialect: "upbit",
        call: Call::Ticker { id: "of the call" },
        id: "market",
        figures: "last=trade_price baseVolume=acc_trade_volume_24h quoteVolume=acc_trade_price_24h",
        time: Time::Own("timestamp"),
        ..BINANCE
    },
];

/// Where CCXT has another figure.
static DIFFERS: [Differs; 12] = [
    Differs {
        dialect: "okx",
        figures: &["change", "percentage"],
        why: "reckoned from open and last, which is the market's to do",
    },
    Differs {
        dialect: "okx",
        figures: &["quoteVolume"],
        why: "of a derivative volCcy24h is no quote asset, so CCXT leaves it out; of spot it is",
    },
    Differs {
        dialect: "bybit",
        figures: &["change"],
        why: "reckoned from open and last, which is the market's to do",
    },
    Differs {
        dialect: "bybit",
        figures: &["timestamp"],
        why: "the time of the response, which CCXT does not read",
    },
    Differs {
        dialect: "kraken",
        figures: &["open", "change", "percentage", "quoteVolume"],
        why: "CCXT takes the price of the day's begin for that of 24 hours ago, and the average \
              price times the volume for what was paid",
    },
    Differs {
        dialect: "kucoin",
        figures: &["open"],
        why: "reckoned from last and change, which is the market's to do",
    },
    Differs {
        dialect: "gate",
        figures: &["open", "change"],
        why: "reckoned back from a percentage of two places: digits that nobody has sent",
    },
    Differs {
        dialect: "bitget",
        figures: &["change"],
        why: "reckoned from open and last, which is the market's to do",
    },
    Differs {
        dialect: "bitstamp",
        figures: &["open", "change", "percentage", "quoteVolume"],
        why: "CCXT takes the price of the day's begin for that of 24 hours ago, and the average \
              price times the volume for what was paid",
    },
    Differs {
        dialect: "cryptocom",
        figures: &["open", "change", "percentage"],
        why: "CCXT takes a figure for a percentage that the documentation does not call one",
    },
    Differs {
        dialect: "htx",
        figures: &["change", "percentage", "timestamp"],
        why: "reckoned from open and last, which is the market's to do; and the time of the \
              response, which CCXT reads for one market, but not for all",
    },
    Differs {
        dialect: "upbit",
        figures: &["open", "high", "low", "change", "percentage", "timestamp"],
        why: "CCXT takes figures of the day for those of 24 hours, and the time of the last trade \
              for that of the ticker",
    },
];

pub fn files() -> Vec<&'static str> {
    RECORDED.iter().map(|recorded| recorded.file).collect()
}

fn figure<'t>(ticker: &'t Ticker, name: &str) -> Option<&'t Decimal> {
    match name {
        "last" => Some(&ticker.last),
        "bid" => ticker.bid.as_ref(),
        "ask" => ticker.ask.as_ref(),
        "bidVolume" => ticker.bid_volume.as_ref(),
        "askVolume" => ticker.ask_volume.as_ref(),
        "open" => ticker.open.as_ref(),
        "high" => ticker.high.as_ref(),
        "low" => ticker.low.as_ref(),
        "change" => ticker.change.as_ref(),
        "percentage" => ticker.percentage.as_ref(),
        "baseVolume" => ticker.base_volume.as_ref(),
        "quoteVolume" => ticker.quote_volume.as_ref(),
        _ => panic!("{name} is no figure"),
    }
}

/// A ticker against its item: what is sent, digit for digit; what is not, unknown.
fn check(recorded: &Recorded, body: &Json, item: &Json, ticker: &Ticker) {
    let file = recorded.file;
    for name in FIGURES {
        let path = pairs(recorded.figures).find(|(figure, _)| *figure == name);
        let mut text = path.and_then(|(_, path)| text_at(item, path)).map(str::to_owned);
        if name == "percentage" && !recorded.ratio.is_empty() {
            text = text_at(item, recorded.ratio).map(|ratio| shifted(ratio, 2));
        }
        assert!(path.is_none() || text.is_some(), "{file}: {name} is not there");
        check_digits(figure(ticker, name), text.as_deref(), &format!("{file} {name}"));
    }
    let ours = ticker.timestamp;
    match recorded.time {
        Time::Nowhere => assert_eq!(ours, None, "{file}"),
        Time::Own(path) => {
            assert_eq!(ours.map(|time| time.0.to_string()).as_deref(), text_at(item, path));
        }
        Time::OwnSeconds(path) => {
            let ours = ours.map(|time| (time.0 / 1000).to_string());
            assert_eq!(ours.as_deref(), text_at(item, path));
        }
        Time::OfAll(path) => {
            assert_eq!(ours.map(|time| time.0.to_string()).as_deref(), text_at(body, path));
        }
        Time::OwnDate(path) => {
            let ours = ours.expect("there is one").to_string();
            let sent = text_at(item, path).expect("there is one");
            assert!(sent.starts_with(ours.trim_end_matches('Z')), "{ours} {sent}");
        }
    }
}

#[test]
fn recorded_tickers_equal_the_body_digit_for_digit() {
    for (recorded, fixture) in recordings(&RECORDED, |recorded| recorded.file) {
        let kept = decode_good(recorded.dialect, &fixture, &recorded.call);
        let body = sent(&fixture);
        let items = recorded.items.of(&body);
        assert_eq!(kept.tickers.len(), items.len(), "{}", recorded.file);
        for ((name, item), (id, ticker)) in items.iter().zip(&kept.tickers) {
            let asked = match recorded.call {
                Call::Ticker { id } => Some(id),
                _ => None,
            };
            let own = text_at(item, recorded.id).or(*name).or(asked);
            assert_eq!(Some(id.as_str()), own, "{}", recorded.file);
            check(recorded, &body, item, ticker);
        }
    }
}

#[test]
fn recorded_tickers_equal_ccxt_where_that_is_right() {
    let mut differences = Differences::new(&DIFFERS);
    for (recorded, fixture) in recordings(&RECORDED, |recorded| recorded.file) {
        let kept = decode_good(recorded.dialect, &fixture, &recorded.call);
        let theirs = theirs(&fixture);
        let theirs: Vec<&Json> = match theirs.get("symbol") {
            Some(_) => vec![&theirs],
            None => Items::Members("").of(&theirs).into_iter().map(|(_, item)| item).collect(),
        };
        assert_eq!(kept.tickers.len(), theirs.len(), "{}", recorded.file);
        for (id, ticker) in &kept.tickers {
            let letters = |text: &str| text.replace(['/', '-', '_'], "").to_uppercase();
            let same = |theirs: &&&Json| {
                let symbol = letters(text_at(theirs, "symbol").expect("it has one"));
                // Kraken's own names, and Upbit's with the quote asset first.
                let common = match id.as_str() {
                    "XXBTZUSD" => "BTCUSD".to_owned(),
                    "XBTUSDT" | "USDT-BTC" => "BTCUSDT".to_owned(),
                    id => letters(id),
                };
                symbol == common
            };
            let theirs = theirs.iter().find(same).expect("the same market");
            for name in FIGURES {
                let same = is_near(figure(ticker, name), theirs.get(name));
                differences.check(recorded.dialect, name, same, recorded.file);
            }
            let time = ticker.timestamp.map(|time| time.0.to_string());
            let same = time.as_deref() == text_at(theirs, "timestamp");
            differences.check(recorded.dialect, "timestamp", same, recorded.file);
        }
    }
    differences.all_met();
}
