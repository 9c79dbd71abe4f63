//! Listings: from an item of a market list to a [`MarketInfo`].
//!
//! Owns the fields of a listing and the rules for each: steps become decimal places, and a limit of
//! zero is no limit. It does not check names: the catalog does.

use super::error::{Fault, Reject, Wrong};
use super::json::{Cursor, Raw, Stop};
use super::shape::{Field, Fields, Members, Order};
use super::sink::Sink;
use super::value::{hundredth, name, text, unsigned};
use crate::decimal::Decimal;
use crate::record::{Bounds, MarketInfo, MarketRules};
use std::borrow::Cow;

/// What a member of a listing is.
#[derive(Clone, Copy, Debug)]
pub(super) enum ListingField {
    /// The name in tickers.
    Id,
    /// The name for requests of candles, if it is another one.
    CandleId,
    Base,
    Quote,
    /// Base and quote in one text, with a slash between them. Takes precedence.
    Pair,
    Status,
    /// True if orders are refused, whatever the status says.
    Halted,
    /// The smallest step of prices. Takes precedence over the places.
    PriceStep,
    PricePlaces,
    /// The smallest step of amounts. Takes precedence over the places.
    AmountStep,
    AmountPlaces,
    AmountMin,
    AmountMax,
    PriceMin,
    PriceMax,
    CostMin,
    CostMax,
    /// The smallest cost in USDT, of any market. Used only if that is the quote asset.
    CostMinUsdt,
    Taker,
    Maker,
}

impl Field for ListingField {
    fn place(self) -> usize {
        self as usize
    }
}

/// How an exchange writes its market list.
pub(super) struct ListingForm {
    pub(super) members: &'static Members<ListingField>,
    /// The status of a market that trades.
    pub(super) open: &'static str,
    /// Assets that have another name elsewhere.
    pub(super) renamed: &'static [(&'static str, &'static str)],
    /// Suffixes of the ids of markets to skip (dark pools of Kraken).
    pub(super) skipped: &'static [&'static str],
    /// True if fees are in percent, false if they are fractions.
    pub(super) fees_in_percent: bool,
}

/// Reads one listing and passes it to the sink. `id` is for lists that name their markets outside.
pub(super) fn take<'a>(
    item: &mut Cursor<'a>,
    form: &'static ListingForm,
    order: &mut Order<ListingField>,
    id: Raw<'a>,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let mut fields = Fields::new();
    fields.set(ListingField::Id, id);
    if !order.read(item, form.members, &mut fields)? {
        sink.rejected(Reject::new(None, "market", Fault::WrongType));
        return Ok(());
    }
    let id = match name(fields.get(ListingField::Id)) {
        Ok(id) => id,
        Err(fault) => {
            sink.rejected(Reject::new(None, "id", fault));
            return Ok(());
        }
    };
    if form.skipped.iter().any(|end| id.ends_with(end)) {
        return Ok(());
    }
    match market(&id, &fields, form) {
        Ok(info) => sink.market(info),
        Err((field, fault)) => sink.rejected(Reject::new(Some(&id), field, fault)),
    }
    Ok(())
}

fn market(id: &str, fields: &Fields<'_>, form: &ListingForm) -> Result<MarketInfo, Wrong> {
    use ListingField::*;
    let candle_id = match fields.get(CandleId) {
        Raw::Absent => None,
        other => Some(name(other).map_err(|fault| ("candleId", fault))?),
    };
    let (base, quote) = assets(fields)?;
    let common = |asset: Cow<'_, str>| -> Box<str> {
        let renamed = form.renamed.iter().find(|(own, _)| **own == *asset);
        renamed.map_or(&*asset, |(_, common)| common).into()
    };
    let active = match fields.get(Status) {
        Raw::Absent => true,
        Raw::Bool(true) => form.open == "true",
        Raw::Bool(false) => form.open == "false",
        other => match text(other).map_err(|fault| ("status", fault))? {
            Some(status) => status == form.open,
            None => true,
        },
    };
    let halted = match fields.get(Halted) {
        Raw::Absent | Raw::Null | Raw::Bool(false) => false,
        Raw::Bool(true) => true,
        _ => return Err(("halted", Fault::WrongType)),
    };
    let quote = common(quote);
    Ok(MarketInfo {
        ticker_id: id.into(),
        candle_id: candle_id.map(|id| id.into()),
        base: common(base),
        rules: rules(fields, form, &quote)?,
        quote,
        active: active && !halted,
    })
}

fn assets<'a>(fields: &Fields<'a>) -> Result<(Cow<'a, str>, Cow<'a, str>), Wrong> {
    let pair = text(fields.get(ListingField::Pair)).map_err(|fault| ("pair", fault))?;
    if let Some(pair) = pair {
        let (base, quote) = pair.split_once('/').ok_or(("pair", Fault::NotAText))?;
        return Ok((base.to_owned().into(), quote.to_owned().into()));
    }
    let asset = |field, label| name(fields.get(field)).map_err(|fault| (label, fault));
    Ok((
        asset(ListingField::Base, "base")?,
        asset(ListingField::Quote, "quote")?,
    ))
}

fn rules(fields: &Fields<'_>, form: &ListingForm, quote: &str) -> Result<MarketRules, Wrong> {
    use ListingField::*;
    let number = |field, label| unsigned(fields.get(field)).map_err(|fault| (label, fault));
    // Exchanges write zero where they set no limit.
    let limit = |field, label| Ok(number(field, label)?.filter(|limit| !limit.is_zero()));
    let bounds = |min, max, label| {
        Ok(Bounds {
            min: limit(min, label)?,
            max: limit(max, label)?,
        })
    };
    let places = |step, count, label| match limit(step, label)? {
        Some(step) => Ok(Some(step.places() as u8)),
        None => number(count, label)?
            .map(|count| whole(&count).ok_or((label, Fault::NotANumber)))
            .transpose(),
    };
    let fee = |field, label| {
        let fee = number(field, label)?;
        Ok(match form.fees_in_percent {
            true => fee.and_then(|fee| hundredth(&fee)),
            false => fee,
        })
    };
    let cost_min = match fields.get(CostMinUsdt) {
        Raw::Absent => CostMin,
        _ if quote == "USDT" => CostMinUsdt,
        _ => CostMin,
    };
    Ok(MarketRules {
        amount_places: places(AmountStep, AmountPlaces, "precision.amount")?,
        price_places: places(PriceStep, PricePlaces, "precision.price")?,
        amount: bounds(AmountMin, AmountMax, "limits.amount")?,
        price: bounds(PriceMin, PriceMax, "limits.price")?,
        cost: bounds(cost_min, CostMax, "limits.cost")?,
        taker: fee(Taker, "taker")?,
        maker: fee(Maker, "maker")?,
    })
}

/// A small whole number.
fn whole(number: &Decimal) -> Option<u8> {
    let mut digits = Vec::new();
    number.write(&mut digits);
    std::str::from_utf8(&digits).ok()?.parse().ok()
}
