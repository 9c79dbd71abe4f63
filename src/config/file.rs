//! Files: reads the text of a file that a person has named.

use super::fault::ConfigFault;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;

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
        return Err(fault(None, "a FIFO, which is not read".to_string()));
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
