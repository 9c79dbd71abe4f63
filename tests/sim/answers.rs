//! The server's side of one connection: its bytes taken apart into answers, each matched with the
//! request that it is for, and what is wrong with it, if anything.
//!
//! Invariant: answers come in the order of the requests, one each, framed so that the next one
//! begins where this one ends; after one that says `Connection: close`, nothing comes.

use super::charts::{ChartAsk, ChartFields, is_complete, read_rows};
use super::grammar::{Ask, Kind};
use super::ledger::{Ledger, Tri};
use super::lists::{List, Piece};
use super::quotes::Books;
use super::trace::{Verdict, ensure};
use crate::support::client::read_response;
use crate::support::{Json, Response};
use flate2::read::GzDecoder;
use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::ops::Deref;

/// One whole answer, its body unpacked.
#[derive(Clone, Debug)]
pub struct Answer {
    response: Response,
    /// Bytes of its body as it came, or as a `HEAD` tells them.
    pub length: usize,
    /// Whether it came packed.
    pub is_packed: bool,
}

impl Deref for Answer {
    type Target = Response;

    fn deref(&self) -> &Response {
        &self.response
    }
}

impl Answer {
    /// The value of a field that stands at most once.
    pub fn field(&self, name: &str) -> Result<Option<&str>, String> {
        single(&self.headers, name)
    }

    /// Whether the connection ends with it.
    pub fn closes(&self) -> bool {
        self.header_lists("Connection", "close")
    }
}

/// A request on its way.
#[derive(Debug)]
pub struct Pending {
    pub ask: Ask,
    /// Where it ends in the client's stream.
    pub end: u64,
    /// When the daemon had read all of it.
    pub arrived: Option<u64>,
}

/// An answer that a client may ask to be compared with.
#[derive(Clone, Debug)]
pub struct Remembered {
    pub etag: String,
    pub body: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Conversation {
    pub pending: VecDeque<Pending>,
    unread: Vec<u8>,
    /// Bytes of all whole answers.
    read: u64,
    /// Where each final answer ends in the server's stream.
    pub ends: VecDeque<u64>,
    /// When the last answer was made.
    pub last_answer: u64,
    pub answers: usize,
    /// The server has said that it closes.
    pub closing: bool,
    interim: bool,
    pub remembered: HashMap<String, Remembered>,
    /// The last answer, for who asks for one thing at a time.
    pub last: Option<Answer>,
}

impl Conversation {
    /// The daemon has read so many bytes of the client's stream.
    pub fn arrived(&mut self, total: u64, now: u64) {
        for pending in &mut self.pending {
            if pending.end <= total && pending.arrived.is_none() {
                pending.arrived = Some(now);
            }
        }
    }

    /// Requests that have arrived whole and are not answered.
    pub fn owed(&self) -> usize {
        let arrived = self.pending.iter();
        arrived.filter(|pending| pending.arrived.is_some()).count()
    }

    /// The daemon has made these bytes. `started`: bytes of the client's stream that it has read.
    pub fn made(&mut self, bytes: &[u8], started: u64, context: &mut Context) -> Verdict {
        self.unread.extend_from_slice(bytes);
        loop {
            // Also of a request that could not be read, or not to its end, the method is known.
            let head_only = self.pending.front().is_some_and(|front| {
                let bytes = &front.ask.bytes;
                let begin = front.end - bytes.len() as u64;
                let come = (started.saturating_sub(begin) as usize).min(bytes.len());
                bytes[..come].trim_ascii_start().starts_with(b"HEAD ")
            });
            let Some((answer, used)) = read_answer(&self.unread, head_only)? else {
                return Ok(());
            };
            if self.closing {
                return Err("an answer after the last one".to_string());
            }
            self.unread.drain(..used);
            self.read += used as u64;
            self.take(answer, started, context)?;
        }
    }

    /// Whether an answer has begun and is not whole.
    pub fn is_partial(&self) -> bool {
        !self.unread.is_empty()
    }

