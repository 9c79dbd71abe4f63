//! The table of exchanges: every dialect that this build has, by name, and those of files.
//!
//! A dialect lives as long as the program: what it says is borrowed by every request.

use super::check::check;
use super::dialect::{Dialect, DialectForm};
use super::listing::ListingField;
use crate::config::values::read_text;
use crate::config::{ConfigFault, Report, SourceConfig};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Files without the white space of their layout, as `scripts/build.rs` makes them.
macro_rules! built_in {
    ($($name:literal)+) => { [$(include_str!(concat!(env!("OUT_DIR"), "/", $name, ".json"))),+] };
}

/// In the order of `--help`.
static BUILT_IN: [&str; 14] = built_in! {
    "binance" "okx" "bybit" "kraken" "coinbase" "kucoin" "gate" "bitget" "binanceus" "bitstamp"
    "cryptocom" "htx" "mexc" "upbit"
};

static DIALECTS: LazyLock<Vec<Dialect>> = LazyLock::new(|| {
    let read = |text: &&str| Dialect::read("built in", text).expect("a test reads every file");
    BUILT_IN.iter().map(read).collect()
});

/// Most dialects of files that are kept: each takes some ten kilobytes, and a source that is reloaded with
/// another file or other symbols takes one more. Nobody edits files so often without a restart.
const KEPT_MOST: usize = 1000;

/// Dialects of files that are kept.
static KEPT: AtomicUsize = AtomicUsize::new(0);

/// The JSON Schema of a dialect's file, made from the structs that it is read into, in gzip.
pub const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/dialect-schema.json.gz"));

/// The largest file of a dialect. The largest one of this build has 6 KB.
pub const FILE_BYTES: usize = 256 * 1024;

impl Dialect {
    /// The dialect of this name.
    pub fn by_name(name: &str) -> Option<&'static Dialect> {
        DIALECTS.iter().find(|dialect| dialect.name() == name)
    }

    /// True if so many more dialects of files may be kept.
    pub fn has_room(count: usize) -> bool {
        KEPT.load(Ordering::Relaxed) + count <= KEPT_MOST
    }

    /// The dialect of a source. That of a file is kept for as long as the program runs: see
    /// [`Dialect::has_room`].
    pub fn for_source(source: &SourceConfig) -> Option<&'static Dialect> {
        if source.dialect_text.is_empty() {
            return Dialect::by_name(source.spoken());
        }
        let mut dialect = Dialect::read(&source.dialect, &source.dialect_text).ok()?;
        let symbols = source.symbols.iter();
        let symbols = symbols.filter_map(|symbol| symbol.split_once('/'));
        let named = symbols.map(|(base, quote)| (base.into(), quote.into()));
        dialect.named = named.collect();
        KEPT.fetch_add(1, Ordering::Relaxed);
        Some(Box::leak(Box::new(dialect)))
    }

    /// The names of all dialects.
    pub fn names() -> impl Iterator<Item = &'static str> {
        DIALECTS.iter().map(Dialect::name)
    }

    /// The dialect that this file's text describes, or everything that is wrong with it.
    pub fn read(file: &str, text: &str) -> Result<Dialect, Vec<ConfigFault>> {
        let (mut form, mut report) = (DialectForm::default(), Report::default());
        if text.len() > FILE_BYTES {
            report.open(file, text);
            report.fault("", format!("larger than {FILE_BYTES} bytes"));
            return Err(report.close().err().unwrap_or_default());
        }
        read_text(&mut (&mut form, &()), file, text, &mut report);
        if let Some(quote) = &form.markets.quote {
            form.markets.constants.add(ListingField::Quote, quote);
        }
        check(&form, &mut report);
        report.close()?;
        Ok(Dialect { file: form, named: Vec::new() })
    }
}
