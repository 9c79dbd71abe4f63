//! The streams: readers that are told of every change of quotes, candles and health.
//!
//! [`Streams`] owns one [`EventStream`] for each, the lists of who reads what (`quotes`, `charts`), and the
//! queue of streams that have something to send. A change costs one note with each of its readers, in slices
//! ([`Streams::step`]). What a reader is sent is written when its turn in the queue comes, and only if all
//! that was written before is sent: so a slow reader gets the newest state of each symbol, and holds up
//! nobody. An event is rendered once for all readers.
//!
//! A connection that has a stream is in the phase `Streaming`, which owns its deadlines: the comment that
//! keeps it open, and the end of a client that takes nothing.
//!
//! While there is no stream, nothing is watched, and a change costs the check of one flag.

mod charts;
mod events;
mod places;
mod quoted;
mod quotes;
mod readers;
mod stream;

use crate::core::api::compressed_cache::CompressedBodies;
use crate::core::api::stream::{write_bye, write_retry, write_status};
use crate::core::api::{Error, StreamRequest, View};
use crate::core::clients::address_counts::AddressCounts;
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::pending::Served;
use crate::core::{Action, CloseReason, Context};
use crate::http::Output;
use crate::rng::Rng;
use crate::table::{Key, Table};
use crate::time::Mono;
use charts::FollowedCharts;
pub use charts::MissingCandles;
use quoted::QuotedEvents;
use quotes::QuoteReaders;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;
use stream::{EventStream, Told};

/// Notes with readers that one slice makes: some 0.1 ms.
const NOTES_A_SLICE: usize = 4096;

/// What a changed symbol costs beside its readers, in notes.
const SYMBOL_COST: usize = 8;

/// The least time after which a client connects again, and what is added by chance: not all at once.
const RETRY_MS: (u64, u64) = (1_500, 1_000);

/// The same when marketd stops: it may take some seconds to start again.
const RETRY_BYE_MS: (u64, u64) = (1_000, 4_000);

/// Between two looks for charts without a series.
const CHARTS_PAUSE: Duration = Duration::from_secs(1);

/// Seconds after which a client may try again where there is no room for its stream.
const RETRY_REFUSED_S: u32 = 5;

/// The client of a stream.
struct Client {
    stream: Key,
    served: Served,
    sent_bytes: usize,
}

/// See the module's page.
pub struct Streams {
    all: Table<EventStream>,
    by_connection: BTreeMap<Key, Client>,
    addresses: AddressCounts,
    quotes: QuoteReaders,
    charts: FollowedCharts,
    quoted: QuotedEvents,
    /// Those that have something to send and nothing that is not sent.
    queue: VecDeque<Key>,
    /// Those that have ended, and are still among the readers.
    ended: Vec<(Key, EventStream)>,
    /// The event of the newest status, and how often the health had changed.
    status: (u64, Vec<u8>),
    /// The version of the quotes up to which all changes are noted with their readers.
    noted: u64,
    /// Candles that charts lack, and that nobody has asked for yet.
    missing: VecDeque<MissingCandles>,
    /// When charts without a series are looked for.
    charts_due: Mono,
    boot: u64,
    rng: Rng,
}

impl Streams {
    /// No streams yet.
    pub fn new(boot: u64) -> Streams {
        Streams {
            // `refusal` keeps to the limit, which a reload may raise.
            all: Table::new(usize::MAX),
            by_connection: BTreeMap::new(),
            addresses: AddressCounts::default(),
            quotes: QuoteReaders::default(),
            charts: FollowedCharts::default(),
            quoted: QuotedEvents::default(),
            queue: VecDeque::new(),
            ended: Vec::new(),
            status: (0, Vec::new()),
            noted: 0,
            missing: VecDeque::new(),
            charts_due: Mono(0),
            boot,
            rng: Rng::new(boot),
        }
    }

    /// Why there is no room for another stream of this address, which is counted. `None` if there is.
    pub fn refusal(&self, client: Option<IpAddr>, cx: &mut Context) -> Option<Error> {
        let limits = &cx.config.limits;
        let of_client = client.map_or(0, |client| self.addresses.count(client));
        let error = if cx.stats.stopping {
            Error::unavailable("marketd is stopping.", RETRY_REFUSED_S)
        } else if self.all.len() + self.ended.len() >= limits.streams {
            Error::unavailable("Too many streams.", RETRY_REFUSED_S)
        } else if limits.streams_per_address > 0 && of_client >= limits.streams_per_address {
            let message = "Too many streams of this address.";
            Error::new(429, "too_many_requests", message).retry_after(RETRY_REFUSED_S)
        } else {
            return None;
        };
        cx.stats.streams.refused += 1;
        Some(error)
    }

