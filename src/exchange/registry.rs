//! The table of exchanges: every dialect that this build has, by name, and those of files.
//!
//! A dialect lives as long as the program: what it says is borrowed by every request.

use super::check::{FileFault, check, not_a_dialect};
use super::dialect::Dialect;
use crate::config::SourceConfig;
use std::sync::LazyLock;

macro_rules! built_in {
    ($($name:literal)+) => { [$( include_str!(concat!("dialects/", $name, ".json")) ),+] };
}

/// In the order of `--help`.
static BUILT_IN: [&str; 14] = built_in! {
    "binance" "okx" "bybit" "kraken" "coinbase" "kucoin" "gate" "bitget" "binanceus" "bitstamp"
    "cryptocom" "htx" "mexc" "upbit"
};

static DIALECTS: LazyLock<Vec<Dialect>> = LazyLock::new(|| {
    let read = |text: &&str| Dialect::read(text).expect("a test reads every file");
    BUILT_IN.iter().map(read).collect()
});

/// The JSON Schema of a dialect's file, made from the structs that it is read into.
pub const SCHEMA: &str = include_str!("dialects/schema.json");

/// The largest file of a dialect. The largest one of this build has 6 KB.
pub const FILE_BYTES: usize = 256 * 1024;

impl Dialect {
    /// The dialect of this name.
    pub fn by_name(name: &str) -> Option<&'static Dialect> {
        DIALECTS.iter().find(|dialect| dialect.name == name)
    }

    /// The dialect of a source. That of a file is kept for as long as the program runs.
    pub fn of(source: &SourceConfig) -> Option<&'static Dialect> {
        if source.dialect_text.is_empty() {
            return Dialect::by_name(source.spoken());
        }
        let mut dialect = Dialect::read(&source.dialect_text).ok()?;
        let symbols = source
            .symbols
            .iter()
            .filter_map(|symbol| symbol.split_once('/'));
        dialect.named = symbols
            .map(|(base, quote)| (base.into(), quote.into()))
            .collect();
        Some(Box::leak(Box::new(dialect)))
    }

    /// The names of all dialects.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DIALECTS.iter().map(Dialect::name)
    }

    /// The dialect that a file's text describes, or everything that is wrong with it.
    pub fn read(text: &str) -> Result<Dialect, Vec<FileFault>> {
        if text.len() > FILE_BYTES {
            let message = format!("larger than {FILE_BYTES} bytes");
            return Err(vec![FileFault {
                line: 1,
                member: String::new(),
                message,
            }]);
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let read = serde_path_to_error::deserialize(&mut json);
        let read = read.map_err(|error| {
            let member = error.path().to_string();
            (member, error.into_inner())
        });
        let whole = |dialect| {
            json.end()
                .map(|()| dialect)
                .map_err(|error| (String::new(), error))
        };
        match read.and_then(whole) {
            Ok(dialect) => check(&dialect, text).map(|()| dialect),
            Err((member, error)) => Err(vec![not_a_dialect(member, &error)]),
        }
    }
}
