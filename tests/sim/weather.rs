//! How an exchange feels over time: spells in which it answers well, and spells in which it does
//! not, each in its own way; and the addresses to which its name leads, each with its nature. Made from a seed,
//! before the run.

use crate::support::Rng;

/// One second, in microseconds.
pub const SECOND: u64 = 1_000_000;

/// How an exchange feels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// It answers well: sometimes slowly, in any framing, in many pieces.
    Fine,
    /// So many answers of a thousand go wrong, each in its own way.
    Flaky(u64),
    /// It refuses connections.
    Refusing,
    /// Nothing that is sent to it comes back.
    Unreachable,
    /// Each answer goes wrong in one of these ways.
    Bad(&'static [Fault]),
    /// Its name cannot be resolved, and it refuses connections.
    Nameless,
}

/// One of these statuses as long as a spell lasts; or 429, and how long to wait.
static ERRORS: [Fault; 6] = {
    use Fault::Status;
    [Status(500), Status(502), Status(503), Status(504), Status(404), Status(301)]
};
static LIMITS: [Fault; 4] =
    [Fault::Limited(1), Fault::Limited(5), Fault::Limited(20), Fault::Limited(40)];

/// What is no JSON, or no list.
static BABBLE: [Fault; 6] = {
    use Fault::*;
    [BrokenJson, Html, WrongTop, EmptyBody, EmptyList, ShortLength]
};

/// What goes wrong with one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Never answered.
    Stall,
    /// Half of it, and then nothing.
    StallMid,
    /// Broken off before its first byte.
    Reset,
    /// Broken off in the middle.
    ResetMid,
    /// Closed before its first byte.
    Eof,
    /// Closed in the middle.
    EofMid,
    /// It announces fewer bytes than it sends.
    ShortLength,
    /// It announces more bytes than it sends.
    LongLength,
    /// Its JSON breaks off.
    BrokenJson,
    /// A page for people.
    Html,
    /// JSON, but of another shape.
    WrongTop,
    /// No byte of body.
    EmptyBody,
    /// A list without items.
    EmptyList,
    /// This status, with an error's body.
    Status(u16),
    /// 429 with so many seconds.
    Limited(u64),
    /// Some items are not what they should be.
    BadItems,
    /// Some items are missing.
    Missing,
}

impl Weather {
    /// What goes wrong with the next answer.
    pub fn fault(self, rng: &mut Rng) -> Option<Fault> {
        match self {
            Weather::Fine | Weather::Refusing | Weather::Unreachable | Weather::Nameless => None,
            Weather::Flaky(permille) => rng.chance(permille, 1000).then(|| some_fault(rng)),
            Weather::Bad(faults) => Some(*rng.pick(faults)),
        }
    }

    /// Whether nothing goes wrong at all.
    pub fn is_fine(self) -> bool {
        self == Weather::Fine
    }

    fn any(rng: &mut Rng) -> Weather {
        match rng.below(16) {
            0..5 => Weather::Flaky(1 + rng.below(600)),
            5 => Weather::Refusing,
            6 => Weather::Unreachable,
            7 => Weather::Bad(&[Fault::Stall, Fault::StallMid]),
            8 => Weather::Bad(&[Fault::Reset, Fault::ResetMid, Fault::Eof, Fault::EofMid]),
            9 => Weather::Bad(std::slice::from_ref(rng.pick(&ERRORS))),
            10 => Weather::Bad(std::slice::from_ref(rng.pick(&LIMITS))),
            11 => Weather::Bad(&BABBLE),
            12 => Weather::Nameless,
            _ => Weather::Fine,
        }
    }

    /// Spells up to `until`, each with its end; fine weather from then on.
    pub fn forecast(rng: &mut Rng, until: u64) -> Vec<(u64, Weather)> {
        let mut spells = Vec::new();
        let mut at = 0;
        // A run in three begins well, so that there is something to lose.
        let calm = rng.chance(1, 3);
        while at < until {
            let length = match rng.below(4) {
                0 => 1 + rng.below(8),
                1 => 20 + rng.below(90),
                _ => 5 + rng.below(30),
            };
            at = (at + length * SECOND).min(until);
            let weather = match calm && spells.is_empty() {
                true => Weather::Fine,
                false => Weather::any(rng),
            };
            spells.push((at, weather));
        }
        spells.push((u64::MAX, Weather::Fine));
        spells
    }
}

fn some_fault(rng: &mut Rng) -> Fault {
    use Fault::*;
    let simple = [
        Stall,
        StallMid,
        Reset,
        ResetMid,
        Eof,
        EofMid,
        ShortLength,
        LongLength,
        BrokenJson,
        Html,
        WrongTop,
        EmptyBody,
        EmptyList,
        BadItems,
        BadItems,
        BadItems,
        Missing,
        Missing,
    ];
    match rng.below(24) {
        0 => Status(*rng.pick(&[500, 503, 400, 404, 403, 418])),
        1 => Limited(rng.below(20)),
        _ => *rng.pick(&simple),
    }
}

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
