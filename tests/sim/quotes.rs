//! Whether an answer about quotes says what the exchanges said, and nothing else.

use super::ledger::{Ledger, Quoted, Span, Tri, Window};
use super::trace::{Verdict, ensure};
use super::truth::Figures;
use super::world::World;
use crate::support::{FIGURES, Json};
use marketd::config::HistoryConfig;
use std::ops::Deref;

/// How long a source may have to be fresh again before it answers in place of a later one, and after how much
/// of this a poll lets it.
const RETURN_US: u64 = 20_000_000;
const RETURN_POLL_US: u64 = 11_000_000;

/// How long a change may be on its way to a reader.
const A_MOMENT_US: u64 = 1_000_000;

/// How many slots of a stored interval are kept.
pub fn kept(history: &HistoryConfig, interval: &str) -> i64 {
    match interval {
        "1m" => history.m1.keep,
        "1h" => history.h1.keep,
        _ => history.d1.keep,
    }
}

/// The world at the time of an answer.
#[derive(Clone, Copy)]
pub struct Books<'a> {
    world: &'a World,
    /// When the answer was made.
    pub span: Span,
}

impl Deref for Books<'_> {
    type Target = World;

    fn deref(&self) -> &World {
        self.world
    }
}

impl<'a> Books<'a> {
    /// For what is made now.
    pub fn new(world: &'a World) -> Books<'a> {
        Books { world, span: (world.now, world.now) }
    }

    /// How many slots of a stored interval are kept.
    pub fn keep(&self, interval: &str) -> i64 {
        kept(&self.config.history, interval)
    }

    /// The market of that symbol.
    pub fn market(&self, symbol: &str) -> Result<usize, String> {
        let found = self.symbols.iter().position(|known| known == symbol);
        found.ok_or_else(|| format!("{symbol:?} is no symbol of this run"))
    }

    /// Whether any source tracks a market.
    pub fn known(&self, market: usize) -> Tri {
        let sources = self.ledgers.iter();
        let tracks = sources.map(|source| source.tracks(market, self.span));
        tracks.max().unwrap_or(Tri::No)
    }

    /// Whether there is a quote of a market, of that source or of any.
    pub fn has_quote(&self, market: usize, source: Option<usize>) -> Tri {
        let sources = self.ledgers.iter().enumerate();
        let asked = sources.filter(|(at, _)| source.is_none_or(|source| source == *at));
        let has = |it: &Quoted| it.figures.is_some();
        let found = asked.map(|(_, ledger)| ledger.quotes[market].held(self.span, has));
        found.max().unwrap_or(Tri::No)
    }

    /// A quote, whole. `source`: the one that was asked for.
    pub fn check_quote(
        &self,
        quote: &Json,
        market: usize,
        source: Option<usize>,
        text: bool,
    ) -> Verdict {
        let begin = ["symbol", "base", "quote", "source"];
        let members = [&begin[..], &FIGURES, &["timestamp", "receivedAt", "stale"]].concat();
        ensure(quote.keys() == members, || format!("a quote's members are {:?}", quote.keys()))?;
        let symbol = &self.symbols[market];
        let (base, of) = symbol.split_once('/').expect("a canonical symbol");
        if quote["symbol"] != symbol.as_str() || quote["base"] != base || quote["quote"] != of {
            return Err(format!("asked for {symbol}, and it is {quote}"));
        }
        self.check_state(quote, market, source, &|figures, quote| {
            let differs = figures
                .named
                .iter()
                .find(|(name, value)| !same(&quote[*name], value.as_deref(), text));
            match differs {
                Some((name, value)) => Err(format!("{name} was {value:?}")),
                None => Ok(()),
            }
        })
    }

    /// Whether two polls brought a quote in the millisecond that it shows, or a source that may have been
    /// served in between has come or gone a moment ago.
    pub fn may_be_twice(&self, market: usize, quote: &Json) -> bool {
        let id = quote["source"].text().unwrap_or_default();
        let at = quote["receivedAt"].integer().unwrap_or_default();
        let moment = (self.span.0.saturating_sub(A_MOMENT_US), self.span.1);
        let mut others = self.ledgers.iter().filter(|ledger| ledger.id != id);
        if others.any(|ledger| ledger.is_there(moment) == Tri::Maybe) {
            return true;
        }
        let source = self.ledgers.iter().find(|ledger| ledger.id == id);
        let states = source.map(|ledger| ledger.quotes[market].seen((0, self.span.1)).0);
        let states = states.into_iter().flatten();
        states
            .filter(|(_, state)| (state.received_ms.0..=state.received_ms.1).contains(&at))
            .count()
            > 1
    }

    /// The values of a quote as charting libraries get them.
    pub fn check_values(&self, market: usize, shown: &Json) -> Verdict {
        const NAMES: [(&str, &str); 9] = [
            ("lp", "last"),
            ("ch", "change"),
            ("chp", "percentage"),
            ("bid", "bid"),
            ("ask", "ask"),
            ("open_price", "open"),
            ("high_price", "high"),
            ("low_price", "low"),
            ("volume", "baseVolume"),
        ];
        let id = shown["exchange"].text().unwrap_or_default();
        let source = self.ledgers.iter().find(|ledger| ledger.id == id);
        let ledger = source.ok_or_else(|| format!("{id:?} is no source"))?;
        let (seen, _) = ledger.quotes[market].seen(self.span);
        let is_shown = |figures: &Figures| {
            let mut names = NAMES.iter();
            names.all(|(ours, theirs)| same(&shown[*ours], figures.get(theirs), false))
        };
        let mut figures = seen.iter().filter_map(|state| state.1.figures.as_deref());
        ensure(figures.any(is_shown), || format!("nobody said {shown}"))
    }

    /// A market of a category.
    pub fn check_market(&self, market: &Json, text: bool) -> Verdict {
        const MEMBERS: &str = "symbol base quote active source last percentage quoteVolume \
                               timestamp receivedAt stale";
        ensure(market.keys().join(" ") == MEMBERS, || {
            format!("a market's members are {:?}", market.keys())
        })?;
        let at = self.market(market["symbol"].text().unwrap_or_default())?;
        ensure(self.known(at) != Tri::No, || format!("{} is not tracked", self.symbols[at]))?;
        if market["source"].is_null() {
            ensure(self.has_quote(at, None) != Tri::Yes, || format!("no quote in {market}"))?;
            return Ok(());
        }
        self.check_state(market, at, None, &|figures, market| {
            for name in ["last", "percentage", "quoteVolume"] {
                let value = figures.get(name);
                ensure(same(&market[name], value, text), || format!("{name} was {value:?}"))?;
            }
            Ok(())
        })
    }

    /// That some state of the answering source is what is shown, and that this source is the one
    /// to answer.
    fn check_state(
        &self,
        shown: &Json,
        market: usize,
        asked: Option<usize>,
        compare: &dyn Fn(&Figures, &Json) -> Verdict,
    ) -> Verdict {
        let id = shown["source"].text().unwrap_or_default();
        let source = self.ledgers.iter().position(|ledger| ledger.id == id);
        let source = source.ok_or_else(|| format!("{id:?} is no source"))?;
        if asked.is_some_and(|asked| asked != source) {
            return Err(format!("another source was asked for than {id}"));
        }
        let stale = shown["stale"].bool().ok_or("stale is no boolean")?;
        let ledger = &self.ledgers[source];
        let (seen, _) = ledger.quotes[market].seen(self.span);
        let mut why = format!("{id} has said nothing of it");
        let found = seen.iter().any(|state| {
            let verdict = check_one(ledger, state, shown, stale, self.span, compare);
            match verdict {
                Ok(()) => true,
                Err(fault) => {
                    why = fault;
                    false
                }
            }
        });
        if !found {
            let span = self.span;
            return Err(format!("{shown} in {span:?}: {why}"));
        }
        // The first fresh one answers.
        let others = self.ledgers.iter();
        let others = others.filter(|other| asked.is_none() && other.id != id);
        for other in others {
            let is_fresh = |span: Span| {
                let (seen, nothing) = other.quotes[market].seen(span);
                // Each until the next one has taken its place.
                let ends = seen.iter().skip(1).map(|next| next.0.1.min(span.1)).chain([span.1]);
                let mut until_end = seen.iter().zip(ends);
                let is_fresh = |(state, end): (&&(Window, Quoted), u64)| {
                    let is_stale = other.is_stale(state, (span.0, end));
                    state.1.figures.is_some() && is_stale == Tri::No
                };
                !nothing && until_end.all(is_fresh)
            };
            // One that was stale just before may wait until it has been fresh for a while.
            let before = (self.span.0.saturating_sub(RETURN_US), self.span.1);
            let lets_it = |(window, _): &(Window, Quoted)| {
                window.0 >= before.0 + RETURN_POLL_US && window.1 <= self.span.0
            };
            let is_back = || {
                let (seen, _) = other.quotes[market].seen(before);
                is_fresh(before) && seen.into_iter().any(lets_it)
            };
            // One that lists the market as halted comes last.
            let is_first = match [other, ledger].map(|it| it.halts(market, before)) {
                [Tri::No, Tri::No] | [Tri::Yes, Tri::Yes] => other.place < ledger.place,
                halts => halts == [Tri::No, Tri::Yes],
            };
            if stale && is_fresh(self.span) || is_first && is_back() {
                return Err(format!("{} is fresh, and {id} answers: {shown}", other.id));
            }
        }
        Ok(())
    }
}

fn check_one(
    ledger: &Ledger,
    state: &(Window, Quoted),
    shown: &Json,
    stale: bool,
    span: Span,
    compare: &dyn Fn(&Figures, &Json) -> Verdict,
) -> Verdict {
    let quoted = &state.1;
    let figures = quoted.figures.as_deref().ok_or("it was dropped")?;
    compare(figures, shown)?;
    if shown["timestamp"].integer() != figures.timestamp {
        return Err(format!("its time was {:?}", figures.timestamp));
    }
    let received = shown["receivedAt"].integer().ok_or("receivedAt is null")?;
    let (first, last) = quoted.received_ms;
    if !(first..=last).contains(&received) {
        return Err(format!("it was received from {first} to {last}"));
    }
    match (ledger.is_stale(state, span), stale) {
        (Tri::Yes, false) => Err(format!("it is stale by now, seen in {:?}", state.0)),
        (Tri::No, true) => Err(format!("it is fresh, seen in {:?}", state.0)),
        _ => Ok(()),
    }
}

/// Whether a member holds this decimal, as a number or as a text.
fn same(member: &Json, value: Option<&str>, text: bool) -> bool {
    match (member, value) {
        (Json::Null, None) => true,
        (Json::Text(shown), Some(value)) => text && shown == value,
        (Json::Number(shown), Some(value)) => !text && shown == value,
        _ => false,
    }
}
