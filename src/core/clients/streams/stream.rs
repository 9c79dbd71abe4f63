//! One stream: what its reader is to be told, and what it has been told.
//!
//! Owns a place for each chart and each symbol, and the set of places that have changed since they were sent.
//! There is no queue: a place that changes again before it is sent is sent once, in its newest state. So the
//! memory of a stream depends on its places, and not on how slow its reader is.
//!
//! The places have their turns in rounds. What is written at a time ends with an id, which says how far the
//! round has come. For the places up to there, the client has all changes from before this round began. For
//! the other places, it has all changes from before the previous round began. A client that comes back with
//! the id gets the rest.
//!
//! What a place tells is decided when its turn comes: a quote, candles, or that they are gone, which is told
//! once.

use crate::core::api::chart::Followed;
use crate::core::api::stream::{
    UNKNOWN, is_served, why_chart_gone, why_gone, write_alive, write_gone, write_quote,
    write_retry, write_status,
};
use crate::core::api::{ChartPlace, Position, Round, StreamRequest, StreamedSymbols, View};
use crate::core::clients::streams::charts::FollowedCharts;
use crate::core::clients::streams::events::Events;
use crate::http::echo;
use crate::interval::Interval;
use crate::market::{Lookup, SourceId, SymbolId};
use crate::place_set::PlaceSet;
use crate::time::{Mono, UnixMs};
use std::borrow::Cow;

/// Places that one slice looks at: most of them may have no quote.
const PLACES_A_SLICE: usize = 1024;

/// What a place with a name takes beside its bits, about: a number, and a place among its readers.
const PLACE_BYTES: usize = 32;

/// See the module's page.
pub struct EventStream {
    /// When it was opened.
    pub opened_at: Mono,
    /// Its request's part of the line in the access log.
    pub line: Option<Box<str>>,
    /// The bytes of events that the client has taken.
    pub sent_bytes: usize,
    /// What the stream sends. The places of charts come before the places of symbols. In a stream of all
    /// symbols, the places of symbols are in the order of their numbers.
    pub asked: StreamRequest,
    /// The version of the catalog that the stream was last compared with.
    catalog: u64,
    /// The places that have something to tell, or may have.
    pub changed: PlaceSet,
    /// The places with a quote that the reader knows, or may know.
    told: PlaceSet,
    /// The places of which the reader knows that they are gone.
    gone: PlaceSet,
    round: Round,
    /// How far the round had come when the client came back. No id is sent before the round has come this far
    /// again, so a client that is cut off before then comes back with the same id.
    resumed_at: usize,
    /// The status that was last sent: how often the health had changed.
    health_changes: Option<u64>,
    /// How long the client is to wait before it comes back. The first event tells this.
    retry_ms: Option<u64>,
}

