//! Pairs: the two assets of a market in one text.
//!
//! Owns the forms of such texts: `{base}/{quote}`, `{quote}-{base}`, `t{base:3}{quote:3}`,
//! `{base}{quote=usdt}`. A number is a width in characters. `=` names the only asset that the form is for. A
//! form needs one of these, or a text between the assets: otherwise nothing shows where one asset ends, and
//! the form is refused.

use crate::config::forms::{TextForm, form, plain};
use crate::config::members::texts;

/// A form of a pair.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// In front of the first asset, between the two, and behind the second.
    texts: [Box<str>; 3],
    assets: [Asset; 2],
    quote_first: bool,
}

/// What a form says about an asset.
#[derive(Debug, PartialEq, Eq)]
enum Asset {
    Any,
    /// It has this many characters.
    Wide(usize),
    /// It is this one.
    Named(Box<str>),
}

impl Asset {
    fn width(&self) -> Option<usize> {
        match self {
            Asset::Any => None,
            Asset::Wide(width) => Some(*width),
            Asset::Named(name) => Some(name.len()),
        }
    }

    fn fits(&self, part: &str) -> bool {
        match self {
            Asset::Named(name) => part == &**name,
            _ => !part.is_empty() && self.width().is_none_or(|width| part.len() == width),
        }
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
        let (first, second) = match self.assets.each_ref().map(Asset::width) {
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

/// A form of an id that is made of both assets. Nothing needs to split it again.
pub(super) const MADE_FORM: TextForm<String> = form("a form like \"{base}{quote}\"", |text| {
    let rest = text.replacen("{base}", "", 1).replacen("{quote}", "", 1);
    plain(text, rest.len() + "{base}{quote}".len() == text.len() && !rest.contains(['{', '}']))
});

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
    let is_divided = !between.is_empty() || assets != [Asset::Any, Asset::Any];
    let quote_first = names == ["quote", "base"];
    let is_pair = quote_first || names == ["base", "quote"];
    (is_pair && is_divided && !behind.contains(['{', '}'])).then(|| Pair {
        texts: [front, between, behind].map(Into::into),
        assets,
        quote_first,
    })
}

/// Parses which asset it is, and what the form says about it: `base`, `quote:3`, `quote=usd`.
fn asset(part: &str) -> Option<(&str, Asset)> {
    if let Some((which, name)) = part.split_once('=') {
        return (!name.is_empty()).then(|| (which, Asset::Named(name.into())));
    }
    let Some((which, width)) = part.split_once(':') else {
        return Some((part, Asset::Any));
    };
    let width = width.parse().ok().filter(|width| *width > 0)?;
    Some((which, Asset::Wide(width)))
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
