//! Files that a person has named, and the keys of exchanges.
//!
//! A dialect says which header field carries a key. The key comes from the file that the source's `keyFile`
//! names, or else from a variable that is named after the source. A dialect names neither: its file may come
//! from another person, and must not choose which secret is sent where. No message repeats a key.

use super::fault::ConfigFault;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;

/// Longest key: servers accept header fields of 8 KiB.
const KEY_BYTES: usize = 4096;

/// This many bytes of a key reveal nothing important. A longer part of a key is hidden too.
const TOLD_BYTES: usize = 6;

/// The text that a message shows instead of a key.
const HIDDEN: &str = "(hidden)";

/// A key. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Secret {
    /// Parses a key, without the blanks and line ends around it. The error says what was expected, and
    /// repeats nothing of the text.
    pub(super) fn parse(text: &str) -> Result<Secret, String> {
        let text = text.trim();
        let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        match (1..=KEY_BYTES).contains(&text.len()) && text.bytes().all(is_plain) {
            true => Ok(Secret(text.to_owned())),
            false if text.is_empty() => Err("expected a key, found nothing".to_owned()),
            false => Err(format!(
                "expected a key of at most {KEY_BYTES} printable characters of ASCII, in one line"
            )),
        }
    }

    /// The key itself, for the field of a header.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Removes the key from a text of an exchange, which may repeat the key, completely or cut off.
    pub fn hide_in(&self, text: &str) -> String {
        let begin = &self.0[..self.0.len().min(TOLD_BYTES)];
        let (mut out, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(begin) {
            let pairs = rest[at..].bytes().zip(self.0.bytes());
            let same = pairs.take_while(|(told, own)| told == own).count();
            out = out + &rest[..at] + HIDDEN;
            rest = &rest[at + same..];
        }
        out + rest
    }
}

/// The variable for the key of the source with this id: `MARKETD_KEY_TALLY_2` for `tally-2`.
pub(super) fn variable_of(id: &str) -> String {
    format!("MARKETD_KEY_{}", id.to_ascii_uppercase().replace('-', "_"))
}

/// Largest file that is read, so that an endless device does not fill the memory. A thousand categories of a
/// thousand symbols are 10 MB.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Which files may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// Any file, even a pipe that can be read only once.
    Any,
    /// Only regular files: any other could block the event loop.
    Regular,
}

/// Reads the text of a file.
pub(super) fn text_of_file(name: &str, files: Files) -> Result<String, ConfigFault> {
    let fault = |line, message: String| ConfigFault::at(Some(name), line, "", message);
    let is_other = || std::fs::metadata(name).is_ok_and(|it| !it.is_file());
    if files == Files::Regular && is_other() {
        let message = "not a regular file: a reload reads only regular files";
        return Err(fault(None, message.to_string()));
    }
    // Opening a FIFO would block until another process writes into it. The pipe of a shell is open
    // already.
    let real = std::fs::canonicalize(name).unwrap_or_else(|_| name.into());
    if std::fs::symlink_metadata(real).is_ok_and(|it| it.file_type().is_fifo()) {
        return Err(fault(
            None,
            "a FIFO: only regular files and the pipes of a shell are read".to_string(),
        ));
    }
    let mut bytes = Vec::new();
    File::open(name)
        .and_then(|file| file.take(FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| fault(None, format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(fault(None, format!("larger than {FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        fault(Some(line), "not UTF-8".to_string())
    })
}

/// Reads the text of a regular file.
pub fn text_of_regular(name: &str) -> Result<String, ConfigFault> {
    text_of_file(name, Files::Regular)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_line_and_is_never_printed() {
        let key = Secret::parse(" hunter2-hunter2\n").expect("a key");
        assert_eq!((key.expose(), &*format!("{key:?}")), ("hunter2-hunter2", "(hidden)"));
        for (text, why) in [("", "found nothing"), (" \r\n", "found nothing")] {
            assert!(Secret::parse(text).is_err_and(|it| it.contains(why)), "{text:?}");
        }
        for text in ["hunter2\nhunter3", "hunt\u{e9}r2", "a\tb", &"x".repeat(KEY_BYTES + 1)] {
            let told = Secret::parse(text).expect_err("no key");
            assert!(told.contains("one line") && !told.contains("hunt"), "{told}");
        }
    }

    #[test]
    fn a_key_is_hidden_in_what_an_exchange_sends_also_if_its_end_is_cut_off() {
        let key = Secret::parse("hunter2-hunter2").expect("a key");
        let check = |text: &str, expected: &str| assert_eq!(key.hide_in(text), expected);
        check("bad key hunter2-hunter2.", "bad key (hidden).");
        check("hunter2-hunter2hunter2-hun", "(hidden)(hidden)");
        check("a hunt, and hunter", "a hunt, and (hidden)");
        check("nothing", "nothing");
        assert_eq!(Secret::parse("abc").expect("a key").hide_in("xabcx"), "x(hidden)x");
    }

    #[test]
    fn a_variable_is_named_after_the_source() {
        assert_eq!(variable_of("tally-2"), "MARKETD_KEY_TALLY_2");
    }
}
