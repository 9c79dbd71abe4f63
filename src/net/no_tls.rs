//! The place of TLS in a build without it: nothing can be made of it.
//!
//! The configuration refuses every https address in such a build, so nobody asks.

use super::link::{Moved, Progress};
use super::socket::Socket;
use crate::config::Config;
use crate::core::Broken;
use crate::time::Clock;

/// What would begin sessions.
pub struct Tls;

/// A session, of which there is none.
#[derive(Debug)]
pub enum Session {}

impl Tls {
    /// There is nothing to be wrong with.
    pub fn new(_config: &Config, _clock: Clock) -> Result<Tls, String> {
        Ok(Tls)
    }

    /// Refuses.
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
    pub fn read(&mut self, _socket: &mut Socket, _buffer: &mut [u8]) -> Moved {
        match *self {}
    }

    /// Never called.
    pub fn write(&mut self, _socket: &mut Socket, _bytes: &[u8]) -> Moved {
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
