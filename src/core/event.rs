//! What the core and its driver exchange: the services, what can happen to a connection ([`Event`]), and
//! what the driver is to do ([`Action`]). Plain data.

use crate::history::DiskJob;
use crate::log_targets::NET;
use crate::market::SourceId;
use crate::named::named;
use crate::table::Key;
use crate::time::{Mono, UnixMs};
use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

named! {
    /// What a listener's clients are served, by the name in the log.
    pub enum Service {
        /// `/api/v1` alone, because the ecosystem has an address of its own.
        Api "api"
        /// `/api/ecosystem` alone.
        Ecosystem "ecosystem"
        /// Both, on one address.
        Both "both"
        /// The built-in exchange.
        Demo "demo"
    }
}

impl Service {
    /// Logs where it can be reached: `http://` and an address, or a Unix socket.
    pub fn announce(self, place: &str) {
        match self {
            Service::Api | Service::Both => {
                log::info!(target: NET, "listening on {place}")
            }
            Service::Ecosystem => {
                log::info!(target: NET, "ecosystem listening on {place}")
            }
            Service::Demo => log::info!(
                target: NET,
                "demo exchange on {place}: these are simulated prices; to poll a real \
                 exchange: marketd --source binance=URL --symbols BTC/USDT"
            ),
        }
    }
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A connection to an exchange, to the proxy in front of it, or to the engine of the cluster, is open.
    Connected,
    /// The TLS handshake is done. From now on, bytes in and out are the decrypted ones.
    Secured,
    /// Bytes came in.
    Received(&'a [u8]),
    /// The kernel has taken this many bytes of [`super::Core::outgoing`]. 0: it takes no bytes for now.
    Sent(usize),
    /// The peer has sent its last byte.
    Eof,
    /// The connection is broken, or was never open.
    Failed(&'a Broken),
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the connection's output now, or resume reading from it, though its own turn has not come.
    Flush(Key),
    /// Open a connection under this key.
    Connect(Key, SocketAddr),
    /// Begin TLS, with a peer that has a certificate for this host.
    Secure(Key, String),
    /// Look up a name, and tell the core by [`super::Core::resolved`].
    Resolve(LookUp),
    /// Send a job to the disk thread. Its replies come by [`super::Core::stored`]. There are never more jobs
    /// under way than the queue of the disk thread takes.
    Store(DiskJob),
    /// Shut the write side: nothing more will come from us.
    Finish(Key),
    /// Close the socket, and tell the core by [`super::Core::closed`].
    Close(Key),
}

/// A kind of long work, which is done in slices of at most some 0.1 ms. Each kind has its own queue. The
/// kinds share the time by [`SHARES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongWork {
    /// The driver reads what exchanges have sent.
    Exchanges,
    /// The driver takes a reply of the disk thread.
    Stored,
    /// Polls are applied to the market, and pages of candles.
    Sources,
    /// Quotes and rules are saved, missed changes are refilled, saved quotes are restored, and written
    /// candles are noted as being in the file.
    History,
    /// Entries of other nodes are applied.
    Cluster,
    /// The next requests of clients that have sent many, and requests for metrics.
    Requests,
    /// Parts of deferred responses.
    Responses,
    /// Parts of bodies that are compressed.
    Compression,
    /// Changes are noted with streams, and events are written.
    Streams,
}

/// How the kinds of long work share the time. The kinds that clients wait for have the greatest shares.
pub const SHARES: [(LongWork, u64); 9] = [
    (LongWork::Exchanges, 4),
    (LongWork::Stored, 2),
    (LongWork::Sources, 4),
    (LongWork::History, 1),
    (LongWork::Cluster, 2),
    (LongWork::Requests, 4),
    (LongWork::Responses, 4),
    (LongWork::Compression, 2),
    (LongWork::Streams, 4),
];

/// Kinds of long work: a bit for each.
pub type WorkSet = u16;

impl LongWork {
    /// The set of this kind, if there is some of it.
    pub fn if_any(self, has_some: bool) -> WorkSet {
        WorkSet::from(has_some) << self as u16
    }
}

/// A name to look up. Each source has at most one look-up under way, and so has the engine of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// The source that the result is for, or [`SourceId::ENGINE`].
    pub source: SourceId,
    /// The name.
    pub host: String,
    /// The port of the addresses.
    pub port: u16,
    /// True if an address of the name is known already. Such a look-up goes before others.
    pub has_worked: bool,
}

