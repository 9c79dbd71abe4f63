//! Kraken: market data of its "REST API". It has names of its own for assets and markets, and
//! failures come with status 200.

use crate::fakes::places::*;
use crate::fakes::shop::*;

pub const FAKE: Fake = Fake {
    name: "kraken",
    id: |base, quote| match base {
        "BTC" => format!("XBT{quote}"),
        "DOGE" => format!("XDG{quote}"),
        base => format!("{base}{quote}"),
    },
    digits: padded,
    places: &[
        Place::fixed(
            "/0/public/Time",
            r#"{"error":[],"result":{"unixtime":$seconds,"rfc1123":"Wed, 15 May 24 10:37:05 +0000"}}"#,
        ),
        Place::markets(
            "/0/public/Ticker",
            "pair",
            r#""$id":{"a":["$ask","7","$askVolume"],"b":["$bid","8","$bidVolume"],"c":["$last","0.00067643"],"v":["1.5","$baseVolume"],"p":["3","4"],"t":[34619,38907],"l":["1","$low"],"h":["2","$high"],"o":"5"}"#,
            MEMBERS,
        ),
        Place::markets(
            "/0/public/AssetPairs",
            "pair",
            r#""$id":{"altname":"$id","wsname":"$ownBase/$quote","aclass_base":"currency","base":"X$ownBase","aclass_quote":"currency","quote":"$quote","lot":"unit","cost_decimals":5,"pair_decimals":$places,"lot_decimals":4,"lot_multiplier":1,"leverage_buy":[2,3],"leverage_sell":[],"fees":[[0,0.26],[50000,0.24]],"fees_maker":[[0,0.16],[50000,0.14]],"fee_volume_currency":"ZUSD","margin_call":80,"margin_stop":40,"ordermin":"0.001","costmin":"5","tick_size":"$tick","status":"online"},"$id.d":{"altname":"$id.d","wsname":"$ownBase/$quote","base":"X$ownBase","quote":"$quote","pair_decimals":0,"lot_decimals":0}"#,
            MEMBERS,
        ),
        // Oldest first, and of the latest 720, whatever is asked, those after `since`.
        Place::candles(
            "/0/public/OHLC",
            &Candles {
                market: "pair",
                interval: ("interval", ["1", "60", "1440"]),
                unit: Unit::Seconds,
                from: Bound::May("since", 1),
                rows: Rows::Last(720),
                ..CANDLES
            },
            r#"[$timeSeconds,"$open","$high","$low","$close","$open","$volume",23]"#,
            r#"{"error":[],"result":{"XPAIR":[$items],"last":1715769300}}"#,
        ),
    ],
    unknown: Refusal(200, r#"{"error":["EQuery:Unknown asset pair"]}"#),
    wrong: Refusal(200, r#"{"error":["EGeneral:Invalid arguments"]}"#),
    too_many: Refusal(200, r#"{"error":["EGeneral:Too many requests"]}"#),
    charge: |_| Charge { pool: "address", units: 1, most: 1, span_ms: 1_000 },
    sends: "last bid ask bidVolume askVolume high low baseVolume",
};

const MEMBERS: &str = r#"{"error":[],"result":{$items}}"#;
