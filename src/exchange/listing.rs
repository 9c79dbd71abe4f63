//! Listings: makes a [`MarketInfo`] of an item of a market list.
//!
//! Owns the fields of a listing and the rules for each: steps become decimal places, and a limit of zero is
//! no limit. Owns the forms of texts with both assets of a market, too. The catalog checks the names.

use super::call::BETWEEN;
use super::endpoint::{EndpointSpec, MOST_IDS};
use super::error::{ItemFault, Reject, WrongPart};
use super::fields::{Constants, TableOf};
use super::json::Raw;
use super::shape::ItemFields;
use super::sink::Sink;
use super::value::{amount, name, signed, text, word};
use crate::config::forms::{TextForm, form, name as name_of, plain};
use crate::config::members::{Named as _, count, members, names, texts};
use crate::record::{Bounds, MarketInfo, MarketRules};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::slice::Chunks;

names! {
    /// What a member of a listing is.
    pub(super) enum ListingField {
        /// The name in tickers.
        Id "id"
        /// The name for requests of candles, if it is another one.
        CandleId "candleId"
        Base "base"
        Quote "quote"
        /// What is traded. Only markets of `kinds` are taken.
        Kind "kind"
        /// Base and quote in one text, in one of the forms of `pair`. Takes precedence.
        Pair "pair"
        Status "status"
        /// True if orders are refused, whatever the status says.
        Halted "halted"
        /// The smallest step of prices. Takes precedence over the places.
        PriceStep "priceStep"
        PricePlaces "pricePlaces"
        /// The smallest step of amounts. Takes precedence over the places.
        AmountStep "amountStep"
        AmountPlaces "amountPlaces"
        AmountMin "amountMin"
        AmountMax "amountMax"
        PriceMin "priceMin"
        PriceMax "priceMax"
        CostMin "costMin"
        CostMax "costMax"
        /// The smallest cost in USDT. Used only for markets whose quote asset is USDT.
        CostMinUsdt "costMinUsdt"
        Taker "taker"
        Maker "maker"
    }
}

/// An asset as the exchange writes it.
const OWN_NAME: TextForm<String> = form("an asset like XBT", |text| plain(text, !text.is_empty()));

/// An asset by its common name.
const COMMON_NAME: TextForm<String> = form("an asset of 1 to 20 A-Z and 0-9", |text| {
    name_of(text, 20, |char| char.is_ascii_uppercase() || char.is_ascii_digit())
});

members! {
    /// The market list, and how an exchange writes it.
    pub(super) struct ListingForm {
        /// The endpoint. Without it the exchange has no list: its markets are the source's `symbols`, with
        /// ids in the first form of `pair`.
        call: Option<EndpointSpec> = None, "call";
        /// The part of the list with some markets.
        several: Option<NamedForm> = None, "several";
        /// The members of a market.
        fields: Option<TableOf<ListingField>> = None, "fields";
        /// The fields that the names of the members are, in a list that is an object. It is `id` if
        /// this is left out.
        name: Option<TableOf<ListingField>> = None, "name";
        /// Values that are the same for every market and not in the list, by field.
        constants: Constants<ListingField> = Constants::default(), "constants";
        /// The quote asset of every market, if the list does not say it: the constant `quote`.
        quote: Option<String> = None, "quote";
        /// The form of the list's ids in tickers and in calls, if it is another one: `t{id}`.
        id: Option<String> = None, "id" ID_FORM;
        /// The name in requests of candles, made of both assets as the exchange writes them.
        candle_id: Option<String> = None, "candleId" MADE_FORM;
        /// The statuses of a market that trades.
        open: Vec<Box<str>> = Vec::new(), "open";
        /// Forms of `pair`. The first one that fits is used: `{quote}-{base}`, `t{base:3}{quote:3}`,
        /// `{base}{quote=usdt}`.
        pair: Vec<Pair> = vec![Pair::default()], "pair";
        /// True if assets are written in lower case.
        lower_case: bool = false, "lowerCase";
        /// Assets that have another name elsewhere.
        renamed: BTreeMap<String, String> = BTreeMap::new(), "renamed" (OWN_NAME, COMMON_NAME);
        /// The values of `kind` of markets that are taken, if not all are (for example spot, but
        /// not futures).
        kinds: Vec<Box<str>> = Vec::new(), "kinds";
        /// The ends of the ids of markets to skip (dark pools of Kraken), or their beginnings:
        /// `f*`.
        skipped: Vec<String> = Vec::new(), "skipped" SKIPPED;
        /// The unit of fees.
        fees: FeeUnit = FeeUnit::Fraction, "fees";
    }
}

