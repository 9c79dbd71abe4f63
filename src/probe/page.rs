//! The page that a probe prints.

use std::fmt::Display;

pub(super) struct Page {
    pub(super) text: String,
    /// False once something could not be read.
    pub(super) is_good: bool,
}

impl Page {
    pub(super) fn new() -> Page {
        Page {
            text: String::new(),
            is_good: true,
        }
    }

    pub(super) fn say(&mut self, line: &dyn Display) {
        // What an exchange sends must not move the cursor of a terminal.
        let tidy = |char: char| match char {
            char if char.is_control() && char != '\n' => ' ',
            char => char,
        };
        let line = line.to_string();
        self.text.extend(line.chars().map(tidy).chain(['\n']));
    }

    /// Something that looks wrong, though it could be read.
    pub(super) fn wrong(&mut self, what: &dyn Display) {
        self.say(&format_args!("  LOOKS WRONG: {what}"));
    }

    /// Something that could not be read.
    pub(super) fn fail(&mut self, what: &str, why: &dyn Display) {
        self.is_good = false;
        self.say(&format_args!("  CANNOT BE READ: {what}: {why}"));
    }
}