    fn take(&mut self, answer: Answer, started: u64, context: &mut Context) -> Verdict {
        if answer.status == 100 {
            let front = self.pending.front();
            if self.interim || front.is_none_or(|front| !front.ask.expects_continue) {
                return Err("an interim answer that nobody expects".to_string());
            }
            self.interim = true;
            return Ok(());
        }
        self.interim = false;
        let mut answer = answer;
        if let Some(pending) = self.pending.front() {
            unpack(&pending.ask, &mut answer, context)?;
        }
        self.ends.push_back(self.read);
        self.closing = answer.closes();
        self.answers += 1;
        let is_open = answer.field("Access-Control-Allow-Origin")? == Some("*");
        ensure(is_open && answer.field("Date")?.is_some(), || {
            format!("no Access-Control-Allow-Origin, or no Date: {:?}", answer.headers)
        })?;
        let Some(pending) = self.pending.pop_front() else {
            let refused = context.refused && answer.status == 503 && self.answers == 1;
            return ensure(refused && self.closing, || format!("{} to nobody", answer.status));
        };
        if let Some(verdict) = unasked(&pending, &answer, started, self.answers, context) {
            self.last = Some(answer);
            return verdict;
        }
        if pending.ask.last && !self.closing {
            return Err("the client wanted it to be the last".to_string());
        }
        let begun = pending.arrived.unwrap_or(context.now);
        context.books.span.0 = match &pending.ask.kind {
            // What is packed may have been made some turns ago.
            _ if answer.is_packed => begun,
            kind if kind.is_long() || matches!(kind, Kind::Udf(_)) => begun.max(self.last_answer),
            _ => context.now,
        };
        self.last_answer = context.now;
        context.arrived = pending.arrived;
        let known = self.remembered.get(&pending.ask.target);
        let verdict = check(&pending.ask, &answer, known, context);
        if let (Ok(()), 200) = (&verdict, answer.status)
            && !pending.ask.head_only
            && let Some(etag) = answer.field("ETag")?
        {
            let remembered = Remembered { etag: etag.to_string(), body: answer.body.clone() };
            self.remembered.insert(pending.ask.target.clone(), remembered);
        }
        let target = &pending.ask.target;
        let verdict = verdict.map_err(|why| format!("{} to {target}: {why}", answer.status));
        self.last = Some(answer);
        verdict
    }
}

/// Answers that may come before the request has: to one that is too slow or too large, and to a
/// client for whom there is no room. `None`: it is none of these.
fn unasked(
    pending: &Pending,
    answer: &Answer,
    started: u64,
    number: usize,
    context: &Context,
) -> Option<Verdict> {
    let whole = pending.arrived.is_some();
    let early = match answer.status {
        408 => !whole,
        // Who has got a place all the same may be told that something is not ready.
        503 => context.refused && number == 1 && answer.closes(),
        400 | 413 | 414 | 431 | 501 | 505 => matches!(pending.ask.kind, Kind::Fatal(_)),
        _ => false,
    };
    if early && answer.status != 503 && started == 0 {
        return Some(Err("an answer to nothing".to_string()));
    }
    if matches!(answer.status, 408 | 503) && early {
        return Some(ensure(answer.closes(), || format!("{} and no close", answer.status)));
    }
    match whole || early {
        true => None,
        false => {
            let target = &pending.ask.target;
            Some(Err(format!("{} before {target} had arrived whole", answer.status)))
        }
    }
}

/// The answer at the begin of these bytes, and its length.
pub fn read_answer(bytes: &[u8], head_only: bool) -> Result<Option<(Answer, usize)>, String> {
    let Some((response, used)) = read_response(bytes, head_only, true)? else {
        return Ok(None);
    };
    let mut answer = Answer { response, length: 0, is_packed: false };
    let told = answer.field("Content-Length")?.map(str::parse).transpose();
    let told = told.map_err(|why| format!("a bad length: {why}"))?;
    let is_bare = matches!(answer.status, 100..=199 | 204 | 304);
    ensure(told.is_none() == is_bare, || format!("{} with a length of {told:?}", answer.status))?;
    answer.length = told.unwrap_or(0);
    Ok(Some((answer, used)))
}

/// What an answer is compared with.
pub struct Context<'a> {
    pub books: Books<'a>,
    /// Whether the client came when there was no room, or too late.
    pub refused: bool,
    /// When the request at hand had arrived.
    pub arrived: Option<u64>,
    /// What clients have been told of before.
    pub told: &'a mut Told,
    /// What the client's address may still ask for.
    pub allowance: Option<&'a mut Allowance>,
}

