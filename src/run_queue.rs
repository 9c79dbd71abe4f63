//! A queue that decides which kind of long work is next. The kinds share the time by fixed weights.
//!
//! Each kind has a clock that runs only while the kind works. The greater the weight of the kind, the slower
//! its clock. The kind whose clock is furthest behind is next. A kind that was idle gets no extra time: its
//! clock continues from the clock of the kind that has worked last.

/// How far one unit of time moves the clock of a kind of weight 1. Greater weights than this would all count
/// the same for one unit.
const SCALE: u64 = 64;

/// See the module's page.
#[derive(Debug)]
pub struct RunQueue<const N: usize> {
    weights: [u64; N],
    clocks: [u64; N],
    now: u64,
}

impl<const N: usize> RunQueue<N> {
    /// A queue in which no kind has worked yet. No weight may be 0.
    pub fn new(weights: [u64; N]) -> RunQueue<N> {
        RunQueue { weights, clocks: [0; N], now: 0 }
    }

    /// The next of the kinds that have work. `has_work` has a bit for each kind. In most turns no
    /// kind has work.
    pub fn next(&self, has_work: u16) -> Option<usize> {
        let busy = (0..N).filter(|kind| has_work >> kind & 1 != 0);
        (has_work != 0).then(|| busy.min_by_key(|kind| self.begin(*kind)))?
    }

    /// Notes that a kind has worked for this time. It counts as at least one unit.
    pub fn note(&mut self, kind: usize, time: u64) {
        self.now = self.begin(kind);
        self.clocks[kind] = self.now + time.max(1) * SCALE / self.weights[kind];
    }

    fn begin(&self, kind: usize) -> u64 {
        self.clocks[kind].max(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Works so often, a unit each time; how often each kind had its turn.
    fn turns(queue: &mut RunQueue<3>, count: usize, busy: u16, took: [u64; 3]) -> [u64; 3] {
        let mut turns = [0; 3];
        for _ in 0..count {
            let kind = queue.next(busy).expect("one is busy");
            turns[kind] += 1;
            queue.note(kind, took[kind]);
        }
        turns
    }

    #[test]
    fn the_time_is_shared_by_weights_whatever_a_turn_takes() {
        let mut queue = RunQueue::new([4, 2, 1]);
        assert_eq!(turns(&mut queue, 700, 0b111, [1; 3]), [400, 200, 100]);
        let took = [1, 1, 10];
        let counts = turns(&mut RunQueue::new([1, 1, 1]), 2100, 0b111, took);
        assert_eq!(counts, [1000, 1000, 100]);
        assert_eq!(queue.next(0), None);
    }

    #[test]
    fn who_had_nothing_to_do_is_owed_nothing_and_owes_nothing() {
        let mut queue = RunQueue::new([1, 1, 1]);
        assert_eq!(turns(&mut queue, 1000, 0b001, [1; 3]), [1000, 0, 0]);
        assert_eq!(turns(&mut queue, 200, 0b011, [1; 3]), [100, 100, 0]);
        assert_eq!(turns(&mut queue, 300, 0b111, [1; 3]), [100; 3]);
    }
}
