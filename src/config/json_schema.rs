//! The JSON Schema of the configuration file (json-schema.org, draft 2020-12), made from the table of its
//! keys: `marketd schema config`. Editors complete and check a file by it.
//!
//! It holds what a key can say by itself. What depends on several keys, `marketd --check` finds.

use super::json;
use super::schema::Config;
use super::values::schema_of;

/// The schema as JSON.
pub fn config_schema() -> String {
    let mut members = vec![
        (
            "$schema",
            json::text("https://json-schema.org/draft/2020-12/schema"),
        ),
        ("title", json::text("The configuration of marketd")),
    ];
    members.extend(schema_of(&mut Config::default(), ""));
    json::object(&members) + "\n"
}
