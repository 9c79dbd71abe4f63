//! Silences: slots that were requested, but about which the responses so far prove nothing.
//!
//! [`Silences`] owns what the responses so far say about these slots. One response proves the slots between
//! its candles empty. Outside, or where a candle is stored, it takes two responses, a minute apart, because
//! an exchange may be unable for a moment to send a candle that it has. A response that leaves out a newer
//! candle in memory, or the newest one in the file, says nothing of what follows its own candles. If quotes
//! of the market show a trade, the proof takes ten responses over an hour. Silences are never stored: a lost
//! one only costs more requests.

use super::interval_set::IntervalSet;
use crate::interval::Stored;
use crate::time::Mono;
use rangemap::RangeMap;
use std::ops::Range;
use std::time::Duration;

/// How many of the newest closed candles each refresh requests again, because exchanges revise the
/// last candle when late trades are booked. A candle is settled once it was read this many slots
/// after its close.
pub const REREAD: i64 = 2;

/// A response with this many rows may have been cut, so it says nothing about slots outside of its candles.
/// No request includes this many known candles, so such a response always brings new candles, and paging
/// ends. The shortest page of a known exchange has 200 rows.
pub const LEAST_PAGE: usize = 8;

/// The most parts remembered for one series. Each end of a response adds at most one part. Above this number,
/// the two parts with the oldest slots become one. If they were forgotten, they would be requested again at
/// once.
const MOST_PARTS: usize = 64;

/// The least time between two responses that together prove a slot empty.
pub const APART: Duration = Duration::from_secs(60);

/// Two responses that were requested within this time count as one: if one has a newer candle, so has the
/// other. The time is half of `APART`, so that a request once a minute does not count for the next minute.
pub const TOGETHER: Duration = Duration::from_secs(30);

/// The longest pause before a slot is requested again. The first pause is [`APART`]. Each further response of
/// the same sort doubles it.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// How many responses, over [`DISPUTED_FOR`], outweigh the quotes of the market.
const DISPUTED_RESPONSES: u8 = 10;
const DISPUTED_FOR: Duration = Duration::from_secs(3600);

/// The time after which the newest candles are requested again, in milliseconds.
pub fn refresh_ms(interval: Stored) -> i64 {
    match interval {
        Stored::M1 => 60_000,
        Stored::H1 => 300_000,
        Stored::D1 => 900_000,
    }
}

/// What a response that leaves out a slot says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nothing: the exchange's candles may stand still, or the response may have been cut.
    Nothing,
    /// There is no candle.
    Empty,
    /// There is no candle, although quotes show a trade.
    Disputed,
}

/// What responses have said about some slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When the first response was requested that says: no candle.
    pub since: Option<Mono>,
    /// The number of such responses. Counting stops at [`DISPUTED_RESPONSES`], so that neighbouring slots get
    /// equal values and become one part.
    responses: u8,
    /// The number of responses from the first such response on, or of all as long as there is none. When
    /// `since` is reset, this number stays, so that the pause does not become shorter.
    requests: u8,
    /// When the last response was requested.
    pub last: Mono,
}

impl Silence {
    /// The silence after another response, which was requested at `at`.
    fn after(before: Option<Silence>, at: Mono, word: Word) -> Silence {
        let none = Silence { since: None, responses: 0, requests: 0, last: at };
        let Silence { mut since, mut responses, mut requests, .. } = before.unwrap_or(none);
        if word != Word::Nothing && since.is_none() {
            (since, responses, requests) = (Some(at), 0, 0);
        }
        responses += u8::from(word != Word::Nothing && responses < DISPUTED_RESPONSES);
        requests += u8::from(requests < DISPUTED_RESPONSES);
        Silence { since, responses, requests, last: at }
    }

    /// True if the last response completes the proof that there is no candle. `word` is what it said.
    fn is_proof(&self, word: Word) -> bool {
        let proven_for = self.since.map_or(Duration::ZERO, |since| self.last.since(since));
        match word {
            Word::Nothing => false,
            Word::Empty => proven_for >= APART,
            Word::Disputed => proven_for >= DISPUTED_FOR && self.responses >= DISPUTED_RESPONSES,
        }
    }

