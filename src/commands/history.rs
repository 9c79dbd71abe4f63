//! `marketd export`, `backup`, `prune` and `rename`: the commands for the history file.

use crate::config::{Config, Data, Export, ExportFormat};
use crate::history::SeriesName;
use crate::record::Candle;
use crate::store::{HistoryReader, NotRenamed, StoredMarkets};
use crate::store::{prune as prune_file, rename as rename_file, renamed};
use crate::time::UnixMs;
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Why a command has failed, as one line.
pub type Failed = Box<dyn Error>;

fn file(data: &Data) -> Result<&Path, Failed> {
    match data {
        Data::File(path) => Ok(path),
        Data::Memory => Err("--data: expected a file, found :memory:".into()),
    }
}

/// Writes stored candles, market by market, oldest first. Returns how many damaged rows of the file were left
/// out.
///
/// CSV begins with a line of column names. Then each candle is a line with its time in ISO 8601 (UTC), open,
/// high, low, close and volume. JSON is an array of rows like the rows of `/api/ecosystem/chart`. In both, a
/// row begins with source and symbol, unless only one market was requested. In JSON lines, each candle is an
/// object.
///
/// # Errors
/// If the file cannot be read, the output cannot be written, or no source has such candles of a market. A
/// closed pipe (`| head`) is no error.
pub fn export(asked: &Export, out: &mut impl Write) -> Result<usize, Failed> {
    let interval = asked.interval;
    let reader = HistoryReader::open(file(&asked.data)?)?;
    let mut heads = reader.series()?;
    heads.retain(|it| it.extent.count > 0);
    let all: Vec<&SeriesName> = heads.iter().map(|it| &it.series).collect();
    let series = chosen(asked, &all)?;
    // The first slot that begins at or after a time.
    let slot = |time: UnixMs| {
        let slot = interval.slot_of(time);
        slot + i64::from(interval.open_of(slot) < time)
    };
    let slots = slot(asked.times.start)..slot(asked.times.end);
    let names_market = asked.symbols.len() != 1;
    let (head, mut before, between, end) = match (asked.format, names_market) {
        (ExportFormat::Csv, false) => ("time,open,high,low,close,volume", "\n", "\n", "\n"),
        (ExportFormat::Csv, true) => {
            ("source,symbol,time,open,high,low,close,volume", "\n", "\n", "\n")
        }
        (ExportFormat::Json, _) => ("[", "\n", ",\n", "\n]\n"),
        (ExportFormat::JsonLines, _) => ("", "", "", ""),
    };
    let (mut written, mut unsound) = (write!(out, "{head}"), 0);
    for series in series {
        if written.is_err() {
            break;
        }
        unsound += reader.candles(series, slots.clone(), |candle| {
            if written.is_ok() {
                let row = |out| write_row(out, asked.format, names_market, series, candle);
                written = write!(out, "{before}").and_then(|()| row(out));
                before = between;
            }
        })?;
    }
    reader.confirm()?;
    match written.and_then(|()| write!(out, "{end}")).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(format!("standard output: {error}").into()),
        Ok(()) => Ok(unsound),
    }
}

/// For each market, the series of the first source that has it.
fn chosen<'a>(asked: &Export, stored: &[&'a SeriesName]) -> Result<Vec<&'a SeriesName>, Failed> {
    let Export { interval, sources, .. } = asked;
    let rank = |it: &SeriesName| {
        let rank = sources.iter().position(|source| **source == *it.source);
        rank.or(asked.any_source.then_some(sources.len()))
    };
    let mut symbols: Vec<&str> = asked.symbols.iter().map(String::as_str).collect();
    if symbols.is_empty() {
        let fits = stored.iter().filter(|it| it.interval == *interval && rank(it).is_some());
        symbols = fits.map(|it| &*it.symbol).collect();
        symbols.sort_unstable();
        symbols.dedup();
    }
    let mut series = Vec::new();
    for symbol in symbols {
        let of_symbol = || stored.iter().filter(|it| *it.symbol == *symbol);
        let ranked = of_symbol().filter(|it| it.interval == *interval);
        let ranked = ranked.filter_map(|it| Some((rank(it)?, *it)));
        let Some((_, found)) = ranked.min_by_key(|(rank, _)| *rank) else {
            let has: Vec<String> =
                of_symbol().map(|it| format!("{} {}", it.source, it.interval.name())).collect();
            let has = if has.is_empty() { "nothing".to_string() } else { has.join(", ") };
            let from = if asked.any_source { "any source".to_string() } else { sources.join(", ") };
            let interval = interval.name();
            let message =
                format!("no candles of {symbol} {interval} from {from}; stored of {symbol}: {has}");
            return Err(message.into());
        };
        series.push(found);
    }
    Ok(series)
}

/// Writes one candle of this series.
fn write_row(
    out: &mut impl Write,
    format: ExportFormat,
    names_market: bool,
    SeriesName { source, symbol, interval }: &SeriesName,
    candle: &Candle,
) -> io::Result<()> {
    let Candle { open_time, open, high, low, close, volume } = candle;
    let figures = format_args!("{open},{high},{low},{close},{volume}");
    let (ms, interval) = (open_time.0, interval.name());
    match (format, names_market) {
        (ExportFormat::Csv, false) => write!(out, "{open_time},{figures}"),
        (ExportFormat::Csv, true) => write!(out, "{source},{symbol},{open_time},{figures}"),
        (ExportFormat::Json, false) => write!(out, "[{ms},{figures}]"),
        (ExportFormat::Json, true) => write!(out, "[\"{source}\",\"{symbol}\",{ms},{figures}]"),
        (ExportFormat::JsonLines, _) => writeln!(
            out,
            "{{\"source\":\"{source}\",\"symbol\":\"{symbol}\",\"interval\":\"{interval}\",\
             \"time\":{ms},\"open\":{open},\"high\":{high},\"low\":{low},\"close\":{close},\
             \"volume\":{volume}}}"
        ),
    }
}

