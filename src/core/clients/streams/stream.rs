//! One stream: what its reader is to be told, and what it has been told.
//!
//! Owns a place for each chart and each symbol, with the version that was noted last, and the set of
//! those that have changed since they were sent. There is no queue: a place that changes again before it is
//! sent is sent once, in its newest state. So the memory of a stream depends on its places, and not on how
//! slow its reader is.
//!
//! An event has an id only if it is the last of all that has changed: then everything up to the versions
//! that the id names was sent, whatever the order of the events.

use crate::core::api::chart::Followed;
use crate::core::api::stream::{served_quote, write_quote, write_status};
use crate::core::api::{Position, StreamRequest, StreamedSymbols, View};
use crate::core::clients::pending::{SHARE, Served};
use crate::core::clients::streams::charts::{ChartPlace, FollowedCharts};
use crate::core::clients::streams::places::PlaceSet;
use crate::json::Decimals;
use crate::market::{SourceId, SymbolId};

/// Places that one slice looks at: most of them may have no quote.
const PLACES_A_SLICE: usize = 1024;

/// See the module's page.
pub struct EventStream {
    /// What it is counted and logged by.
    pub served: Served,
    /// The bytes of events that the client has taken.
    pub sent_bytes: usize,
    /// True while it is in the queue of those that have something to send.
    pub is_queued: bool,
    /// Its charts. Their places come before those of the symbols.
    pub charts: Box<[ChartPlace]>,
    /// Its symbols. If these are all, a symbol's place is its number.
    pub symbols: StreamedSymbols,
    /// All of this source, if given.
    pub source: Option<SourceId>,
    decimals: Decimals,
    /// By place: the version that was noted last. Either it was sent, or the place is in `changed`.
    known: Vec<u64>,
    changed: PlaceSet,
    /// The status that was last sent: how often the health had changed.
    health_changes: Option<u64>,
}

/// What all streams are told together.
#[derive(Default)]
pub struct SharedEvents {
    /// The charts.
    pub charts: FollowedCharts,
    /// How often the health had changed at the newest status.
    pub health_changes: u64,
    /// The event of that.
    status: Vec<u8>,
    /// The version of the quotes up to which all changes are noted with the streams.
    pub noted: u64,
}

impl SharedEvents {
    /// Renders the newest status.
    pub fn render_status(&mut self, view: &View<'_>) {
        self.health_changes = view.status.health_changes;
        self.status.clear();
        write_status(&mut self.status, view);
    }
}

impl EventStream {
    /// A stream that begins, or goes on where the client has left it.
    pub fn new(request: StreamRequest, served: Served, view: &View<'_>) -> EventStream {
        let StreamRequest { symbols, charts, source, decimals, resumed, .. } = request;
        let closes = resumed.iter().flat_map(|it| it.closes.iter().copied());
        let mut closes = closes.chain(std::iter::repeat(None));
        let charts = charts.into_iter().map(|(symbol, interval)| ChartPlace {
            followed: Followed { symbol, interval, source },
            closed: closes.next().flatten(),
        });
        let mut stream = EventStream {
            served,
            sent_bytes: 0,
            is_queued: false,
            charts: charts.collect(),
            symbols,
            source,
            decimals,
            known: Vec::new(),
            changed: PlaceSet::default(),
            health_changes: resumed.as_ref().map(|it| it.health_changes),
        };
        stream.begin(resumed.map(|it| it.quotes), view);
        stream
    }

    /// Notes what is to be sent first: everything, or what has changed since this version.
    fn begin(&mut self, since: Option<u64>, view: &View<'_>) {
        for chart in 0..self.charts.len() {
            self.known.push(0);
            self.changed.insert(chart);
        }
        let all = match &self.symbols {
            StreamedSymbols::Named(symbols) => symbols.len(),
            StreamedSymbols::All => {
                let last = view.market.catalog.known().iter().max();
                last.map_or(0, |last| last.index() + 1)
            }
        };
        for place in self.charts.len()..self.charts.len() + all {
            let symbol = self.symbol(place);
            let quote = served_quote(view, symbol, self.source);
            self.known.push(quote.map_or(0, |quote| quote.version));
            if since.is_none_or(|version| has_changed(symbol, version, view)) {
                self.changed.insert(place);
            }
        }
    }