/// What all streams are told together.
#[derive(Default)]
pub struct SharedEvents {
    /// The charts.
    pub charts: FollowedCharts,
    /// How often the health had changed at the newest status.
    pub health_changes: u64,
    /// The event with the newest status.
    status: Vec<u8>,
    /// The version of the quotes up to which all changes are noted with the streams.
    pub noted: u64,
    /// The version of the catalog that all streams are to be compared with.
    pub catalog: u64,
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
    /// A stream that begins, or goes on where the client has left it. `noted`: the version up to which all
    /// changes are noted.
    pub fn new(
        mut asked: StreamRequest,
        line: Option<Box<str>>,
        retry_ms: u64,
        (noted, view): (u64, &View<'_>),
    ) -> EventStream {
        let resumed = asked.resumed.take();
        let since = resumed.as_ref().map_or_else(Round::default, |it| it.quotes);
        let mut stream = EventStream {
            opened_at: view.now().mono,
            line,
            sent_bytes: 0,
            asked,
            catalog: view.market.catalog.version(),
            changed: PlaceSet::default(),
            told: PlaceSet::default(),
            gone: PlaceSet::default(),
            round: Round { places: 0, version: noted, before: since.before },
            resumed_at: since.places,
            health_changes: resumed.as_ref().map(|it| it.health_changes),
            retry_ms: Some(retry_ms),
        };
        stream.begin(since, view);
        stream
    }

    /// The bytes of memory that it takes, about.
    pub fn held(&self) -> usize {
        let named = self.asked.symbols.places().len();
        let sets = [&self.changed, &self.told, &self.gone].map(PlaceSet::held);
        size_of::<EventStream>()
            + (self.asked.charts.len() + named) * PLACE_BYTES
            + sets.iter().sum::<usize>()
    }

    /// Notes what is to be sent first: everything, or what has changed since it was sent.
    fn begin(&mut self, since: Round, view: &View<'_>) {
        for chart in 0..self.asked.charts.len() {
            self.changed.insert(chart);
        }
        let all = match &self.asked.symbols {
            StreamedSymbols::Named(symbols) => symbols.len(),
            // Also symbols that were dropped while the reader was away.
            StreamedSymbols::All => view.market.catalog.symbols_ever(),
        };
        for place in self.asked.charts.len()..self.asked.charts.len() + all {
            let (since, symbol) = (since.sent(place), self.symbol(place));
            let has_changed = |symbol| has_changed(symbol, since, view);
            let is_served = |symbol| view.served_quote(symbol, self.asked.source).is_some();
            if since == 0 || symbol.is_some_and(has_changed) {
                self.changed.insert(place);
            }
            if since > 0 && symbol.is_some_and(|it| has_changed(it) || is_served(it)) {
                self.told.insert(place);
            } else if since > 0 && self.is_unserved(place, view) {
                self.gone.insert(place);
            }
        }
    }

    /// True if nobody serves the symbol that the stream names for this place. False in a stream of all
    /// symbols, which names none.
    fn is_unserved(&self, place: usize, view: &View<'_>) -> bool {
        matches!(self.asked.symbols, StreamedSymbols::Named(_))
            && self.symbol(place).is_none_or(|symbol| !is_served(view, symbol, self.asked.source))
    }

    /// The catalog has changed: notes what is not served any more, and finds unknown names. Returns the
    /// places that have a symbol now.
    pub fn look_again(&mut self, view: &View<'_>, shared: &mut SharedEvents) -> Vec<usize> {
        self.catalog = view.market.catalog.version();
        for place in 0..self.asked.charts.len() {
            if let Some(chart) = self.chart(place)
                && why_chart_gone(view, &chart).is_some()
            {
                self.changed.insert(place);
                shared.charts.gone(chart);
            }
        }
        for place in (self.asked.charts.len()..).take(self.asked.symbols.places().len()) {
            if self.is_unserved(place, view) {
                self.changed.insert(place);
            }
        }
        let found = self.asked.unknown.iter();
        let found = found.filter_map(|(place, name)| match view.market.catalog.find(name) {
            Lookup::Known(symbol) => Some((*place, symbol)),
            Lookup::Unknown | Lookup::Malformed => None,
        });
        found.collect::<Vec<_>>().into_iter().filter_map(|it| self.found(it)).collect()
    }

    /// An unknown name has become this symbol. Returns the place of the name, unless another place has the
    /// symbol already.
    fn found(&mut self, (place, symbol): (usize, SymbolId)) -> Option<usize> {
        self.asked.unknown.remove(&place);
        let StreamRequest { charts, symbols, .. } = &mut self.asked;
        let first = charts.len();
        let is_taken = match charts.get(place) {
            Some(new) => {
                let is_same = |it: &ChartPlace| it.interval == new.interval;
                charts.iter().any(|it| it.symbol == Some(symbol) && is_same(it))
            }
            None => symbols.places().contains(&Some(symbol)),
        };
        if is_taken {
            return None;
        }
        match (charts.get_mut(place), symbols) {
            (Some(chart), _) => chart.symbol = Some(symbol),
            (None, StreamedSymbols::Named(symbols)) => symbols[place - first] = Some(symbol),
            (None, StreamedSymbols::All) => {}
        }
        self.changed.insert(place);
        Some(place)
    }

    /// The chart of a place, if it has one.
    pub fn chart(&self, place: usize) -> Option<Followed> {
        let ChartPlace { symbol, interval, .. } = *self.asked.charts.get(place)?;
        Some(Followed { symbol: symbol?, interval, source: self.asked.source })
    }

    /// The symbol of a place that is not one of a chart, if it has one.
    pub fn symbol(&self, place: usize) -> Option<SymbolId> {
        let at = place - self.asked.charts.len();
        match &self.asked.symbols {
            StreamedSymbols::Named(symbols) => symbols[at],
            StreamedSymbols::All => Some(SymbolId(at as u32)),
        }
    }

    /// True if there is something to send, or to look for.
    pub fn has_events(&self, shared: &SharedEvents) -> bool {
        !self.changed.is_empty()
            || self.health_changes != Some(shared.health_changes)
            || self.is_outdated(shared)
    }

    /// True if the catalog has changed since the stream was compared with it.
    pub fn is_outdated(&self, shared: &SharedEvents) -> bool {
        self.catalog != shared.catalog
    }

    /// Appends events of about one share. Returns their number.
    pub fn write(&mut self, out: &mut Vec<u8>, view: &View<'_>, shared: &mut SharedEvents) -> u64 {
        let mut events = Events::new(out, self.retry_ms);
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
            self.advance(place, shared.noted);
            match place < self.asked.charts.len() {
                true => self.write_chart(place, view, &mut shared.charts, &mut events),
                false => self.write_quote(place, view, &mut events),
            }
        }
        if self.changed.is_empty() {
            (self.round.version, self.round.before) = (shared.noted, shared.noted);
            self.resumed_at = 0;
        }
        let id = (self.round.places >= self.resumed_at).then(|| {
            let position = Position {
                quotes: self.round,
                health_changes: shared.health_changes,
                closes: self.asked.charts.iter().map(|chart| chart.closed).collect(),
            };
            (position, view.boot)
        });
        let count = events.finish(id);
        self.retry_ms.take_if(|_| count > 0);
        count
    }

