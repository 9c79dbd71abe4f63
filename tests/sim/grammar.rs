//! Requests, good and bad, made by chance; and what the answer to each may be.

use super::charts::ChartAsk;
use super::client::Nature;
use super::lists::{List, Piece, Several};
use super::udf::UdfAsk;
use crate::support::Rng;
use crate::support::naive::INTERVALS;
use marketd::config::Limits;
use marketd::core::Service;

/// 2015-01-01, in seconds.
const LONG_AGO_S: i64 = 1_420_070_400;

/// What a request asks for: how its answer is to be judged.
#[derive(Clone, Debug)]
pub enum Kind {
    Quote {
        market: usize,
        source: Option<usize>,
        text: bool,
    },
    Quotes {
        markets: Vec<usize>,
        /// Names that are no known symbol.
        strangers: usize,
        /// Names in all.
        names: usize,
        text: bool,
    },
    Chart(ChartAsk),
    Several(Several),
    Piece(Piece),
    Udf(UdfAsk),
    Categories,
    EcosystemOne {
        market: usize,
    },
    Metrics,
    Prometheus,
    Health,
    /// One of these statuses, with the body of an error; 204 without one.
    Plain(&'static [u16]),
    /// Cannot be understood: one of these statuses, and the end of the connection.
    Fatal(&'static [u16]),
}

impl Kind {
    /// A list of which nothing is left out, and its address.
    pub fn whole(list: List, text: bool) -> (String, Kind) {
        let piece = Piece::whole(list, text);
        (piece.target(), Kind::Piece(piece))
    }

    /// True if each good answer has an entity tag.
    pub fn is_tagged(&self) -> bool {
        use Kind::*;
        matches!(
            self,
            Quote { .. } | Quotes { .. } | Chart(_) | Piece(_) | Categories | EcosystemOne { .. }
        )
    }

    /// True if the answer may be made in several turns, of which only so many are made at once.
    pub fn is_long(&self) -> bool {
        matches!(
            self,
            Kind::Chart(_)
                | Kind::Several(_)
                | Kind::Piece(_)
                | Kind::Udf(UdfAsk::History(_) | UdfAsk::Search(_))
        )
    }
}

#[derive(Clone, Debug)]
pub struct Ask {
    pub bytes: Vec<u8>,
    pub head_only: bool,
    /// The client has said that it is its last, or its version does.
    pub last: bool,
    /// Whether an interim answer may come first.
    pub expects_continue: bool,
    /// Whether it names an ETag that was seen before.
    pub conditional: bool,
    /// Whether its answer's body may be packed.
    pub gzip: bool,
    pub kind: Kind,
    /// What it asks for, without what makes two requests of the same thing differ.
    pub target: String,
}

impl Ask {
    /// A request that nobody could object to.
    pub fn plain(target: String, kind: Kind) -> Ask {
        Ask {
            bytes: format!("GET {target} HTTP/1.1\r\nHost: sim\r\n\r\n").into_bytes(),
            head_only: false,
            last: false,
            expects_continue: false,
            conditional: false,
            gzip: false,
            kind,
            target,
        }
    }
}

/// What requests are made of.
#[derive(Clone, Debug)]
pub struct Grammar {
    pub symbols: Vec<String>,
    pub sources: Vec<String>,
    pub categories: Vec<String>,
    /// The wall clock around which charts are asked for.
    pub now_ms: i64,
    pub limits: Limits,
    /// Whether some requests may be malformed.
    pub bad: bool,
    /// What many ask for again and again, half of it charts.
    pub favourites: Vec<(String, Kind)>,
}

impl Grammar {
    /// One request. `etag`: of an earlier answer, by its target.
    pub fn ask(
        &self,
        rng: &mut Rng,
        nature: &Nature,
        etag: impl Fn(&str) -> Option<String>,
    ) -> Ask {
        if self.bad && rng.chance(1, 14) {
            return self.fatal(rng);
        }
        let (target, kind) = match nature.loyal {
            Some(favourite) => self.favourites[favourite].clone(),
            None => self.target(rng, nature.side),
        };
        let mut ask = Ask::plain(target, kind);
        if nature.loyal.is_some() && rng.chance(3, 4) {
            // Mostly the same bytes: the response to them is kept.
            ask.bytes = format!("GET {} HTTP/1.1\r\nHost: sim\r\n\r\n", ask.target).into_bytes();
            return ask;
        }
        let mut method = "GET";
        if rng.chance(1, 12) {
            method = "HEAD";
        } else if self.bad && rng.chance(1, 25) {
            method = *rng.pick(&["POST", "DELETE", "PUT"]);
            // What is no address stays none, whatever the method.
            ask.kind = Kind::Plain(&[405, 404]);
        } else if rng.chance(1, 30) {
            method = "OPTIONS";
            ask.kind = Kind::Plain(&[204]);
        }
        ask.head_only = method == "HEAD";
        let version = if rng.chance(1, 10) { "1.0" } else { "1.1" };
        let mut fields = String::from("Host: sim\r\n");
        match (version, rng.below(12)) {
            ("1.0", 0..6) => fields.push_str("Connection: keep-alive\r\n"),
            ("1.0", _) => ask.last = true,
            (_, 0) => {
                fields.push_str("Connection: close\r\n");
                ask.last = true;
            }
            _ => {}
        }
        if let Some(etag) = etag(&ask.target).filter(|_| method == "GET" && rng.chance(1, 2)) {
            ask.conditional = rng.chance(3, 4);
            let etag = if ask.conditional { etag } else { made_up_tag(&etag, rng) };
            fields.push_str(&format!("If-None-Match: {etag}\r\n"));
        }
        if rng.chance(1, 3) {
            fields.push_str("User-Agent: sim/1.0 (of chance)\r\nAccept: */*\r\n");
        }
        if rng.chance(1, 3) {
            let (codings, gzip) = *rng.pick(&[
                ("gzip", true),
                ("gzip, deflate, br", true),
                ("br;q=1.0, *;q=0.5", true),
                ("identity", false),
                ("gzip;q=0", false),
            ]);
            fields.push_str(&format!("Accept-Encoding: {codings}\r\n"));
            ask.gzip = gzip;
        }
        let body = self.body(rng, &mut ask, &mut fields, version);
        ask.bytes = format!("{method} {} HTTP/{version}\r\n{fields}\r\n", ask.target).into_bytes();
        ask.bytes.extend(body);
        ask
    }

    /// A body that nobody wants.
    fn body(&self, rng: &mut Rng, ask: &mut Ask, fields: &mut String, version: &str) -> Vec<u8> {
        if !self.bad || !rng.chance(1, 12) {
            return Vec::new();
        }
        let length = rng.below(self.limits.body_bytes as u64) as usize;
        if version == "1.1" && rng.chance(1, 3) {
            fields.push_str("Expect: 100-continue\r\n");
            ask.expects_continue = true;
        }
        if version == "1.1" && rng.chance(1, 2) {
            fields.push_str("Transfer-Encoding: chunked\r\n");
            let mut body = Vec::new();
            let mut left = length.min(2000);
            while left > 0 {
                let size = left.min(1 + rng.below(700) as usize);
                body.extend(format!("{size:x}\r\n").bytes());
                body.extend(rng.bytes(size));
                body.extend(b"\r\n");
                left -= size;
            }
            body.extend(b"0\r\n\r\n");
            return body;
        }
        let length = match rng.below(8) {
            0 => self.limits.body_bytes + 1 + rng.below(1000) as usize,
            1 => self.limits.body_bytes,
            _ => length,
        };
        if length > self.limits.body_bytes {
            ask.kind = Kind::Fatal(&[413]);
        }
        fields.push_str(&format!("Content-Length: {length}\r\n"));
        // Of a body that is too large, some may never be sent.
        rng.bytes(length.min(self.limits.body_bytes + 100))
    }

    /// Something that many ask for.
    pub fn favourite(&self, rng: &mut Rng) -> (String, Kind) {
        match rng.chance(1, 2) {
            true => self.some_chart(5, rng),
            false => self.target(rng, Service::Both),
        }
    }

    fn target(&self, rng: &mut Rng, side: Service) -> (String, Kind) {
        let api = match side {
            Service::Api => true,
            Service::Ecosystem => false,
            _ => rng.chance(1, 2),
        };
        match (api, rng.below(22)) {
            (true, 20) => {
                let list = match rng.chance(1, 2) {
                    true => List::Quotes,
                    false => List::Category(rng.pick(&self.categories).clone()),
                };
                self.piece(list, rng)
            }
            (false, 20) if rng.chance(1, 2) => self.piece(List::Ecosystem, rng),
            (false, 20) => self.several(rng),
            (_, 0) => self.common(rng),
            (_, 1) => self.wrong(rng, api),
            (true, 2..10) => self.quote(rng),
            (true, 10..14) => self.quotes(rng),
            (true, 14) => ("/api/v1/categories".to_string(), Kind::Categories),
            (true, 15..17) => {
                let id = rng.pick(&self.categories).clone();
                Kind::whole(List::Category(id), rng.chance(1, 4))
            }
            (true, _) => ("/api/v1/metrics".to_string(), Kind::Metrics),
            (false, 2..4) => Kind::whole(List::Ecosystem, false),
            (false, 4..7) => {
                let market = rng.below(self.symbols.len() as u64) as usize;
                let id = self.symbols[market].replace('/', "-");
                let target = format!("/api/ecosystem/market/{id}");
                (target, Kind::EcosystemOne { market })
            }
            (false, _) => self.chart(rng),
        }
    }

    fn common(&self, rng: &mut Rng) -> (String, Kind) {
        let health = ["/health", "/health/live", "/health/ready"];
        match rng.chance(1, 4) {
            true => ("/metrics".to_string(), Kind::Prometheus),
            false => (rng.pick(&health).to_string(), Kind::Health),
        }
    }

    /// Well-formed, and still wrong.
    fn wrong(&self, rng: &mut Rng, api: bool) -> (String, Kind) {
        const API: &[(&str, &[u16])] = &[
            ("/nothing", &[404]),
            ("/api/v1/quotes/FOO-BAR", &[404]),
            ("/api/v1/quotes/%ZZ", &[400]),
            ("/api/v1/quotes/BTC%252FUSDT", &[400]),
            ("/api/v1/quotes", &[400]),
            ("/api/v1/quotes?symbols=,,", &[400]),
            ("/api/v1/quotes/BTC-USDT?source=nobody", &[404]),
            ("/api/v1/categories/nothing/markets", &[404]),
        ];
        const ECOSYSTEM: &[(&str, &[u16])] = &[
            ("/api/ecosystem/nothing", &[404]),
            ("/api/ecosystem/market/FOO-BAR", &[404]),
            ("/api/ecosystem/chart", &[400]),
            ("/api/ecosystem/chart?symbol=BTCUSDT&interval=7m", &[400]),
            ("/api/ecosystem/chart?symbol=BTCUSDT&from=2&to=1", &[400]),
            ("/api/ecosystem/chart?symbol=BTCUSDT&limit=0", &[400]),
            ("/api/ecosystem/chart?symbol=FOOBAR", &[404]),
        ];
        let (target, expected) = match api {
            true => *rng.pick(API),
            false => *rng.pick(ECOSYSTEM),
        };
        (target.to_string(), Kind::Plain(expected))
    }

    fn quote(&self, rng: &mut Rng) -> (String, Kind) {
        let market = self.some_market(rng);
        let text = rng.chance(1, 5);
        let symbol = &self.symbols[market];
        let name = match rng.below(6) {
            0 => symbol.clone(),
            1 => symbol.replace('/', "%2F"),
            2 => symbol.replace('/', "-").to_lowercase(),
            3 => symbol.replace('/', "_"),
            4 => symbol.replace('/', ""),
            _ => symbol.replace('/', "-"),
        };
        let source = self.some_source(rng);
        let id = source.map(|source| self.sources[source].clone());
        let parameters = [("decimals", decimals(text)), ("source", id)];
        let target = address(&format!("/api/v1/quotes/{name}"), &parameters);
        let kind = Kind::Quote { market, source, text };
        (target, kind)
    }

    fn quotes(&self, rng: &mut Rng) -> (String, Kind) {
        let text = rng.chance(1, 5);
        if rng.chance(1, 4) {
            return Kind::whole(List::Quotes, text);
        }
        let mut markets: Vec<usize> = Vec::new();
        let mut strangers = 0;
        let mut names = Vec::new();
        for n in 0..1 + rng.below(self.limits.symbols_per_request.min(6) as u64) {
            if rng.chance(1, 6) {
                strangers += 1;
                names.push(format!("NO{n}-BODY"));
                continue;
            }
            let market = self.some_market(rng);
            let mark: &str = rng.pick::<&str>(&["-", "_", "", "/"]);
            names.push(self.symbols[market].replace('/', mark));
            if !markets.contains(&market) {
                markets.push(market);
            }
        }
        let parameters = [("symbols", Some(names.join(","))), ("decimals", decimals(text))];
        let target = address("/api/v1/quotes", &parameters);
        let kind = Kind::Quotes { markets, strangers, names: names.len(), text };
        (target, kind)
    }

    fn piece(&self, list: List, rng: &mut Rng) -> (String, Kind) {
        let piece = Piece::any(list, rng);
        (piece.target(), Kind::Piece(piece))
    }

    fn several(&self, rng: &mut Rng) -> (String, Kind) {
        let (mut names, mut asks) = (Vec::new(), Vec::<ChartAsk>::new());
        let interval = *rng.pick(&INTERVALS);
        let length = crate::support::naive::length_ms(interval).unwrap_or(30 * 86_400_000);
        let ago = rng.below(80) as i64;
        let to = rng.chance(1, 3).then(|| self.now_ms - ago * length);
        let limit = 1 + rng.below(40) as usize;
        let (fill, text) = (rng.chance(1, 5), rng.chance(1, 6));
        let mut strangers = 0;
        for n in 0..1 + rng.below(5) {
            if rng.chance(1, 8) {
                strangers += 1;
                names.push(format!("NO{n}-BODY"));
                continue;
            }
            let market = self.some_market(rng);
            if asks.iter().any(|ask| ask.market == market) {
                continue;
            }
            names.push(self.symbols[market].replace('/', "-"));
            let chart = ChartAsk { market, interval, to, limit, ..ChartAsk::default() };
            asks.push(ChartAsk { fill, text, ..chart });
        }
        let parameters = [
            ("symbols", Some(names.join(","))),
            ("interval", Some(interval.to_string())),
            ("limit", Some(limit.to_string())),
            ("to", to.map(|to| to.to_string())),
            ("fill", filled(fill)),
            ("decimals", decimals(text)),
        ];
        let target = address("/api/ecosystem/chart", &parameters);
        (target, Kind::Several(Several { asks, strangers }))
    }

    fn chart(&self, rng: &mut Rng) -> (String, Kind) {
        let charts = self.favourites.iter().filter(|(_, kind)| matches!(kind, Kind::Chart(_)));
        let charts: Vec<_> = charts.collect();
        if !charts.is_empty() && rng.chance(1, 3) {
            return (*rng.pick(&charts)).clone();
        }
        self.some_chart(60, rng)
    }

    /// A chart that begins or ends so many candles ago at most, or twice as many.
    pub fn some_chart(&self, near: i64, rng: &mut Rng) -> (String, Kind) {
        let market = if rng.chance(1, 2) { rng.below(2) as usize } else { self.some_market(rng) };
        let interval = match rng.below(3) {
            _ if near < 10 && rng.chance(3, 4) => *rng.pick(&["1m", "1m", "3m", "5m"]),
            0 => *rng.pick(&["1m", "1h", "1d"]),
            _ => *rng.pick(&INTERVALS),
        };
        let length = crate::support::naive::length_ms(interval).unwrap_or(30 * 86_400_000);
        let mut some_time = |near: i64| {
            let back = rng.between(-2, near) * length;
            // Seconds or milliseconds, mostly off the boundary.
            let time = self.now_ms - back - rng.between(0, length / 1000) * 1000;
            (time.max(0) / 1000) * 1000
        };
        let (a, b) = (some_time(near), some_time(2 * near));
        let (mut from, mut to) = (None, None);
        match rng.below(if near < 10 { 14 } else { 5 }) {
            0 | 1 => {}
            // One that ends just now or soon.
            5.. => {
                (from, to) =
                    (Some(b - 20 * length), Some(self.now_ms + rng.between(-2, 2) * length))
            }
            2 => from = Some(a),
            3 => to = Some(a),
            _ => (from, to) = (Some(a.min(b)), Some(a.max(b))),
        }
        if rng.chance(1, 12) {
            // Long before anything that is kept.
            from = Some(rng.between(0, LONG_AGO_S) * 1000);
        }
        let limit = match rng.below(5) {
            0 => None,
            1 => Some(1 + rng.below(3)),
            2 => Some(5000),
            _ => Some(1 + rng.below(100)),
        };
        let default = if from.is_some() && to.is_some() { 5000 } else { 500 };
        let ask = ChartAsk {
            market,
            interval,
            from,
            to,
            limit: limit.unwrap_or(default) as usize,
            fill: rng.chance(1, if near < 10 { 2 } else { 5 }),
            text: rng.chance(1, 6),
            source: self.some_source(rng),
        };
        let mut written = |time: i64| {
            // Below 10^11 it is seconds.
            let seconds = rng.chance(1, 2) || time < 100_000_000_000;
            (if seconds { time / 1000 } else { time }).to_string()
        };
        let parameters = [
            ("symbol", Some(self.symbols[market].replace('/', ""))),
            ("interval", Some(interval.to_string())),
            ("from", from.map(&mut written)),
            ("to", to.map(&mut written)),
            ("limit", limit.map(|limit| limit.to_string())),
            ("fill", filled(ask.fill)),
            ("decimals", decimals(ask.text)),
            ("source", ask.source.map(|source| self.sources[source].clone())),
        ];
        let target = address("/api/ecosystem/chart", &parameters);
        (target, Kind::Chart(ask))
    }

    /// What ends the connection.
    fn fatal(&self, rng: &mut Rng) -> Ask {
        let (line, head) = (self.limits.request_line_bytes, self.limits.head_bytes);
        let get = |rest: &str| format!("GET /{rest}\r\n\r\n");
        let (text, expected): (String, &'static [u16]) = match rng.below(8) {
            0 => ("\x16\x03\x01\x02\x00\x01".to_string(), &[400]),
            1 => (get(" HTTP/2.0\r\nHost: s"), &[505, 400]),
            2 => (get(" HTTP/1.1\r\nHost: s").replace("GET", "BREW"), &[501]),
            3 => {
                let statuses: &[u16] = if line < head { &[414] } else { &[414, 431] };
                (get(&format!("{} HTTP/1.1\r\nHost: s", "a".repeat(line))), statuses)
            }
            4 => (get(&format!(" HTTP/1.1\r\nHost: s\r\nX: {}", "b".repeat(head))), &[431]),
            5 => (get(" HTTP/1.1\r\nHost: s\r\nContent-Length: 1x"), &[400]),
            6 => (get(" HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked") + "xyz\r\n", &[400]),
            _ => ("GET / HTTP/1.1\nHost: s\n\n".to_string(), &[400]),
        };
        let plain = Ask::plain("(malformed)".to_string(), Kind::Fatal(expected));
        Ask { bytes: text.into_bytes(), last: true, ..plain }
    }

    fn some_market(&self, rng: &mut Rng) -> usize {
        rng.below(self.symbols.len() as u64) as usize
    }

    fn some_source(&self, rng: &mut Rng) -> Option<usize> {
        let some = rng.chance(1, 5);
        some.then(|| rng.below(self.sources.len() as u64) as usize)
    }
}

/// Something that this service never said.
fn made_up_tag(known: &str, rng: &mut Rng) -> String {
    let mut tag = known.to_string();
    match rng.below(3) {
        0 => tag.insert(1, '0'),
        1 => drop(tag.remove(1)),
        _ => {
            let at = 1 + rng.below(tag.len() as u64 - 2) as usize;
            let other = if tag.as_bytes()[at] == b'7' { "8" } else { "7" };
            tag.replace_range(at..=at, other);
        }
    }
    tag
}

/// An address with those of these parameters that have a value.
pub fn address(path: &str, parameters: &[(&str, Option<String>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    let given: Vec<String> = given.map(|(name, value)| format!("{name}={value}")).collect();
    let mark = if given.is_empty() { "" } else { "?" };
    format!("{path}{mark}{}", given.join("&"))
}

/// Whether decimals are to be texts, as a parameter.
pub fn decimals(are_texts: bool) -> Option<String> {
    are_texts.then(|| "string".to_string())
}

/// Whether candles are to be filled in, as a parameter.
pub fn filled(fill: bool) -> Option<String> {
    fill.then(|| "previous".to_string())
}