members! {
    /// How the list is requested for some markets only.
    pub(super) struct NamedForm {
        /// The endpoint, with `{ids}`.
        call: EndpointSpec, "call";
        /// The form of the ids before the list has come, made of both assets as the exchange writes them.
        ids: String, "ids" MADE_FORM;
        /// What stands between two ids.
        between: String = ",".to_owned(), "between" BETWEEN;
        /// The most markets of a request.
        most: u32, "most" count(1, MOST_IDS);
    }
}

/// Up to this many markets are always requested by their names, in several requests if one request takes
/// fewer. For more markets, the whole list is as fast.
const LEAST_NAMED: usize = 10;

names! {
    /// The unit of fees.
    pub(super) enum FeeUnit {
        /// 0.001 is 0.1 %.
        Fraction "fraction"
        /// 0.1 is 0.1 %.
        Percent "percent"
    }
}

impl ListingForm {
    /// An asset as the exchange writes it.
    pub(super) fn own(&self, common: &str) -> Box<str> {
        match self.renamed.iter().find(|(_, other)| *other == common) {
            Some((own, _)) => own.as_str().into(),
            None if self.lower_case => common.to_ascii_lowercase().into(),
            None => common.into(),
        }
    }

    /// The ids of these symbols, if the list may be requested for them only.
    pub(super) fn ids(&self, symbols: &[String]) -> Option<Vec<String>> {
        let most = |it: &NamedForm| LEAST_NAMED.max(it.most as usize);
        let form = self.several.as_ref().filter(|it| (1..=most(it)).contains(&symbols.len()))?;
        let id = |symbol: &String| {
            let (base, quote) = symbol.split_once('/')?;
            Some(made(&form.ids, &self.own(base), &self.own(quote)))
        };
        symbols.iter().map(id).collect()
    }

    /// Divides these ids among the requests for the list of their markets.
    pub(super) fn parts<'i>(&self, ids: &'i [String]) -> Chunks<'i, String> {
        ids.chunks(self.several.as_ref().map_or(1, |it| it.most as usize))
    }

    /// A market that is in no list.
    pub(super) fn unlisted(&self, base: &str, quote: &str) -> MarketInfo {
        let (own_base, own_quote) = (self.own(base), self.own(quote));
        let id = self.pair.first().map(|pair| pair.join(&own_base, &own_quote));
        MarketInfo {
            ticker_id: id.unwrap_or_default().into(),
            candle_id: self.candle_id.as_ref().map(|it| made(it, &own_base, &own_quote).into()),
            base: base.into(),
            quote: quote.into(),
            active: true,
            ..MarketInfo::default()
        }
    }
}

/// Passes one listing to the sink.
pub(super) fn take(fields: &ItemFields<'_>, form: &ListingForm, sink: &mut dyn Sink) {
    let id = match name(fields.get(ListingField::Id)) {
        Ok(id) => id,
        Err(fault) => return sink.rejected(Reject::new(None, "id", fault)),
    };
    let kind = match word(fields.get(ListingField::Kind)) {
        Ok(kind) => kind,
        Err(fault) => return sink.rejected(Reject::new(Some(&id), "kind", fault)),
    };
    let is_other = |kind: &str| form.kinds.iter().all(|known| **known != *kind);
    let is_other = !form.kinds.is_empty() && kind.is_none_or(|kind| is_other(&kind));
    let is_skipped = |part: &str| match part.strip_suffix('*') {
        Some(begin) => id.starts_with(begin),
        None => id.ends_with(part),
    };
    if is_other || form.skipped.iter().any(|part| is_skipped(part)) {
        return;
    }
    let id: Cow<'_, str> =
        form.id.as_ref().map_or(id.clone(), |form| form.replace("{id}", &id).into());
    match market(&id, fields, form) {
        Ok(info) => sink.market(info),
        Err((field, fault)) => sink.rejected(Reject::new(Some(&id), field, fault)),
    }
}

fn market(id: &str, fields: &ItemFields<'_>, form: &ListingForm) -> Result<MarketInfo, WrongPart> {
    use ListingField::*;
    let candle_id = match fields.get(CandleId) {
        Raw::Absent | Raw::Null => None,
        other => Some(name(other).map_err(|fault| ("candleId", fault))?),
    };
    let (base, quote) = assets(fields, form)?;
    let made = form.candle_id.as_ref().map(|form| made(form, &base, &quote));
    let common = |asset: Cow<'_, str>| -> Box<str> {
        match form.renamed.get(&*asset) {
            Some(common) => common.as_str().into(),
            None if form.lower_case => asset.to_ascii_uppercase().into(),
            None => asset.into(),
        }
    };
    let status = word(fields.get(Status)).map_err(|fault| ("status", fault))?;
    let active = status.is_none_or(|status| form.open.iter().any(|open| **open == *status));
    let halted = match fields.get(Halted) {
        Raw::Absent | Raw::Null | Raw::Bool(false) => false,
        Raw::Bool(true) => true,
        _ => return Err(("halted", ItemFault::WrongType)),
    };
    let quote = common(quote);
    Ok(MarketInfo {
        ticker_id: id.into(),
        candle_id: candle_id.map(Cow::into_owned).or(made).map(Into::into),
        base: common(base),
        rules: rules(fields, form, &quote)?,
        quote,
        active: active && !halted,
    })
}

