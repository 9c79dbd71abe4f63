//! The whole core in virtual time: no sockets, no clock, everything from one seed.
//!
//! Clients of all kinds talk to a core that polls exchanges of all kinds, which tell their history as
//! badly as real ones do; clocks jump, and machines sleep. Every claim in every answer is compared with
//! what was really traded, what time it really is, and what the exchanges have said by then; every
//! request gets one answer, or its connection one reason to close; polls come when they are due and
//! stay away when they are not wanted; and when all have left, nothing of them is left.
//!
//! One seed is one run: `MARKETD_SEED=17 cargo test --test library sim::` repeats seed 17 of each test, and
//! `MARKETD_TRACE=1` tells all that happens in it. `scripts/simulate.sh` goes on for a million events.
//!
//! - [`world`]: clocks, agenda, one step after another; [`driver`]: the turns; [`wire`]: sockets
//! - [`client`]: what clients do; [`grammar`]: what they ask; [`answers`]: what they get,
//!   and what is wrong with it
//! - [`listeners`]: clients of the stream; [`lists`]: lists by the piece, several charts at once;
//!   [`udf`]: charting libraries
//! - [`truth`]: what was really traded, and how honestly an exchange tells it;
//!   [`exchange`], [`weather`]: what it sends, and what goes wrong with that
//! - [`ledger`]: what an exchange has said; [`quotes`], [`charts`]: answers compared with that and with the
//!   truth; [`watch`]: deadlines, and polling
//! - [`disk`]: where history is kept, and what goes wrong there
//! - [`reload`]: configurations that are read again in the middle of it
//! - [`setup`]: a world of a seed; [`finale`]: how each run ends
//! - [`bad_day`]: exchanges that fail in every way, with a plainer driver, and judged without a ledger

pub mod answers;
pub mod bad_day;
pub mod charts;
mod client;
pub mod disk;
mod driver;
pub mod exchange;
mod finale;
mod grammar;
mod ledger;
mod listeners;
mod lists;
mod quotes;
mod reload;
mod setup;
use crate::support;
mod trace;
pub mod truth;
mod udf;
mod watch;
pub mod weather;
mod wire;
mod world;

use disk::Disk;
use setup::Theme;
use support::{Rng, for_each_seed, number, seed_after_seed, seeds};

/// One life. Answers how many things happened in it.
fn run(theme: Theme, rng: &mut Rng) -> u64 {
    let until = setup::busy_time(theme, rng);
    let mut world = setup::world(theme, until, None, rng);
    world.run_until(until);
    world.end(1, 5, rng);
    world.happened
}

/// Lives of a daemon, one after the other, over one file. Answers how many things happened in them.
fn lives(rng: &mut Rng) -> u64 {
    let theme = *rng.pick(&[Theme::Clients, Theme::Exchanges, Theme::Reloads]);
    let disk = Disk::new(rng.chance(1, 2), Rng::new(rng.next()));
    let mut until = setup::busy_time(theme, rng);
    let mut world = setup::world(theme, until, Some(disk), rng);
    for _ in 0..rng.below(4) {
        world.run_until(rng.below(until));
        world.check_disk();
        until = setup::busy_time(theme, rng);
        let longest = *rng.pick(&[2000, 200_000, 7_200_000, 150_000_000]);
        let away = rng.below(longest);
        world = setup::next_life(world, theme, until, away, rng);
    }
    world.run_until(until);
    world.end(1, 3, rng);
    world.check_disk();
    world.check_all_on_disk();
    world.happened
}

#[test]
#[cfg_attr(not(feature = "sqlite"), ignore = "this build keeps no file")]
fn a_crash_loses_nothing_that_was_on_disk() {
    for_each_seed(seeds(3), |_, rng| _ = lives(rng));
}

/// A test of some lives of this theme.
macro_rules! runs {
    ($($name:ident: $seeds:literal of $theme:ident;)*) => {$(
        #[test]
        fn $name() {
            for_each_seed(seeds($seeds), |_, rng| _ = run(Theme::$theme, rng));
        }
    )*};
}

runs! {
    clients_of_all_kinds_get_what_is_theirs: 10 of Clients;
    exchanges_of_all_kinds_are_believed_only_when_they_are_right: 10 of Exchanges;
    configurations_that_are_read_again_disturb_nobody: 6 of Reloads;
    a_market_of_hundreds_of_symbols_is_taken_in_whole: 2 of Wide;
    a_long_list_is_read_again_while_quotes_come: 1 of WideAndLong;
    market_lists_change_over_hours: 3 of Long;
}

#[test]
fn on_bad_days_nothing_is_lost_nothing_is_false_and_nobody_is_hammered() {
    for_each_seed(seeds(1), |_, rng| _ = bad_day::run(2 * bad_day::HOUR, rng));
}

/// See `scripts/bad_day.sh`.
#[test]
#[ignore = "a day takes half a minute: see scripts/bad_day.sh"]
fn a_bad_day() {
    bad_day::day(number("MARKETD_FIRST_SEED").unwrap_or(1));
}

/// Seed after seed, until as many things have happened as `MARKETD_EVENTS` says, beginning at
/// `MARKETD_FIRST_SEED`.
#[test]
#[ignore = "a million events take minutes: see scripts/simulate.sh"]
fn among_a_million_events_there_is_no_false_claim() {
    let wanted = number("MARKETD_EVENTS").unwrap_or(1_000_000);
    let (mut happened, mut seeds) = (0, 0);
    seed_after_seed(number("MARKETD_FIRST_SEED").unwrap_or(1), |_, rng| {
        happened += match rng.below(18) {
            0..6 => run(Theme::Clients, rng),
            6..11 => run(Theme::Exchanges, rng),
            16.. => run(Theme::Reloads, rng),
            11 => run(Theme::Wide, rng),
            12 => run(Theme::Long, rng),
            _ => lives(rng),
        };
        seeds += 1;
        happened >= wanted
    });
    eprintln!("{happened} events in {seeds} seeds, and no false claim");
}