    /// Opens a stream on this connection, whose head is written. There must be room.
    pub fn open(
        &mut self,
        connection: &mut Connection,
        request: StreamRequest,
        served: Served,
        compressed: &CompressedBodies,
        cx: &mut Context,
    ) {
        if self.all.is_empty() {
            cx.market.quotes.touched_mut().watch(true);
            cx.market.charts.touched.watch(true);
            self.noted = cx.market.quotes.version();
        }
        let view = View::new(cx, compressed, self.boot);
        let body = request.body;
        let wait_ms = self.wait_ms(RETRY_MS);
        body.write(connection.output.bytes(), |out| write_retry(out, wait_ms));
        let stream = EventStream::new(connection.key, request, &view);
        let key = self.all.insert(stream);
        let key = key.expect("there is room: the caller has looked");
        let stream = self.all.get(key).expect("it was just inserted");
        self.quotes.add(key, stream, &view);
        for (place, chart) in stream.charts.iter().enumerate() {
            let missing = self.charts.add(chart.followed, (key, place), &view);
            self.missing.extend(missing);
        }
        // If it has changed just now, the others are to be told too.
        if self.all.len() == 1 || self.status.0 == view.status.health_changes {
            self.render_status(&view);
        }
        if let Some(address) = served.admitted.client {
            self.addresses.enter(address);
        }
        let client = Client { stream: key, served, sent_bytes: 0 };
        self.by_connection.insert(connection.key, client);
        cx.stats.streams.open += 1;
        cx.stats.streams.opened += 1;
        connection.enter(Phase::Streaming(body), cx);
    }

    /// Milliseconds from the first of these on, at most as many more as the second.
    fn wait_ms(&mut self, (least, more): (u64, u64)) -> u64 {
        least + self.rng.below(more)
    }

    fn render_status(&mut self, view: &View<'_>) {
        let (version, event) = &mut self.status;
        *version = view.status.health_changes;
        event.clear();
        write_status(event, view);
    }

    /// True if [`Streams::step`] has something to do.
    #[inline]
    pub fn has_work(&self, cx: &Context) -> bool {
        if self.all.is_empty() {
            return false;
        }
        !self.queue.is_empty() || !self.ended.is_empty() || self.has_changes(cx)
    }

    fn has_changes(&self, cx: &Context) -> bool {
        let market = &cx.market;
        !market.quotes.touched().is_empty()
            || !market.charts.touched.is_empty()
            || cx.stats.health_changes != self.status.0
    }

    /// Does one slice: notes changes with their readers, or sends one reader what has changed, or takes one
    /// that has ended from the lists. `spare`: buffers for what is sent.
    pub fn step(
        &mut self,
        connections: &mut Table<Connection>,
        (compressed, spare): (&CompressedBodies, &mut Output),
        cx: &mut Context,
    ) {
        if self.has_changes(cx) {
            self.note_changes(compressed, cx);
        } else if let Some((key, stream)) = self.ended.pop() {
            self.quotes.remove(key, &stream);
            for chart in &stream.charts {
                self.charts.remove(chart.followed, key);
            }
        } else if let Some(key) = self.queue.pop_front() {
            self.send(key, connections, (compressed, spare), cx);
        }
    }

    /// Notes changes with their readers, about a slice of them.
    fn note_changes(&mut self, compressed: &CompressedBodies, cx: &mut Context) {
        let Streams { all, quotes, charts, queue, .. } = self;
        let (mut notes, mut conflated) = (0, 0);
        let mut note = |key: Key, place: usize| {
            if let Some(stream) = all.get_mut(key) {
                conflated += u64::from(!stream.note(place));
                if !std::mem::replace(&mut stream.is_queued, true) {
                    queue.push_back(key);
                }
            }
        };
        while notes < NOTES_A_SLICE {
            if let Some(symbol) = cx.market.quotes.touched_mut().take() {
                let view = View::new(cx, compressed, self.boot);
                notes += SYMBOL_COST + quotes.changed(symbol, &view, &mut note);
            } else if let Some(symbol) = cx.market.charts.touched.take() {
                let view = View::new(cx, compressed, self.boot);
                notes += SYMBOL_COST + charts.changed(symbol, &view, &mut note);
            } else {
                break;
            }
        }
        cx.stats.streams.conflated += conflated;
        if cx.market.quotes.touched().is_empty() {
            self.noted = cx.market.quotes.version();
        }
        if cx.stats.health_changes != self.status.0 {
            self.render_status(&View::new(cx, compressed, self.boot));
            for (key, stream) in self.all.iter_mut() {
                if !std::mem::replace(&mut stream.is_queued, true) {
                    self.queue.push_back(key);
                }
            }
        }
    }

