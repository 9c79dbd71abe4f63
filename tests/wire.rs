//! Bytes on the wire, for their parsers alone: however they are split on their way, they mean the same.
//! (Requests: `tests/requests`.)
//!
//! Tables of messages, each fed in growing prefixes; limits at one below, at and one above; and
//! seeded garbage, fed in the same ways. One seed is one run: `MARKETD_SEED=7 cargo test --test
//! library wire::` repeats the garbage of seed 7 alone.

mod bodies;
mod garbage;
mod responses;

use std::fmt::Debug;

/// Feeds growing prefixes to a parser: none is decided differently from the whole, and what is decided stays
/// so. Returns what the whole comes to; `None` if it is not decided.
pub fn check_prefixes<'a, T: PartialEq + Debug>(
    bytes: &'a [u8],
    context: &str,
    parse: impl Fn(&'a [u8]) -> Option<T>,
) -> Option<T> {
    let whole = parse(bytes);
    let mut decided = false;
    for end in 0..bytes.len() {
        match parse(&bytes[..end]) {
            None => assert!(!decided, "{context}: undone at {end}"),
            found => {
                assert_eq!(found, whole, "{context}: at {end}");
                decided = true;
            }
        }
    }
    whole
}
