//! The kinds of requests to an exchange, and the settings of a source, which a reload replaces.

use crate::config::{Config, DEMO, Poll, SourceConfig, Url};
use crate::core::context::Context;
use crate::core::sources::fault::Fault;
use crate::exchange::{BudgetLimit, Call, Dialect, RequestKind};
use crate::market::{Catalog, Lookup, Market, SeriesKey, SourceId, SymbolId};
use crate::time::UnixMs;
use std::ops::Range;
use std::time::Duration;

/// Share of the budget that quotes may take in the long run, in percent.
pub const PERCENT_UNITS: u64 = 50;

/// The least and the most time between two polls if the budget decides it: the limits of `pollMs`.
const LEAST_POLL: Duration = Duration::from_millis(100);
const MOST_POLL: Duration = Duration::from_secs(3600);

/// The budget of the demo exchange. It speaks Binance's dialect, and nobody else uses it.
const DEMO_BUDGET: BudgetLimit = BudgetLimit { units: 100_000_000, per: Duration::from_secs(1) };

/// What one request asks of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Task {
    /// Its market list.
    #[default]
    Markets,
    /// Its clock.
    Time,
    /// All its tickers.
    Tickers,
    /// The tickers of some markets.
    TickersOf {
        symbols: Vec<SymbolId>,
        /// True if the round has no other market.
        is_whole: bool,
    },
    /// The 24-hour figures of one market, if its ticker lacks them.
    Stats(SymbolId),
    /// Candles of these slots.
    Candles {
        series: SeriesKey,
        /// Slots of the series' interval.
        slots: Range<i64>,
    },
}

impl Task {
    pub fn kind(&self) -> RequestKind {
        match self {
            Task::Tickers | Task::TickersOf { .. } => RequestKind::Quotes,
            Task::Candles { .. } => RequestKind::Candles,
            Task::Markets => RequestKind::List,
            Task::Time => RequestKind::Time,
            Task::Stats(_) => RequestKind::Stats,
        }
    }

    /// True if it brings quotes.
    pub fn is_quotes(&self) -> bool {
        self.kind() == RequestKind::Quotes
    }

    /// True if this fault of the task may concern one market only.
    pub fn may_blame_market(&self, fault: &Fault) -> bool {
        match self {
            Task::Candles { .. } | Task::Stats(_) => true,
            Task::TickersOf { symbols, is_whole } => match symbols.len() {
                1 => !is_whole || fault.is_unknown_market(),
                _ => fault.is_refusal(),
            },
            Task::Markets | Task::Time | Task::Tickers => false,
        }
    }

    /// The task in words, for the log and the metrics.
    pub fn describe(&self, market: &Market) -> String {
        let name = |symbol: SymbolId| market.catalog.name(symbol);
        match self {
            Task::Markets => "market list".to_string(),
            Task::Time => "clock".to_string(),
            Task::Tickers => "quotes".to_string(),
            Task::TickersOf { symbols, .. } => match symbols[..] {
                [symbol] => format!("quote of {}", name(symbol).as_str()),
                _ => format!("quotes of {} markets", symbols.len()),
            },
            Task::Stats(symbol) => format!("24 hours of {}", name(*symbol).as_str()),
            Task::Candles { series, .. } => {
                let symbol = name(series.symbol).as_str();
                format!("{} candles of {symbol}", series.interval.name())
            }
        }
    }
}

/// A source's configuration, dialect and address.
pub struct Profile {
    /// Its number.
    pub id: SourceId,
    /// Its section of the configuration.
    pub config: SourceConfig,
    /// How requests to its exchange are written, and responses read.
    pub dialect: &'static Dialect,
    /// The base of all its URLs.
    pub url: Url,
    /// How many units may be spent in which time.
    pub limit: BudgetLimit,
    /// From the start of one poll of quotes to the start of the next.
    pub poll: Duration,
    /// The ids of the symbols that it names, if the market list can be requested for them alone.
    pub named_ids: Option<Vec<String>>,
    /// The ids for which the market list is requested next: `named_ids`, or some of them. `None`: the whole
    /// list.
    pub list_ids: Option<Vec<String>>,
    /// The index of the source, and the number of sources. By the wall clock, their polls are spread evenly
    /// over `poll`, in the same way on all nodes of a cluster. `None`: there is no other source, and the
    /// first poll sets the phase.
    phase: Option<(u32, u32)>,
}

