//! Files: the text of one that somebody names.

use super::fault::ConfigFault;
use std::fs::File;
use std::io::Read;

/// Largest file that is read: an endless device must not fill the memory. A thousand categories of a
/// thousand symbols are 10 MB.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Which files may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Files {
    /// Also a pipe, which comes once.
    Any,
    /// Regular ones: any other could keep the event loop waiting.
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