    /// Writes what has changed to one reader, if all that was written before is sent.
    fn send(
        &mut self,
        key: Key,
        connections: &mut Table<Connection>,
        (compressed, spare): (&CompressedBodies, &mut Output),
        cx: &mut Context,
    ) {
        let Some(stream) = self.all.get_mut(key) else {
            return;
        };
        stream.is_queued = false;
        let Some(connection) = connections.get_mut(stream.connection) else {
            return;
        };
        // What is not sent yet comes first: then it is queued again.
        if !matches!(connection.phase, Phase::Streaming(_)) || !connection.output.is_empty() {
            return;
        }
        let mut told = Told {
            charts: &mut self.charts,
            quoted: &mut self.quoted,
            status: (self.status.0, &self.status.1),
            noted: self.noted,
            boot: self.boot,
        };
        let view = View::new(cx, compressed, self.boot);
        connection.output.borrow(spare);
        let body = stream.body;
        let write = |out: &mut Vec<u8>| stream.write(out, &view, &mut told);
        let events = body.write(connection.output.bytes(), write);
        cx.stats.streams.events += events;
        if connection.output.is_empty() {
            connection.output.give_back(spare, usize::MAX);
            if stream.has_news(self.status.0) {
                stream.is_queued = true;
                self.queue.push_back(key);
            }
            return;
        }
        connection.renew(cx);
        cx.actions.push_back(Action::Flush(connection.key));
        connection.recount(&mut cx.stats.http);
    }

    /// The client has taken so many bytes. `is_all`: nothing is left to be sent.
    pub fn sent(&mut self, connection: Key, count: usize, is_all: bool) {
        let Some(client) = self.by_connection.get_mut(&connection) else {
            return;
        };
        client.sent_bytes += count;
        if is_all
            && let Some(stream) = self.all.get_mut(client.stream)
            && stream.has_news(self.status.0)
            && !std::mem::replace(&mut stream.is_queued, true)
        {
            self.queue.push_back(client.stream);
        }
    }

    /// A connection has closed. Returns what is to be counted and logged of its stream, with the bytes that
    /// were sent.
    pub fn closed(
        &mut self,
        connection: Key,
        reason: CloseReason,
        cx: &mut Context,
    ) -> Option<(Served, usize)> {
        let client = self.by_connection.remove(&connection)?;
        let stream = self.all.remove(client.stream)?;
        if let Some(address) = client.served.admitted.client {
            self.addresses.leave(address);
        }
        cx.stats.streams.open -= 1;
        cx.stats.streams.closes[reason as usize] += 1;
        if self.all.is_empty() {
            self.quotes = QuoteReaders::default();
            self.charts = FollowedCharts::default();
            self.quoted = QuotedEvents::default();
            self.queue = VecDeque::new();
            self.ended = Vec::new();
            cx.market.quotes.touched_mut().watch(false);
            cx.market.charts.touched.watch(false);
        } else {
            self.ended.push((client.stream, stream));
        }
        Some((client.served, client.sent_bytes))
    }

    /// Ends every stream: marketd stops.
    pub fn end_all(&mut self, connections: &mut Table<Connection>, cx: &mut Context) {
        for key in self.by_connection.keys() {
            let Some(connection) = connections.get_mut(*key) else {
                continue;
            };
            if let Phase::Streaming(body) = connection.phase {
                let (least, more) = RETRY_BYE_MS;
                let wait_ms = least + self.rng.below(more);
                let out = connection.output.bytes();
                body.write(out, |out| write_bye(out, wait_ms));
                body.end(out);
                connection.responded(Some(CloseReason::Stopping), cx);
                cx.actions.push_back(Action::Flush(*key));
                connection.recount(&mut cx.stats.http);
            }
        }
    }

    /// Looks once a second for charts whose candles are to be asked for again.
    pub fn handle_timeout(&mut self, compressed: &CompressedBodies, cx: &Context) {
        if !self.all.is_empty() && cx.now.mono >= self.charts_due {
            self.charts_due = cx.now.mono + CHARTS_PAUSE;
            let view = View::new(cx, compressed, self.boot);
            self.missing.extend(self.charts.without_series(&view));
        }
    }

    /// True if charts lack candles that nobody has asked for yet.
    #[inline(always)]
    pub fn lacks_candles(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Candles that charts lack, and that nobody has asked for yet.
    pub fn next_missing(&mut self) -> Option<MissingCandles> {
        self.missing.pop_front()
    }
}
