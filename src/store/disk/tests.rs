//! What is written to the tables and read back, against a model that does everything slot by slot.

use super::sqlite::Database;
use super::{Holder, Replies, schema, tables};
use crate::decimal::Decimal;
use crate::history::StoreError;
use crate::history::testing::{Model, candle, random_changes, series};
use crate::history::{Batch, PAGE, QuoteName, ReadJob, Rows, SavedQuote, SeriesHead, SeriesName};
use crate::interval::Stored;
use crate::record::{Candle, Edge, Ticker};
use crate::rng::Rng;
use crate::time::UnixMs;
use std::ops::Range;
use std::sync::mpsc::sync_channel;

fn database() -> Database {
    let db = Database::in_memory().expect("memory");
    schema::migrate(&db, 0, &schema::MIGRATIONS).expect("sound steps");
    db
}

/// Tables with a candle in each of these slots of one series.
fn filled(interval: Stored, slots: Range<i64>) -> (Database, SeriesName) {
    let (db, name) = (database(), series(interval));
    let mut batch = Batch::default();
    let candles = slots.clone().map(|slot| (slot, Some(candle(interval, slot, 7))));
    batch.of(&name).answered(slots, candles);
    tables::apply(&db, &batch).expect("sound tables");
    (db, name)
}

fn heads(db: &Database) -> Vec<SeriesHead> {
    let (heads, unsound) = tables::heads(db).expect("sound tables");
    assert_eq!(unsound, 0);
    heads
}

fn count_heads(db: &Database) -> (usize, u64) {
    let (heads, unsound) = tables::heads(db).expect("sound tables");
    (heads.len(), unsound)
}

fn spans(head: &SeriesHead) -> Vec<(i64, i64)> {
    (head.covered.iter()).map(|span| (span.start, span.end)).collect()
}

fn read_all(db: &Database, name: &SeriesName) -> Rows {
    let rows = read(db, name, i64::MIN..i64::MAX, usize::MAX, Edge::Oldest);
    assert_eq!(rows.slots, i64::MIN..i64::MAX);
    rows
}

fn read(db: &Database, name: &SeriesName, slots: Range<i64>, limit: usize, keep: Edge) -> Rows {
    let read = ReadJob { ticket: 0, series: name.clone(), slots, limit, keep };
    tables::rows(db, &read).expect("sound tables")
}

/// The tables hold what the model says, count and coverage included.
fn check(db: &Database, name: &SeriesName, model: &Model, context: &str) {
    let rows = read_all(db, name);
    let candles: Vec<Candle> = model.candles.values().cloned().collect();
    assert_eq!(rows.candles, candles, "{context}");
    assert!(rows.unsound.is_empty(), "{context}");
    let head = heads(db).pop().expect("one series");
    assert_eq!(head.extent.count, candles.len() as u64, "{context}");
    assert_eq!(head.extent.first, model.candles.keys().next().copied(), "{context}");
    assert_eq!(head.extent.last, model.candles.keys().next_back().copied(), "{context}");
    let covered: Vec<i64> = head.covered.iter().cloned().flatten().collect();
    let expected: Vec<i64> = model.covered.iter().copied().collect();
    assert_eq!(covered, expected, "{context}");
    let apart = head.covered.windows(2).all(|pair| pair[0].end < pair[1].start);
    assert!(apart, "{context}: {:?}", head.covered);
}

/// A read of any range has the candles of the model at the edge that it names, and says which slots it has read.
fn check_part(db: &Database, name: &SeriesName, model: &Model, rng: &mut Rng, context: &str) {
    let [start, end] = [0, 1].map(|_| rng.below(80) as i64 - 10);
    let (slots, limit) = (start..end, rng.below(20) as usize);
    let inside = model.candles.iter().filter(|(slot, _)| slots.contains(slot));
    let mut expected: Vec<&Candle> = inside.map(|(_, candle)| candle).collect();
    let has_more = expected.len() > limit;
    let keep = if rng.below(2) == 0 { Edge::Oldest } else { Edge::Newest };
    match keep {
        Edge::Oldest => expected.truncate(limit),
        Edge::Newest => drop(expected.drain(..expected.len().saturating_sub(limit))),
    }
    let rows = read(db, name, slots.clone(), limit, keep);
    assert!(rows.candles.iter().eq(expected), "{context}: {slots:?} {limit} {keep:?}");
    assert_eq!(rows.slots != slots, has_more, "{context}: {slots:?} {limit} {keep:?}");
    let covered = rows.covered.iter().cloned().flatten();
    let known = model.covered.iter().copied().filter(|slot| rows.slots.contains(slot));
    assert!(covered.eq(known), "{context}: {slots:?} {limit} {keep:?}");
    assert_eq!(read(db, &series(Stored::H1), slots, limit, keep).candles, []);
}

