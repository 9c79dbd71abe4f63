//! The place of gzip in a build without it: nothing is packed by request, and nothing unpacked.

use std::fmt;

/// What requests say in `Accept-Encoding`.
pub const ACCEPTED: &str = "identity";

/// One body on its way out of its packing, of which there is none.
pub enum Gunzip {}

/// Why a body cannot be unpacked: of those that are begun, none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GunzipError {}

impl fmt::Display for GunzipError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for GunzipError {}

impl Gunzip {
    /// There is none.
    pub fn open(_cap: u64) -> Option<Box<Gunzip>> {
        None
    }

    /// Nobody has one to ask.
    pub fn push(&mut self, _packed: &[u8]) {
        match *self {}
    }

    /// Nobody has one to ask.
    pub fn has_more(&self) -> bool {
        match *self {}
    }

    /// Nobody has one to ask.
    pub fn unpack(&mut self) -> Result<&[u8], GunzipError> {
        match *self {}
    }

    /// Nobody has one to ask.
    pub fn finish(&self) -> Result<(), GunzipError> {
        match *self {}
    }
}
