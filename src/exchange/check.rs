//! The check of a dialect's file: the rules between its members.
//!
//! Reading has checked names, types and the bounds of numbers. This module checks that each call has the
//! fields and placeholders that it needs and no others, and that costs fit the budget. It reports every
//! fault with its line and member.

use super::candle::CandleField;
use super::dialect::{DialectForm, TickerCall};
use super::endpoint::EndpointSpec;
use super::listing::ListingField;
use super::path::Form;
use super::target::PlaceholderName;
use super::ticker::TickerField;
use crate::config::members::Named as _;
use crate::config::{Report, Url};
use crate::interval::Stored;

/// Reports every fault of a dialect's file that has been read.
pub(super) fn check(dialect: &DialectForm, report: &mut Report) {
    dialect.check_itself(report);
    dialect.check_tickers(report);
    dialect.check_candles(report);
    dialect.check_others(report);
}

fn expect_list(call: &EndpointSpec, member: &str, report: &mut Report) {
    let is_list = call.items.form != Form::Itself;
    report.expect(is_list, member, "expected elements (`[]`) or members (`{}`)");
}

/// Which placeholders a call has values for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    None,
    Id,
    Candles,
}

impl DialectForm {
    fn check_itself(&self, report: &mut Report) {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if let Err(message) = Url::parse(&self.base_url) {
            report.fault("baseUrl", message);
        }
        let budget = &self.budget;
        let is_header = |byte: u8| is_name(byte) || b"_.".contains(&byte);
        for (member, name) in [("budget.used", &budget.used), ("budget.left", &budget.left)] {
            let is_name = |name: &String| !name.is_empty() && name.bytes().all(is_header);
            let fine = name.as_ref().is_none_or(is_name);
            let message = "expected the name of a header field in lower case";
            report.expect(fine, member, message);
        }
        let is_one = budget.used.is_none() || budget.left.is_none();
        report.expect(is_one, "budget.left", "expected either `used` or `left`");
    }

    fn check_call(&self, call: &EndpointSpec, member: &str, values: Values, report: &mut Report) {
        let of = |name: &str| format!("{member}.{name}");
        let (cost, most) = (call.cost_in(&self.budget), self.budget.units);
        let said = match &call.limit {
            Some(_) => {
                let is_one = call.cost.is_none();
                report.expect(is_one, &of("cost"), "expected either `cost` or `limit`");
                of("limit")
            }
            None => of("cost"),
        };
        let is_sound = !report.is_faulty_within("budget");
        if is_sound && !(1..=u64::from(most)).contains(&cost) {
            let message =
                format!("expected a cost from 1 to that of the budget ({most}), found {cost}");
            report.fault(&said, message);
        }
        let mut has_id = false;
        for placeholder in call.target.placeholders() {
            let is_id = placeholder == PlaceholderName::Id;
            has_id |= is_id;
            let fine = values == Values::Candles || values == Values::Id && is_id;
            let name = placeholder.name();
            let message = format!("this call has no value for the placeholder {{{name}}}");
            report.expect(fine, &of("target"), &message);
        }
        let needs_id = values != Values::None;
        let message = "expected the placeholder {id}";
        report.expect(has_id || !needs_id, &of("target"), message);
    }

    fn check_tickers(&self, report: &mut Report) {
        use TickerField::*;
        let tickers = &self.tickers;
        let is_there = tickers.all.is_some() || tickers.one.is_some();
        let message = "expected `all`, or `one` if there is no call for all";
        report.expect(is_there, "tickers", message);
        let calls = [("all", &tickers.all), ("one", &tickers.one), ("stats", &tickers.stats)];
        for (name, call) in calls {
            let Some(TickerCall { call, fields }) = call else {
                continue;
            };
            let of = |member: &str| format!("tickers.{name}.{member}");
            let values = if name == "all" { Values::None } else { Values::Id };
            self.check_call(call, &of("call"), values, report);
            let (fields, place) = match (fields, &tickers.fields) {
                (Some(fields), _) => (fields, of("fields")),
                (None, Some(fields)) => (fields, "tickers.fields".to_owned()),
                (None, None) => {
                    report.fault(&of("fields"), "missing: there are no `tickers.fields` either");
                    continue;
                }
            };
            let has_last = fields.has(Last) || name == "stats";
            report.expect(has_last, &place, "expected a member that is `last`");
            let is_named = fields.has(Id) || call.items.form == Form::Members || name != "all";
            report.expect(is_named, &place, "expected a member that is `id`");
            let has_unit = tickers.time.is_some() || !fields.has(Time) && call.stamp.is_none();
            let message = "missing: expected the unit of the times";
            report.expect(has_unit, "tickers.time", message);
        }
    }