    /// The symbol of a place that is not one of a chart.
    fn symbol(&self, place: usize) -> SymbolId {
        let at = place - self.charts.len();
        match &self.symbols {
            StreamedSymbols::Named(symbols) => symbols[at],
            StreamedSymbols::All => SymbolId(at as u32),
        }
    }

    /// Notes the newest version of a place. Returns true if that differs from the version noted before.
    pub fn learn(&mut self, place: usize, version: u64) -> bool {
        if self.known.len() <= place {
            self.known.resize(place + 1, 0);
        }
        std::mem::replace(&mut self.known[place], version) != version
    }

    /// Notes that a place has changed. Returns false if an earlier change of it is not sent yet.
    pub fn note(&mut self, place: usize) -> bool {
        self.changed.insert(place)
    }

    /// True if there is something to send.
    pub fn has_events(&self, health: u64) -> bool {
        !self.changed.is_empty() || self.health_changes != Some(health)
    }

    /// Appends events of about one share. Returns their number.
    pub fn write(&mut self, out: &mut Vec<u8>, view: &View<'_>, shared: &mut SharedEvents) -> u64 {
        let mut events = Events::new(out);
        if self.health_changes.replace(shared.health_changes) != Some(shared.health_changes) {
            events.next().extend_from_slice(&shared.status);
        }
        for _ in 0..PLACES_A_SLICE {
            if events.is_full() {
                break;
            }
            let Some(place) = self.changed.take() else {
                break;
            };
            match place < self.charts.len() {
                true => self.write_candles(place, view, &mut shared.charts, &mut events),
                false => self.write_quote(place, view, &mut events),
            }
        }
        let id = self.changed.is_empty().then(|| {
            let position = Position {
                quotes: shared.noted,
                health_changes: shared.health_changes,
                closes: self.charts.iter().map(|chart| chart.closed).collect(),
            };
            (position, view.boot)
        });
        events.finish(id)
    }

    fn write_candles(
        &mut self,
        place: usize,
        view: &View<'_>,
        charts: &mut FollowedCharts,
        events: &mut Events<'_>,
    ) {
        let chart = &mut self.charts[place];
        while !events.is_full() {
            let (candles, is_all) = charts.events(chart, self.decimals, view);
            candles.iter().for_each(|candle| events.next().extend_from_slice(candle));
            if is_all {
                return;
            }
        }
        self.changed.insert(place);
    }

    fn write_quote(&mut self, place: usize, view: &View<'_>, events: &mut Events<'_>) {
        if let Some(quote) = served_quote(view, self.symbol(place), self.source) {
            self.learn(place, quote.version);
            write_quote(events.next(), view, quote, self.decimals);
        }
    }
}

/// True if another quote may be served than at this version. A source that takes over may have a quote that
/// is older than the version: then that of another source has turned stale, or was dropped, since.
fn has_changed(symbol: SymbolId, version: u64, view: &View<'_>) -> bool {
    let quotes = &view.market.quotes;
    let of_source = |source: &SourceId| {
        let quote = quotes.of(*source, symbol);
        quote.is_some_and(|quote| quote.version > version)
    };
    quotes.dropped() > version || view.market.catalog.sources_of(symbol).iter().any(of_source)
}

/// Events of one reader, written one behind the other. Each lacks its empty line until the next one, or the
/// end.
struct Events<'a> {
    out: &'a mut Vec<u8>,
    /// The length at which the share is used up.
    end: usize,
    count: u64,
}

impl<'a> Events<'a> {
    /// Events of about one share, behind what is there.
    fn new(out: &'a mut Vec<u8>) -> Events<'a> {
        Events { end: out.len() + SHARE as usize, out, count: 0 }
    }

    /// The place to append the next event.
    fn next(&mut self) -> &mut Vec<u8> {
        if self.count > 0 {
            self.out.push(b'\n');
        }
        self.count += 1;
        self.out
    }

    /// True if the share is used up.
    fn is_full(&self) -> bool {
        self.out.len() >= self.end
    }

    /// Ends the last event, with this id if it has one. Returns the number of events.
    fn finish(self, id: Option<(Position, u64)>) -> u64 {
        if self.count > 0 {
            if let Some((position, boot)) = id {
                position.write(boot, self.out);
            }
            self.out.push(b'\n');
        }
        self.count
    }
}
