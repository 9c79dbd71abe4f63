//! What the head of an answer says of its body: plain data.
//!
//! It writes nothing but the fields of a coding, which are ready lines.

use super::PREFLIGHT;
use crate::fingerprint::Fingerprint;

/// Names one state of one representation of something, strongly: equal tags, equal bytes
/// (RFC 9110, 8.8.3). Written as `"<boot>-<version>-<variant>"`, numbers in hexadecimal. It is
/// made of what the body was made of, and of nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag {
    /// Differs between runs of the service: versions start anew in each.
    pub(super) boot: u64,
    pub(super) version: u64,
    /// A letter or digit that names the representation.
    pub(super) variant: u8,
}

impl ETag {
    /// The tag of a body that is made of these parts.
    pub fn of_parts(boot: u64, made_of: Fingerprint, variant: u8) -> ETag {
        ETag::of_version(boot, made_of.number(), variant)
    }

    /// The tag of a body that shows one thing, whose version no other state of anything shares.
    pub fn of_version(boot: u64, version: u64, variant: u8) -> ETag {
        ETag {
            boot,
            version,
            variant,
        }
    }

    /// The tag of the same in gzip: its variant is the letter behind this one's. No two letters of
    /// one address are neighbours.
    pub fn packed(self) -> ETag {
        ETag {
            variant: self.variant + 1,
            ..self
        }
    }
}

/// What caches may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Nothing.
    NoStore,
    /// Keep it, and ask each time whether it still holds.
    NoCache,
    /// Keep it for so many seconds.
    MaxAge(u32),
}

/// How a body leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As it is, whoever asks.
    Fixed,
    /// As it is, and packed to others or at another time.
    Plain,
    /// In gzip.
    Gzip,
}

impl Coding {
    /// What the head says of it: caches are to know that there are others (RFC 9110, 12.5.5). A 304
    /// has no body that could be packed.
    pub(super) fn lines(self, status: u16) -> &'static [u8] {
        match self {
            Coding::Fixed => b"",
            Coding::Gzip if status != 304 => b"Vary: Accept-Encoding\r\nContent-Encoding: gzip\r\n",
            Coding::Plain | Coding::Gzip => b"Vary: Accept-Encoding\r\n",
        }
    }
}

/// What a body is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// There is no body.
    None,
    /// application/json
    Json,
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
}

/// What differs between heads.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// 200 to 599.
    pub status: u16,
    /// With a 200, makes conditional requests work.
    pub etag: Option<ETag>,
    /// What caches may do.
    pub cache: Cache,
    /// What the body is written in.
    pub content_type: ContentType,
    /// How the body leaves.
    pub coding: Coding,
    /// Ready `Name: value` lines, each with its CR LF.
    pub fields: &'a [u8],
}

impl Head<'static> {
    /// A 200 with JSON.
    pub const fn json(etag: Option<ETag>, cache: Cache) -> Head<'static> {
        Head {
            status: 200,
            etag,
            cache,
            content_type: ContentType::Json,
            coding: Coding::Fixed,
            fields: b"",
        }
    }

    /// The answer to OPTIONS.
    pub const fn options() -> Head<'static> {
        Head {
            status: 204,
            etag: None,
            cache: Cache::NoStore,
            content_type: ContentType::None,
            coding: Coding::Fixed,
            fields: PREFLIGHT,
        }
    }
}
