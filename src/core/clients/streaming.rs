//! Clients with a stream: they are told the changes of quotes, candles and health.
//!
//! A connection owns its stream (`streams`), and is in the phase `Streaming`. This phase has two deadlines.
//! If all output is sent at the deadline, the event `alive` is sent. If output is left, the client has taken
//! nothing since the deadline was last renewed, and its connection is closed. [`Streams`] owns the lists of
//! who reads what, and the queue of the streams that have something to send. A change marks one place in the
//! stream of each reader, slice by slice ([`Streams::step`]). Events of a reader are written when its turn in
//! the queue comes, and only if its earlier output is sent. So a slow reader gets the newest state of each
//! symbol, and holds up nobody. An event is rendered once for all readers, but a quote with decimals as
//! strings once for each.
//!
//! While there is no stream, a change only marks its symbol, and the first stream drops the marks.

use crate::core::api::stream::write_bye;
use crate::core::api::{Error, StreamRequest, View};
use crate::core::clients::address_counts::{AddressCounts, network};
use crate::core::clients::connection::{Connection, Phase};
use crate::core::clients::streams::{EventStream, QuoteReaders, SharedEvents};
use crate::core::{CloseReason, Context};
use crate::http::Output;
use crate::market::SymbolId;
use crate::place_set::PlaceSet;
use crate::rng::Rng;
use crate::table::{Key, Table};
use crate::time::Mono;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How many places of readers one slice marks: some 0.1 ms.
const NOTES_A_SLICE: usize = 4096;

/// What a changed symbol costs besides its readers, in marked places.
const SYMBOL_COST: usize = 8;

/// How long a client waits before it connects again: a fixed part, and the bound of a random part, so that
/// not all come at once.
const RETRY_MS: (u64, u64) = (1_500, 1_000);

/// Like `RETRY_MS`, when marketd stops: it may take some seconds to start again.
const RETRY_BYE_MS: (u64, u64) = (1_000, 4_000);

/// Seconds after which a client may try again if its stream is refused.
const RETRY_REFUSED_S: u32 = 5;

/// See the module's page.
#[derive(Default)]
pub struct Streams {
    /// The open streams that do not make room, by the time of their opening and by their connection. Each has
    /// the address that it counts for.
    open: BTreeMap<(Mono, Key), Option<IpAddr>>,
    addresses: AddressCounts,
    /// The connections whose streams make room for others.
    leaving: Vec<Key>,
    quotes: QuoteReaders,
    shared: SharedEvents,
    /// The indexes of the connections whose streams have something to send. A connection whose earlier output
    /// is not sent yet is passed over, and is queued again once that output is sent.
    queue: PlaceSet,
    rng: Rng,
}

impl Streams {
    /// No streams yet. `seed`: for what is left to chance.
    pub fn new(seed: u64) -> Streams {
        Streams { rng: Rng::new(seed), ..Streams::default() }
    }

    /// Why another stream of this address is refused; the refusal is counted. `None` if there is room, or if
    /// another stream would make room.
    pub fn refusal(&mut self, client: Option<IpAddr>, cx: &mut Context) -> Option<Error> {
        let limits = &cx.config.limits;
        let of_client = self.addresses.count(client);
        let error = if cx.stats.stopping {
            Error::unavailable("marketd is stopping.", RETRY_REFUSED_S)
        } else if limits.streams_per_address > 0 && of_client >= limits.streams_per_address {
            let message = "Too many streams from this address.";
            Error::new(429, "too_many_requests", message).retry_after(RETRY_REFUSED_S)
        } else if self.open.len() >= limits.streams && self.next_to_leave(of_client).is_none() {
            Error::unavailable("Too many streams.", RETRY_REFUSED_S)
        } else {
            return None;
        };
        cx.stats.streams.refused += 1;
        Some(error)
    }

    /// The stream that makes room: the oldest one of the address with the most streams. That address must
    /// have at least two more than `own`, the streams of the client that asks.
    fn next_to_leave(&self, own: usize) -> Option<(Mono, Key)> {
        let most = Some(self.addresses.most()?);
        let mut open = self.open.iter().filter(|_| self.addresses.count(most) > own + 1);
        open.find(|(_, address)| address.map(network) == most).map(|(place, _)| *place)
    }

    /// A stream no longer takes room.
    fn leave(&mut self, place: (Mono, Key)) {
        self.addresses.leave(self.open.remove(&place).flatten());
    }

