//! The built binary and exchanges behind TLS, names and proxies: what works, and what is said when
//! it does not. Certificates are made on the spot, by an authority that nobody else knows.
#![cfg(feature = "tls")]

use crate::loopback::setup::*;
use crate::support::*;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Instant;

/// A configuration of one source at `url`, and how a daemon is started with it.
struct Setup {
    launch: Launch,
    config: serde_json::Value,
}

impl Setup {
    fn new(url: &str) -> Setup {
        let source = json!({ "dialect": "binance", "url": url, "pollMs": 100, "timeoutMs": 5000 });
        let config = with(config(&[source]), "limits", json!({ "backoffMaxMs": 1000 }));
        Setup { launch: Launch::new(&["--log", "trace"]), config }
    }

    fn trust(mut self, authority: &Authority) -> Setup {
        let path = self.launch.file("roots.pem", authority.pem());
        self.config["tls"] = json!({ "caFile": path });
        self
    }

    fn timeout(mut self, ms: u64) -> Setup {
        self.config["sources"][0]["timeoutMs"] = json!(ms);
        self
    }

    fn env(mut self, name: &str, value: &str) -> Setup {
        self.launch = self.launch.env(name, value);
        self
    }

    #[track_caller]
    fn start(self) -> Marketd {
        self.launch.config(self.config).start()
    }

    /// Starts it and waits until the source has failed for this reason: in the metrics, in the
    /// log, and in health.
    #[track_caller]
    fn fails(self, expected: &str) -> Marketd {
        let marketd = self.start();
        await_error(&marketd, expected);
        let line = marketd.await_log(expected, LONG);
        assert!(line.contains("WARN"), "{line}");
        marketd
    }
}

/// An exchange with so many markets whose prices stand still.
fn still(count: usize, seed: u64) -> Binance {
    let exchange = Binance::generated(count, seed);
    exchange.set_time(ServerTime::Fixed(exchange.now()));
    exchange
}

/// Quotes are those of the exchange, digit for digit, and charts come too.
#[track_caller]
fn serves(marketd: &Marketd, exchange: &Binance) {
    await_health(marketd, "ok");
    let symbol = exchange.symbols()[0].clone();
    let id = symbol.replace('/', "");
    let ticker = get(exchange.addr(), &format!("/api/v3/ticker/24hr?symbol={id}")).exact();
    let price = naive::plain(ticker["lastPrice"].text().expect("a price is a text"));
    eventually(LONG, || (quote(marketd, &symbol)["last"].to_string() == price).then_some(()));
    read(marketd.addr(), &format!("/api/ecosystem/chart?symbol={symbol}&interval=1h&limit=5"));
}

/// While one source fails, clients are answered with what the other one has, and health says so.
#[track_caller]
fn answers(marketd: &Marketd, exchange: &Binance) {
    await_health(marketd, "degraded");
    assert_eq!(get(marketd.addr(), "/health").status, 200);
    let failing = &metrics(marketd)["upstreams"][0];
    let backs_off = ["backoff", "down"].contains(&failing["state"].text().unwrap_or_default());
    assert!(backs_off && !failing["backoffUntil"].is_null(), "{failing}");
    let symbol = &exchange.symbols()[0];
    let mut client = Client::connect(marketd.addr());
    let begin = Instant::now();
    for _ in 0..200 {
        let quote = client.get(&format!("/api/v1/quotes/{symbol}"));
        assert_eq!(quote.status, 200);
    }
    assert!(begin.elapsed() < LONG, "{:?}", begin.elapsed());
}

