//! Expands the short source of `/openapi.json` (src/core/api/openapi.json) to the document.
//!
//! The source has only what differs. The rest is added here: the headers that every response has, the
//! responses that every address has, the schemas of the errors, and "object with exactly these members".
//!
//! A path stands below the name of its table of endpoints. Its members:
//!
//! - `limited`: false if the rate limit does not count its requests.
//! - `id`: its `operationId`, which no other path has. `summary`: also what `/` says of it.
//! - `kind` adds parameters, headers and the 304. `list`: a list with `sort` and `limit`. `packed`: a body
//!   that may be long, with an ETag. `tagged`: a short one with an ETag. Without a `kind`: no cache keeps it.
//!   `headers`: names of further headers of a 200.
//! - `parameters`: names of those that paths share, or new ones.
//! - A status: `is` (its description), `body` (its schema), `examples` by target (`GET /...`). Each path with
//!   a JSON body has an example of its 200.
//!
//! `errors` lists codes by schema and status: exactly those that a path can answer with that status, but
//! without those of `everyError`, which each path has that has the status. A code that belongs to no path
//! stands in `Error`, and in the description of the response `Other`.
//!
//! A schema is one of:
//!
//! - a text: the name of a schema (`Quote`), a name in `types`, or a type of JSON (`integer or null`);
//! - `[SCHEMA, DESCRIPTION]`;
//! - `{"has": {NAME: SCHEMA}}`: an object with these members. A `?` behind a name: the member is optional.
//!   The name `*`: any other member. `"extends": NAME` adds the members of another schema;
//! - `{"list": SCHEMA}` or `{"oneOf": [SCHEMA]}`;
//! - anything else is a schema as OpenAPI writes it.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Headers of every response. A header of the response itself replaces the one with its name.
const ALWAYS: [&str; 5] = ["Date", "AllowOrigin", "ExposeHeaders", "NoSniff", "NoStore"];
/// Headers of every response of an address that has a rate limit.
const RATE: [&str; 3] = ["RateLimitLimit", "RateLimitRemaining", "RateLimitReset"];

/// The document in lines. The first one is the document without its paths. Then comes a line for each path:
/// its table, the path, its summary and its description, with tabs in between.
/// `metrics`: the schema of `/api/v1/metrics`.
pub fn expanded(source: &str, metrics: &str, version: &str) -> String {
    let [source, metrics] = [source, metrics]
        .map(|text| serde_json::from_str::<Value>(text).expect("the source is JSON"));
    let source = Source(&source);
    let mut rest = Map::new();
    rest.insert("openapi".into(), json!("3.1.0"));
    rest.insert("info".into(), source.0["info"].clone());
    rest["info"]["version"] = json!(version);
    rest.insert("components".into(), source.components());
    rest["components"]["schemas"]["Metrics"] = metrics;
    let mut lines = vec![Value::Object(rest).to_string()];
    for (table, paths) in members(&source.0["paths"]) {
        for (path, spec) in members(paths) {
            let item = json!({ "get": source.operation(spec) });
            lines.push(format!("{table}\t{path}\t{}\t{item}", text(&spec["summary"])));
        }
    }
    lines.join("\n")
}

struct Source<'a>(&'a Value);