    /// Opens a stream on this connection, whose head is written. There must be room, or a stream that makes
    /// room.
    pub fn open(
        &mut self,
        connection: &mut Connection,
        request: StreamRequest,
        (client, line): (Option<IpAddr>, Option<Box<str>>),
        cx: &mut Context,
    ) {
        if self.open.len() >= cx.config.limits.streams
            && let Some(place) = self.next_to_leave(self.addresses.count(client))
        {
            self.leave(place);
            self.leaving.push(place.1);
        }
        let is_first = cx.stats.streams.open == 0;
        if is_first {
            // No stream has to be told of earlier changes.
            *cx.market.quotes.touched_mut() = PlaceSet::default();
            cx.market.charts.touched = PlaceSet::default();
            self.shared.noted = cx.market.quotes.version();
            self.shared.catalog = cx.market.catalog.version();
        }
        let wait_ms = RETRY_MS.0 + self.rng.below(RETRY_MS.1);
        let view = View::new(cx);
        let (key, body) = (connection.key, request.body);
        let stream = EventStream::new(request, line, wait_ms, (self.shared.noted, &view));
        self.quotes.add(key, &stream.asked, &view);
        let add = |place| self.shared.charts.add(stream.chart(place)?, (key, place), &view);
        let candles = (0..stream.asked.charts.len()).filter_map(add).collect();
        // This stream is sent the status with the current figures. If the health has just changed, the status
        // is left to `note_changes`, which renders it and queues the other streams too.
        if is_first || self.shared.health_changes == view.status.health_changes {
            self.shared.render_status(&view);
        }
        self.addresses.enter(client);
        self.open.insert((stream.opened_at, key), client);
        stream.asked.symbols.named().for_each(|(_, symbol)| cx.followed.enter(symbol));
        connection.stream = Some(Box::new(stream));
        // The reason why the connection closes is decided when the stream ends.
        connection.reason = None;
        connection.enter(Phase::Streaming(body), cx);
        cx.wish(None, Vec::new(), candles);
        cx.stats.streams.open += 1;
        cx.stats.streams.opened += 1;
    }

    /// True if [`Streams::step`] has something to do.
    pub fn has_work(&self, cx: &Context) -> bool {
        let has_work =
            || !self.queue.is_empty() || !self.leaving.is_empty() || self.has_changes(cx);
        cx.stats.streams.open > 0 && has_work()
    }

    fn has_changes(&self, cx: &Context) -> bool {
        let market = &cx.market;
        !market.quotes.touched().is_empty()
            || !market.charts.touched.is_empty()
            || cx.stats.health_changes != self.shared.health_changes
            || market.catalog.version() != self.shared.catalog
    }

    /// Does one slice: closes a stream that makes room, or notes changes with their readers. If there is
    /// nothing of either kind, returns the next reader in the queue, for [`Streams::send`].
    pub fn step(&mut self, connections: &mut Table<Connection>, cx: &mut Context) -> Option<Key> {
        if let Some(key) = self.leaving.pop() {
            let connection = connections.get_mut(key);
            connection.into_iter().for_each(|it| it.close(CloseReason::MadeRoom, cx));
        } else if self.has_changes(cx) {
            self.note_changes(connections, cx);
        } else {
            return self.queue.take().and_then(|index| connections.at(index));
        }
        None
    }

    /// Notes changes with their readers, about a slice of them.
    fn note_changes(&mut self, connections: &mut Table<Connection>, cx: &mut Context) {
        let Streams { quotes, shared, queue, .. } = self;
        let (mut notes, mut conflated) = (0, 0);
        let mut note = |index: u32, place: usize| {
            let key = connections.at(index as usize);
            let connection = key.and_then(|key| connections.get_mut(key));
            if let Some(stream) = connection.and_then(|it| it.stream.as_mut()) {
                conflated += u64::from(!stream.changed.insert(place));
                queue.insert(index as usize);
            }
        };
        while notes < NOTES_A_SLICE {
            if let Some(symbol) = cx.market.quotes.touched_mut().take() {
                let symbol = SymbolId(symbol as u32);
                notes += SYMBOL_COST + quotes.changed(symbol, &View::new(cx), &mut note);
            } else if let Some(symbol) = cx.market.charts.touched.take() {
                let symbol = SymbolId(symbol as u32);
                notes += SYMBOL_COST + shared.charts.changed(symbol, &View::new(cx), &mut note);
            } else {
                break;
            }
        }
        cx.stats.streams.conflated += conflated;
        if cx.market.quotes.touched().is_empty() {
            shared.noted = cx.market.quotes.version();
        }
        let catalog = cx.market.catalog.version();
        let is_new = std::mem::replace(&mut shared.catalog, catalog) != catalog;
        let has_status = cx.stats.health_changes != shared.health_changes;
        if has_status {
            shared.render_status(&View::new(cx));
        }
        if is_new || has_status {
            self.open.keys().for_each(|(_, key)| _ = queue.insert(key.index()));
        }
    }

