//! The history file that the demo exchange plays: read at the start, before the loop runs.

use crate::config::{Config, DEMO, Data, SourceConfig};
use crate::demo::{Demo, RecordedMarkets};
use crate::history::SeriesHead;
use crate::store::HistoryReader;
use crate::time::UnixMs;
use std::error::Error;
use std::fs::canonicalize;
use std::path::Path;

/// Most candles that are played. Each takes 88 bytes. A day of 24 markets has 34,560 minute candles.
const MOST: usize = 5_000_000;

/// Slots before the start that are read too: more than the 24 hours of a quote, and than a backfill needs.
const BEFORE: i64 = 1500;

/// Loads the recording that the configuration names, if any, into the demo exchange, and sets the start of
/// its clock.
pub fn play(config: &mut Config, demo: &mut Demo) -> Result<(), String> {
    let settings = config.demo.as_mut().and_then(|it| Some((it.replay.as_ref()?, &mut it.at)));
    let Some((replay, at)) = settings else { return Ok(()) };
    let path = Path::new(&replay.data);
    *at = replay.from.or(*at);
    let done = read(path, at, &config.data, &config.sources, demo);
    done.map_err(|why| why.to_string())
}

/// Reads the recording. Each source of the demo exchange plays the source of the file with the same id, or
/// else the first source of the file.
fn read(
    path: &Path,
    at: &mut Option<UnixMs>,
    own: &Data,
    sources: &[SourceConfig],
    demo: &mut Demo,
) -> Result<(), Box<dyn Error>> {
    let reader = HistoryReader::open(path)?;
    if matches!(own, Data::File(own) if canonicalize(own).ok() == canonicalize(path).ok()) {
        return Err("expected another file than that of data, which is written to".into());
    }
    let mut heads = reader.series()?;
    heads.retain(|head| head.extent.count > 0);
    let begin = |head: &SeriesHead| {
        let interval = head.series.interval;
        Some((interval, interval.open_of(head.extent.first?)))
    };
    let begin = heads.iter().filter_map(begin).min().ok_or("it has no candles")?.1;
    let from = *at.get_or_insert(begin);
    let mut count = 0;
    for source in sources.iter().filter(|it| it.dialect == DEMO) {
        let own = heads.iter().find(|head| *head.series.source == *source.id);
        let plays = &own.unwrap_or(&heads[0]).series.source;
        let mut markets = RecordedMarkets::new();
        for SeriesHead { series, extent, .. } in &heads {
            if series.source != *plays || !source.may_track(&series.symbol) {
                continue;
            }
            let market = markets.entry(series.symbol.to_string()).or_default();
            let slots = series.interval.slot_of(from) - BEFORE..extent.last.unwrap_or(0) + 1;
            reader.candles(series, slots, |candle| {
                count += 1;
                if count <= MOST {
                    market.push(series.interval, candle);
                }
            })?;
        }
        demo.replay(source.id.clone(), markets);
    }
    reader.confirm()?;
    match count > MOST {
        true => Err(format!("expected at most {MOST} candles, found {count}").into()),
        false => Ok(()),
    }
}
