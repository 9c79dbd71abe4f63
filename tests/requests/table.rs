//! The rows: where they are gathered, and how each is tried.

use crate::requests::bench::{Bench, show};
use crate::requests::{fields, framing, line, sequence, target};
use marketd::config::Limits;
use std::collections::HashSet;

/// What is sent, and what it comes to.
pub struct Row {
    /// Where it is written.
    pub rule: &'static str,
    /// Everything that the client sends.
    pub bytes: Vec<u8>,
    /// Every answer in its order, a status and where it is an error its code, then `open` or
    /// `shut`; `head` behind a status: the body was left out.
    pub expected: &'static str,
}

/// One chapter: rows that differ in one place, and what stands around it.
#[derive(Clone)]
pub struct Chapter {
    /// Rule, what is put into the place, what it comes to, with ` | ` between them. Each character below
    /// U+0100 is the byte of its number.
    pub rows: &'static [&'static str],
    /// Before the place.
    pub before: &'static str,
    /// Behind it.
    pub after: &'static str,
}

/// A second request behind the one that matters: it tells whether both ends agree where the first
/// one ended, and whether the connection was kept.
pub const PROBE: &str = "GET /probe HTTP/1.1\r\nHost: h\r\n\r\n";

/// A placeholder for the strong tag of [`TAGGED`].
pub const TAG: &str = "@TAG@";

/// An address whose answer has a tag.
pub const TAGGED: &str = "/api/v1/categories";

impl Chapter {
    fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.rows.iter().map(|row| {
            let fields: Vec<&str> = row.split(" | ").collect();
            let [rule, text, expected] = fields[..] else {
                panic!("{row:?} is no row");
            };
            Row { rule, bytes: bytes_of(&[self.before, text, self.after].concat()), expected }
        })
    }
}

/// Each character is one byte.
pub fn bytes_of(text: &str) -> Vec<u8> {
    let byte = |c: char| u8::try_from(u32::from(c)).expect("a character of the table is one byte");
    text.chars().map(byte).collect()
}

/// The whole table.
pub fn table() -> Vec<Row> {
    let chapters =
        [line::CHAPTERS, target::CHAPTERS, fields::CHAPTERS, framing::CHAPTERS, sequence::CHAPTERS];
    chapters.concat().iter().flat_map(|chapter| chapter.rows()).collect()
}

impl Row {
    /// The row with the tag of an answer that this bench gives.
    pub fn bytes_with_tag(&self, tag: &[u8]) -> Vec<u8> {
        let Some(at) = self.bytes.windows(TAG.len()).position(|part| part == TAG.as_bytes()) else {
            return self.bytes.clone();
        };
        [&self.bytes[..at], tag, &self.bytes[at + TAG.len()..]].concat()
    }
}

#[test]
fn the_table_has_two_hundred_different_rows_and_each_names_its_rule() {
    let table = table();
    assert!(table.len() >= 200, "{} rows", table.len());
    let mut seen = HashSet::new();
    let again = table.iter().filter(|row| !seen.insert(&row.bytes));
    let again: Vec<String> = again.map(|row| show(&row.bytes)).collect();
    assert!(again.is_empty(), "twice: {again:#?}");
    for row in &table {
        assert!(!row.rule.is_empty(), "{}", show(&row.bytes));
        let end = row.expected.rsplit(", ").next();
        assert!(matches!(end, Some("open" | "shut")), "{}", row.expected);
    }
}

#[test]
fn every_row_comes_to_what_its_rule_says_wherever_it_is_cut() {
    let mut bench = Bench::new(Limits::default());
    let tag = bench.tag();
    let mut wrong = Vec::new();
    for row in table() {
        let bytes = row.bytes_with_tag(&tag);
        let whole = bench.run([&bytes[..]]);
        if whole.summary() != row.expected {
            let (found, bytes) = (whole.summary(), show(&bytes));
            wrong.push(format!(
                "{}: {bytes}\n  expected {}\n  found    {found}",
                row.rule, row.expected
            ));
            continue;
        }
        for cut in 1..bytes.len() {
            let parts = bench.run([&bytes[..cut], &bytes[cut..]]);
            assert_eq!(parts, whole, "cut at {cut}: {}", show(&bytes));
        }
        let drops = bench.run(bytes.chunks(1));
        assert_eq!(drops, whole, "byte by byte: {}", show(&bytes));
    }
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    bench.check_empty();
}