    /// Writes what has changed to one reader, if all its earlier output is sent. `spare`: buffers to write
    /// into.
    pub fn send(&mut self, connection: &mut Connection, spare: &mut Output, cx: &mut Context) {
        let Some(stream) = &mut connection.stream else {
            return;
        };
        // Unsent output goes first. When it is sent, [`Streams::sent`] queues this reader again.
        let Phase::Streaming(body) = connection.phase else {
            return;
        };
        if !connection.output.is_empty() {
            return;
        }
        if stream.is_outdated(&self.shared) {
            for place in stream.look_again(&View::new(cx), &mut self.shared) {
                let at = (connection.key, place);
                if let Some(chart) = stream.chart(place) {
                    self.shared.charts.add(chart, at, &View::new(cx));
                } else if let Some(symbol) = stream.symbol(place) {
                    let read = (Some(symbol), stream.asked.source);
                    self.quotes.add_one(at, read, &View::new(cx));
                    cx.followed.enter(symbol);
                }
            }
        }
        let view = View::new(cx);
        connection.output.borrow(spare);
        let write = |out: &mut Vec<u8>| stream.write(out, &view, &mut self.shared);
        let events = body.write(connection.output.bytes(), write);
        cx.stats.streams.events += events;
        if connection.output.is_empty() {
            connection.output.give_back(spare, usize::MAX);
            if stream.has_events(&self.shared) {
                self.queue.insert(connection.key.index());
            }
            return;
        }
        connection.flush(cx);
    }

    /// A client has taken `count` bytes. If it has a stream, they are bytes of the stream.
    pub fn sent(&mut self, connection: &mut Connection, count: usize) {
        let is_all = connection.output.is_empty();
        if let Some(stream) = &mut connection.stream {
            stream.sent_bytes += count;
            if is_all && stream.has_events(&self.shared) {
                self.queue.insert(connection.key.index());
            }
        }
    }

    /// The connection of a stream has closed.
    pub fn closed(&mut self, key: Key, stream: &EventStream, cx: &mut Context) {
        self.leave((stream.opened_at, key));
        stream.asked.symbols.named().for_each(|(_, symbol)| cx.followed.leave(symbol));
        cx.stats.streams.open -= 1;
        self.quotes.remove(key, &stream.asked);
        for chart in (0..stream.asked.charts.len()).filter_map(|place| stream.chart(place)) {
            self.shared.charts.remove(chart, key);
        }
        if cx.stats.streams.open == 0 {
            *self = Streams::new(self.rng.next_u64());
        }
    }

    /// Ends a stream: marketd stops.
    pub fn end(&mut self, connection: &mut Connection, cx: &mut Context) {
        if let Phase::Streaming(body) = connection.phase {
            let wait_ms = RETRY_BYE_MS.0 + self.rng.below(RETRY_BYE_MS.1);
            let out = connection.output.bytes();
            body.write(out, |out| write_bye(out, wait_ms));
            body.end(out);
            connection.reason = Some(CloseReason::Stopping);
            connection.responded(cx);
            connection.flush(cx);
        }
    }

