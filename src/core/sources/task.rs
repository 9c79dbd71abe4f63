//! The kinds of requests to an exchange, and the settings of a source, which a reload replaces.

use crate::config::{Config, SourceConfig, Url};
use crate::core::context::Context;
use crate::exchange::RequestKind;
use crate::exchange::{BudgetLimit, Call, Dialect};
use crate::market::{Market, SeriesKey, SourceId, SymbolId};
use crate::time::UnixMs;
use std::ops::Range;
use std::time::Duration;

/// The demo exchange speaks Binance's dialect, and nobody else uses it.
const DEMO_BUDGET: BudgetLimit = BudgetLimit { units: 1_000_000, per: Duration::from_secs(1) };

/// What one request asks of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Its market list.
    Markets,
    /// Its clock.
    Time,
    /// All its tickers.
    Tickers,
    /// The ticker of one market.
    Ticker(SymbolId),
    /// The 24-hour figures of one market, if its ticker lacks them.
    Stats(SymbolId),
    /// Candles of these slots.
    Candles {
        /// The series.
        series: SeriesKey,
        /// Slots of the series' interval.
        slots: Range<i64>,
    },
}

impl Task {
    /// Its kind.
    pub fn kind(&self) -> RequestKind {
        match self {
            Task::Tickers | Task::Ticker(_) => RequestKind::Quotes,
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

    /// True if it is about one market only.
    pub fn is_of_one_market(&self) -> bool {
        matches!(self, Task::Candles { .. } | Task::Ticker(_) | Task::Stats(_))
    }

    /// The task in words, for the log and the metrics.
    pub fn describe(&self, market: &Market) -> String {
        let name = |symbol: SymbolId| market.catalog.name(symbol);
        match self {
            Task::Markets => "market list".to_string(),
            Task::Time => "clock".to_string(),
            Task::Tickers => "quotes".to_string(),
            Task::Ticker(symbol) => format!("quote of {}", name(*symbol).as_str()),
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
    /// How its exchange is spoken to.
    pub dialect: &'static Dialect,
    /// The base of all its URLs.
    pub url: Url,
    /// How much may be asked in which time.
    pub limit: BudgetLimit,
    /// Where in each `pollMs` of the wall clock the source is polled: sources are spread over it, on all
    /// nodes of a cluster together. `None`: wherever it begins, because there is no other source.
    phase: Option<Duration>,
}

impl Profile {
    /// The profile of a configured source.
    ///
    /// # Panics
    /// If the source's dialect does not exist, or it has no address: the configuration is checked
    /// before.
    pub fn new(id: SourceId, config: &Config) -> Profile {
        let dialect = Dialect::for_source(&config.sources[id.index()]);
        Profile::with(id, config, dialect.expect("dialects have been checked"))
    }

    /// The profile of this source by another configuration. Its dialect is read again if the symbols are
    /// others: where an exchange has no market list, they are part of it.
    pub fn renewed(&self, config: &Config) -> Profile {
        match self.config.symbols == config.sources[self.id.index()].symbols {
            true => Profile::with(self.id, config, self.dialect),
            false => Profile::new(self.id, config),
        }
    }

    fn with(id: SourceId, config: &Config, dialect: &'static Dialect) -> Profile {
        let source = config.sources[id.index()].clone();
        let [place, count] = [id.index(), config.sources.len()].map(|count| count as u32);
        let own = || Url::parse(dialect.base_url()).expect("a dialect's own address is sound");
        Profile {
            id,
            dialect,
            url: source.url.clone().unwrap_or_else(own),
            limit: match config.demo_source() {
                Some(demo) if demo == id.index() => DEMO_BUDGET,
                _ => dialect.budget(),
            },
            phase: (count > 1).then(|| source.poll * place / count),
            config: source,
        }
    }

    /// How long it is until the source's phase comes the next time, after now: at most `pollMs`.
    pub fn until_phase(&self, now: UnixMs) -> Duration {
        let Some(phase) = self.phase else {
            return self.config.poll;
        };
        let [poll, phase] = [self.config.poll, phase].map(|it| it.as_millis() as i64);
        let since = (now.0 - phase).rem_euclid(poll.max(1));
        Duration::from_millis((poll - since) as u64)
    }

    /// The cost of the dearest request without which nothing is served.
    pub fn dearest(&self) -> u32 {
        let tickers = match self.dialect.tickers_at_once() {
            true => Call::Tickers,
            false => Call::Ticker { id: "" },
        };
        let costs = [Call::Markets, Call::Time, tickers].map(|call| self.dialect.cost(&call));
        costs.into_iter().max().unwrap_or(1)
    }

    /// What a task costs of the exchange's limit.
    pub fn cost(&self, task: &Task, cx: &Context) -> u32 {
        self.dialect.cost(&self.call(task, cx))
    }

    /// A task in the words of the dialect.
    pub fn call<'m>(&self, task: &Task, cx: &'m Context) -> Call<'m> {
        let listing = |symbol: SymbolId| cx.market.catalog.listing(self.id, symbol);
        let ticker_id = |symbol| listing(symbol).map_or("", |listing| &listing.ticker_id);
        match task {
            Task::Ticker(symbol) => Call::Ticker { id: ticker_id(*symbol) },
            Task::Stats(symbol) => Call::Stats { id: ticker_id(*symbol) },
            Task::Markets => Call::Markets,
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
        }
    }
}
