//! A fault: what is wrong with the configuration, where it stands, and what was expected there.
//!
//! Owns the one form in which every fault of file, environment and command line is told, and the
//! [`Report`] that gathers them: reading goes on after a fault, so that one run names them all.
//! It never decides what a fault is.
//!
//! Invariant: every path of a value that was said by somebody leads to the place where it was
//! said, so that a check long after the reading still names file and line, or the flag.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Most faults that are told one by one: a file that has more of them is not a configuration.
const FAULTS_TOLD: usize = 50;

/// Longest piece of the input that a message repeats.
const ECHO_CHARS: usize = 60;

/// One thing that is wrong, or (as a warning) unwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// The file, as it was named; `None` where flag or environment are at fault.
    pub file: Option<String>,
    /// Counted from one.
    pub line: Option<usize>,
    /// Counted from one; only where the file is no JSON.
    pub column: Option<usize>,
    /// The key (`sources[0].pollMs`), the flag (`--listen`) or the variable (`MARKETD_LISTEN`);
    /// empty where the file as a whole is meant.
    pub key: String,
    /// What was expected and what was found.
    pub message: String,
}

impl fmt::Display for Fault {
    /// One line: `marketd.json:12: sources[0].pollMs: expected ..., found "fast"`. Names and
    /// values may hold anything; what would move the cursor of a terminal is escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::new();
        if let Some(file) = &self.file {
            line.push_str(file);
            for number in [self.line, self.column].into_iter().flatten() {
                write!(line, ":{number}")?;
            }
            line.push_str(": ");
        }
        if !self.key.is_empty() {
            write!(line, "{}: ", self.key)?;
        }
        line.push_str(&self.message);
        for char in line.chars() {
            if char.is_control() {
                write!(f, "{}", char.escape_default())?;
            } else {
                f.write_char(char)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// Where a value was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// In the file, on this line.
    Line(usize),
    /// By this flag or variable.
    Given(&'static str),
}

/// The faults and warnings of one reading, and where everything was said.
#[derive(Debug, Default)]
pub(super) struct Report {
    file: Option<String>,
    /// Offset of each line of the file.
    lines: Vec<usize>,
    origins: BTreeMap<String, Origin>,
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
    /// Faults above [`FAULTS_TOLD`].
    untold: usize,
}

impl Report {
    /// From here on, paths lead into this file.
    pub(super) fn open(&mut self, file: &str, text: &str) {
        self.file = Some(file.to_string());
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        self.lines = std::iter::once(0).chain(ends).collect();
    }

    /// Notes that the value of `path` stands at this offset of the file.
    pub(super) fn place(&mut self, path: &str, offset: usize) {
        let line = self.line(offset);
        self.origins.insert(path.to_string(), Origin::Line(line));
    }

    /// The line of an offset of the file, counted from one.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// Notes that a flag or variable said the value of `path`, and that whatever the file said
    /// there does not count.
    pub(super) fn give(&mut self, path: &str, by: &'static str) {
        self.origins.retain(|known, _| !is_within(known, path));
        self.origins.insert(path.to_string(), Origin::Given(by));
    }

    /// Whether anybody said the value of `path`.
    pub(super) fn said(&self, path: &str) -> bool {
        self.origins.contains_key(path)
    }

    /// The value of `path` is wrong. A value of the file whose fault has been told gets no second
    /// one: the later ones are most often made by the first.
    pub(super) fn fault(&mut self, path: &str, message: impl Into<String>) {
        let fault = self.located(path, message.into());
        if fault.file.is_none() || !self.is_faulty(path) {
            self.add(fault);
        }
    }

    /// Whether a fault of the value of `path` of the file has been told.
    pub(super) fn is_faulty(&self, path: &str) -> bool {
        self.faults.iter().any(|fault| fault.key == path)
    }

    /// Something at an offset of the file is wrong.
    pub(super) fn fault_at(&mut self, path: &str, offset: usize, message: impl Into<String>) {
        let fault = Fault {
            file: self.file.clone(),
            line: Some(self.line(offset)),
            column: None,
            key: path.to_string(),
            message: message.into(),
        };
        self.add(fault);
    }

    /// A flag, a variable or the file as a whole is wrong.
    pub(super) fn add(&mut self, fault: Fault) {
        if self.faults.len() < FAULTS_TOLD {
            put_in(&mut self.faults, fault);
        } else {
            self.untold += 1;
        }
    }

    /// The value of `path` is allowed and unwise.
    pub(super) fn warn(&mut self, path: &str, message: impl Into<String>) {
        let warning = self.located(path, message.into());
        put_in(&mut self.warnings, warning);
    }

    /// The warnings when there was no fault; else the faults: flags and variables first, then
    /// the file from top to bottom.
    pub(super) fn close(mut self) -> Result<Vec<Fault>, Vec<Fault>> {
        if self.faults.is_empty() {
            return Ok(self.warnings);
        }
        if self.untold > 0 {
            self.faults.push(Fault {
                file: self.file,
                message: format!("and {} faults more", self.untold),
                ..Fault::default()
            });
        }
        Err(self.faults)
    }

    /// A fault of `path`, at the place of the path itself or of the nearest part around it.
    fn located(&self, path: &str, message: String) -> Fault {
        let fault = |file: Option<String>, line, key: &str| Fault {
            file,
            line,
            column: None,
            key: key.to_string(),
            message,
        };
        let mut part = path;
        loop {
            match self.origins.get(part) {
                Some(Origin::Line(line)) => return fault(self.file.clone(), Some(*line), path),
                Some(Origin::Given(by)) => return fault(None, None, by),
                None => match part.rfind(['.', '[']) {
                    Some(at) => part = &part[..at],
                    None => return fault(self.file.clone(), None, path),
                },
            }
        }
    }
}

/// Whether `path` is `whole` or a part of it.
fn is_within(path: &str, whole: &str) -> bool {
    path.strip_prefix(whole)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A piece of the input as a message repeats it: quoted, escaped and not too long. What may be
/// user and password in front of a host is left out.
pub(super) fn quoted(text: &str) -> String {
    if let Some((before, host)) = text.rsplit_once('@')
        && before.contains(':')
    {
        let scheme = before.find("://").map_or("", |at| &before[..at + 3]);
        return quoted(&format!("{scheme}(hidden) {host}"));
    }
    match text.char_indices().nth(ECHO_CHARS) {
        Some((at, _)) => format!("{:?}...", &text[..at]),
        None => format!("{text:?}"),
    }
}

/// `, did you mean "x"?` where one of the words is close to `word`, else nothing.
pub(super) fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // A word that long is no slip of the finger, and the distance is quadratic.
    if word.len() > ECHO_CHARS {
        return String::new();
    }
    let plain = |word: &str| word.replace(['_', '-'], "").to_ascii_lowercase();
    let word = plain(word);
    let near = known
        .into_iter()
        .map(|known| (distance(&word, &plain(known)), known))
        .filter(|(distance, known)| *distance <= 2 && *distance * 3 <= known.len())
        .min_by_key(|(distance, _)| *distance);
    near.map_or(String::new(), |(_, known)| {
        format!(", did you mean {known:?}?")
    })
}

/// Edit distance with swaps of neighbours (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let change = last[j] + usize::from(a[i] != b[j]);
            let mut best = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// Keeps a list in the order of lines, and of coming within a line.
fn put_in(list: &mut Vec<Fault>, fault: Fault) {
    let at = list.partition_point(|other| other.line <= fault.line);
    list.insert(at, fault);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_one_line_that_leads_to_its_place() {
        let check = |fault: Fault, expected: &str| assert_eq!(fault.to_string(), expected);
        let fault = Fault {
            key: "--listen".into(),
            message: "expected ADDR:PORT".into(),
            ..Fault::default()
        };
        check(fault.clone(), "--listen: expected ADDR:PORT");
        let fault = Fault {
            file: Some("a.json".into()),
            line: Some(12),
            key: "listen".into(),
            ..fault
        };
        check(fault.clone(), "a.json:12: listen: expected ADDR:PORT");
        let fault = Fault {
            column: Some(7),
            key: String::new(),
            message: "expected a value".into(),
            ..fault
        };
        check(fault, "a.json:12:7: expected a value");
    }

    #[test]
    fn a_path_without_a_place_takes_the_one_of_the_part_around_it() {
        let mut report = Report::default();
        report.open("a.json", "{\n\n  \"x\": [\n]}");
        report.place("sources[0]", 5);
        report.give("listen", "--listen");
        report.fault("sources[0].id", "a");
        report.fault("listen", "b");
        report.fault("nowhere", "c");
        let faults = report.close().unwrap_err();
        let lines: Vec<String> = faults.iter().map(Fault::to_string).collect();
        assert_eq!(
            lines,
            [
                "--listen: b",
                "a.json: nowhere: c",
                "a.json:3: sources[0].id: a"
            ]
        );
    }

    #[test]
    fn the_flood_of_a_hopeless_file_is_cut() {
        let mut report = Report::default();
        for _ in 0..FAULTS_TOLD + 7 {
            report.fault("x", "wrong");
        }
        let faults = report.close().unwrap_err();
        assert_eq!(faults.len(), FAULTS_TOLD + 1);
        assert_eq!(
            faults.last().map(Fault::to_string).as_deref(),
            Some("and 7 faults more")
        );
    }

    #[test]
    fn slips_of_the_finger_are_recognised_and_other_words_are_not() {
        let check = |word: &str, expected: &str| {
            let known = ["listen", "pollMs", "url", "id", "--symbols"];
            assert_eq!(suggestion(word, known), expected, "{word}");
        };
        check("lisetn", ", did you mean \"listen\"?");
        check("poll_ms", ", did you mean \"pollMs\"?");
        check("POLLMS", ", did you mean \"pollMs\"?");
        check("--symbol", ", did you mean \"--symbols\"?");
        check("ur", ", did you mean \"url\"?");
        check("ix", "");
        check("", "");
        check("colour", "");
    }
}