impl<'a> Deref for Context<'a> {
    type Target = Books<'a>;

    fn deref(&self) -> &Books<'a> {
        &self.books
    }
}

/// What holds for good, whoever was told.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The bodies that each entity tag has stood for, by target, and their bytes as they came.
    pub tags: HashMap<(String, String), (Vec<u8>, usize)>,
    /// The bodies that caches may keep for an hour, by target and source, and since when, in
    /// milliseconds.
    pub settled: HashMap<(String, String), (i64, Vec<u8>)>,
}

/// Requests of one address, where they are limited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowance {
    /// That may come at once, and in a minute.
    pub burst: u64,
    pub per_minute: u64,
    /// Requests that have been answered; and those that may be on their way, at most.
    pub taken: u64,
    pub others: u64,
    /// Whether some may have been admitted before it was looked at.
    pub is_late: bool,
}

impl Allowance {
    /// Whether an answer, and that it comes now, fits the limit.
    fn check(&mut self, ask: &Ask, answer: &Answer, now: u64) -> Verdict {
        let number = |name: &str| -> Result<Option<u64>, String> {
            let text = answer.field(name)?;
            let number = text.map(|text| text.parse::<u64>().map_err(|why| why.to_string()));
            number.transpose()
        };
        let told = [
            number("RateLimit-Limit")?,
            number("RateLimit-Remaining")?,
            number("RateLimit-Reset")?,
        ];
        let is_free = ask.target.starts_with("/health") || ask.bytes.starts_with(b"OPTIONS");
        let (limit, left, reset) = match told {
            [None, None, None] if is_free || matches!(ask.kind, Kind::Fatal(_)) => return Ok(()),
            [Some(limit), Some(left), Some(reset)] if !is_free => (limit, left, reset),
            told => return Err(format!("its limit is told as {told:?}")),
        };
        if limit != self.burst || left >= limit.max(1) {
            return Err(format!("{left} of {limit} requests left, not {}", self.burst));
        }
        if answer.status != 429 {
            self.taken += 1;
            let most = self.burst + now * self.per_minute / 60_000_000 + 1;
            return ensure(self.taken <= most, || {
                format!("{} requests of {most} are answered", self.taken)
            });
        }
        let retry = number("Retry-After")?;
        if left > 0 || retry != Some(reset) || !(1..=1 + 60 / self.per_minute).contains(&reset) {
            return Err(format!("429, {left} left, {reset} s, but {retry:?}"));
        }
        let least = self.burst.saturating_sub(self.others);
        ensure(self.taken >= least || self.is_late, || {
            format!("429 after {} requests of {least}", self.taken)
        })
    }
}

/// Takes the coding off an answer that has one, if it may have it.
pub fn unpack(ask: &Ask, answer: &mut Answer, context: &Context) -> Verdict {
    let Some(coding) = answer.field("Content-Encoding")? else {
        return Ok(());
    };
    let is_single = matches!(ask.kind, Kind::Quote { .. });
    if coding != "gzip"
        || !ask.gzip
        || context.config.limits.compressed_bytes == 0
        || is_single
        || answer.status != 200
    {
        return Err(format!("{} to {} is packed in {coding}", answer.status, ask.target));
    }
    if answer.field("Vary")? != Some("Accept-Encoding") {
        return Err("packed, and nothing varies".to_string());
    }
    answer.is_packed = true;
    if ask.head_only {
        return Ok(());
    }
    let mut body = Vec::new();
    let read = GzDecoder::new(&answer.body[..]).read_to_end(&mut body);
    read.map_err(|why| format!("it does not unpack: {why}"))?;
    answer.response.body = body;
    Ok(())
}

