//! Replaces `tls.rs` in a build without TLS.
//!
//! The configuration refuses every https address in such a build, so no session is ever opened.

use super::socket::Socket;
use super::transfer::{Progress, Stream, Transfer};
use crate::config::Config;
use crate::core::Broken;
use crate::time::Clock;
use std::net::TcpStream;

/// The configuration of no session.
pub struct Tls;

/// A session, which cannot exist.
#[derive(Debug)]
pub enum Session {}

impl Tls {
    /// Never fails.
    pub fn new(_config: &Config, _clock: Clock) -> Result<Tls, String> {
        Ok(Tls)
    }

    /// Always fails.
    pub fn blocking(&self, _host: &str, _socket: TcpStream) -> Result<Box<dyn Stream>, String> {
        Err("this build cannot speak https".to_string())
    }

    /// Always fails.
    pub fn open(&self, _host: &str) -> Result<Session, Broken> {
        Err(Broken::Tls("this build cannot speak https".into()))
    }
}

impl Session {
    /// Never called.
    pub fn holds_bytes(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn wants_write(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub fn shake_hands(&mut self, _socket: &mut Socket) -> Progress {
        match *self {}
    }

    /// Never called.
    pub fn read(&mut self, _socket: &mut Socket, _buffer: &mut [u8]) -> Transfer {
        match *self {}
    }

    /// Never called.
    pub fn write(&mut self, _socket: &mut Socket, _bytes: &[u8]) -> Transfer {
        match *self {}
    }

    /// Never called.
    pub fn flush(&mut self, _socket: &mut Socket) -> Result<(), Broken> {
        match *self {}
    }

    /// Never called.
    pub fn finish(&mut self, _socket: &mut Socket) {
        match *self {}
    }
}