    /// It is the turn of this place. `noted`: as in [`EventStream::new`], for a round that begins here.
    fn advance(&mut self, place: usize, noted: u64) {
        let round = &mut self.round;
        if place < round.places {
            (round.before, round.version) = (round.version, noted);
            self.resumed_at = 0;
        }
        round.places = place + 1;
    }

    /// Appends the event `alive`: nothing has changed for a while.
    pub fn write_alive(&mut self, out: &mut Vec<u8>, now: UnixMs) {
        if let Some(wait_ms) = self.retry_ms.take() {
            write_retry(out, wait_ms);
        }
        write_alive(out, now);
    }

    fn write_chart(
        &mut self,
        place: usize,
        view: &View<'_>,
        charts: &mut FollowedCharts,
        events: &mut Events<'_>,
    ) {
        let chart = self.chart(place);
        let code = chart.map_or(Some(UNKNOWN), |chart| why_chart_gone(view, &chart));
        let ChartPlace { interval, closed, .. } = &mut self.asked.charts[place];
        let (Some(chart), None) = (chart, code) else {
            // If the chart comes back, it begins as in a new stream.
            *closed = None;
            let interval = Some(*interval);
            return self.write_gone(place, (interval, code.unwrap_or(UNKNOWN)), view, events);
        };
        self.gone.remove(place);
        while !events.is_full() {
            let (candles, is_all) = charts.events(&chart, closed, self.asked.decimals, view);
            candles.iter().for_each(|candle| events.next().extend_from_slice(candle));
            if is_all {
                return;
            }
        }
        self.changed.insert(place);
    }

    fn write_quote(&mut self, place: usize, view: &View<'_>, events: &mut Events<'_>) {
        let symbol = self.symbol(place);
        if let Some(quote) = symbol.and_then(|symbol| view.served_quote(symbol, self.asked.source))
        {
            self.told.insert(place);
            self.gone.remove(place);
            return write_quote(events.next(), view, quote, self.asked.decimals);
        }
        if self.told.remove(place) || self.is_unserved(place, view) {
            let code = symbol.map_or(UNKNOWN, |symbol| why_gone(view, symbol, self.asked.source));
            self.write_gone(place, (None, code), view, events);
        }
    }

    /// Writes that a place is gone, unless the reader knows.
    fn write_gone(
        &mut self,
        place: usize,
        (interval, code): (Option<Interval>, &str),
        view: &View<'_>,
        events: &mut Events<'_>,
    ) {
        let symbol = match self.asked.charts.get(place) {
            Some(chart) => chart.symbol,
            None => self.symbol(place),
        };
        let name = match (symbol, self.asked.unknown.get(&place)) {
            (Some(symbol), _) => Cow::Borrowed(view.market.catalog.name(symbol).as_str()),
            (None, Some(name)) => Cow::Owned(echo(name)),
            (None, None) => return,
        };
        if self.gone.insert(place) {
            write_gone(events.next(), &name, interval, code);
        }
    }
}

/// True if the served quote may differ from the one at this version. A source that takes over may have a
/// quote that is older than the version. Then the quote of another source has turned stale or was dropped
/// since the version, or the order of the sources has changed, and that counts here.
fn has_changed(symbol: SymbolId, version: u64, view: &View<'_>) -> bool {
    let quotes = &view.market.quotes;
    let of_source = |source: &SourceId| {
        let quote = quotes.of(*source, symbol);
        quote.is_some_and(|quote| quote.version > version)
    };
    quotes.reordered(symbol) > version
        || view.market.catalog.sources_of(symbol).iter().any(of_source)
}