/// Judges one answer.
pub fn check(
    ask: &Ask,
    answer: &Answer,
    known: Option<&Remembered>,
    context: &mut Context,
) -> Verdict {
    // Who came before a change of the limit is judged by no other.
    let is_before = context.rates_since > 0 && context.arrived <= Some(context.rates_since);
    let now = context.now;
    match &mut context.allowance {
        _ if is_before => {}
        Some(allowance) => allowance.check(ask, answer, now)?,
        None if answer.status == 429 => return Err("nobody limits requests".to_string()),
        None => {}
    }
    if answer.status == 429 {
        return check_error(ask, answer);
    }
    if let Kind::Plain(statuses) | Kind::Fatal(statuses) = &ask.kind {
        // The market that is asked for may not be known, which is no less wrong.
        let is_unknown = ask.target.contains("symbol=BTCUSDT&")
            && answer.status == 404
            && context.known(0) != Tri::Yes;
        if !statuses.contains(&answer.status) && !is_unknown {
            return Err(format!("one of {statuses:?} is right"));
        }
        if matches!(ask.kind, Kind::Fatal(_)) && !answer.closes() {
            return Err("the connection is to end with it".to_string());
        }
        return check_error(ask, answer);
    }
    if answer.status >= 400 {
        ensure(answer.field("ETag")?.is_none(), || "an error has a tag".to_string())?;
        check_error(ask, answer)?;
        return check_refusal(ask, answer, context);
    }
    let body = match answer.status {
        304 => {
            let known = known.filter(|_| ask.conditional);
            let known = known.ok_or("304 to who knows nothing")?;
            &known.body
        }
        200 => &answer.body,
        other => return Err(format!("{other} is no answer to it")),
    };
    if answer.status == 200 {
        check_tag(ask, answer, context)?;
    }
    let fields = match &ask.kind {
        Kind::Chart(_) => chart_fields(&answer.headers)?,
        _ => ChartFields::default(),
    };
    match &ask.kind {
        _ if ask.head_only => Ok(()),
        Kind::Chart(chart) => check_chart(chart, body, &fields, context),
        Kind::Udf(udf) => udf.check(body, &context.books, context.clocks().unix.0),
        Kind::Prometheus => check_prometheus(body, context),
        Kind::Piece(piece) => {
            let answer = Some(answer).filter(|it| it.status == 200);
            piece.check(answer, &read_json(body)?, &context.books)
        }
        kind => check_data(kind, &read_json(body)?, context),
    }
}

/// A body as JSON.
pub fn read_json(body: &[u8]) -> Result<Json, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the body is no text")?;
    Json::parse(text).map_err(|why| format!("{why} in {text}"))
}

/// One tag of one address stands for one body, and what may be kept for an hour does not change.
fn check_tag(ask: &Ask, answer: &Answer, context: &mut Context) -> Verdict {
    let Some(tag) = answer.field("ETag")? else {
        return ensure(!ask.kind.is_tagged(), || "it has no tag".to_string());
    };
    let key = (ask.target.clone(), tag.to_string());
    if ask.head_only {
        let told = context.told.tags.get(&key).map_or(answer.length, |(_, length)| *length);
        return ensure(told == answer.length, || {
            format!("HEAD tells of {} bytes, and {tag} stood for {told}", answer.length)
        });
    }
    let told = (answer.body.clone(), answer.length);
    let (before, length) = context.told.tags.entry(key).or_insert(told);
    if (&*before, *length) != (&answer.body, answer.length) {
        let (before, body) = (before.escape_ascii(), answer.body.escape_ascii());
        return Err(format!("{tag} stood for\n{before}\nand now for\n{body}"));
    }
    let is_partial = answer.field("Chart-Coverage")? == Some("partial");
    // Each source has a history of its own.
    let source = answer.field("Chart-Source")?.unwrap_or_default();
    let key = (ask.target.clone(), source.to_string());
    let now_ms = context.truth(0).world_ms(context.now);
    let settled = &mut context.told.settled;
    // What has become too old is no longer known: without a beginning, fewer rows are asked for then.
    let is_rest = |before: &[u8]| {
        let is_open = matches!(&ask.kind, Kind::Chart(chart) if chart.from.is_none());
        is_open && (answer.body == b"[]" || before.ends_with(&answer.body[1..]))
    };
    if let Some((since, before)) = settled.get(&key)
        && *before != answer.body
        && !is_rest(before)
        && !is_partial
        && now_ms < since + 3_600_000
    {
        let (before, body) = (before.escape_ascii(), answer.body.escape_ascii());
        return Err(format!("for an hour it was to be\n{before}\nand now it is\n{body}"));
    }
    if max_age(&answer.headers)?.is_some_and(|seconds| seconds >= 3600) {
        settled.insert(key, (now_ms, answer.body.clone()));
    }
    Ok(())
}

