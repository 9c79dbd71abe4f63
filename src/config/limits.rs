//! The limits: every cap and deadline that can be configured, with its default and the reason for it.
//!
//! One table makes the type [`Limits`], its defaults, the keys of `limits` in the file and their
//! reference. Nothing is enforced here: each limit is enforced by the owner of the limited
//! resource.
//!
//! A cap is a limit if a person who runs marketd may want to change it. A cap that follows from the design of
//! marketd is a constant beside its use, with its reason (`RANGES` in `core/clients/deferred.rs`).
//!
//! # To add a limit
//!
//! 1. Add an entry to the table: what it bounds (`///`, for the manual), the reason of its default (`//`),
//!    field, type, default, key and the bounds of its value. The key has the unit at its end (`fooMs`,
//!    `fooBytes`) and no `max` (`maxConnections` is older). `Number { why, ..bytes(64, 65_536) }` adds
//!    the reason of the bounds to the error for a value outside them. Put the entry beside limits
//!    of the same resource.
//! 2. Enforce it in the owner of the limited resource; what holds for each request, in `api::route`. Read
//!    `config.limits.FIELD` each time, because a reload may change it. An owner that keeps a copy takes the
//!    new value in its `reconfigure`, as `Admission::reconfigure` does. (A reload empties the head cache, so
//!    a function that prepares a request may read the limit.) If only a restart can change the limit, list it
//!    in `fixed!` of `config/reload.rs`, and in the table of "Signals" in `src/docs/operations.md`.
//! 3. Let `UPDATE_DOCS=1 cargo test --lib config` write the reference and the JSON Schema, and add a line to
//!    `src/docs/changelog.md` before `Exchanges:`. Where `src/docs` or `openapi.json` state the number, name
//!    the key beside it. If the page needs a least value (`spark.js` needs the constant `MAX_SYMBOLS`), make
//!    that the lower bound.
//! 4. Test it where its owner is tested: a limit on a connection in `tests/requests/limits.rs` (`cargo test
//!    --test library requests::`), a limit on one request in the file of its endpoint in
//!    `tests/loopback`, of `/udf` in `tests/udf.rs`, of every endpoint in `tests/loopback/errors.rs` (`cargo
//!    test --test daemon -- loopback:: udf:: docs::`).
//! 5. If a request beyond it gets an error with a new `code`: add the code to `errors` in `openapi.json`, or
//!    if every address may have it, to `everyError` and to the text of the response `Other`. Add it to the
//!    table of "Errors" in `src/docs/http-api.md`.
//! 6. If it closes connections, and no variant of [`CloseReason`](crate::core::CloseReason) fits, add one,
//!    its row to "Why a connection is closed" in `src/docs/operations.md`, and a test to
//!    `tests/requests/ends.rs`. The metrics count by it: let `UPDATE_DOCS=1 cargo test --lib metrics` write
//!    their schema and list, and add it to `closes` in the example of `/api/v1/metrics` in `openapi.json`.
//! 7. Run `scripts/check.sh`: format, lints, and all tests.

use super::members::{Number, bytes, count, millis};
use super::values::object;
use std::time::Duration;

object! {
    /// Caps and deadlines of the service and of its connections, by name. `Limits::default()` has the
    /// defaults. The source has the reason of each default.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Limits {
        /// Client connections in all.
        // An idle one takes some 150 B. Above the limit, another connection is closed, or the new one gets
        // only `/health`.
        max_connections: usize = 16_384, "maxConnections" count(1, 1_000_000);

        /// Client connections of one address, an IPv6 one by its /64 network; 0: no limit.
        // Off, because a proxy in front is one address, and so is a whole office.
        connections_per_address: usize = 0, "connectionsPerAddress" count(0, 1_000_000);

        /// Connections accepted from one listener in one turn of the loop.
        // A flood of new connections must not starve the old ones, because each new one is served
        // at once.
        accepts_per_turn: usize = 32, "acceptsPerTurn" count(1, 4_096);

        /// Bytes of a request line.
        // RFC 9112, 3: at least 8000 octets are recommended.
        request_line_bytes: usize = 8_192, "requestLineBytes"
            Number { why: "a line is held whole", ..bytes(64, 65_536) };

        /// Bytes of a request head, request line included.
        // Enough for a browser's cookies, although marketd ignores them.
        head_bytes: usize = 16_384, "headBytes"
            Number {
                why: "a head is held whole, by every connection that is slow to send it",
                ..bytes(256, 65_536)
            };