/// What a look-up has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The look-up.
    pub look_up: LookUp,
    /// At least one address, in the system's order, or why there is none.
    pub addresses: Result<Vec<SocketAddr>, String>,
}

/// Figures of the process, from the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFacts {
    /// Resident memory, in bytes.
    pub rss_bytes: Option<u64>,
    /// Open descriptors.
    pub open_fds: Option<u64>,
    /// How many may be open at a time; `None` if there is no limit.
    pub max_fds: Option<u64>,
    /// Time of the processor that was spent, in microseconds.
    pub cpu_us: u64,
}

/// How many lines the log has lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogFigures {
    /// Lines that were lost since the start, because they could not be written.
    pub lost: u64,
    /// True if every line is lost now.
    pub is_full: bool,
}

/// How long after the last lost line the log still counts as losing lines. So a reader that is always a
/// little too slow makes one reason in `/health`, not many.
const LOG_LOSES_FOR: Duration = Duration::from_secs(60);

/// Whether the log loses lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogStatus {
    /// Lines lost since the start.
    pub lost: u64,
    /// When the log stops counting as losing lines. `None`: it loses none.
    loses_until: Option<Mono>,
}

impl LogStatus {
    /// True if lines are lost, or were a short while ago.
    pub fn loses(&self) -> bool {
        self.loses_until.is_some()
    }

    /// When [`LogStatus::note`] is wanted for the passing of time.
    pub fn due(&self) -> Mono {
        self.loses_until.unwrap_or(Mono::NEVER)
    }

    /// Notes how things stand. Returns true if [`LogStatus::loses`] has changed.
    pub fn note(&mut self, figures: LogFigures, now: Mono) -> bool {
        let did_lose = self.loses();
        if figures.is_full || figures.lost > self.lost {
            self.loses_until = Some(now + LOG_LOSES_FOR);
        } else if self.due() <= now {
            self.loses_until = None;
        }
        self.lost = figures.lost;
        self.loses() != did_lose
    }
}

/// Why a connection is broken, or was never open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// An I/O error.
    Io(ErrorKind),
    /// The peer has closed it.
    Closed,
    /// What TLS, a proxy or a look-up says.
    Text(Box<str>),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Io(kind) => write!(f, "{kind}"),
            Broken::Closed => f.write_str("closed by the peer"),
            Broken::Text(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Broken {}

named! {
    /// Why a client's connection ended, by the name that metrics use.
    pub enum CloseReason {
        /// The client closed, between two requests or after its last response.
        ClientClosed "client_closed"
        /// The client closed in the middle of a request.
        CutShort "cut_short"
        /// The client asked to close with its last request, or sent HTTP/1.0.
        Answered "answered"
        /// The cap of requests on one connection.
        RequestLimit "request_limit"
        /// A request that could not be understood or was too large.
        BadRequest "bad_request"
        /// The head of a request took too long.
        HeadTimeout "head_timeout"
        /// The body of a request took too long.
        BodyTimeout "body_timeout"
        /// No request for too long.
        IdleTimeout "idle_timeout"
        /// The client did not read its response.
        WriteTimeout "write_timeout"
        /// The client read its response more slowly than others, when too much was pending in total.
        SlowReader "slow_reader"
        /// The client left requests unfinished for longer than others, when too many bytes of them were held
        /// in total.
        SlowSender "slow_sender"
        /// The connection broke.
        Broken "broken"
        /// marketd refused the connection: it was above the cap of all connections or of its address, or came
        /// during the shutdown. It was served the health at most.
        Refused "refused"
        /// marketd is stopping.
        Stopping "stopping"
        /// It gave its place to another one at the cap of connections or of streams.
        MadeRoom "made_room"
    }
}

/// How often the configuration was read again.
#[derive(Clone, Debug, Default)]
pub struct ReloadStatus {
    /// Configurations that were taken in.
    pub taken: u64,
    /// Configurations that were refused.
    pub refused: u64,
    /// When the last configuration was refused. `None` if it was taken in.
    pub refused_at: Option<UnixMs>,
}

impl ReloadStatus {
    /// A configuration was taken in.
    pub fn take(&mut self) {
        self.taken += 1;
        self.refused_at = None;
    }

    /// A configuration was refused at this time.
    pub fn refuse(&mut self, at: UnixMs) {
        self.refused += 1;
        self.refused_at = Some(at);
    }
}
