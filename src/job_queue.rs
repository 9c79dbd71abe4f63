//! A queue of jobs that may take longer than a turn. Each job has a cursor, and is done in steps.
//!
//! A part of the core owns a [`JobQueue`] of its own jobs. One place in that part takes out the next job,
//! steps it once, and puts it back if it is not done.

use std::collections::VecDeque;

/// A job that is done step by step.
pub trait QueuedJob {
    /// Jobs of a lower rank are stepped first.
    fn rank(&self) -> u8;

    /// True if this job makes an older one pointless.
    fn replaces(&self, older: &Self) -> bool;
}

/// Jobs by rank. Within a rank, the oldest job comes first.
#[derive(Debug)]
pub struct JobQueue<J>(VecDeque<J>);

impl<J> Default for JobQueue<J> {
    fn default() -> JobQueue<J> {
        JobQueue(VecDeque::new())
    }
}

impl<J: QueuedJob> JobQueue<J> {
    /// Adds jobs behind the others of their rank, and removes the older jobs that they make
    /// pointless.
    pub fn push(&mut self, jobs: impl IntoIterator<Item = J>) {
        for job in jobs {
            self.0.retain(|older| !job.replaces(older));
            self.0.push_back(job);
        }
    }

    /// The place of the next job that can be stepped now.
    pub fn next(&self, can_step: impl Fn(&J) -> bool) -> Option<usize> {
        let ready = (0..self.0.len()).filter(|at| can_step(&self.0[*at]));
        ready.min_by_key(|at| self.0[*at].rank())
    }

    /// Takes out a job to step it.
    pub fn take(&mut self, at: usize) -> Option<J> {
        self.0.remove(at)
    }

    /// Puts back a job that is not done. It comes before the others of its rank.
    pub fn put_back(&mut self, job: J) {
        self.0.push_front(job);
    }

    /// Keeps only some jobs.
    pub fn retain(&mut self, is_kept: impl FnMut(&J) -> bool) {
        self.0.retain(is_kept);
    }

    /// The jobs.
    pub fn iter(&self) -> impl Iterator<Item = &J> {
        self.0.iter()
    }

    /// True if there is no job.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its rank, its number, and the steps that are left.
    #[derive(Debug, PartialEq)]
    struct Steps(u8, u32, u32);

    impl QueuedJob for Steps {
        fn rank(&self) -> u8 {
            self.0
        }

        fn replaces(&self, older: &Steps) -> bool {
            self.1 == older.1
        }
    }

    /// Steps all that can be, and says the numbers in order.
    fn run(queue: &mut JobQueue<Steps>, can_step: fn(&Steps) -> bool) -> Vec<u32> {
        let mut stepped = Vec::new();
        while let Some(mut job) = queue.next(can_step).and_then(|at| queue.take(at)) {
            stepped.push(job.1);
            job.2 -= 1;
            if job.2 > 0 {
                queue.put_back(job);
            }
        }
        stepped
    }

    #[test]
    fn jobs_are_stepped_by_rank_and_each_to_its_end() {
        let mut queue = JobQueue::default();
        queue.push([Steps(1, 10, 2), Steps(0, 11, 2), Steps(1, 12, 1)]);
        assert_eq!(run(&mut queue, |_| true), [11, 11, 10, 10, 12]);
        assert!(queue.is_empty());
    }

    #[test]
    fn what_cannot_be_stepped_holds_up_no_other_and_a_new_job_replaces_its_like() {
        let mut queue = JobQueue::default();
        queue.push([Steps(0, 1, 1), Steps(2, 2, 9), Steps(1, 3, 1)]);
        queue.push([Steps(2, 2, 2)]);
        assert_eq!(run(&mut queue, |job| job.1 > 1), [3, 2, 2]);
        assert_eq!(queue.iter().collect::<Vec<_>>(), [&Steps(0, 1, 1)]);
    }
}
