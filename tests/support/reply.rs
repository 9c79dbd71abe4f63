//! What a fake exchange answers, how it leaves, and what can be ordered to go wrong with it.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// What is answered, and how it is sent.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Fields besides those of framing.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// How its end is told.
    pub framing: Framing,
    /// How it leaves.
    pub delivery: Delivery,
}

/// Bytes of a body: parts, each sent so many times. So 50 MB need not be held.
#[derive(Clone, Debug, Default)]
pub struct Body(pub Vec<(Arc<[u8]>, usize)>);

/// How the end of a body is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `Content-Length`, right.
    Length,
    /// `Content-Length`, off by so many bytes; then the connection is closed.
    LengthOff(i64),
    /// Chunks of these sizes, over and over.
    Chunked(Vec<usize>),
    /// The connection's close.
    UntilClose,
}

/// How an answer leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// As fast as it can.
    AtOnce,
    /// So many bytes at a time, head included, with a pause after each.
    Slowly { bytes: usize, pause: Duration },
    /// The head, so many bytes of the body as sent (chunk sizes included), then this.
    Cut { after: usize, then: End },
    /// Not a byte, but this.
    Nothing(End),
    /// These bytes in place of any answer, then a close.
    Raw(Vec<u8>),
}

/// What becomes of a connection in the middle of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// An orderly close.
    Close,
    /// It stays open, and nothing more is sent, until the client goes.
    Stall,
    /// A reset (RST): `SO_LINGER` of zero.
    Reset,
}

/// What can be ordered to go wrong with an answer that would have been fine.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Accepted, asked, never answered.
    Silence,
    /// So many bytes at a time, with a pause after each.
    Slowly { bytes: usize, pause: Duration },
    /// Half a body (its length is announced in full), then this.
    HalfThen(End),
    /// In place of an answer: this.
    NoAnswer(End),
    /// An empty array for an array, an empty object for an object.
    EmptyList,
    /// The same body, ended by the close.
    UntilClose,
    /// 429 with this `Retry-After`.
    TooManyRequests(Option<String>),
    /// This status, with an error body as Binance writes it.
    Status(u16),
    /// The same body in gzip.
    Gzipped,
    /// Any other answer.
    Instead(Reply),
}

impl Reply {
    /// 200 with this body as JSON.
    pub fn json(body: impl Into<Vec<u8>>) -> Reply {
        Reply::with_body(200, Body::from(body.into()))
    }

    /// A status with a body as JSON.
    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        Reply::with_body(status, Body::from(body.into()))
    }

    /// A status with a body that is already shared or repeated.
    pub fn with_body(status: u16, body: Body) -> Reply {
        let kind = ("Content-Type", "application/json;charset=UTF-8");
        Reply {
            status,
            fields: vec![(kind.0.to_string(), kind.1.to_string())],
            body,
            framing: Framing::Length,
            delivery: Delivery::AtOnce,
        }
    }

    /// 404 with a page for people, as a server in front of an exchange sends it.
    pub fn not_found() -> Reply {
        let mut reply = Reply::status(404, "<html><body>404 Not Found</body></html>\n");
        reply.fields = vec![("Content-Type".to_string(), "text/html".to_string())];
        reply
    }

    /// A `Date` that showed this time at that instant, and goes on from there.
    pub fn dated(self, ms: i64, at: std::time::Instant) -> Reply {
        let since = std::time::Duration::from_millis(ms.unsigned_abs()) + at.elapsed();
        let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + since);
        self.field("Date", &date)
    }

    /// One more header field.
    pub fn field(mut self, name: &str, value: &str) -> Reply {
        self.fields.push((name.to_string(), value.to_string()));
        self
    }

    /// The same body in gzip, and said to be so.
    pub fn gzipped(mut self) -> Reply {
        self.body = Body::from(gzip(&self.body.to_vec()));
        self.field("Content-Encoding", "gzip")
    }

    /// Another framing.
    pub fn framed(mut self, framing: Framing) -> Reply {
        self.framing = framing;
        self
    }

    /// Another way to leave.
    pub fn delivered(mut self, delivery: Delivery) -> Reply {
        self.delivery = delivery;
        self
    }

    /// The head as it leaves; `closes`: it announces the close of the connection.
    pub fn head(&self, closes: bool) -> String {
        let mut head = format!("HTTP/1.1 {} Some Status\r\n", self.status);
        for (name, value) in &self.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = self.body.len() as i64;
        match &self.framing {
            Framing::Length => head.push_str(&format!("Content-Length: {length}\r\n")),
            Framing::LengthOff(off) => {
                head.push_str(&format!("Content-Length: {}\r\n", (length + off).max(0)));
            }
            Framing::Chunked(_) => head.push_str("Transfer-Encoding: chunked\r\n"),
            Framing::UntilClose => {}
        }
        head.push_str(if closes { "Connection: close\r\n\r\n" } else { "\r\n" });
        head
    }
}

/// Bytes in gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish());
    packed.expect("a vector takes everything")
}

impl Body {
    /// Bytes in all.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(part, times)| part.len() * times).sum()
    }

    /// All of it, in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let parts = self.0.iter().map(|(part, times)| part.repeat(*times));
        parts.collect::<Vec<_>>().concat()
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body(vec![(bytes.into(), 1)])
    }
}

impl From<Arc<[u8]>> for Body {
    fn from(bytes: Arc<[u8]>) -> Body {
        Body(vec![(bytes, 1)])
    }
}

impl Fault {
    /// The answer that this fault makes of the one that `well` would have given.
    pub fn bend(self, well: impl FnOnce() -> Reply) -> Reply {
        match self {
            Fault::Silence => Reply::json("").delivered(Delivery::Nothing(End::Stall)),
            Fault::NoAnswer(end) => Reply::json("").delivered(Delivery::Nothing(end)),
            Fault::Slowly { bytes, pause } => well().delivered(Delivery::Slowly { bytes, pause }),
            Fault::HalfThen(then) => {
                let reply = well();
                let after = reply.body.len() / 2;
                reply.delivered(Delivery::Cut { after, then })
            }
            Fault::UntilClose => well().framed(Framing::UntilClose),
            Fault::TooManyRequests(retry_after) => {
                let error = r#"{"code":-1003,"msg":"Too many requests; please wait."}"#;
                let reply = Reply::status(429, error);
                retry_after.iter().fold(reply, |reply, after| reply.field("Retry-After", after))
            }
            Fault::Status(status) => {
                Reply::status(status, r#"{"code":-1000,"msg":"An unknown error occurred."}"#)
            }
            Fault::Gzipped => well().gzipped(),
            Fault::Instead(reply) => reply,
            Fault::EmptyList => {
                let mut reply = well();
                let is_array = reply.body.to_vec().trim_ascii_start().starts_with(b"[");
                reply.body = Body::from(if is_array { b"[]" } else { b"{}" }.to_vec());
                reply
            }
        }
    }
}
