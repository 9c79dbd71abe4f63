//! `marketd healthcheck [URL]`: asks a running marketd whether it is ready, for containers without curl.

use crate::config::Url;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The longest that connecting, sending, or waiting for a part of the response may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of a response that are read: the body is one short line.
const MOST: u64 = 64 * 1024;

/// Asks once.
///
/// # Errors
/// In one line, where nobody answers, or the status is not 200.
pub fn ask(url: &Url) -> Result<(), String> {
    let response = get(url).map_err(|error| format!("{}: {error}", url.authority()))?;
    let text = String::from_utf8_lossy(&response);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let line = head.lines().next().unwrap_or_default();
    match line
        .strip_prefix("HTTP/1.1 ")
        .map(|rest| rest.split(' ').next())
    {
        Some(Some("200")) => Ok(()),
        Some(_) => Err(format!("{line}: {}", body.trim_end())),
        None => Err(format!("{}: the response is not HTTP", url.authority())),
    }
}

fn get(url: &Url) -> io::Result<Vec<u8>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (url.host.as_str(), url.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return exchange(stream, url),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(mut stream: TcpStream, url: &Url) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (path, host) = (&url.path, url.authority());
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut response = Vec::new();
    stream.take(MOST).read_to_end(&mut response)?;
    Ok(response)
}