#[test]
fn what_is_written_is_read_back_whatever_the_order() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let db = database();
        let name = series(Stored::M1);
        let mut model = Model::default();
        for round in 0..40 {
            let mut batch = Batch::default();
            let evicts = rng.below(5) == 0;
            match evicts {
                true => batch.of(&name).evict(rng.below(80) as i64),
                false => *batch.of(&name) = random_changes(&mut rng),
            }
            let before = model.candles.clone();
            model.apply(batch.of(&name));
            let written = tables::apply(&db, &batch).expect("sound tables");
            let grown = model.candles.len() as i64 - before.len() as i64;
            assert_eq!(written.inserted as i64 - written.removed as i64, grown);
            assert!(!evicts || written.evicted == written.removed);
            assert_eq!(written.extents, [(name.clone(), heads(&db)[0].extent)]);
            let context = format!("seed {seed} round {round}");
            check(&db, &name, &model, &context);
            check_part(&db, &name, &model, &mut rng, &context);
        }
        // Writing all candles once more changes nothing.
        let mut again = Batch::default();
        let candles = model.candles.iter().map(|(slot, candle)| (*slot, candle.clone()));
        for (slot, candle) in candles {
            again.of(&name).answered(slot..slot + 1, [(slot, Some(candle))]);
        }
        let written = tables::apply(&db, &again).expect("sound tables");
        assert_eq!((written.inserted, written.updated, written.removed), (0, 0, 0));
    }
}

#[test]
fn page_after_page_is_all_of_it_from_either_end() {
    let count = PAGE as i64 + 500;
    let (db, name) = filled(Stored::M1, 0..count);
    // One row in three is invalid, and two unaligned rows are in one slot.
    db.execute(
        "UPDATE candle SET open = 'x' WHERE time % 180 = 0;
         UPDATE candle SET time = 61 WHERE time = 120; UPDATE candle SET time = 62 WHERE time = 240",
    )
    .expect("sql");
    for (keep, limit) in [(Edge::Oldest, 1), (Edge::Newest, 1), (Edge::Oldest, 9999)]
        .into_iter()
        .chain([(Edge::Newest, 9999), (Edge::Newest, 100), (Edge::Oldest, 100)])
    {
        let (mut left, mut pages, mut found) = (0..count, 0, Vec::new());
        while !left.is_empty() {
            let rows = read(&db, &name, left.clone(), limit, keep);
            let slot = |candle: &Candle| Stored::M1.slot_of(candle.open_time);
            let slots = rows.candles.iter().map(slot).chain(rows.unsound);
            let slots: Vec<i64> = slots.collect();
            assert!(slots.iter().all(|slot| rows.slots.contains(slot)));
            assert!(slots.len() <= limit.min(PAGE) + 2, "{} rows", slots.len());
            found.extend(slots);
            pages += 1;
            match keep {
                Edge::Oldest => left.start = rows.slots.end,
                Edge::Newest => left.end = rows.slots.start,
            }
        }
        found.sort_unstable();
        let mut expected: Vec<i64> = (0..count).collect();
        (expected[2], expected[4]) = (1, 1);
        expected.sort_unstable();
        assert_eq!(found, expected, "{keep:?} {limit}");
        assert!(pages >= count / limit.min(PAGE) as i64 - 2, "{pages} pages");
    }
}