impl Source<'_> {
    fn components(&self) -> Value {
        let map = |name: &str, each: &dyn Fn(&Value) -> Value| -> Map<String, Value> {
            members(&self.0[name]).map(|(name, it)| (name.clone(), each(it))).collect()
        };
        let mut schemas = map("schemas", &|it| self.schema(it));
        schemas.insert("Metrics".into(), json!({}));
        schemas.extend(map("errors", &|it| self.error([it])));
        let every = members(&self.0["errors"]).map(|(_, it)| it);
        schemas.insert("Error".into(), self.error(every));
        json!({
            "schemas": schemas,
            "parameters": map("parameters", &|it| self.parameter(it)),
            "headers": map("headers", &|it| {
                let mut header = self.with_schema(it);
                header.remove("name");
                Value::Object(header)
            }),
            "responses": map("responses", &|it| self.response(it, &[], true)),
        })
    }

    /// The description of an address.
    fn operation(&self, spec: &Value) -> Value {
        let kind = &self.0["kinds"][spec["kind"].as_str().unwrap_or_default()];
        let parameters = items(&spec["parameters"]).chain(items(&kind["parameters"]));
        let parameters: Vec<Value> = parameters.map(|it| self.parameter(it)).collect();
        let is_limited = spec["limited"] != false;
        let shared: Vec<&str> =
            items(&kind["headers"]).chain(items(&spec["headers"])).map(text).collect();
        let mut responses = Map::new();
        for (status, response) in members(spec).filter(|(name, _)| name.parse::<u16>().is_ok()) {
            let shared = if status == "200" { &shared[..] } else { &[] };
            responses.insert(status.clone(), self.response(response, shared, is_limited));
        }
        if let Some(unchanged) = kind["304"].as_str() {
            let own = items(&spec["headers"]).next().is_some();
            let unchanged = match own {
                false => reference("responses", unchanged),
                true => {
                    let body = ["ContentEncoding"];
                    let shared: Vec<&str> =
                        shared.into_iter().filter(|it| !body.contains(it)).collect();
                    self.response(
                        &json!({ "is": self.0["responses"][unchanged]["is"] }),
                        &shared,
                        is_limited,
                    )
                }
            };
            responses.insert("304".into(), unchanged);
        }
        let others = [("429", "TooManyRequests"), ("503", "Unavailable"), ("default", "Other")];
        for (status, name) in
            others.into_iter().filter(|(status, _)| is_limited || *status != "429")
        {
            responses.entry(status).or_insert_with(|| reference("responses", name));
        }
        let mut operation = Map::new();
        operation.insert("operationId".into(), spec["id"].clone());
        for name in ["summary", "description"] {
            operation.extend(spec.get(name).map(|it| (name.to_string(), it.clone())));
        }
        if !parameters.is_empty() {
            operation.insert("parameters".into(), json!(parameters));
        }
        operation.insert("responses".into(), Value::Object(responses));
        Value::Object(operation)
    }

    /// A response. `shared`: headers that are given by its address.
    fn response(&self, spec: &Value, shared: &[&str], is_limited: bool) -> Value {
        let rate = if is_limited { &RATE[..] } else { &[] };
        let own = items(&spec["headers"]).map(text);
        let mut headers = Map::new();
        for header in
            ALWAYS.into_iter().chain(shared.iter().copied()).chain(own).chain(rate.iter().copied())
        {
            let name = text(&self.0["headers"][header]["name"]);
            headers.insert(name.into(), reference("headers", header));
        }
        let mut response = json!({ "description": spec["is"], "headers": headers });
        let Some(body) = spec.get("body") else {
            return response;
        };
        let is_by_type = members(body).any(|(name, _)| name.contains('/'));
        let bodies = if is_by_type { body } else { &json!({ "application/json": body }) };
        let mut content = Map::new();
        for (media, body) in members(bodies) {
            let mut described = json!({ "schema": self.schema(body) });
            if media == "application/json" {
                let examples =
                    members(&spec["examples"]).enumerate().map(|(at, (target, value))| {
                        (format!("e{at}"), json!({ "summary": target, "value": value }))
                    });
                let examples: Map<String, Value> = examples.collect();
                if !examples.is_empty() {
                    described["examples"] = Value::Object(examples);
                }
            } else if let Some(example) = spec.get("example") {
                described["example"] = example.clone();
            }
            content.insert(media.clone(), described);
        }
        response["content"] = Value::Object(content);
        response
    }

    /// A parameter: a name of one, or its description, which begins with its place and its name.
    fn parameter(&self, spec: &Value) -> Value {
        if let Some(name) = spec.as_str() {
            return reference("parameters", name);
        }
        let mut parameter = Map::new();
        for (name, value) in self.with_schema(spec) {
            if ["path", "query", "header"].contains(&&*name) {
                parameter.insert("name".into(), value);
                if name == "path" {
                    parameter.insert("required".into(), json!(true));
                }
                parameter.insert("in".into(), json!(name));
            } else {
                parameter.insert(name, value);
            }
        }
        Value::Object(parameter)
    }

    fn with_schema(&self, spec: &Value) -> Map<String, Value> {
        let mut members = spec.as_object().expect("an object").clone();
        members["schema"] = self.schema(&spec["schema"]);
        members
    }

    /// The schema of errors with these statuses and codes.
    fn error<'a>(&self, errors: impl IntoIterator<Item = &'a Value>) -> Value {
        let (mut statuses, mut codes) = (BTreeSet::new(), BTreeSet::new());
        for (status, named) in errors.into_iter().flat_map(members) {
            statuses.insert(status.parse::<u16>().expect("a status"));
            codes.extend(items(named).map(text));
            codes.extend(items(&self.0["everyError"][status]).map(text));
        }
        let own = members(&self.0["parameters"]).map(|(_, it)| it);
        let paths = members(&self.0["paths"]).flat_map(|(_, paths)| members(paths));
        let all = own.chain(paths.flat_map(|(_, spec)| items(&spec["parameters"])));
        let mut parameters: Vec<&Value> = Vec::new();
        for parameter in all.filter_map(|it| it.get("query")) {
            if !parameters.contains(&parameter) {
                parameters.push(parameter);
            }
        }
        let parameters: Vec<&Value> = parameters.into_iter().chain([&Value::Null]).collect();
        self.schema(&json!({ "description": "An error.", "has": {
            "status": [{ "type": "integer", "enum": statuses }, "The status of the answer."],
            "code": [{ "type": "string", "enum": codes }, "For programs: never changes."],
            "message": ["string", "For people."],
            "param": [{ "enum": parameters }, "The parameter at fault."],
        } }))
    }

    fn schema(&self, spec: &Value) -> Value {
        match spec {
            Value::String(name) => self.named(name),
            Value::Array(both) => {
                let mut schema = self.schema(&both[0]);
                schema["description"] = both[1].clone();
                schema
            }
            Value::Object(parts) => {
                let mut schema = parts.clone();
                if let Some(item) = schema.remove("list") {
                    schema.insert("type".into(), json!("array"));
                    schema.insert("items".into(), self.schema(&item));
                }
                if let Some(choices) = schema.get_mut("oneOf") {
                    *choices = items(choices).map(|it| self.schema(it)).collect();
                }
                if let Some(has) = schema.remove("has") {
                    let base = schema.remove("extends");
                    let base = base.map(|base| self.0["schemas"][text(&base)]["has"].clone());
                    let all = members(base.as_ref().unwrap_or(&Value::Null)).chain(members(&has));
                    schema.extend(self.object(all));
                }
                Value::Object(schema)
            }
            _ => panic!("no schema: {spec}"),
        }
    }

    fn object<'a>(&self, all: impl Iterator<Item = (&'a String, &'a Value)>) -> Map<String, Value> {
        let (mut required, mut properties, mut others) = (Vec::new(), Map::new(), json!(false));
        for (name, spec) in all {
            match (name.strip_suffix('?'), &**name) {
                (_, "*") => others = self.schema(spec),
                (Some(name), _) => _ = properties.insert(name.into(), self.schema(spec)),
                (None, name) => {
                    required.push(json!(name));
                    properties.insert(name.into(), self.schema(spec));
                }
            }
        }
        let mut object = Map::new();
        object.insert("type".into(), json!("object"));
        object.insert("additionalProperties".into(), others);
        if !required.is_empty() {
            object.insert("required".into(), json!(required));
        }
        object.insert("properties".into(), Value::Object(properties));
        object
    }

    fn named(&self, name: &str) -> Value {
        if let Some(schema) = self.0["types"].get(name) {
            return schema.clone();
        }
        if name.starts_with(|first: char| first.is_ascii_uppercase()) {
            let is_known = ["schemas", "errors"].iter().any(|it| self.0[it].get(name).is_some());
            assert!(is_known || name == "Metrics", "no schema has the name {name}");
            return reference("schemas", name);
        }
        match name.strip_suffix(" or null") {
            Some(name) => json!({ "type": [name, "null"] }),
            None => json!({ "type": name }),
        }
    }
}

fn reference(part: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{part}/{name}") })
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text, not {value}"))
}