    /// When the slots are requested again.
    pub fn due(&self) -> Mono {
        let doubled = APART * 2u32.pow(u32::from(self.requests.max(1) - 1));
        self.last + doubled.min(PAUSE_MAX)
    }
}

/// The silences of one series, by slots.
#[derive(Clone, Debug, Default)]
pub struct Silences(RangeMap<i64, Silence>);

impl Silences {
    /// Notes that a response, requested at `at`, leaves out these slots and says `word` about them. Forgets
    /// and returns the parts that are now proven empty.
    pub fn note(&mut self, slots: Range<i64>, at: Mono, word: Word) -> Vec<Range<i64>> {
        if slots.is_empty() {
            return Vec::new();
        }
        let mut parts: Vec<_> = self.0.gaps(&slots).map(|part| (part, None)).collect();
        parts.extend(self.within(&slots).map(|(part, before)| (part, Some(before))));
        let mut proven = Vec::new();
        for (part, before) in parts {
            let silence = Silence::after(before, at, word);
            if silence.is_proof(word) {
                self.0.remove(part.clone());
                proven.push(part);
            } else {
                self.0.insert(part, silence);
            }
        }
        while self.0.len() > MOST_PARTS {
            self.merge_oldest();
        }
        proven
    }

    /// Merges the two parts with the oldest slots, and the slots between them. The merged part is requested
    /// as rarely as the rarer of the two. What responses said about them is forgotten.
    fn merge_oldest(&mut self) {
        let mut oldest = self.0.iter().take(2);
        if let (Some((first, a)), Some((second, b))) = (oldest.next(), oldest.next()) {
            let (requests, last) = (a.requests.max(b.requests), a.last.max(b.last));
            let merged = first.start..second.end;
            self.0.insert(merged, Silence { since: None, responses: 0, requests, last });
        }
    }

    /// The memory that the parts take.
    pub fn held(&self) -> usize {
        self.0.len() * size_of::<(Range<i64>, Silence)>()
    }

    /// Notes that these slots were requested at `at` and are still unknown. Parts for which this response is
    /// noted already are left out.
    pub fn note_open(&mut self, slots: Range<i64>, at: Mono) {
        let noted = self.within(&slots).filter(|(_, silence)| silence.last == at);
        let noted: IntervalSet = noted.map(|(part, _)| part).collect();
        for part in noted.missing(slots) {
            self.note(part, at, Word::Nothing);
        }
    }

    /// Forgets what responses said about these slots, because a candle has come. They are requested as rarely
    /// as before.
    pub fn doubt(&mut self, slots: &Range<i64>) {
        for (part, silence) in self.within(slots).collect::<Vec<_>>() {
            self.0.insert(part, Silence { since: None, ..silence });
        }
    }

    /// Forgets these slots, because their state is settled.
    pub fn remove(&mut self, slots: &Range<i64>) {
        if !slots.is_empty() {
            self.0.remove(slots.clone());
        }
    }

