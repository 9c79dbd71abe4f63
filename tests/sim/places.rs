//! Where the name of an exchange leads, and what answers there.
//!
//! Owns the addresses of one exchange, each with its nature, and whether and when the name moves: from then on
//! it leads to the last address alone, and some time later nobody answers at the others any more.

use super::weather::{Fault, SECOND};
use crate::support::Rng;

/// How long the old addresses of a name that has moved serve on: by then, the daemon has looked it up again.
const SERVE_ON: u64 = 320 * SECOND;

/// What answers at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    Alive,
    /// It answers well, and takes this much longer, in microseconds.
    Slow(u64),
    Refusing,
    Silent,
    NoWay,
    /// It takes every request, and then this happens.
    HalfDead(Fault),
}

/// See the module's page.
#[derive(Clone, Debug)]
pub struct Places {
    all: Vec<Address>,
    /// When the name moves.
    moves_at: Option<u64>,
}

impl Places {
    /// Those of a seed.
    pub fn any(until: u64, rng: &mut Rng) -> Places {
        use Address::*;
        let half_dead = HalfDead(*rng.pick(&[
            Fault::Stall,
            Fault::StallMid,
            Fault::Reset,
            Fault::EofMid,
            Fault::Status(503),
        ]));
        let all = match rng.below(10) {
            0 => vec![Refusing, Alive],
            1 => vec![NoWay, Alive, Refusing],
            2 => vec![half_dead, Alive],
            3 => vec![Alive, half_dead, Refusing],
            4 => vec![Slow(rng.below(SECOND / 5)), Alive],
            5 => vec![Silent, Alive],
            6 => vec![Refusing, Alive, Silent, NoWay],
            7 => vec![Alive, Alive],
            _ => vec![Alive],
        };
        let may_move = all.len() > 1 && all.last() == Some(&Alive);
        let moves_at = (may_move && rng.chance(1, 2)).then(|| rng.below(until));
        Places { all, moves_at }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Those to which the name leads at a time, by their number.
    pub fn named(&self, us: u64) -> std::ops::Range<usize> {
        let has_moved = self.moves_at.is_some_and(|at| at <= us);
        let first = if has_moved { self.len() - 1 } else { 0 };
        first..self.len()
    }

    /// What answers at one of them.
    pub fn at(&self, place: usize, us: u64) -> Address {
        let has_left = self.moves_at.is_some_and(|at| at + SERVE_ON <= us);
        match has_left && place + 1 < self.len() {
            true => Address::Silent,
            false => self.all[place],
        }
    }
}
