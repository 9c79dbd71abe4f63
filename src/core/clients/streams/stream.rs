//! One stream: what its reader is to be told, and what it has been told.
//!
//! Owns a place for each chart and each symbol, with the version that was last sent, and the set of those
//! that have changed since. There is no queue: a place that changes again before it is sent is sent once, in
//! its newest state. So the memory of a stream depends on its places, and not on how slow its reader is.
//!
//! An event has an id only if it is the last of all that has changed: then everything up to that version
//! was sent, whatever the order of the events.

use crate::core::api::chart::Followed;
use crate::core::api::stream::{served_quote, write_quote, write_status};
use crate::core::api::{Position, StreamRequest, StreamedSymbols, View};
use crate::core::clients::pending::Served;
use crate::core::clients::streams::charts::{ChartPlace, FollowedCharts};
use crate::core::clients::streams::events::{Events, QuotedEvents};
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
    /// By place of a symbol: the version that was last sent.
    sent: Vec<u64>,
    changed: PlaceSet,
    /// The status that was last sent: how often the health had changed.
    health: Option<u64>,
}

/// What all streams are told together.
#[derive(Default)]
pub struct Told {
    /// The charts.
    pub charts: FollowedCharts,
    /// Quotes with decimals as strings.
    quoted: QuotedEvents,
    /// How often the health had changed at the newest status.
    pub health: u64,
    /// The event of that.
    status: Vec<u8>,
    /// The version of the quotes up to which all changes are noted with the streams.
    pub noted: u64,
}

impl Told {
    /// Renders the newest status.
    pub fn render_status(&mut self, view: &View<'_>) {
        self.health = view.status.health_changes;
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
            sent: 0,
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
            sent: Vec::new(),
            changed: PlaceSet::default(),
            health: resumed.as_ref().map(|it| it.health),
        };
        stream.begin(resumed.map(|it| it.quotes), view);
        stream
    }

    /// Notes what is to be sent first: everything, or what has changed since this version.
    fn begin(&mut self, since: Option<u64>, view: &View<'_>) {
        for chart in 0..self.charts.len() {
            self.changed.insert(chart);
        }
        let all = match &self.symbols {
            StreamedSymbols::Named(symbols) => symbols.len(),
            StreamedSymbols::All => {
                let last = view.market.catalog.known().iter().max();
                last.map_or(0, |last| last.index() + 1)
            }
        };
        self.sent.resize(all, 0);
        for place in 0..all {
            match since {
                Some(version) if !self.has_changed(place, version, view) => {
                    let quote = served_quote(view, self.symbol(place), self.source);
                    self.sent[place] = quote.map_or(0, |quote| quote.version);
                }
                _ => {
                    self.changed.insert(self.charts.len() + place);
                }
            }
        }
    }

    /// True if another quote may be served than at this version. A source that takes over may have a quote
    /// that is older than the version: then that of another source has turned stale, or was dropped, since.
    fn has_changed(&self, place: usize, version: u64, view: &View<'_>) -> bool {
        let (symbol, quotes) = (self.symbol(place), &view.market.quotes);
        let of_source = |source: &SourceId| {
            let quote = quotes.of(*source, symbol);
            quote.is_some_and(|quote| quote.version > version)
        };
        quotes.dropped() > version || view.market.catalog.sources_of(symbol).iter().any(of_source)
    }

    /// The symbol of a place, counted from the first one of a symbol.
    fn symbol(&self, place: usize) -> SymbolId {
        match &self.symbols {
            StreamedSymbols::Named(symbols) => symbols[place],
            StreamedSymbols::All => SymbolId(place as u32),
        }
    }

    /// Notes that a place has changed. Returns false if an earlier change of it is not sent yet.
    pub fn note(&mut self, place: usize) -> bool {
        self.changed.insert(place)
    }

    /// True if there is something to send.
    pub fn has_news(&self, health: u64) -> bool {
        !self.changed.is_empty() || self.health != Some(health)
    }

    /// Appends events of about one share. Returns their number.
    pub fn write(&mut self, out: &mut Vec<u8>, view: &View<'_>, told: &mut Told) -> u64 {
        let mut events = Events::new(out);
        if self.health.replace(told.health) != Some(told.health) {
            events.next().extend_from_slice(&told.status);
        }
        for _ in 0..PLACES_A_SLICE {
            if events.is_full() {
                break;
            }
            let Some(place) = self.changed.take() else {
                break;
            };
            match self.charts.get_mut(place) {
                Some(chart) => {
                    if !told.charts.write(chart, self.decimals, view, &mut events) {
                        self.changed.insert(place);
                    }
                }
                None => {
                    let place = place - self.charts.len();
                    self.write_quote(place, view, &mut told.quoted, &mut events);
                }
            }
        }
        let id = self.changed.is_empty().then(|| {
            let position = Position {
                quotes: told.noted,
                health: told.health,
                closes: self.charts.iter().map(|chart| chart.closed).collect(),
            };
            (position, view.boot)
        });
        events.finish(id)
    }

    fn write_quote(
        &mut self,
        place: usize,
        view: &View<'_>,
        quoted: &mut QuotedEvents,
        events: &mut Events<'_>,
    ) {
        let Some(quote) = served_quote(view, self.symbol(place), self.source) else {
            return;
        };
        if self.sent.len() <= place {
            self.sent.resize(place + 1, 0);
        }
        if std::mem::replace(&mut self.sent[place], quote.version) == quote.version {
            return;
        }
        let out = events.next();
        match self.decimals {
            Decimals::Number => write_quote(out, view, quote, self.decimals),
            Decimals::String => out.extend_from_slice(quoted.of(quote, view)),
        }
    }
}
