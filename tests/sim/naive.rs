//! What is to be served of a ticker, by the exchange's own text.

use crate::support::naive::plain;

/// Names of the figures of a quote, as they are served, and as the exchange sends them.
const NAMES: [(&str, &str); 12] = [
    ("last", "lastPrice"),
    ("bid", "bidPrice"),
    ("ask", "askPrice"),
    ("bidVolume", "bidQty"),
    ("askVolume", "askQty"),
    ("open", "openPrice"),
    ("high", "highPrice"),
    ("low", "lowPrice"),
    ("change", "priceChange"),
    ("percentage", "priceChangePercent"),
    ("baseVolume", "volume"),
    ("quoteVolume", "quoteVolume"),
];

/// What is to be served of one ticker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// By served name; `None`: null.
    pub named: Vec<(&'static str, Option<String>)>,
    pub timestamp: Option<i64>,
}

impl Figures {
    /// Reads the exchange's members, by its names.
    pub fn of(member: impl Fn(&str) -> Option<String>) -> Figures {
        let mut named: Vec<(&'static str, Option<String>)> = (NAMES.iter())
            .map(|(ours, theirs)| (*ours, member(theirs).map(|text| plain(&text))))
            .collect();
        // A price of zero is none, and nothing is offered at no price.
        for (price, volume) in [(1, Some(3)), (2, Some(4)), (5, None), (6, None), (7, None)] {
            if named[price].1.as_deref() == Some("0") {
                named[price].1 = None;
            }
            if let (None, Some(volume)) = (&named[price].1, volume) {
                named[volume].1 = None;
            }
        }
        Figures { named, timestamp: member("closeTime").and_then(|text| text.parse().ok()) }
    }

    /// The figure of that served name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.named.iter().find(|(known, _)| *known == name);
        found.and_then(|(_, value)| value.as_deref())
    }
}
