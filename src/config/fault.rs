//! Faults: what is wrong with the configuration, where it is, and what was expected there.
//!
//! The [`Report`] collects the faults of file, environment and command line. Reading continues after a fault,
//! so one run reports all faults. Other modules decide what is a fault.
//!
//! Invariant: the report knows where each value was given, so a check after the reading names the
//! file and the line, or the flag.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// Most faults that are reported. Of further faults only the number is reported: such a file is
/// probably no configuration.
const FAULTS_MAX: usize = 50;

/// Longest piece of the input that a message repeats.
const ECHO_CHARS: usize = 60;

/// One thing that is wrong, or (as a warning) unwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigFault {
    /// The file, as it was named; `None` for a fault of a flag or a variable.
    pub file: Option<String>,
    /// Counted from one.
    pub line: Option<usize>,
    /// Counted from one. Only set if the file is not JSON.
    pub column: Option<usize>,
    /// The key (`sources[0].pollMs`), the flag (`--listen`) or the variable (`MARKETD_LISTEN`);
    /// empty for the file as a whole.
    pub key: String,
    /// What was expected and what was found.
    pub message: String,
}

impl ConfigFault {
    /// A fault of a flag or a variable.
    pub(super) fn by(by: &str, message: impl Into<String>) -> ConfigFault {
        ConfigFault::at(None, None, by, message)
    }