fn check_error(ask: &Ask, answer: &Answer) -> Verdict {
    if answer.status == 204 || ask.head_only {
        return Ok(());
    }
    let json = read_json(&answer.body)?;
    let whole = json.keys() == ["status", "code", "message", "param"];
    if answer.status >= 400 && (!whole || json["status"] != i64::from(answer.status)) {
        // Health says what it says with 503 too.
        let health = matches!(ask.kind, Kind::Health) && answer.status == 503;
        ensure(health, || format!("an error's body is {json}"))?;
    }
    Ok(())
}

/// Whether there was a reason not to answer with data.
fn check_refusal(ask: &Ask, answer: &Answer, context: &Context) -> Verdict {
    let books = context.books;
    let known = |market: usize| books.known(market);
    let lists = context.ledgers.iter().map(|l| l.has_list(context.span));
    let listed = lists.max().unwrap_or(Tri::No);
    let there = |ledger: &&Ledger| ledger.is_there(context.span) != Tri::No;
    let polls = context.ledgers.iter().filter(there);
    let polls = polls.map(|l| l.has_polled(context.span));
    let polled = polls.min().unwrap_or(Tri::No);
    if answer.status == 503 && ask.kind.is_long() && context.is_long_full() {
        return Ok(());
    }
    let asked = match &ask.kind {
        Kind::Quote { source, .. } => *source,
        Kind::Chart(chart) => chart.source,
        _ => None,
    };
    // Nobody knows a source that is not configured.
    if asked.is_some_and(|at| context.ledgers[at].is_there(context.span) == Tri::No) {
        return match answer.status {
            404 => Ok(()),
            _ => Err("there is no such source".to_string()),
        };
    }
    // What a source tracks is not known before its list has come, unless all of it is named.
    let waits_for_list = |at: usize, market: usize| {
        let source = &context.ledgers[at];
        source.waits_for_list(market, context.span)
    };
    let justified = match (&ask.kind, answer.status) {
        (Kind::Quote { market, source, .. }, 404) => {
            let is_unready = |l: &Ledger| {
                l.tracks(*market, context.span) == Tri::Yes
                    && l.is_unready(*market, context.span) == Tri::Yes
            };
            let is_told = answer.body.windows(15).any(|it| it == b"quote_not_found");
            known(*market) != Tri::Yes
                || books.has_quote(*market, *source) != Tri::Yes
                    && !(is_told && source.is_none() && context.ledgers.iter().any(is_unready))
        }
        (Kind::Quote { market, source, .. }, 503) => {
            let may_come = |l: &Ledger| l.is_unready(*market, context.span) != Tri::No;
            books.has_quote(*market, *source) != Tri::Yes
                && (polled != Tri::Yes || source.is_some() || context.ledgers.iter().any(may_come))
        }
        (Kind::Chart(chart), 404) => {
            let tracked = |at: usize| context.ledgers[at].tracks(chart.market, context.span);
            let missing = |at: usize| tracked(at) != Tri::Yes && !waits_for_list(at, chart.market);
            known(chart.market) != Tri::Yes || chart.source.is_some_and(missing)
        }
        (Kind::Chart(chart), 503) => match chart.source {
            Some(source) => context.ledgers[source].has_list(context.span) != Tri::Yes,
            None => listed != Tri::Yes || context.ledgers.len() > 1,
        },
        (Kind::Piece(Piece { list: List::Category(id), .. }), 404) => {
            let of_quote = |symbol: &String| {
                let quote = symbol.split('/').nth(1).unwrap_or_default();
                quote.eq_ignore_ascii_case(id)
            };
            let mut markets = (0..context.symbols.len()).filter(|m| of_quote(&context.symbols[*m]));
            !markets.any(|market| known(market) == Tri::Yes)
        }
        (Kind::EcosystemOne { market }, 404) => known(*market) != Tri::Yes,
        (Kind::Health, 503) => {
            let cached: usize =
                (context.ledgers.iter()).map(|ledger| ledger.count_quotes(context.span).0).sum();
            context.stopped_at.is_some() || cached == 0 || ask.target.ends_with("/ready")
        }
        _ => false,
    };
    ensure(justified, || format!("no reason for {}", answer.body.escape_ascii()))
}

