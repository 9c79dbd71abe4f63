//! `/udf/...`: TradingView's protocol for data feeds (UDF), as the adapter of its charting library speaks it.
//!
//! Times are in seconds. What cannot be answered is `{"s":"error","errmsg":...}` with status 200, because the
//! adapter reads nothing else. Candles, quotes and symbols are those of the other addresses, digit for digit.

mod feed;
mod history;
mod markets;

pub use feed::{config, time};
pub use history::history;
pub use markets::{quotes, search, symbols};
