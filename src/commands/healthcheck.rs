//! `marketd healthcheck [URL]`: asks a running marketd whether it is ready, for containers without curl.

use crate::config::ReadyAt;
use crate::net::connect;
use socket2::Socket;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The longest that connecting, sending, or waiting for a part of the response may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of a response that are read: the body is one short line.
const MOST: u64 = 64 * 1024;

/// Asks once.
///
/// # Errors
/// In one line, where nobody answers, or the status is not 200.
pub fn ask(at: &ReadyAt) -> Result<(), String> {
    let (name, response) = match at {
        ReadyAt::Url(url) => {
            let response = connect(url, PATIENCE);
            (url.authority(), response.and_then(|it| get(it, &url.path, &url.authority())))
        }
        ReadyAt::Socket { file, path } => {
            let response = UnixStream::connect(file).and_then(|it| get(it, path, "localhost"));
            (file.display().to_string(), response)
        }
    };
    let response = response.map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&response);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let line = head.lines().next().unwrap_or_default();
    match line.strip_prefix("HTTP/1.1 ") {
        Some(status) if status.split(' ').next() == Some("200") => Ok(()),
        Some(_) => Err(format!("{line}: {}", body.trim_end())),
        None => Err(format!("{name}: the response is not HTTP")),
    }
}

fn get(stream: impl Into<Socket>, path: &str, host: &str) -> io::Result<Vec<u8>> {
    let mut stream = stream.into();
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    stream.take(MOST).read_to_end(&mut response)?;
    Ok(response)
}
