//! The report that a probe prints.

use super::kept::Kept;
use std::collections::HashSet;
use std::fmt::Display;

/// How many of a kind are shown.
pub(super) const SHOWN: usize = 5;

/// Writes a line of a report: `say!(report, "{} of them", count)`.
macro_rules! say {
    ($report:expr, $($line:tt)+) => { $report.say(format_args!($($line)+)) };
}
pub(super) use say;

pub(super) struct ProbeReport {
    pub(super) text: String,
    /// False once something could not be read.
    pub(super) is_good: bool,
}

impl ProbeReport {
    pub(super) fn new() -> ProbeReport {
        ProbeReport { text: String::new(), is_good: true }
    }

    pub(super) fn say(&mut self, line: impl Display) {
        // What an exchange sends must not move the cursor of a terminal.
        let is_bad = |char: char| char.is_control() && char != '\n';
        self.text += &line.to_string().replace(is_bad, " ");
        self.text.push('\n');
    }

    /// Something that looks wrong, though it could be read.
    pub(super) fn wrong(&mut self, what: impl Display) {
        say!(self, "  LOOKS WRONG: {what}");
    }

    /// The same, if it does.
    pub(super) fn doubt(&mut self, is_odd: bool, what: &str) {
        if is_odd {
            self.wrong(what);
        }
    }

    /// Something that could not be read.
    pub(super) fn fail(&mut self, what: &str, why: impl Display) {
        self.is_good = false;
        say!(self, "  CANNOT BE READ: {what}: {why}");
    }

    /// What of an answer is not taken. Items that are wrong in the same way are shown once.
    pub(super) fn say_rejected(&mut self, kept: &Kept) {
        match kept.rejected.len() {
            0 => {}
            1 => self.wrong("1 item is rejected"),
            count => self.wrong(format_args!("{count} items are rejected")),
        }
        let mut seen = HashSet::new();
        let reasons = kept.rejected.iter().filter(|reason| seen.insert(*reason));
        for reason in reasons.take(SHOWN) {
            say!(self, "    {reason}");
        }
        if kept.unlisted > 0 {
            say!(self, "  not in the market list: {}, ignored", kept.unlisted);
        }
    }
}