/// Writes a copy of the history file as of now, even while marketd runs. Returns the text to print.
///
/// # Errors
/// If the file cannot be read, or the copy exists or cannot be written.
pub fn backup(data: &Data, copy: &Path) -> Result<String, Failed> {
    let name = copy.display();
    let check_is_new = || match copy.symlink_metadata() {
        Ok(_) => Err("it exists, and is left untouched"),
        Err(_) => Ok(()),
    };
    let reader = HistoryReader::open(file(data)?)?;
    let mut draft = copy.as_os_str().to_os_string();
    draft.push(format!("-new-{}", std::process::id()));
    let write = || -> Result<(), Failed> {
        check_is_new()?;
        let file = fs::File::create_new(&draft)?;
        reader.copy_into(draft.as_ref())?;
        reader.confirm()?;
        file.sync_all()?;
        check_is_new()?;
        fs::rename(&draft, copy)?;
        // Not every file system can sync a directory.
        let directory = std::path::absolute(copy)?;
        let _ = directory.parent().map(|it| fs::File::open(it)?.sync_all());
        Ok(())
    };
    if let Err(error) = write() {
        let _ = fs::remove_file(&draft);
        return Err(format!("{name}: {error}").into());
    }
    Ok(format!("{name} has {} bytes\n", fs::metadata(copy)?.len()))
}

/// Removes the stored data of markets that the configuration does not track, or only lists it. Returns the
/// text to print.
///
/// # Errors
/// If the file cannot be used.
pub fn prune(config: &Config, yes: bool) -> Result<String, Failed> {
    let path = file(&config.data)?;
    let keep = |source: &str, symbol: &str| {
        let mut sources = config.sources.iter();
        sources.any(|it| it.id == source && it.may_track(symbol))
    };
    if yes {
        let (gone, bytes) = prune_file(path, keep)?;
        return Ok(format!("{}removed {}; the file has {bytes} bytes\n", list(&gone), sum(&gone)));
    }
    let mut gone = HistoryReader::open(path)?.markets()?;
    gone.retain(|name, _| !keep(&name.source, &name.symbol));
    Ok(format!("{}--yes removes {}\n", list(&gone), sum(&gone)))
}

/// The stored data as text, one line for each market.
fn list(markets: &StoredMarkets) -> String {
    let mut text = String::new();
    for (name, stored) in markets {
        let series = stored
            .series
            .iter()
            .map(|(interval, count)| format!("{count} candles of {}", interval.name()));
        let rest = [(stored.has_quote, "last quote"), (stored.has_rules, "rules")];
        let rest = rest.into_iter().filter(|(is_there, _)| *is_there);
        let parts: Vec<String> = series.chain(rest.map(|(_, what)| what.to_string())).collect();
        text += &format!("{} {}: {}\n", name.source, name.symbol, parts.join(", "));
    }
    text
}

/// A summary of the stored data.
fn sum(markets: &StoredMarkets) -> String {
    let series = || markets.values().flat_map(|it| &it.series);
    let candles: u64 = series().map(|(_, count)| count).sum();
    let plural = if markets.len() == 1 { "" } else { "s" };
    format!("{} market{plural}, {} series with {candles} candles", markets.len(), series().count())
}

/// Gives the stored data of one source to another id, or only lists it. Returns the text to print.
///
/// # Errors
/// If the file cannot be used, has no data of the old source, or already has data of the new one.
pub fn rename(data: &Data, old: &str, new: &str, dry_run: bool) -> Result<String, Failed> {
    let path = file(data)?;
    let why = |why| match why {
        NotRenamed::Nothing => format!("nothing is stored of source \"{old}\""),
        NotRenamed::Taken => format!(
            "something is stored of source \"{new}\" already, and two sources cannot become one: see \
             marketd prune"
        ),
    };
    if dry_run {
        let moved = renamed(HistoryReader::open(path)?.markets()?, old, new).map_err(why)?;
        return Ok(format!("{}{} would belong to {new}\n", list(&moved), sum(&moved)));
    }
    let moved = rename_file(path, old, new)?.map_err(why)?;
    Ok(format!("{}{} of {old} belong to {new} now\n", list(&moved), sum(&moved)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Stored;

    #[test]
    fn all_markets_of_a_source_are_those_that_it_has() {
        let name = |source: &str, symbol: &str| SeriesName {
            source: source.into(),
            symbol: symbol.into(),
            interval: Stored::M1,
        };
        let stored = [name("a", "X/USDT"), name("b", "X/USDT"), name("b", "Y/USDT")];
        let chosen = |sources: &[&str], any_source| {
            let asked = Export {
                data: Data::Memory,
                symbols: Vec::new(),
                interval: Stored::M1,
                sources: sources.iter().map(|it| it.to_string()).collect(),
                any_source,
                times: UnixMs(0)..UnixMs(1),
                format: ExportFormat::Csv,
            };
            let stored: Vec<&SeriesName> = stored.iter().collect();
            let found = chosen(&asked, &stored).expect("no market is named");
            found.iter().map(|it| format!("{} {}", it.source, it.symbol)).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&["a"], false), ["a X/USDT"]);
        assert_eq!(chosen(&["a"], true), ["a X/USDT", "b Y/USDT"]);
        assert!(chosen(&["c"], false).is_empty());
    }
}