    /// A fault of a key in a file.
    pub(super) fn at(
        file: Option<&str>,
        line: Option<usize>,
        key: &str,
        message: impl Into<String>,
    ) -> ConfigFault {
        ConfigFault {
            file: file.map(str::to_string),
            line,
            column: None,
            key: key.to_string(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ConfigFault {
    /// One line: `marketd.json:12: sources[0].pollMs: expected ..., found "fast"`. Control characters in
    /// names and values are escaped, because they could move the cursor of a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut place = self.file.clone().unwrap_or_default();
        for number in [self.line, self.column].into_iter().flatten() {
            write!(place, ":{number}")?;
        }
        let mut parts = vec![&*place, &self.key, &self.message];
        parts.retain(|part| !part.is_empty());
        let line = parts.join(": ");
        line.chars().try_for_each(|char| {
            if char.is_control() {
                write!(f, "{}", char.escape_default())
            } else {
                f.write_char(char)
            }
        })
    }
}

impl std::error::Error for ConfigFault {}

/// Where a value was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// In the file, on this line.
    Line(usize),
    /// By this flag or variable.
    Given(&'static str),
}

/// The faults and warnings of one reading, and where each value was given.
#[derive(Debug, Default)]
pub struct Report {
    file: Option<String>,
    /// Offset of each line of the file.
    lines: Vec<usize>,
    /// By path.
    origins: BTreeMap<String, Origin>,
    faults: Vec<ConfigFault>,
    warnings: Vec<ConfigFault>,
    /// Number of faults above [`FAULTS_MAX`].
    more: usize,
    /// Every key that the file may have: the path of its object (empty: the whole file), and its name.
    pub(super) keys: Vec<(String, &'static str)>,
}

impl Report {
    /// Sets the file whose values are read next.
    pub fn open(&mut self, file: &str, text: &str) {
        self.file = Some(file.to_string());
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        self.lines = std::iter::once(0).chain(ends).collect();
    }

    /// The end of the message for an unknown key. It names a known key with a similar name, or else the
    /// objects that have this key. If the keys of the file are not known, it names the known keys.
    pub(super) fn hint(&self, name: &str, known: &[&str]) -> String {
        let near = suggestion(name, known.iter().copied());
        let owners = self.keys.iter().filter(|(_, key)| *key == name);
        let owners = owners.map(|(path, _)| if path.is_empty() { "the file itself" } else { path });
        match owners.collect::<Vec<_>>() {
            _ if !near.is_empty() => near,
            _ if self.keys.is_empty() => format!(", expected one of {}", known.join(", ")),
            owners if owners.is_empty() => near,
            owners => format!(": it is a key of {}", owners.join(", ")),
        }
    }

    /// The name of the file.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Records that the value of `path` is at this offset of the file.
    pub fn place(&mut self, path: &str, offset: usize) {
        let line = self.line(offset);
        self.origins.insert(path.to_string(), Origin::Line(line));
    }

    /// The line of an offset of the file, counted from one.
    pub fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// Records that a flag or variable gives the value of `path` instead of the file.
    pub fn give(&mut self, path: &str, by: &'static str) {
        self.origins.retain(|known, _| !is_within(known, path));
        self.origins.insert(path.to_string(), Origin::Given(by));
    }

    /// True if file, flag or variable give the value of `path`.
    pub fn is_given(&self, path: &str) -> bool {
        self.origins.contains_key(path)
    }

    /// Reports that the value of `path` is wrong. A value of the file gets only one fault, and so do the
    /// values around and inside it: further faults would mostly follow from the first.
    pub fn fault(&mut self, path: &str, message: impl Into<String>) {
        let fault = self.located(path, message.into());
        let is_near = |key: &str| key.is_empty() || is_within(path, key) || is_within(key, path);
        let mut here = self.faults.iter().filter(|known| known.file == self.file);
        if fault.file.is_none() || !here.any(|known| is_near(&known.key)) {
            self.add(fault);
        }
    }

    /// Reports that the value of `path` is wrong, if this does not hold.
    pub fn expect(&mut self, holds: bool, path: &str, message: &str) {
        if !holds {
            self.fault(path, message);
        }
    }

    /// True if the value of `path` in the file, or a value inside it, has a fault.
    pub fn is_faulty_within(&self, path: &str) -> bool {
        self.faults.iter().any(|fault| is_within(&fault.key, path))
    }

    /// Adds a fault, unless it was added already.
    pub fn add(&mut self, fault: ConfigFault) {
        if self.faults.contains(&fault) {
            return;
        }
        if self.faults.len() < FAULTS_MAX { self.faults.push(fault) } else { self.more += 1 }
    }

    /// The parsed value of a flag, a variable or a word. An error is reported, and the default is returned.
    pub(super) fn accept<T: Default>(&mut self, by: &str, read: Result<T, String>) -> T {
        read.map_err(|message| self.add(ConfigFault::by(by, message))).unwrap_or_default()
    }

    /// Reports that the value of `path` is allowed but unwise.
    pub fn warn(&mut self, path: &str, message: impl Into<String>) {
        let warning = self.located(path, message.into());
        self.warnings.push(warning);
    }

    /// Returns the warnings if there is no fault; else the faults. Faults of flags and variables come first,
    /// then the faults of the file from top to bottom.
    pub fn close(mut self) -> Result<Vec<ConfigFault>, Vec<ConfigFault>> {
        for list in [&mut self.warnings, &mut self.faults] {
            list.sort_by_key(|fault| fault.line);
        }
        if self.faults.is_empty() {
            return Ok(self.warnings);
        }
        if self.more > 0 {
            let message = format!("and {} more faults", self.more);
            let fault = ConfigFault::at(self.file.as_deref(), None, "", message);
            self.faults.push(fault);
        }
        Err(self.faults)
    }

    /// A fault at the place of `path`, or of the nearest value around it that has a place.
    pub fn located(&self, path: &str, message: String) -> ConfigFault {
        let ends = path.match_indices(['.', '[']).map(|(at, _)| at);
        let ends = ends.chain([path.len()]).collect::<Vec<_>>().into_iter();
        let origin = ends.rev().find_map(|end| self.origins.get(&path[..end]));
        let file = self.file.as_deref();
        match origin {
            Some(Origin::Given(by)) => ConfigFault::by(by, message),
            Some(Origin::Line(line)) => ConfigFault::at(file, Some(*line), path, message),
            None => ConfigFault::at(file, None, path, message),
        }
    }
}

fn is_within(known: &str, path: &str) -> bool {
    let rest = known.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A piece of the input as a message repeats it: quoted, escaped and cut. A part that may be a user
/// and a password in front of a host is left out.
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

/// The message for a text that is not what is expected.
pub(super) fn wrong(expected: impl fmt::Display, text: &str) -> String {
    format!("expected {expected}, found {}", quoted(text))
}

/// `, did you mean "x"?` if one of the known words is close to `word`, else nothing.
pub(super) fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    // The distance takes quadratic time, and a word of this length is no misspelling.
    if word.len() > ECHO_CHARS {
        return String::new();
    }
    let plain = |word: &str| word.replace(['_', '-'], "").to_ascii_lowercase();
    let word = plain(word);
    let near = known
        .into_iter()
        .map(|known| (strsim::osa_distance(&word, &plain(known)), known))
        .filter(|(distance, known)| *distance <= 2 && *distance * 3 <= known.len())
        .min_by_key(|(distance, _)| *distance);
    near.map_or(String::new(), |(_, known)| format!(", did you mean {known:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let lines: Vec<String> = faults.iter().map(ConfigFault::to_string).collect();
        assert_eq!(lines, ["--listen: b", "a.json: nowhere: c", "a.json:3: sources[0].id: a"]);
    }

    #[test]
    fn the_flood_of_a_hopeless_file_is_cut() {
        let mut report = Report::default();
        for at in 0..FAULTS_MAX + 7 {
            report.fault("x", format!("wrong {at}"));
            // A fault is reported once.
            report.fault("x", "wrong 0");
        }
        let faults = report.close().unwrap_err();
        assert_eq!(faults.len(), FAULTS_MAX + 1);
        assert_eq!(faults.last().map(ConfigFault::to_string).as_deref(), Some("and 7 more faults"));
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