#[test]
fn an_exchange_behind_tls_is_served_and_sessions_are_resumed() {
    let authority = Authority::new("ours");
    let exchange = still(3500, 1);
    let identity = authority.identity(&["localhost", "127.0.0.1"], Validity::Now);
    let front = TlsFront::start(identity, exchange.addr());
    // By name: every address of it is tried, and the front listens on one alone.
    let marketd = Setup::new(&front.url("localhost")).trust(&authority).start();
    serves(&marketd, &exchange);
    let shaken = front.shaken();
    let first = &shaken[0];
    assert_eq!(first.name.as_deref(), Some("localhost"));
    assert_eq!(first.alpn.as_deref(), Some("http/1.1"));
    assert!(!first.resumed);
    let before = shaken.len();
    front.cut();
    // One that was under way may have been cut, or have begun without a ticket.
    eventually(LONG, || {
        let shaken = front.shaken().split_off(before);
        let is_good = |shaken: &tls::Shaken| shaken.resumed && shaken.error.is_none();
        shaken.iter().any(is_good).then_some(())
    });
    serves(&marketd, &exchange);
}

#[test]
fn an_address_has_certificates_too_and_either_version_is_spoken() {
    let authority = Authority::new("ours");
    let exchange = still(5, 2);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let identity = authority.identity(&["127.0.0.1"], Validity::Now);
        let front = TlsFront::with_versions(identity, exchange.addr(), &[version]);
        let marketd = Setup::new(&front.url("127.0.0.1")).trust(&authority).start();
        serves(&marketd, &exchange);
        let shaken = front.shaken();
        assert_eq!(shaken[0].version, Some(version.version));
        assert_eq!(shaken[0].name, None, "no name is asked for");
    }
}

#[test]
fn each_fault_of_a_certificate_has_its_own_words() {
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let exchange = still(3, 3);
    let check = |identity: Identity, expected: &str, alert: &str| {
        let front = TlsFront::start(identity, exchange.addr());
        let url = front.url("127.0.0.1");
        let expected = format!("TLS handshake: {expected}");
        Setup::new(&url).trust(&ours).fails(&expected);
        // The other side is told as well; a handshake that another one's failure has cut is not.
        let is_told = |error: &String| error.contains(alert);
        eventually(LONG, || {
            let shaken = front.shaken();
            let mut errors = shaken.iter().filter_map(|shaken| shaken.error.as_ref());
            errors.any(is_told).then_some(())
        });
        assert_eq!(exchange.asked().len(), 0, "nothing is asked of a stranger");
    };
    let of = |authority: &Authority, name, validity| authority.identity(&[name], validity);
    check(
        of(&ours, "other.test", Validity::Now),
        "bad certificate: certificate not valid for name",
        "BadCertificate",
    );
    check(
        of(&theirs, "127.0.0.1", Validity::Now),
        "the certificate's issuer is unknown (tls.caFile adds trusted issuers)",
        "UnknownCA",
    );
    check(
        of(&ours, "127.0.0.1", Validity::Past),
        "the certificate has expired, on 2021-01-01T00:00:00.000Z",
        "CertificateExpired",
    );
    check(
        of(&ours, "127.0.0.1", Validity::Future),
        "the certificate is not valid before 2080-01-01T00:00:00.000Z, and this machine's clock is \
         behind that",
        "CertificateExpired",
    );
    check(
        Identity::self_signed("127.0.0.1"),
        "expected a server certificate issued by a CA, found a CA's own or a self-signed one",
        "CertificateUnknown",
    );
}

