//! Values that are neither lists nor objects: numbers, switches, and what has the form of a text.

use super::engine::EngineUrl;
use super::fault::Report;
use super::forms::{Data, Form, ListenAddress};
use super::json::{self, Node};
use super::network::Network;
use super::number::Number;
use super::url::Url;
use super::values::{Read, Schema, Value, of_type};
use crate::decimal::Decimal;
use std::time::Duration;

fn number_schema(rule: &Number) -> Schema {
    let mut schema = of_type("integer");
    schema.push(("minimum", rule.min.to_string()));
    schema.push(("maximum", rule.max.to_string()));
    schema
}

/// Makes types values that are neither lists nor objects: the types, their rule, its words, its
/// schema, how a node is read and how a value is printed.
macro_rules! leaves {
    ($($type:ty)+, $rule:ty, $expected:expr, $schema:expr, $read:expr, $print:expr) => { $(
        impl Value for $type {
            type Rule = $rule;

            fn expected(rule: &$rule) -> String {
                $expected(rule)
            }

            fn schema(rule: &$rule) -> Schema {
                $schema(rule)
            }

            fn read(rule: &$rule, _: Option<&$type>, node: &Node, _: &mut Report) -> Read<$type> {
                $read(rule, node)
            }

            fn print(&self) -> String {
                $print(self)
            }
        }
    )+ };
}

leaves!(u32 u64 usize i64, Number, Number::to_string, number_schema, Number::read, Self::to_string);
leaves!(
    Duration,
    Number,
    Number::to_string,
    number_schema,
    |rule: &Number, node| rule.read(node).map(Duration::from_millis),
    |time: &Duration| time.as_millis().to_string()
);
leaves!(
    bool,
    (),
    |(): &()| "true or false".to_string(),
    |(): &()| of_type("boolean"),
    |(): &(), node: &Node| node.switch().ok_or(None),
    bool::to_string
);
// Digits may also stand in a text: some writers of JSON round numbers.
leaves!(
    u8 Decimal,
    Form<Self>,
    |form: &Form<Self>| form.expected.to_string(),
    |_: &Form<Self>| vec![("type", r#"["string", "number"]"#.to_string())],
    |form: &Form<Self>, node: &Node| {
        let digits = node.text().or(node.number().map(str::to_string));
        digits.and_then(|digits| form.parse(&digits).ok()).ok_or(None)
    },
    Self::to_string
);
leaves!(
    String ListenAddress Data Network Url EngineUrl,
    Form<Self>,
    |form: &Form<Self>| form.expected.to_string(),
    |_: &Form<Self>| of_type("string"),
    |form: &Form<Self>, node: &Node| form.parse(&node.text().ok_or(None)?).map_err(Some),
    |value: &Self| json::text(&value.to_string())
);
