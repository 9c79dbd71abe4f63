//! `marketd export`, `prune` and `rename`: what a person does with the history file.

use crate::config::{Config, Data, Export};
use crate::history::SeriesName;
use crate::record::Candle;
use crate::store::{HistoryReader, Renamed, prune as prune_file, rename as rename_file};
use crate::time::UnixMs;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

/// Why a command has failed, in one line.
pub type Failed = Box<dyn Error>;

fn file(data: &Data) -> Result<&Path, Failed> {
    match data {
        Data::File(path) => Ok(path),
        Data::Memory => Err("--data: expected a file, found :memory:".into()),
    }
}

/// Writes stored candles, oldest first. Returns how many rows of the file were left out since they are
/// damaged.
///
/// As CSV, each has a line with its time in ISO 8601 (UTC), open, high, low, close and volume, after a line
/// that names them. As JSON, they are an array of rows like those of `/api/ecosystem/chart`.
///
/// # Errors
/// If the file cannot be read or the output not be written, or if no source has such candles. A reader
/// that has gone (`| head`) is no fault.
pub fn export(asked: &Export, out: &mut impl Write) -> Result<usize, Failed> {
    let Export { symbol, interval, .. } = asked;
    let reader = HistoryReader::open(file(&asked.data)?)?;
    let mut heads = reader.series()?;
    heads.retain(|it| *it.series.symbol == **symbol && it.extent.count > 0);
    let is_of = |it: &SeriesName, source: &str| *it.source == *source && it.interval == *interval;
    let of = |source: &String| heads.iter().find(|it| is_of(&it.series, source));
    let series = asked.sources.iter().find_map(of).ok_or_else(|| {
        let name = |it: &SeriesName| format!("{} {}", it.source, it.interval.name());
        let stored: Vec<String> = heads.iter().map(|it| name(&it.series)).collect();
        let stored = if stored.is_empty() { "nothing".to_string() } else { stored.join(", ") };
        let (interval, sources) = (interval.name(), asked.sources.join(", "));
        format!("no candles of {symbol} {interval} from {sources}; stored of {symbol}: {stored}")
    })?;
    // The first slot that begins at or after a time.
    let slot = |time: UnixMs| {
        let slot = interval.slot_of(time);
        slot + i64::from(interval.open_of(slot) < time)
    };
    let slots = slot(asked.times.start)..slot(asked.times.end);
    let (mut before, between) = ("\n", if asked.as_json { ",\n" } else { "\n" });
    let head = if asked.as_json { "[" } else { "time,open,high,low,close,volume" };
    let mut written = write!(out, "{head}");
    let unsound = reader.candles(&series.series, slots, |candle| {
        if written.is_ok() {
            written = write_row(out, before, candle, asked.as_json);
            before = between;
        }
    })?;
    let end = if asked.as_json { "\n]\n" } else { "\n" };
    match written.and_then(|()| write!(out, "{end}")).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(format!("standard output: {error}").into()),
        Ok(()) => Ok(unsound),
    }
}

fn write_row(out: &mut impl Write, before: &str, it: &Candle, as_json: bool) -> io::Result<()> {
    let Candle { open_time, open, high, low, close, volume } = it;
    let rest = format_args!("{open},{high},{low},{close},{volume}");
    match as_json {
        false => write!(out, "{before}{open_time},{rest}"),
        true => write!(out, "{before}[{},{rest}]", open_time.0),
    }
}

/// Removes what is stored of markets that the configuration does not track, or only counts it. Returns
/// what to tell.
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
        let pruned = prune_file(path, keep)?;
        return Ok(format!(
            "removed {} series with {} candles; the file has {} bytes\n",
            pruned.series, pruned.candles, pruned.bytes
        ));
    }
    let mut text = String::new();
    let (mut series, mut candles) = (0, 0);
    for head in HistoryReader::open(path)?.series()? {
        let name = &head.series;
        if !keep(&name.source, &name.symbol) {
            let interval = name.interval.name();
            text += &format!("{} {} {interval}: {}\n", name.source, name.symbol, head.extent.count);
            series += 1;
            candles += head.extent.count;
        }
    }
    Ok(text + &format!("{series} series with {candles} candles would be removed by --yes\n"))
}

/// Gives what is stored of one source to another. Returns what to tell.
///
/// # Errors
/// If the file cannot be used, has nothing of the one source, or has candles of the other.
pub fn rename(data: &Data, old: &str, new: &str) -> Result<String, Failed> {
    match rename_file(file(data)?, old, new)? {
        Renamed::Nothing => Err(format!("nothing is stored of source \"{old}\"").into()),
        Renamed::Moved(candles) => Ok(format!("{candles} candles of {old} belong to {new} now\n")),
        Renamed::Taken => {
            let why = "has candles already, and two series cannot become one";
            Err(format!("source \"{new}\" {why}").into())
        }
    }
}