    /// Asks again for the candles that some charts lack. To be called once a second.
    pub fn ask_for_charts(&mut self, cx: &mut Context) {
        let candles = self.shared.charts.missing(&View::new(cx));
        cx.wish(None, Vec::new(), candles);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::clients::Clients;
    use crate::core::clients::deferred::SHARE;
    use crate::core::testing::{SOURCE, list, listing};
    use crate::core::{Event, LongWork, Service};
    use crate::decimal::Decimal;
    use crate::interval::{Interval, Stored};
    use crate::market::SeriesKey;
    use crate::record::Ticker;

    /// So many markets, each with a quote, of a source that is to have one more.
    fn context(markets: usize) -> Context {
        let symbols: Vec<String> = (0..=markets).map(|n| format!("A{n}/USDT")).collect();
        let mut cx = listing(&symbols, 1);
        for symbol in cx.market.catalog.known().to_vec() {
            let ticker = Ticker::of_last(Decimal::from(7));
            cx.market.quotes.apply(SOURCE, symbol, ticker, cx.now).expect("a good ticker");
        }
        cx
    }

    /// A client that asks for a stream of these symbols. The head is sent.
    fn open(clients: &mut Clients, symbols: &str, cx: &mut Context) -> Key {
        open_from(None, clients, &format!("symbols={symbols}"), cx)
    }

    fn open_from(
        peer: Option<IpAddr>,
        clients: &mut Clients,
        query: &str,
        cx: &mut Context,
    ) -> Key {
        let key = clients.accept(peer, Service::Api, cx).expect("there is room");
        let request = format!("GET /api/v1/stream?{query} HTTP/1.1\r\nHost: h\r\n\r\n");
        clients.handle(key, Event::Received(request.as_bytes()), cx);
        clients.work(LongWork::Requests, cx);
        assert!(clients.interest(key).0.to_vec().starts_with(b"HTTP/1.1 200 "));
        take(clients, key, cx);
        key
    }

    /// Takes what there is to be sent to a client.
    fn take(clients: &mut Clients, key: Key, cx: &mut Context) -> usize {
        let count = clients.interest(key).0.len();
        clients.handle(key, Event::Sent(count), cx);
        count
    }

    #[test]
    fn a_name_that_becomes_known_is_followed_until_its_stream_ends() {
        let mut cx = context(1);
        let mut clients = Clients::new(None, 0, &cx);
        let key = open(&mut clients, "A1/USDT,A0/USDT", &mut cx);
        list(&mut cx.market.catalog, &["A0/USDT", "A1/USDT"]);
        for _ in 0..4 {
            clients.work(LongWork::Streams, &mut cx);
            take(&mut clients, key, &mut cx);
        }
        let symbols = cx.market.catalog.known().to_vec();
        assert_eq!(symbols.len(), 2);
        assert!(symbols.iter().all(|symbol| cx.followed.contains(*symbol)));
        clients.closed(key, &mut cx);
        assert!(!symbols.iter().any(|symbol| cx.followed.contains(*symbol)));
    }

    #[test]
    fn the_missing_candles_of_a_chart_are_asked_for_again_also_once_its_series_is_open() {
        let mut cx = context(1);
        cx.stats[SOURCE].intervals = [true; 3];
        let symbol = cx.market.catalog.known()[1];
        let key = SeriesKey { source: SOURCE, symbol, interval: Stored::D1 };
        let mut clients = Clients::new(None, 0, &cx);
        open_from(None, &mut clients, "charts=A1/USDT:1M", &mut cx);
        let slot_of = |time| key.interval.slot_of(time);
        let month = slot_of(Interval::Month1.open_of(cx.now.unix))..slot_of(cx.now.unix);
        let wished = |cx: &mut Context| cx.wishes.pop_front().map(|wish| wish.candles);
        assert_eq!(wished(&mut cx), Some(vec![(key, month.clone())]));
        assert!(cx.market.charts.open(key), "it has no candle yet");
        for second in 0..3 {
            clients.responses.streams.ask_for_charts(&mut cx);
            assert_eq!(wished(&mut cx), Some(vec![(key, month.clone())]), "{second}");
        }
    }

    #[test]
    fn each_stream_above_the_limit_has_another_one_make_room() {
        let mut cx = context(1);
        cx.config.limits.streams = 3;
        let mut clients = Clients::new(None, 0, &cx);
        // The sockets of those that make room are not dropped meanwhile.
        for last in [1, 1, 1, 2, 3] {
            let peer = Some(IpAddr::from([192, 0, 2, last]));
            open_from(peer, &mut clients, "symbols=*", &mut cx);
            clients.work(LongWork::Streams, &mut cx);
        }
        let is_open = |it: &&Connection| matches!(it.phase, Phase::Streaming(_));
        assert_eq!(clients.connections.iter().map(|it| it.1).filter(is_open).count(), 3);
    }

    #[test]
    fn the_first_list_of_a_stream_is_sent_in_parts_between_those_of_others() {
        let mut cx = context(2000);
        let mut clients = Clients::new(None, 0, &cx);
        let mut all: Vec<Key> = (0..8).map(|_| open(&mut clients, "*", &mut cx)).collect();
        // Who is sent something by one slice of work.
        let slice = |all: &[Key], cx: &mut Context, clients: &mut Clients| {
            clients.work(LongWork::Streams, cx);
            let sent: Vec<(Key, usize)> =
                all.iter().map(|key| (*key, take(clients, *key, cx))).collect();
            sent.into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>()
        };
        for round in 0..3 {
            for key in &all {
                let sent = slice(&all, &mut cx, &mut clients);
                assert_eq!(sent.iter().map(|it| it.0).collect::<Vec<_>>(), [*key], "round {round}");
                assert!(sent[0].1 <= 2 * SHARE as usize, "{} bytes at a time", sent[0].1);
            }
        }
        // Who comes now has its turn too, and nobody waits for more than one part of each of the others.
        let late = open(&mut clients, "A7/USDT", &mut cx);
        all.insert(0, late);
        for key in &all {
            let sent = slice(&all, &mut cx, &mut clients);
            assert_eq!(sent.iter().map(|it| it.0).collect::<Vec<_>>(), [*key]);
        }
    }
}