#[test]
fn rows_that_make_no_sense_are_passed_over_and_counted() {
    let (db, name) = filled(Stored::M1, 0..20);
    db.execute(
        "UPDATE candle SET high = '1' WHERE time = 60;
         UPDATE candle SET volume = 'much' WHERE time = 120;
         UPDATE candle SET time = 181 WHERE time = 180;
         UPDATE candle SET close = '8.5' WHERE time = 300;
         INSERT INTO candle SELECT series, 6000, open, high, low, close, volume, seal
             FROM candle WHERE time = 240;
         INSERT INTO span VALUES (1, 3001, 3600, 0), (1, 9000, 8940, 0), (1, 9060, 9120, 0);
         INSERT INTO series (source, symbol, interval) VALUES ('a', 'b', '7m'), ('', 'b', '1m');
         INSERT INTO quote (source, symbol, last, received, seal) VALUES ('a', 'B/C', 'x', 1, 0),
             ('a', 'C/D', '1.5', 2, 0)",
    )
    .expect("sql");
    let rows = read_all(&db, &name);
    assert_eq!(rows.candles.len(), 16);
    assert_eq!(rows.unsound, [1, 2, 3, 5, 100]);
    let newest = read(&db, &name, 0..200, 100, Edge::Newest);
    assert_eq!((newest.candles, newest.unsound), (rows.candles, rows.unsound));
    let (told, unsound) = tables::heads(&db).expect("sound tables");
    assert_eq!((told.len(), unsound), (1, 5));
    assert_eq!(spans(&told[0]), [(0, 20)]);
    assert_eq!(tables::records::<SavedQuote>(&db), Ok((vec![], 2)));
    // Writing all slots again replaces invalid rows, also those that were never covered.
    let candles = (0..200).map(|slot| (slot, Some(candle(Stored::M1, slot, 7))));
    let mut batch = Batch::default();
    batch.of(&name).forget(3..4);
    batch.of(&name).answered(0..200, candles);
    tables::apply(&db, &batch).expect("sound tables");
    let rows = read_all(&db, &name);
    assert_eq!((rows.candles.len(), rows.unsound), (200, vec![]));
    assert_eq!(count_heads(&db), (1, 2));
}

#[test]
fn rows_under_another_name_are_not_believed() {
    let (db, name) = filled(Stored::M1, 1..2);
    db.execute("UPDATE series SET symbol = 'BTC/USDC'").expect("sql");
    let other = SeriesName { symbol: "BTC/USDC".into(), ..name };
    let rows = read_all(&db, &other);
    assert_eq!((rows.candles.len(), rows.unsound), (0, vec![1]));
    assert_eq!(count_heads(&db), (1, 1));
}

#[test]
fn a_quote_comes_back_as_it_was() {
    let db = database();
    let decimal = |text: &str| Decimal::parse(text.as_bytes()).expect("a decimal");
    let ticker = Ticker {
        bid: Some(decimal("0.00000001")),
        ask_volume: Some(Decimal::ZERO),
        high: Some(decimal("9")),
        change: Some(decimal("-1.25")),
        quote_volume: Some(decimal("7")),
        ..Ticker::of_last(decimal("123456789012345678901234567890.5"))
    };
    let mut batch = Batch::default();
    for (symbol, timestamp) in [("BTC/USDT", None), ("ETH/USDT", Some(UnixMs(1_586_991_278_494)))] {
        let name = QuoteName { source: "kraken".into(), symbol: symbol.into() };
        let ticker = Ticker { timestamp, ..ticker.clone() };
        let received_at = UnixMs(1_586_991_278_500);
        batch.quotes.insert(name, SavedQuote { ticker, received_at });
    }
    for _ in 0..2 {
        tables::apply(&db, &batch).expect("sound tables");
        let (quotes, _) = tables::records(&db).expect("sound tables");
        assert_eq!(quotes, batch.quotes.clone().into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn ten_reports_of_damage_in_one_run_give_a_sound_file_up_whatever_is_written_between_them() {
    let dir = std::env::temp_dir().join(format!("marketd-doubts-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let (queue, _replies) = sync_channel(64);
    let mut holder = Holder::new(dir.join("it.db"), Replies { queue, wake: Box::new(|| ()) });
    for (reports, is_kept) in [(0, true), (5, true), (4, true), (1, false)] {
        for _ in 0..reports {
            let damaged: Result<(), _> = Err(StoreError::Damaged("malformed".to_string()));
            assert_eq!(holder.with(|_, _| damaged.clone()), damaged);
        }
        assert_eq!(holder.write(&Batch::default()).is_ok(), is_kept, "{reports}");
    }
    drop(holder);
    std::fs::remove_dir_all(&dir).expect("it is there");
}