    fn check_candles(&self, report: &mut Report) {
        let candles = &self.candles;
        let archive = candles.archive.as_ref();
        let archive = archive.map(|archive| (&archive.call, "candles.archive.call"));
        for (call, member) in [(&candles.call, "candles.call")].into_iter().chain(archive) {
            self.check_call(call, member, Values::Candles, report);
            expect_list(call, &format!("{member}.items"), report);
        }
        let names = Stored::ALL.map(|interval| candles.intervals.get(interval));
        let is_plain = |name: &String| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
            (1..=32).contains(&name.len()) && name.bytes().all(plain)
        };
        let message = "expected 1 to 32 of A-Z, a-z, 0-9, -, _, . and /";
        let is_plain = names.into_iter().flatten().all(is_plain);
        report.expect(is_plain, "candles.intervals", message);
        let is_there = names.iter().any(Option::is_some);
        let message = "expected one of `1m`, `1h` and `1d` at least";
        report.expect(is_there, "candles.intervals", message);
        let lacks = |field: &&CandleField| match field {
            CandleField::Time => {
                !candles.fields.has(CandleField::Time) && candles.call.items.form != Form::Members
            }
            CandleField::Closed => false,
            field => !candles.fields.has(**field),
        };
        let lacking = CandleField::ALL.iter().filter(lacks);
        let lacking = lacking.map(|field| field.name());
        let lacking = lacking.collect::<Vec<_>>().join(", ");
        let message = format!("expected members or columns that are {lacking}");
        report.expect(lacking.is_empty(), "candles.fields", &message);
        let has_yes = !candles.fields.has(CandleField::Closed) || !candles.closed.is_empty();
        let message = "missing: expected the value of `closed` for yes";
        report.expect(has_yes, "candles.closed", message);
    }

    fn check_others(&self, report: &mut Report) {
        let (markets, time) = (&self.markets, &self.time);
        self.check_call(&time.call, "time.call", Values::None, report);
        report.expect(
            time.unit.is_some() != time.date,
            "time.unit",
            "expected either `unit` or `\"date\": true`",
        );
        let is_itself = time.date || time.call.items.form == Form::Itself;
        let message = "expected the path to the time itself";
        report.expect(is_itself, "time.call.items", message);
        let (Some(call), Some(fields)) = (&markets.call, &markets.fields) else {
            let has_none = markets.call.is_none() && markets.fields.is_none();
            let message = "expected `call` and `fields`, or none of them and `pair`";
            return report.expect(has_none && !markets.pair.is_empty(), "markets", message);
        };
        self.check_call(call, "markets.call", Values::None, report);
        expect_list(call, "markets.call.items", report);
        use ListingField::*;
        let outer = markets.name.as_ref();
        let is_sound =
            outer.is_none_or(|name| call.items.form == Form::Members && name.is_of_plain());
        let message = "expected fields like \"id base\", of members (`{}`)";
        report.expect(is_sound, "markets.name", message);
        let has = |field| fields.has(field) || outer.is_some_and(|name| name.has(field));
        let is_named = has(Id) || call.items.form == Form::Members && outer.is_none();
        report.expect(is_named, "markets.fields", "expected a member that is `id`");
        let has_quote = has(Quote) || markets.quote.is_some();
        let has_assets = has(Pair) || has(Base) && has_quote;
        let message = "expected members that are `base` and `quote`, or one that is `pair`";
        report.expect(has_assets, "markets.fields", message);
    }
}