    /// The parts among these slots, with the silence of each.
    pub fn within(&self, slots: &Range<i64>) -> impl Iterator<Item = (Range<i64>, Silence)> {
        let inside = |(part, silence): (&Range<i64>, &Silence)| {
            (slots.start.max(part.start)..slots.end.min(part.end), *silence)
        };
        let parts = self.0.overlapping(slots).map(inside);
        parts.filter(|(both, _)| !both.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: u64) -> Mono {
        Mono(seconds * 1_000_000)
    }

    /// The start and the end of each part, and since when it is said to be empty.
    fn noted(silences: &Silences) -> Vec<(i64, i64, Option<Mono>)> {
        let all = silences.within(&(0..1000));
        all.map(|(slots, it)| (slots.start, slots.end, it.since)).collect()
    }

    #[test]
    fn a_second_response_proves_only_when_it_comes_late_enough() {
        let mut silences = Silences::default();
        let mut note = |slots, at| silences.note(slots, second(at), Word::Empty);
        assert_eq!(note(10..20, 0), []);
        assert_eq!(note(12..25, 59), []);
        assert_eq!(note(15..30, 61), vec![15..20; 1]);
        assert_eq!(note(0..40, 200), [10..12, 12..15, 20..25, 25..30]);
        let at = Some(second(200));
        assert_eq!(noted(&silences), [(0, 10, at), (15, 20, at), (30, 40, at)]);
        silences.remove(&(5..35));
        assert_eq!(noted(&silences), [(0, 5, at), (35, 40, at)]);
    }

    #[test]
    fn responses_that_say_nothing_prove_nothing_however_many_come() {
        let mut silences = Silences::default();
        for at in 0..100 {
            assert_eq!(silences.note(0..9, second(at * 60), Word::Nothing), []);
        }
        assert_eq!(silences.note(0..9, second(6000), Word::Empty), []);
        assert_eq!(silences.note(0..9, second(6059), Word::Empty), []);
        assert_eq!(silences.note(0..9, second(6060), Word::Nothing), []);
        assert_eq!(silences.note(0..9, second(6061), Word::Empty), vec![0..9; 1]);
        // A response from before a candle came does not count.
        silences.note(0..9, second(7000), Word::Empty);
        silences.doubt(&(0..9));
        assert_eq!(silences.note(0..9, second(7100), Word::Empty), []);
        assert_eq!(silences.note(0..9, second(7160), Word::Empty), vec![0..9; 1]);
    }

    #[test]
    fn what_quotes_dispute_takes_ten_responses_over_an_hour() {
        let check = |apart: u64, expected: u64| {
            let mut silences = Silences::default();
            let mut count = 0;
            while silences.note(0..1, second(count * apart), Word::Disputed).is_empty() {
                count += 1;
                assert!(count < 1000);
            }
            assert_eq!(count + 1, expected, "{apart}");
        };
        check(60, 61);
        check(400, 10);
        check(3600, 10);
    }

    #[test]
    fn the_pauses_grow_to_ten_minutes_and_begin_anew_with_the_first_proof() {
        let mut silences = Silences::default();
        let mut at = second(0);
        let mut next = |word| {
            silences.note(0..1, at, word);
            let (_, silence) = silences.within(&(0..1)).next().expect("it is silent");
            let pause = silence.due().since(at).as_secs();
            at = silence.due();
            pause
        };
        let pauses: Vec<u64> = (0..12).map(|_| next(Word::Nothing)).collect();
        assert_eq!(pauses, [60, 120, 240, 480, 600, 600, 600, 600, 600, 600, 600, 600]);
        let mut words = [Word::Disputed, Word::Nothing].into_iter().cycle();
        let pauses: Vec<u64> = words.by_ref().take(6).map(&mut next).collect();
        assert_eq!(pauses, [60, 120, 240, 480, 600, 600]);
    }

    #[test]
    fn one_response_is_counted_once() {
        let mut silences = Silences::default();
        silences.note(3..5, second(7), Word::Empty);
        silences.note_open(0..9, second(7));
        assert_eq!(noted(&silences), [(0, 3, None), (3, 5, Some(second(7))), (5, 9, None)]);
        let pauses = silences.within(&(0..9)).map(|(_, it)| it.due().since(second(7)).as_secs());
        assert_eq!(pauses.collect::<Vec<_>>(), [60, 60, 60]);
    }

    #[test]
    fn no_more_parts_are_remembered_than_the_cap_and_the_oldest_become_one() {
        let mut silences = Silences::default();
        for slot in 0..200 {
            silences.note(slot * 2..slot * 2 + 1, Mono(slot as u64), Word::Empty);
        }
        let noted = noted(&silences);
        assert_eq!((noted.len(), noted[MOST_PARTS - 1].0), (MOST_PARTS, 398));
        assert_eq!((noted[0], noted[1].0), ((0, 273, None), 274));
        // A candle service that stands still leaves out one slot more each minute.
        let mut silences = Silences::default();
        for minute in 0..1000 {
            silences.note(0..minute, second(minute as u64 * 60), Word::Nothing);
        }
        let all = silences.within(&(0..1000));
        assert_eq!(all.map(|(part, _)| part.end - part.start).sum::<i64>(), 999);
    }
}
