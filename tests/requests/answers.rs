//! Answers, read more strictly than any client would.

use crate::support::Response;
use crate::support::client::read_response;
use crate::support::message::{field, lists};

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Of an error.
    pub code: Option<String>,
    /// A length is told and no body follows: the answer to HEAD.
    pub bodiless: bool,
    /// It says that the connection closes.
    pub closes: bool,
    /// Its fields without the date, and its body: what must not depend on how a request came.
    /// Pages of counters are left out.
    shown: (Vec<(String, String)>, Vec<u8>),
}

impl Answer {
    pub fn summary(&self) -> String {
        match &self.code {
            Some(code) => format!("{} {code}", self.status),
            None if self.bodiless => format!("{} head", self.status),
            None => self.status.to_string(),
        }
    }
}

/// All answers of a connection, or what is wrong with one.
pub fn read_answers(mut bytes: &[u8]) -> Result<Vec<Answer>, String> {
    let mut answers: Vec<Answer> = Vec::new();
    while !bytes.is_empty() {
        if answers.last().is_some_and(|last| last.closes) {
            return Err("an answer follows the last one".into());
        }
        let (answer, used) = read_answer(bytes)?;
        answers.push(answer);
        bytes = &bytes[used..];
    }
    Ok(answers)
}

fn read_answer(bytes: &[u8]) -> Result<(Answer, usize), String> {
    let (head, begin) = read_response(bytes, true, true)?.ok_or("half a head")?;
    let length = head.header("Content-Length");
    let rest = &bytes[begin..];
    // No body begins like this.
    let bodiless = length.is_some_and(|length| length != "0")
        && (rest.is_empty() || rest.starts_with(b"HTTP/1.1 "));
    let (response, used) = read_response(bytes, bodiless, true)?.ok_or("half a body")?;
    let Response { status, headers: fields, body, .. } = &response;
    let mut names: Vec<String> = fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.sort();
    if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
        return Err(format!("the field {} twice", twice[0]));
    }
    let may_have_body = !matches!(status, 100..=199 | 204 | 304);
    if may_have_body != length.is_some() {
        return Err(format!("{status} with the length {length:?}"));
    }
    if *status >= 200
        && (field(fields, "Date").is_none() || field(fields, "Cache-Control").is_none())
    {
        return Err("no Date, or nothing for caches".into());
    }
    let is_json = field(fields, "Content-Type") == Some("application/json");
    let mut code = None;
    if !body.is_empty() && is_json {
        let json: serde_json::Value =
            serde_json::from_slice(body).map_err(|fault| fault.to_string())?;
        if *status >= 400 && json.get("code").is_some() {
            code = Some(error_code(&json, *status)?);
        }
    }
    // Whether it is a page of counters.
    let is_json_page = body.windows(8).any(|part| part == b"uptimeMs");
    let counts = body.starts_with(b"# HELP") || is_json_page;
    let shown =
        fields.iter().filter(|(name, _)| name != "Date" && !(counts && name == "Content-Length"));
    let shown = (shown.cloned().collect(), if counts { Vec::new() } else { body.to_vec() });
    let closes = lists(fields, "Connection", "close");
    Ok((Answer { status: *status, code, bodiless, closes, shown }, used))
}

/// The code of an error, whose four members are there and in order.
fn error_code(json: &serde_json::Value, status: u16) -> Result<String, String> {
    let object = json.as_object().ok_or("an error that is no object")?;
    let right = object.len() == 4
        && json["status"] == status
        && json["message"].as_str().is_some_and(|text| !text.is_empty())
        && (json["param"].is_null() || json["param"].is_string());
    match json["code"].as_str() {
        Some(code) if right => Ok(code.to_string()),
        _ => Err(format!("the error {json}")),
    }
}