/// The value of a field that stands at most once.
fn single<'a>(fields: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, String> {
    let mut values = fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
    let first = values.next().map(|(_, value)| value.as_str());
    ensure(values.next().is_none(), || format!("{name} stands twice")).map(|()| first)
}

/// What the fields of a chart's head say.
pub fn chart_fields(fields: &[(String, String)]) -> Result<ChartFields, String> {
    let field = |name: &str| single(fields, name);
    let need = |name: &str| field(name)?.ok_or_else(|| format!("no {name}"));
    let number = |text: &str| text.parse::<i64>().map_err(|why| why.to_string());
    Ok(ChartFields {
        source: need("Chart-Source")?.to_string(),
        last_closed: field("Chart-Last-Closed")?.map(number).transpose()?,
        gaps: number(need("Chart-Gaps")?)?.unsigned_abs(),
        complete: is_complete(field("Chart-Coverage")?)?,
        next: field("Link")?.map(str::to_string),
        max_age: max_age(fields)?,
    })
}

/// For how many seconds caches may keep an answer.
fn max_age(fields: &[(String, String)]) -> Result<Option<u64>, String> {
    let policy = single(fields, "Cache-Control")?.unwrap_or_default();
    let age = policy.split(", ").find_map(|it| it.strip_prefix("max-age="));
    age.map(|age| age.parse().map_err(|_| policy.to_string())).transpose()
}

fn check_chart(ask: &ChartAsk, body: &[u8], fields: &ChartFields, context: &Context) -> Verdict {
    let rows = read_rows(body, ask.text)?;
    let books = context.books;
    let verdict = books.check_chart(ask, &rows, fields);
    verdict.map_err(|why| {
        let ends = (rows.first().map(|row| row.0), rows.last().map(|row| row.0));
        format!("{why}; {} rows {ends:?}, {fields:?}, {ask:?}", rows.len())
    })
}

fn check_data(kind: &Kind, json: &Json, context: &Context) -> Verdict {
    let books = context.books;
    match kind {
        Kind::Quote { market, source, text } => books.check_quote(json, *market, *source, *text),
        Kind::Quotes { markets, strangers, names, text } => {
            check_quotes(json, markets, (*strangers, *names), *text, &books)
        }
        Kind::Categories => check_categories(json, &books),
        Kind::EcosystemOne { market } => {
            if json["symbol"] != context.symbols[*market].as_str() {
                return Err(format!("another market: {}", json["symbol"]));
            }
            match &json["quote"] {
                Json::Null if books.has_quote(*market, None) == Tri::Yes => {
                    Err("its quote is missing".to_string())
                }
                Json::Null => Ok(()),
                quote => books.check_quote(quote, *market, None, false),
            }
        }
        Kind::Metrics => check_metrics(json, context),
        Kind::Health => {
            let word = json["status"].text().unwrap_or_default();
            match (word, context.stopped_at.is_some()) {
                ("ok" | "degraded" | "starting", false) | ("stopping", true) => Ok(()),
                _ => Err(format!("the status is {word}")),
            }
        }
        Kind::Several(several) => several.check(json, &books),
        Kind::Chart(_)
        | Kind::Piece(_)
        | Kind::Udf(_)
        | Kind::Prometheus
        | Kind::Plain(_)
        | Kind::Fatal(_) => Ok(()),
    }
}