        /// Header fields of a request.
        // A browser sends about 20, a proxy adds about 10.
        head_fields: usize = 64, "headFields" count(1, 256);

        /// Time from the first byte of a request head to its last; later bytes do not renew it.
        // A head is one packet. In ten seconds a lost packet is sent again three times.
        head_timeout: Duration = ms(10_000), "headTimeoutMs" millis(100, 3_600_000);

        /// Time that a connection stays open without a request. For a new connection, time without
        /// a byte.
        // Longer than the usual 60 s of a proxy in front, which must be the one that closes.
        idle_timeout: Duration = ms(75_000), "idleTimeoutMs" millis(100, 86_400_000);

        /// Time that a pending response may make no progress.
        // Progress renews the time, so only a dead or hostile client reaches it.
        write_timeout: Duration = ms(30_000), "writeTimeoutMs" millis(100, 3_600_000);

        /// Time from the head of a request to the last byte of its body.
        // Any working client sends 64 KiB in less than ten seconds.
        body_timeout: Duration = ms(10_000), "bodyTimeoutMs" millis(100, 3_600_000);

        /// Bytes of a request's body that are read and thrown away.
        // No request needs a body, but some libraries send one anyway.
        body_bytes: usize = 65_536, "bodyBytes" bytes(0, 16_777_216);

        /// Time for a client to read the last response of a connection that closes.
        // A reset must not overtake the response. A round trip around the world is 0.4 s.
        linger: Duration = ms(2_000), "lingerMs" millis(0, 60_000);

        /// Pending output of one connection above which its further requests wait.
        // About one chart of 1000 candles. It bounds the memory for one slow reader.
        output_high_water: usize = 65_536, "outputHighWaterBytes" bytes(1_024, 67_108_864);

        /// Requests answered on one connection before it is closed.
        // Lets load balancers redistribute clients. The cost is one connection in ten thousand
        // requests.
        requests_per_connection: u32 = 10_000, "requestsPerConnection" count(1, 4_294_967_295);

        /// Pending output of all connections. Above it, the connections that have stalled longest are closed.
        /// Above half of it, the slowest of those that have stalled for a second are closed. While pending
        /// output and unfinished responses together exceed half of the limit, long responses are refused.
        // 380 readers that have stopped at their high-water mark. Together with `inputTotalBytes` it is below
        // 64 MB. Bytes that are sent to several clients count for each client, so the real
        // memory is mostly less.
        output_total: usize = 25_165_824, "outputTotalBytes" bytes(1_048_576, 68_719_476_736);

        /// Bytes of requests that are incomplete, or wait behind others, on all connections. Above it, the
        /// connections that have waited longest are closed.
        // 16,384 connections with 1 KB each, which is a browser's head.
        input_total: usize = 16_777_216, "inputTotalBytes" bytes(1_048_576, 68_719_476_736);

        /// Requests of one client address in a minute, an IPv6 one by its /64 network; 0: no limit.
        /// Requests for health and with OPTIONS do not count.
        // Off, because a fair value depends on the clients. A page that polls ten quotes a second
        // needs 600.
        requests_per_minute: u32 = 0, "requestsPerMinute" count(0, 60_000_000);

        /// Requests of one client address that may come at once, if `requestsPerMinute` is set.
        // A page sends some dozens of requests when it opens.
        request_burst: u32 = 100, "requestBurst" count(1, 1_000_000);

        /// Client addresses whose requests are counted. A new address may use eight entries. If all eight are
        /// taken, the address that has most requests left is forgotten; the metrics count that.
        // 32 B each, so half a megabyte. An address is needed only until it has all its requests
        // back.
        request_addresses: usize = 16_384, "requestAddresses" count(64, 16_777_216);

        /// Symbols in one request for quotes.
        // About 35 KB of response.
        symbols_per_request: usize = 100, "symbolsPerRequest" count(1, 10_000);

        /// Streams in all; 0: none.
        // About 4 KB each with 100 symbols, and 2 KB with all. A browser tab has one.
        streams: usize = 4_096, "streams" count(0, 1_000_000);

        /// Streams of one client address, an IPv6 one by its /64 network; 0: no limit.
        // Off, like the limit of connections: a whole office is one address.
        streams_per_address: usize = 0, "streamsPerAddress" count(0, 1_000_000);

