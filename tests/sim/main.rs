//! The whole core in virtual time: no sockets, no clock, everything from one seed.
//!
//! Clients of all kinds talk to a core that polls exchanges of all kinds. Every answer is compared
//! with what the exchanges have said by then; every request gets one answer, or its connection
//! one reason to close; polls come when they are due and stay away when they are not wanted; and
//! when all have left, nothing of them is left.
//!
//! One seed is one run: `MARKETD_SEED=17 cargo test --test sim` repeats seed 17 of each test, and
//! `MARKETD_TRACE=1` tells all that happens in it.
//!
//! - [`world`]: clocks, agenda, one step after another; [`driver`]: the turns; [`wire`]: sockets
//! - [`client`]: what clients do; [`grammar`]: what they ask; [`answers`]: what they get
//! - [`exchange`], [`replies`], [`weather`], [`brain`]: exchanges, and what goes wrong with them
//! - [`ledger`]: what an exchange has said; [`verdict`], [`quotes`], [`charts`]: answers compared
//!   with that; [`schedule`]: polling; [`watch`]: deadlines; [`naive`]: slow and obvious sums
//! - [`setup`]: a world of a seed; [`finale`]: how each run ends

mod answers;
mod brain;
mod charts;
mod client;
mod driver;
mod exchange;
mod finale;
mod grammar;
mod ledger;
mod naive;
mod quotes;
mod replies;
mod schedule;
mod setup;
#[path = "../support/mod.rs"]
mod support;
mod trace;
mod verdict;
mod watch;
mod weather;
mod wire;
mod world;

use setup::Theme;
use support::{Rng, for_each_seed};

fn run(theme: Theme, rng: &mut Rng) {
    let until = setup::busy_time(theme, rng);
    let mut world = setup::world(theme, until, rng);
    world.run_until(until);
    match rng.chance(1, 5) {
        true => world.stop(rng, false),
        false => world.recover_and_stop(rng),
    }
}

#[test]
fn clients_of_all_kinds_get_what_is_theirs() {
    for_each_seed(80, |_, rng| run(Theme::Clients, rng));
}

#[test]
fn exchanges_of_all_kinds_are_believed_only_when_they_are_right() {
    for_each_seed(80, |_, rng| run(Theme::Exchanges, rng));
}

#[test]
fn a_market_of_hundreds_of_symbols_is_taken_in_whole() {
    for_each_seed(16, |_, rng| run(Theme::Wide, rng));
}

#[test]
fn a_long_list_is_read_again_while_quotes_come() {
    for_each_seed(8, |_, rng| run(Theme::WideAndLong, rng));
}

#[test]
fn market_lists_change_over_hours() {
    for_each_seed(24, |_, rng| run(Theme::Long, rng));
}