fn check_quotes(
    json: &Json,
    markets: &[usize],
    (strangers, names): (usize, usize),
    text: bool,
    books: &Books,
) -> Verdict {
    let (quotes, errors) = (json["quotes"].items(), json["errors"].items());
    // A symbol that is not known under any name is not known to be the same under two.
    let least = markets.len() + strangers;
    if !(least..=names).contains(&(quotes.len() + errors.len())) {
        return Err(format!("{least} to {names} asked for, {json}"));
    }
    let mut rest = quotes.iter().peekable();
    for market in markets {
        let symbol = books.symbols[*market].as_str();
        match rest.next_if(|quote| quote["symbol"] == symbol) {
            Some(quote) => books.check_quote(quote, *market, None, text)?,
            None if books.has_quote(*market, None) == Tri::Yes => {
                return Err(format!("no quote of {symbol} in {json}"));
            }
            None => {}
        }
    }
    match rest.next() {
        Some(quote) => Err(format!("out of order or unasked: {quote}")),
        None => Ok(()),
    }
}

fn check_categories(json: &Json, books: &Books) -> Verdict {
    for category in json["categories"].items() {
        let id = category["id"].text().unwrap_or_default();
        let of_quote = |market: &usize| {
            let quote = books.symbols[*market].split('/').nth(1).unwrap_or_default();
            quote.eq_ignore_ascii_case(id)
        };
        let markets: Vec<usize> = (0..books.symbols.len()).filter(of_quote).collect();
        let count = |least: Tri| {
            let known = markets.iter().filter(|m| books.known(**m) >= least);
            known.count() as i64
        };
        let shown = category["marketCount"].integer().unwrap_or(-1);
        let configured = markets.is_empty();
        if !configured && !(count(Tri::Yes)..=count(Tri::Maybe)).contains(&shown) {
            return Err(format!("{category}, of {}", count(Tri::Yes)));
        }
    }
    Ok(())
}

fn check_metrics(json: &Json, context: &Context) -> Verdict {
    let (http, open) = (&json["http"], context.clients_open());
    if http["connectionsOpen"] != open as i64 {
        return Err(format!("{open} connections, not {}", http["connectionsOpen"]));
    }
    let in_flight = http["inFlight"].integer().unwrap_or(-1);
    if !(0..=open as i64).contains(&in_flight) {
        return Err(format!("{in_flight} requests in flight"));
    }
    let counts = context.ledgers.iter().map(|l| l.count_quotes(context.span));
    let (least, most) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let cached = json["cachedEntries"].integer().unwrap_or(-1);
    if !(least as i64..=most as i64).contains(&cached) {
        return Err(format!("{cached} quotes cached, {least} to {most} were said"));
    }
    Ok(())
}

/// Every line is a comment or a name with a value; every connection is open or closed for one
/// reason.
fn check_prometheus(body: &[u8], context: &Context) -> Verdict {
    let text = std::str::from_utf8(body).map_err(|_| "the body is no text")?;
    let (mut closed, mut total) = (0, 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').ok_or_else(|| line.to_string())?;
        let number = || value.parse::<usize>().map_err(|why| format!("{line}: {why}"));
        if name.starts_with("marketd_http_closes_total{") {
            closed += number()?;
        } else if name == "marketd_http_connections_total" {
            total = number()?;
        }
    }
    let open = context.clients_open();
    ensure(closed + open == total, || {
        format!("{total} connections, {closed} closed for a reason, {open} open")
    })
}
