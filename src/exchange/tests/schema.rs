//! The JSON Schema of a dialect's file: made from the structs that it is read into.

use super::bodies::reads;
use super::testing::candles;
use crate::config::tests::describe::{Described, Schema, Types, is_made, write};
use crate::exchange::Dialect;
use crate::exchange::call::TargetTemplate;
use crate::exchange::dialect::DialectForm;
use crate::exchange::endpoint::{ByInterval, Counts};
use crate::exchange::fields::{Constants, TableOf};
use crate::exchange::listing::Pair;
use crate::exchange::path::{Path, Place};
use crate::interval::Stored;
use serde_json::{Value, json};

/// Makes texts of a form of their own.
macro_rules! texts {
    ($($type:ident $pattern:literal $about:literal)+) => { $(
        impl Schema for $type {
            fn schema(types: &mut Types) -> Value {
                let text = json!({ "type": "string", "pattern": $pattern, "description": $about });
                types.name(stringify!($type), text)
            }
        }
    )+ };
}

texts! {
    TargetTemplate "^/($|[^/])" "Path and query, with the placeholders {id}, {ids}, {interval}, {limit}, {slots}, {back}, {from} and {to}, and of pages {page}, {offset} and {cursor}."
    Path "^[^ ]+$" "A path from the body's top: `data.list`, `data[0].ts`, `result.*`, or `.` for the whole body."
    Place "^[^ ]+$" "A path, and what is there: `data.list[]` the elements of an array, `result{}` the members of an object, `data` the one item itself."
    Pair "[{]base.*[{]quote|[{]quote.*[{]base" "Both assets in one text: `{base}/{quote}`, `{quote}-{base}`, `t{base:3}{quote:3}`."
}

impl Schema for Counts {
    fn schema(types: &mut Types) -> Value {
        json!({ "anyOf": [{ "type": "integer" }, ByInterval::<u32>::schema(types)] })
    }
}

impl<F: Described> Schema for Constants<F> {
    fn schema(_: &mut Types) -> Value {
        let about = "Texts by the names of fields: what no item sends.";
        json!({ "type": "object", "description": about, "propertyNames": { "enum": F::NAMES },
            "additionalProperties": { "type": "string" } })
    }
}

impl<F: Described> Schema for TableOf<F> {
    fn schema(types: &mut Types) -> Value {
        let field = F::schema(types);
        let name = format!("TableOf{}", F::NAME);
        let table = json!({ "$ref": format!("#/$defs/{name}") });
        let table = json!({
            "description": "Which member or position is which field.",
            "anyOf": [
                field,
                { "type": "string", "pattern": " ", "description": "Several fields, with blanks between them." },
                { "type": "array", "maxItems": 100, "description": "By position; null is passed over.",
                  "items": { "anyOf": [table, { "type": "null" }] } },
                { "type": "object", "maxProperties": 100,
                  "description": "By name. Of an array of objects of several kinds, `$by` names the member that tells the kind.",
                  "properties": { "$by": { "type": "string" } }, "additionalProperties": table }
            ]
        });
        types.name(&name, table)
    }
}

#[test]
fn the_schema_is_that_of_the_structs() {
    let mut types = Types::default();
    DialectForm::schema(&mut types);
    let mut schema = types.named.remove("DialectForm").expect("it is described");
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Dialect");
    schema["$defs"] = json!(types.named);
    let mut made = String::new();
    write(&schema, "", &mut made);
    made.push('\n');
    is_made("src/exchange/dialects/schema.json", None, &made);
}

/// The examples of the documentation read the bodies that it shows.
#[test]
fn the_examples_of_the_documentation_work() {
    let page = include_str!("../../docs/dialects.md");
    let example = |at: usize| -> &'static Dialect {
        let file = page.split("```json\n").nth(at).and_then(|rest| rest.split("```").next());
        let dialect = Dialect::read("page", file.expect("an example"));
        Box::leak(Box::new(dialect.unwrap_or_else(|faults| panic!("{faults:?}"))))
    };
    let check = |dialect, call, begin: &str, expected: &str| {
        let body = page.split(begin).nth(1).and_then(|rest| rest.split('`').next());
        assert_eq!(reads(dialect, call, body.expect(begin)), expected, "{begin}");
    };
    let tally = example(1);
    let ticker = "last=64000.5 bid=64000 ask=64001 open=63000 high=65000 low=62000 baseVolume=12.5";
    let ticker = format!("btc-usd {ticker} time=1715769425000");
    check(tally, "markets", "- `GET /v1/pairs`: `", "btc-usd BTC/USD open; eth-usd ETH/USD open");
    check(tally, "tickers", "- `GET /v1/stats`: `", &ticker);
    let candle = "1715769360000 64000 64010.5 63990 64000.5 0.75";
    check(tally, "1m", "&before=1715769600`: `", candle);
    check(tally, "time", "- `GET /v1/clock`: `", "1715769425000");
    let call = candles(Stored::M1, 1_715_769_300_000, 1_715_769_360_000, 1_715_769_425_000);
    assert_eq!(tally.target(&call, None), "/v1/bars/A-B?res=60&count=2&before=1715769361");
    let (abacus, one) = (example(2), "- `GET /t/eth_btc`: `");
    let ticker = "eth_btc last=0.0312 high=0.033 low=0.03 baseVolume=81.5 time=1715769425120";
    check(abacus, "ticker eth_btc", one, ticker);
    check(abacus, "time", one, "1715769425120");
    let candle = "1715767200000 0.0311 0.0313 0.031 0.0312 2.5";
    check(abacus, "1h", "- `GET /c/eth_btc/hour`: `", candle);
    let refused = "UnknownMarket: no such market (no such market)";
    check(abacus, "ticker eth_btc", "- Errors: `", refused);
}

/// Of what the check refuses, the schema refuses numbers out of their bounds, and texts of another form.
#[test]
fn the_schema_has_the_bounds_and_the_forms_of_the_check() {
    let schema: Value =
        serde_json::from_str(include_str!("../dialects/schema.json")).expect("JSON");
    let of = |object: &str, member: &str| schema["$defs"][object]["properties"][member].clone();
    assert_eq!(of("BudgetForm", "units")["minimum"], 1);
    assert_eq!(of("Candles", "rows")["anyOf"][0]["maximum"], 10_000);
    assert_eq!(of("Statuses", "banned")["items"]["maximum"], 65_535);
    assert_eq!(schema["properties"]["name"]["pattern"], "^[a-z0-9-]{1,32}$");
    assert_eq!(schema["$defs"]["TargetTemplate"]["pattern"], "^/($|[^/])");
}
