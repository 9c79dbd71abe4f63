//! Raw requests against the whole of what answers them: a table of bytes and of what they come
//! to, each row with the rule that says so; limits at one below, at and one above; every end that
//! a connection can have; and seeded damage to the table.
//!
//! The core is driven without a socket ([`bench`]), so that every row is cut at every byte; and once more over
//! real sockets, against the built binary ([`sockets`]). What a row expects was taken from the RFCs before the
//! row was run.
//!
//! One seed is one run: `MARKETD_SEED=7 cargo test --test library requests::fuzz` repeats the damage of
//! seed 7 alone; `scripts/fuzz.sh` does it for as long as one likes.

mod answers;
mod bench;
mod ends;
mod fairness;
mod fields;
mod framing;
mod fuzz;
mod limits;
mod line;
mod rates;
mod sequence;
mod sockets;
mod table;
mod target;