fn assets<'a>(
    fields: &ItemFields<'a>,
    form: &'a ListingForm,
) -> Result<(Cow<'a, str>, Cow<'a, str>), WrongPart> {
    let pair = text(fields.get(ListingField::Pair)).map_err(|fault| ("pair", fault))?;
    if let Some(pair) = pair {
        let split = form.pair.iter().find_map(|form| form.split(&pair));
        let (base, quote) = split.ok_or(("pair", ItemFault::NotAText))?;
        return Ok((base.to_owned().into(), quote.to_owned().into()));
    }
    let asset =
        |field: ListingField| name(fields.get(field)).map_err(|fault| (field.name(), fault));
    Ok((asset(ListingField::Base)?, asset(ListingField::Quote)?))
}

fn rules(
    fields: &ItemFields<'_>,
    form: &ListingForm,
    quote: &str,
) -> Result<MarketRules, WrongPart> {
    use ListingField::*;
    // Exchanges write zero if there is no limit.
    let limit = |field| Ok(amount(fields, field)?.filter(|limit| !limit.is_zero()));
    let bounds = |min, max| Ok(Bounds { min: limit(min)?, max: limit(max)? });
    let places = |step, count: ListingField| match limit(step)? {
        Some(step) => Ok(Some(step.places() as u8)),
        None => amount(fields, count)?
            .map(|it| it.to_string().parse().map_err(|_| (count.name(), ItemFault::NotANumber)))
            .transpose(),
    };
    // A rebate is below zero.
    let fee = |field| match form.fees {
        FeeUnit::Percent => Ok(signed(fields, field)?.and_then(|fee| fee.shifted(-2))),
        FeeUnit::Fraction => signed(fields, field),
    };
    let is_in_usdt = quote == "USDT" && !matches!(fields.get(CostMinUsdt), Raw::Absent | Raw::Null);
    let cost_min = if is_in_usdt { CostMinUsdt } else { CostMin };
    Ok(MarketRules {
        amount_places: places(AmountStep, AmountPlaces)?,
        price_places: places(PriceStep, PricePlaces)?,
        amount: bounds(AmountMin, AmountMax)?,
        price: bounds(PriceMin, PriceMax)?,
        cost: bounds(cost_min, CostMax)?,
        taker: fee(Taker)?,
        maker: fee(Maker)?,
    })
}

/// A form of a text with both assets: `{base}/{quote}`, `{quote}-{base}`, `t{base:3}{quote:3}`,
/// `{base}{quote=usdt}`. A number is a width in characters. `=` names the only asset that the form is for. A
/// form needs one of these, or a text between the assets: otherwise nothing shows where one asset ends, and
/// the form is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// In front of the first asset, between the two, and behind the second.
    texts: [Box<str>; 3],
    assets: [AssetForm; 2],
    quote_first: bool,
}

/// What a form says about an asset.
#[derive(Debug, Default, PartialEq, Eq)]
struct AssetForm {
    /// It has this many bytes.
    width: Option<usize>,
    /// It is this one.
    name: Option<Box<str>>,
}

impl AssetForm {
    fn fits(&self, part: &str) -> bool {
        let is_it = self.name.as_ref().is_none_or(|name| **name == *part);
        is_it && !part.is_empty() && self.width.is_none_or(|width| part.len() == width)
    }
}

impl Pair {
    /// The text of a market in this form.
    pub(super) fn join(&self, base: &str, quote: &str) -> String {
        let [front, between, behind] = &self.texts;
        let (first, second) = if self.quote_first { (quote, base) } else { (base, quote) };
        format!("{front}{first}{between}{second}{behind}")
    }

    /// Base and quote, if the text has this form.
    pub(super) fn split<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str)> {
        let [front, between, behind] = &self.texts;
        let text = text.strip_prefix(&**front)?.strip_suffix(&**behind)?;
        let (first, second) = match self.assets.each_ref().map(|it| it.width) {
            _ if !between.is_empty() => text.split_once(&**between)?,
            [Some(width), _] => text.split_at_checked(width)?,
            [None, width] => text.split_at_checked(text.len().checked_sub(width?)?)?,
        };
        let fits = self.assets[0].fits(first) && self.assets[1].fits(second);
        fits.then_some(if self.quote_first { (second, first) } else { (first, second) })
    }
}