        /// Symbols that one stream names. `*` means all symbols, and takes only some bits for each.
        // As many as fit in a request line. Each takes 32 B.
        stream_symbols: usize = 1_000, "streamSymbols" count(1, 10_000);

        /// Charts of one stream.
        // Enough for a page full of charts. Each may be one more series to poll.
        stream_charts: usize = 16, "streamCharts" count(1, 1_000);

        /// Time without an event after which a stream sends a heartbeat.
        // Proxies close connections that are silent for 60 s, some for 30 s.
        stream_heartbeat: Duration = ms(15_000), "streamHeartbeatMs" millis(100, 3_600_000);

        /// Long responses that are made at the same time.
        // Each takes the memory of its body, up to a megabyte or two. Others wait.
        deferred_responses: usize = 16, "deferredResponses" count(1, 65_536);

        /// Bytes of the compressed-body cache; 0: no response is sent in gzip.
        // Some 300 charts of 1000 candles, which are 26 KB each in gzip.
        compressed_bytes: usize = 8_388_608, "compressedBytes" bytes(0, 1_073_741_824);

        /// Time that a request for a chart waits for candles, from the history file or the exchange.
        // A request to an exchange takes less than half a second. People wait two seconds.
        chart_wait: Duration = ms(2_000), "chartWaitMs" millis(0, 60_000);

        /// Ranges of candles of one source for which clients may wait at the same time, until the exchange
        /// sends them.
        // A page takes about 0.2 s, so clients of a longer queue would time out.
        chart_fetches: usize = 256, "chartFetches" count(1, 65_536);

        /// Candle series in all. To make place for a new series, the least recently read one is dropped.
        /// Series that were read within the last minute, or that `symbols` name, are never dropped for this.
        // 200 symbols in three intervals. Polling them takes about ten requests a second.
        candle_series: usize = 600, "candleSeries" count(1, 1_000_000);

        /// Bytes of rendered candles in memory, over all series.
        // About 500,000 candles.
        candle_bytes: usize = 33_554_432, "candleBytes" bytes(65_536, 68_719_476_736);

        /// Size of the history file above which it takes only markets that `symbols` name, so that requests
        /// of clients cannot fill the disk.
        // 200 named markets with the default depths take 1.4 GB.
        history_bytes: u64 = 2_147_483_648, "historyBytes" bytes(1_048_576, 1_099_511_627_776);

        /// Distinct symbols over all sources.
        // Eight exchanges with 3,500 markets each share most of their symbols.
        symbols: usize = 20_000, "symbols" count(1, 1_000_000);

        /// Bytes of one upstream response after decoding.
        // The largest known body, a full market list, is below 20 MB.
        upstream_body_bytes: usize = 50_331_648, "upstreamBodyBytes" bytes(1_024, 1_073_741_824);

        /// Bytes of one item (ticker, candle, market) in an upstream response.
        // The largest known item, a market with its permission sets, is below 8 KB.
        upstream_item_bytes: usize = 65_536, "upstreamItemBytes" bytes(256, 16_777_216);

        /// Bytes of the head of an upstream response.
        // Exchanges behind firewalls send several KB of cookies and policies.
        upstream_head_bytes: usize = 16_384, "upstreamHeadBytes" bytes(1_024, 1_048_576);

        /// Connections to one source.
        // One for quotes, two for the rest, so that a slow market list delays no quote.
        connections_per_source: usize = 3, "connectionsPerSource"
            Number { why: "exchanges count connections", ..count(1, 16) };

        /// Longest wait between tries of a failing source.
        // Long enough not to bother the exchange, short enough to return soon.
        backoff_max: Duration = ms(30_000), "backoffMaxMs" millis(1_000, 3_600_000);

