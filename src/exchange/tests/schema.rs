//! The JSON Schema of a dialect's file: made from the structs that it is read into.

use super::testing::{candles, read};
use crate::config::tests::describe::{Described, Schema, Types, write};
use crate::exchange::dialect::DialectForm;
use crate::exchange::endpoint::{ByInterval, Counts};
use crate::exchange::fields::{Constants, TableOf};
use crate::exchange::pair::Pair;
use crate::exchange::path::{Path, Place};
use crate::exchange::target::TargetTemplate;
use crate::exchange::{Call, Dialect};
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
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exchange/dialects/schema.json");
        std::fs::write(file, &made).expect("the file can be written");
        return;
    }
    assert!(made == include_str!("../dialects/schema.json"), "UPDATE_DOCS=1 writes it anew");
}

/// The example of the documentation reads the bodies that it shows.
#[test]
fn the_example_of_the_documentation_works() {
    let page = include_str!("../../docs/dialects.md");
    let file = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next());
    let dialect = Dialect::read("page", file.expect("an example"))
        .unwrap_or_else(|faults| panic!("{faults:?}"));
    let dialect: &'static Dialect = Box::leak(Box::new(dialect));
    let body = |path: &str| {
        let line = page.lines().find(|line| line.starts_with(&format!("- `GET {path}")));
        let body = line.and_then(|line| line.split("`: `").nth(1)?.split('`').next());
        body.unwrap_or_else(|| panic!("{path} is not shown"))
    };
    let (notes, end) = read(dialect, &Call::Markets, body("/v1/pairs"));
    let pairs: Vec<_> =
        notes.markets.iter().map(|it| (&*it.ticker_id, &*it.base, &*it.quote)).collect();
    assert_eq!((end, pairs[0], pairs.len()), (Ok(()), ("btc-usd", "BTC", "USD"), 2));
    let (notes, end) = read(dialect, &Call::Tickers, body("/v1/stats"));
    let (id, ticker) = &notes.tickers[0];
    assert_eq!((end, &**id, ticker.last.to_string()), (Ok(()), "btc-usd", "64000.5".into()));
    assert_eq!(ticker.timestamp.map(|time| time.0), Some(1_715_769_425_000));
    let call = candles(Stored::M1, 1_715_769_300_000, 1_715_769_360_000, 1_715_769_425_000);
    assert_eq!(dialect.target(&call, None), "/v1/bars/A-B?res=60&count=2&before=1715769361");
    let (notes, end) = read(dialect, &call, body("/v1/bars"));
    assert_eq!(
        (end, notes.candles.len(), notes.candles[0].0.open_time.0),
        (Ok(()), 1, 1_715_769_360_000)
    );
    let (notes, end) = read(dialect, &Call::Time, body("/v1/clock"));
    assert_eq!((end, notes.times[0].0), (Ok(()), 1_715_769_425_000));
}

/// And so does the other one.
#[test]
fn the_other_example_of_the_documentation_works() {
    let page = include_str!("../../docs/dialects.md");
    let file = page.split("```json\n").nth(2);
    let file = file.and_then(|rest| rest.split("```").next());
    let dialect = Dialect::read("page", file.expect("an example"))
        .unwrap_or_else(|faults| panic!("{faults:?}"));
    let dialect: &'static Dialect = Box::leak(Box::new(dialect));
    let shown = |begin: &str| {
        let rest = page.split(begin).nth(1).and_then(|rest| rest.split('`').next());
        rest.unwrap_or_else(|| panic!("{begin} is not shown"))
    };
    let ticker = Call::Ticker { id: "eth_btc" };
    let (notes, end) = read(dialect, &ticker, shown("- `GET /t/eth_btc`: `"));
    let (_, found) = &notes.tickers[0];
    let volume = found.base_volume.as_ref().map(ToString::to_string);
    assert_eq!(
        (end, found.last.to_string(), volume),
        (Ok(()), "0.0312".into(), Some("81.5".into()))
    );
    let (notes, end) = read(dialect, &Call::Time, shown("- `GET /t/eth_btc`: `"));
    assert_eq!((end, notes.times[0].0), (Ok(()), 1_715_769_425_120));
    let rows = candles(Stored::H1, 0, 0, 0);
    let (notes, end) = read(dialect, &rows, shown("- `GET /c/eth_btc/hour`: `"));
    let high = notes.candles[0].0.high.to_string();
    assert_eq!((end, high), (Ok(()), "0.0313".into()));
    let (_, end) = read(dialect, &ticker, shown("- Errors: `"));
    let refused = end.map_err(|error| error.to_string());
    assert_eq!(refused, Err("refused: no such market (no such market)".into()));
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