/// A form of an id.
pub(super) const ID_FORM: TextForm<String> = form("a form like \"t{id}\"", |text| {
    let (front, behind) = text.split_once("{id}").ok_or(None)?;
    plain(text, !format!("{front}{behind}").contains(['{', '}']))
});

/// Markets to skip.
const SKIPPED: TextForm<String> =
    form("the end of an id, or its beginning with a * behind it", |text| {
        let part = text.strip_suffix('*').unwrap_or(text);
        plain(text, !part.is_empty() && !part.contains('*'))
    });

/// A form of an id that is made of both assets. Nothing needs to split it again.
pub(super) const MADE_FORM: TextForm<String> = form("a form like \"{base}{quote}\"", |text| {
    let rest = text.replacen("{base}", "", 1).replacen("{quote}", "", 1);
    plain(text, rest.len() + "{base}{quote}".len() == text.len() && !rest.contains(['{', '}']))
});

/// The id of a market in a form of [`MADE_FORM`].
fn made(form: &str, base: &str, quote: &str) -> String {
    form.replacen("{base}", base, 1).replacen("{quote}", quote, 1)
}

// The form of most exchanges.
texts!(Pair, "{base}/{quote}");

impl TryFrom<String> for Pair {
    type Error = String;

    fn try_from(text: String) -> Result<Pair, String> {
        parse(&text).ok_or_else(|| {
            let like = "\"{base}-{quote}\", \"t{base:3}{quote:3}\" or \"{base}{quote=usd}\"";
            format!("expected a form like {like}, found {text:?}")
        })
    }
}

fn parse(text: &str) -> Option<Pair> {
    let (front, rest) = text.split_once('{')?;
    let (first, rest) = rest.split_once('}')?;
    let (between, rest) = rest.split_once('{')?;
    let (second, behind) = rest.split_once('}')?;
    let (first, second) = (asset(first)?, asset(second)?);
    let (names, assets) = ([first.0, second.0], [first.1, second.1]);
    let is_divided = !between.is_empty() || assets.iter().any(|it| it.width.is_some());
    let quote_first = names == ["quote", "base"];
    let is_pair = quote_first || names == ["base", "quote"];
    (is_pair && is_divided && !behind.contains(['{', '}'])).then(|| Pair {
        texts: [front, between, behind].map(Into::into),
        assets,
        quote_first,
    })
}

/// Parses which asset it is, and what the form says about it: `base`, `quote:3`, `quote=usd`.
fn asset(part: &str) -> Option<(&str, AssetForm)> {
    let (which, name, width) = match (part.split_once('='), part.split_once(':')) {
        (Some((which, name)), _) => (which, Some(name.into()), Some(name.len())),
        (None, Some((which, width))) => (which, None, Some(width.parse().ok()?)),
        (None, None) => (part, None, None),
    };
    (width != Some(0)).then_some((which, AssetForm { width, name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_split_by_its_form() {
        let check = |form: &str, text: &str, expected: Option<(&str, &str)>| {
            let pair = Pair::try_from(form.to_owned()).expect(form);
            assert_eq!(pair.split(text), expected, "{form} {text}");
        };
        check("{base}/{quote}", "XBT/USD", Some(("XBT", "USD")));
        check("{base}/{quote}", "XBTUSD", None);
        check("{base}/{quote}", "/USD", None);
        check("{quote}-{base}", "KRW-BTC", Some(("BTC", "KRW")));
        check("t{base:3}{quote:3}", "tBTCUSD", Some(("BTC", "USD")));
        check("t{base:3}{quote:3}", "tDUSKUSD", None);
        check("t{base:3}{quote:3}", "fBTCUSD", None);
        check("{base}{quote:3}", "LUNAUSD", Some(("LUNA", "USD")));
        check("{base}{quote:3}", "USD", None);
        check("{base}{quote:3}", "\u{e9}\u{e9}", None);
        check("{base}{quote=gusd}", "btcgusd", Some(("btc", "gusd")));
        check("{base}{quote=gusd}", "btcusd", None);
        check("{base}{quote=gusd}", "gusd", None);
        check("{quote=KRW}{base}", "KRWBTC", Some(("BTC", "KRW")));
        check("{base}_{quote}.x", "A_B.x", Some(("A", "B")));
        assert_eq!(Pair::default().join("A", "B"), "A/B");
    }

    #[test]
    fn a_form_that_tells_no_pair_is_refused() {
        for form in [
            "",
            "base",
            "{base}",
            "{base}{quote}",
            "{base}-{base}",
            "{base:x}{quote}",
            "{base}{quote:0}",
            "{base}{quote=}",
            "{a}-{quote}",
            "{base}-{quote}{x}",
        ] {
            assert!(Pair::try_from(form.to_owned()).is_err(), "{form}");
        }
    }
}