        /// Time to finish responses in progress after SIGTERM.
        // Service managers kill after ten seconds or more.
        shutdown: Duration = ms(5_000), "shutdownMs" millis(0, 600_000);
    }
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fault::{ConfigFault, Report};
    use crate::config::json::Node;
    use crate::config::values::{FileObject as _, KeyType as _};

    /// The key, the unit and the bounds, and the value of every limit.
    fn keys(limits: &Limits) -> Vec<(&'static str, (String, u64, u64), String)> {
        let mut keys = Vec::new();
        limits.clone().keys(&mut |name, _, value| {
            let expected = value.expected();
            let bounds = expected.strip_prefix("a whole number").expect("all are numbers");
            let bounds = bounds.split(" (").next().expect("a text has a front");
            let (unit, bounds) = bounds.split_once(" from ").expect("it has bounds");
            let (min, max) = bounds.split_once(" to ").expect("it has two of them");
            let [min, max] = [min, max].map(|bound| bound.parse().expect("a number"));
            keys.push((name, (unit.to_string(), min, max), value.print()));
        });
        keys
    }

    fn read(limits: &mut Limits, text: &str) -> Result<Vec<ConfigFault>, Vec<ConfigFault>> {
        let node = Node::whole("m.json", text).expect("it is JSON");
        let mut report = Report::default();
        limits.replace(&(), &node, &mut report).expect("it is an object");
        report.close()
    }

    #[test]
    fn keys_are_the_names_of_the_fields_with_their_unit() {
        let fields = format!("{:#?}", Limits::default());
        let fields: Vec<&str> = (fields.lines())
            .filter(|line| line.starts_with("    ") && !line.starts_with("     "))
            .filter_map(|line| line.trim().split_once(": ").map(|(name, _)| name))
            .collect();
        let keys = keys(&Limits::default());
        assert_eq!(fields.len(), keys.len());
        for (field, (key, (unit, ..), _)) in fields.iter().zip(keys) {
            let mut words = field.split('_');
            let mut name = words.next().unwrap_or_default().to_string();
            for word in words {
                name.push_str(&word[..1].to_uppercase());
                name.push_str(&word[1..]);
            }
            // `head_timeout` and `shutdown` are times by their meaning, `head_bytes` says it.
            let suffix = match &*unit {
                " of milliseconds" => "Ms",
                " of bytes" => "Bytes",
                _ => "",
            };
            let name = if name.ends_with(suffix) { name } else { name + suffix };
            assert_eq!(key, name);
        }
    }

    #[test]
    fn every_limit_can_be_set_to_its_least_and_its_most_and_no_further() {
        let defaults = keys(&Limits::default());
        for (at, (name, (_, min, max), default)) in defaults.iter().enumerate() {
            let (min, max) = (*min, *max);
            let default: u64 = default.parse().expect("a number");
            assert!((min..=max).contains(&default), "{name}");
            let set = |number: u64| {
                let mut limits = Limits::default();
                let text = format!("{{\"{name}\": {number}}}");
                read(&mut limits, &text).map(|_| keys(&limits))
            };
            for number in [min, max] {
                let found = set(number).expect("within bounds");
                for (other, (found, default)) in found.iter().zip(&defaults).enumerate() {
                    // The key sets its own field and no other.
                    let expected = if other == at { number.to_string() } else { default.2.clone() };
                    // Where a word has 32 bits, the most of some counts as 2 GiB.
                    let is_cut = number > usize::MAX as u64 && found.2 == isize::MAX.to_string();
                    assert!(found.2 == expected || is_cut, "{name}, {}: {}", found.0, found.2);
                }
            }
            assert!(set(max + 1).is_err(), "{name}");
            if min > 0 {
                assert!(set(min - 1).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn an_old_name_is_read_with_a_warning_and_not_beside_the_new_one() {
        let read = |text: &str| {
            let mut config = crate::config::Config::default();
            let mut report = Report::default();
            crate::config::load::read_file(&mut config, "m.json", text, &mut report);
            (config.limits, report.close())
        };
        let told = |faults: &[ConfigFault]| -> Vec<String> {
            faults.iter().map(ToString::to_string).collect()
        };
        for (path, new) in crate::config::values::RENAMED {
            let old = path.rsplit('.').next().expect("a key");
            let (limits, warnings) = read(&format!("{{\"limits\":\n{{\"{old}\": 7}}}}"));
            let (expected, _) = read(&format!("{{\"limits\": {{\"{new}\": 7}}}}"));
            assert_eq!((&limits, limits != Limits::default()), (&expected, true));
            let warnings = warnings.expect("it is no fault");
            assert_eq!(told(&warnings), [format!("m.json:2: {path}: renamed to {new}")]);
            let (_, faults) = read(&format!("{{\"limits\":{{\"{old}\": 7,\n\"{new}\": 8}}}}"));
            let twice = format!("m.json:2: limits.{new}: given twice, first on line 1");
            assert_eq!(told(&faults.expect_err("given twice")), [twice]);
        }
    }
}