#[test]
fn a_peer_that_does_not_speak_tls_is_told_as_such() {
    let check = |url: String, expected: &str| {
        Setup::new(&url).timeout(1000).fails(expected);
    };
    let at = |addr: SocketAddr| format!("https://{addr}");
    let page = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    check(at(peer(page, true)), "TLS handshake: received data that is not TLS");
    check(at(peer(b"220 mail ready\r\n", false)), "TLS handshake: received data that is not TLS");
    check(at(peer(b"", true)), "TLS handshake: closed by the peer");
    // An alert, as a server sends it that knows nothing of the name: 112 is unrecognized_name.
    check(
        at(peer(b"\x15\x03\x03\x00\x02\x02\x70", true)),
        "TLS handshake: refused by the peer (UnrecognisedName)",
    );
    // A record of a handshake that never ends.
    check(
        at(peer(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", true)),
        "TLS handshake: closed by the peer",
    );
}

#[test]
fn an_exchange_that_is_not_reached_disturbs_nobody() {
    let exchange = still(20, 4);
    let stalling = peer(b"\x16\x03\x03\x00\x7a\x02", false);
    // It swallows every packet.
    let hole = BlackHole::new();
    for (url, ms, expected) in [
        (format!("https://{stalling}"), 300, "TLS handshake: no answer in time"),
        (format!("http://{}", hole.addr()), 300, "cannot connect"),
        (format!("https://{}", hole.addr()), 300, "cannot connect"),
        ("https://exchange.invalid".to_string(), 1000, "cannot resolve"),
    ] {
        let mut setup = Setup::new(&url).timeout(ms);
        let second = source("second", &exchange);
        setup.config["sources"].as_array_mut().expect("a list").push(second);
        let marketd = setup.fails(expected);
        answers(&marketd, &exchange);
    }
}

#[test]
fn an_answer_until_the_close_needs_the_end_that_tls_asks_for() {
    let authority = Authority::new("ours");
    let exchange = still(5, 5);
    exchange.fault(Fault::UntilClose);
    let identity = authority.identity(&["127.0.0.1"], Validity::Now);
    let front = TlsFront::start(identity, exchange.addr());
    let marketd = Setup::new(&front.url("127.0.0.1")).trust(&authority).start();
    serves(&marketd, &exchange);
    front.truncate();
    await_error(&marketd, "connection lost: closed without close_notify");
    // An answer whose length is known is whole without it.
    exchange.heal();
    await_health(&marketd, "ok");
}

#[test]
fn certificates_that_are_none_end_the_start_with_2() {
    let check = |text: &str, expected: &str| {
        for mode in ["--check", "--demo"] {
            let launch = Launch::new(&[mode]);
            let path = launch.file("roots.pem", text);
            let config = json!({ "tls": { "caFile": path }, "listen": "127.0.0.1:0" });
            let finished = launch.config(config).run();
            assert_eq!(finished.code, Some(2), "{finished:?}");
            assert!(finished.stderr.contains(expected), "{}", finished.stderr);
            assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        }
    };
    let good = Authority::new("ours").pem().to_string();
    let block =
        |inner: &str| format!("-----BEGIN CERTIFICATE-----\n{inner}\n-----END CERTIFICATE-----\n");
    check("nothing", "tls.caFile: ");
    check("nothing", "holds no certificate in PEM form");
    check(&format!("{good}{}", block("AAAA")), "tls.caFile: certificate 2 of \"");
    check(&block("&&&"), "tls.caFile: certificate 1 of \"");
    let launch = Launch::new(&["--check"]);
    let path = launch.file("roots.pem", format!("# ours\n{good}\n{good}"));
    let config = json!({ "tls": { "caFile": path } });
    assert_eq!(launch.config(config).run().code, Some(0));
}

/// The value of `Proxy-Authorization` for `me` and `hunter2`.
const BASIC: &str = "Basic bWU6aHVudGVyMg==";

const DENIED: &[u8] = b"HTTP/1.1 407 Proxy Authentication Required\r\n\
    Proxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 6\r\n\r\nsorry\n";

fn through(proxy: &Relay, userinfo: &str) -> String {
    format!("http://{userinfo}{}", proxy.addr())
}

#[test]
fn a_proxy_opens_tunnels_and_nobody_learns_its_password() {
    let authority = Authority::new("ours");
    let exchange = still(300, 6);
    let identity = authority.identity(&["exchange.test"], Validity::Now);
    let front = TlsFront::start(identity, exchange.addr());
    let proxy = Relay::proxy_to(front.addr());
    proxy.refuse(Some((Some(BASIC), DENIED)));
    // No name server knows this name, nor needs to: the proxy does.
    let variable = through(&proxy, "me:hunter2@");
    let setup = Setup::new("https://exchange.test").trust(&authority);
    let marketd = setup.env("HTTPS_PROXY", &variable).start();
    serves(&marketd, &exchange);
    for asked in proxy.asked() {
        assert_eq!(asked.target, "exchange.test:443");
        assert_eq!(asked.authorization.as_deref(), Some(BASIC));
    }
    assert_eq!(front.shaken()[0].name.as_deref(), Some("exchange.test"));
    let asked_inside = exchange.asked();
    let leaked = |name: &str| asked_inside.iter().any(|it| it.field(name).is_some());
    assert!(!leaked("Proxy-Authorization"));
    // A proxy that dies takes its tunnels along, and they come back with it.
    proxy.refuse(Some((None, b"")));
    proxy.set(Passage::Cut);
    proxy.set(Passage::Open);
    await_error(&marketd, "no tunnel through the proxy: closed by the peer");
    let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno";
    for (but, answer, expected) in [
        (None, &busy[..], "status 503"),
        (None, b"220 mail ready\r\n\r\n", "malformed answer"),
        (Some("Basic x"), DENIED, "status 407, the proxy rejects the user and password"),
    ] {
        proxy.refuse(Some((but, answer)));
        await_error(&marketd, &format!("no tunnel through the proxy: {expected}"));
    }
    proxy.refuse(None);
    await_health(&marketd, "ok");
    let metrics = get(marketd.addr(), "/metrics").text().to_string();
    let json = get(marketd.addr(), "/api/v1/metrics").text().to_string();
    let log = marketd.log();
    assert!(log.contains(&format!("proxy={}", proxy.addr())), "{log}");
    for text in [metrics, json, log] {
        for secret in ["hunter2", "bWU6aHVudGVyMg"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[test]
fn a_proxy_that_wants_credentials_and_one_that_stalls_are_told() {
    let proxy = Relay::proxy();
    proxy.refuse(Some((Some(BASIC), DENIED)));
    let by = |name, url: &str| Setup::new("https://exchange.test").env(name, url);
    let denied = "no tunnel through the proxy: status 407, the proxy requires a user and password";
    by("https_proxy", &through(&proxy, "")).fails(denied);
    assert_eq!(proxy.asked()[0].authorization, None);
    proxy.set(Passage::Held);
    let setup = by("https_proxy", &through(&proxy, "")).timeout(300);
    setup.fails("no tunnel through the proxy: no answer in time");
    let nobody = Binance::empty();
    nobody.refuse();
    let refused = "cannot connect to the proxy: connection refused";
    by("ALL_PROXY", &nobody.url()).fails(refused);
}

#[test]
fn plain_http_goes_through_a_tunnel_too_and_exceptions_do_not() {
    let exchange = still(5, 7);
    let proxy = Relay::proxy_to(exchange.addr());
    let variable = through(&proxy, "");
    let marketd = Setup::new("http://exchange.test").env("HTTP_PROXY", &variable).start();
    serves(&marketd, &exchange);
    assert_eq!(proxy.asked()[0].target, "exchange.test:80");
    let asked = exchange.asked();
    assert_eq!(asked[0].field("Host"), Some("exchange.test"));
    assert!(asked[0].target.starts_with('/'), "{}", asked[0].target);
    // This machine itself is no proxy's business.
    let before = proxy.asked().len();
    drop(marketd);
    let marketd = Setup::new(&exchange.url()).env("HTTP_PROXY", &variable).start();
    serves(&marketd, &exchange);
    let setup = Setup::new("http://exchange.test").env("HTTP_PROXY", &variable);
    setup.env("NO_PROXY", "a.b, .test").timeout(500).fails("cannot resolve");
    assert_eq!(proxy.asked().len(), before);
}