impl Profile {
    /// The profile of a configured source.
    ///
    /// # Panics
    /// If the source's dialect does not exist, or the source has no address. A checked configuration has no
    /// such source.
    pub fn new(id: SourceId, config: &Config) -> Profile {
        let dialect = Dialect::for_source(&config.sources[id.index()]);
        Profile::with(id, config, dialect.expect("dialects have been checked"))
    }

    /// The profile of this source in another configuration.
    pub fn renewed(&self, config: &Config) -> Profile {
        Profile::with(self.id, config, self.dialect)
    }

    fn with(id: SourceId, config: &Config, dialect: &'static Dialect) -> Profile {
        let source = config.sources[id.index()].clone();
        let [place, count] = [id.index(), config.sources.len()].map(|count| count as u32);
        // The nodes of a cluster may name different symbols, and read the list of one of them.
        let is_named = !source.symbols.is_empty() && source.quote_assets.is_empty();
        let is_named = is_named && config.cluster.is_none();
        let named_ids = is_named.then(|| dialect.list_ids(&source.symbols)).flatten();
        Profile {
            id,
            dialect,
            list_ids: named_ids.clone(),
            named_ids,
            url: source.url.as_ref().unwrap_or(dialect.base_url()).clone(),
            limit: if source.dialect == DEMO { DEMO_BUDGET } else { dialect.budget() },
            poll: source.poll.usual(),
            phase: (count > 1).then_some((place, count)),
            config: source,
        }
    }

    /// A poll costs this many units. If `pollMs` is automatic, sets it accordingly.
    pub fn set_cost(&mut self, units: u64) {
        if self.config.poll == Poll::Auto {
            let time = self.limit.per * 100 / PERCENT_UNITS as u32;
            let time = time.as_micros() * u128::from(units) / u128::from(self.limit.units.max(1));
            let time = Duration::from_micros(u64::try_from(time).unwrap_or(u64::MAX));
            self.poll = time.clamp(LEAST_POLL, MOST_POLL);
        }
    }

    /// The time until the source's phase comes next, after now: at most `poll`.
    pub fn until_phase(&self, now: UnixMs) -> Duration {
        let Some((place, count)) = self.phase else {
            return self.poll;
        };
        let [poll, phase] = [self.poll, self.poll * place / count].map(|it| it.as_millis() as i64);
        let since = (now.0 - phase).rem_euclid(poll.max(1));
        Duration::from_millis((poll - since) as u64)
    }

    /// The cost of the dearest request without which nothing is served.
    pub fn dearest(&self) -> u32 {
        let tickers = self.dialect.ways().first().map_or(1, |way| way.cost);
        let others =
            [Call::Markets { named: &[] }, Call::Time].map(|call| self.dialect.cost(&call));
        others.into_iter().fold(tickers, u32::max)
    }

    /// The symbols that the source names, as far as they are known.
    pub fn named<'a>(
        &'a self,
        catalog: &'a Catalog,
    ) -> impl Iterator<Item = (&'a String, SymbolId)> {
        self.config.symbols.iter().filter_map(|name| match catalog.find(name.as_bytes()) {
            Lookup::Known(symbol) => Some((name, symbol)),
            Lookup::Unknown | Lookup::Malformed => None,
        })
    }

    /// Passes a task to `act` as a call of the dialect.
    pub fn with_call<T>(&self, task: &Task, cx: &Context, act: impl FnOnce(&Call<'_>) -> T) -> T {
        let listing = |symbol: SymbolId| cx.market.catalog.listing(self.id, symbol);
        let ticker_id = |symbol| listing(symbol).map_or("", |listing| &listing.ticker_id);
        let ids: Vec<&str>;
        let call = match task {
            Task::TickersOf { symbols, .. } => {
                ids = symbols.iter().map(|symbol| ticker_id(*symbol)).collect();
                self.dialect.tickers_of(&ids)
            }
            Task::Stats(symbol) => Call::Stats { id: ticker_id(*symbol) },
            Task::Markets => match &self.list_ids {
                Some(ids) => Call::MarketsOf { ids },
                None => Call::Markets { named: &self.config.symbols },
            },
            Task::Time => Call::Time,
            Task::Tickers => Call::Tickers,
            Task::Candles { series, slots } => Call::Candles {
                id: listing(series.symbol).map_or("", |listing| listing.candle_id()),
                interval: series.interval,
                // Both ends are inclusive.
                from: series.interval.open_of(slots.start),
                to: series.interval.open_of(slots.end - 1),
                now: cx.exchange_time(self.id),
            },
        };
        act(&call)
    }
}
