//! Many readers of the stream, and an exchange whose quotes all change once a second
//! (scripts/stream.sh). Prints one line of `name=value`.
//!
//!     stream --readers 1000 --symbols 100 --deaf 100 -- target/release/marketd
//!
//! It also plays the exchange, so it knows when the last byte of each poll was written. The delay of an event
//! is the time from then until the event is read.
//!
//! Half a second after each poll, a loop that does nothing else (`--bare`) sends the same number of bytes to
//! the same number of other readers. This gives the time of the kernel alone.

#[path = "../src/net/sockopt.rs"]
mod sockopt;
#[path = "../tests/support/mod.rs"]
mod support;

use lexopt::prelude::*;
use mio::net::TcpStream as MioStream;
use mio::{Events, Interest, Poll, Token};
use socket2::Socket;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use support::generated::Generated;

const HELP: &str = "stream [options] -- COMMAND OF MARKETD...
    --readers N    that read (default 1000)
    --symbols N    of each (default 100)
    --tickers N    of the exchange (default 3500)
    --deaf N       more readers that never read (default 0)
    --seconds N    to measure (default 20)
    --bare N       be the bare loop, which sends so many bytes to each reader for each byte on stdin";

/// Readers of marketd, and those of the bare loop.
const SERVED: usize = 0;
const BARE: usize = 1;

/// What ends an event.
const END: &[u8] = b"\n\n";

/// Time for the server to settle.
const REST: Duration = Duration::from_secs(4);

/// The longest time that any step may take.
const PATIENCE: Duration = Duration::from_secs(60);

struct Options {
    readers: usize,
    symbols: usize,
    tickers: usize,
    deaf: usize,
    seconds: u64,
    bare: Option<usize>,
    command: Vec<String>,
}

fn main() -> ExitCode {
    let done = options().map_err(|fault| format!("{fault}\n{HELP}"));
    let done = done.and_then(|options| match options.bare {
        Some(bytes) => send_only(&options, bytes).map_err(told("the bare loop")),
        None => run(&options),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("stream: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Options, lexopt::Error> {
    let mut options = Options {
        readers: 1000,
        symbols: 100,
        tickers: 3500,
        deaf: 0,
        seconds: 20,
        bare: None,
        command: Vec::new(),
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("readers") => options.readers = parser.value()?.parse()?,
            Long("symbols") => options.symbols = parser.value()?.parse()?,
            Long("tickers") => options.tickers = parser.value()?.parse()?,
            Long("deaf") => options.deaf = parser.value()?.parse()?,
            Long("seconds") => options.seconds = parser.value()?.parse()?,
            Long("bare") => options.bare = Some(parser.value()?.parse()?),
            Value(word) => options.command.push(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    match options.command.is_empty() && options.bare.is_none() {
        true => Err("the command of marketd is missing".into()),
        false => Ok(options),
    }
}

fn told(what: &'static str) -> impl Fn(io::Error) -> String {
    move |error| format!("{what}: {error}")
}

/// The exchange: its markets, and when the last byte of the newest poll was written.
struct Exchange {
    generated: Generated,
    begin: Instant,
    /// Nanoseconds since `begin`; 0: no poll yet. The second value is when the bare loop was told to send.
    last_byte: [AtomicU64; 2],
    polls: AtomicU64,
}

impl Exchange {
    fn start(tickers: usize) -> io::Result<(SocketAddr, Arc<Exchange>)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let exchange = Arc::new(Exchange {
            generated: Generated::new(tickers, 1),
            begin: Instant::now(),
            last_byte: [AtomicU64::new(0), AtomicU64::new(0)],
            polls: AtomicU64::new(0),
        });
        let served = exchange.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                std::thread::spawn(move || served.serve(&stream));
            }
        });
        Ok((address, exchange))
    }

    /// Notes that the data for these readers is known from now on.
    fn note(&self, whose: usize) {
        let at = self.begin.elapsed().as_nanos() as u64;
        self.last_byte[whose].store(at, Ordering::SeqCst);
    }

    /// Answers one connection until it ends.
    fn serve(&self, stream: &TcpStream) -> Option<()> {
        stream.set_nodelay(true).ok()?;
        let mut lines = BufReader::new(stream).lines();
        loop {
            let line = lines.next()?.ok()?;
            while !lines.next()?.ok()?.is_empty() {}
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let now = now.ok()?.as_millis() as i64;
            let is_poll = line.contains("/ticker/24hr");
            let body = if is_poll {
                self.generated.tickers(now)
            } else if line.contains("/exchangeInfo") {
                self.generated.exchange_info(now)
            } else if line.contains("/time") {
                format!("{{\"serverTime\":{now}}}")
            } else {
                "[]".to_string()
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            let mut out = stream;
            out.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
            if is_poll {
                self.note(SERVED);
                self.polls.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// The marketd that is measured.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process is gone or about to go, so an error does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(options: &Options, exchange: SocketAddr) -> Result<Server, String> {
        let source = format!(
            "{{ \"dialect\": \"binance\", \"url\": \"http://{exchange}\", \"quoteAssets\": [\"*\"], \
             \"pollMs\": 1000 }}"
        );
        let config = format!(
            "{{ \"listen\": \"127.0.0.1:0\", \"data\": \":memory:\", \"sources\": [ {source} ], \
             \"limits\": {{ \"writeTimeoutMs\": 10000, \"streams\": 100000 }} }}"
        );
        let path = std::env::temp_dir().join(format!("marketd-stream-{}.json", std::process::id()));
        std::fs::write(&path, config).map_err(told("the configuration"))?;
        let [program, arguments @ ..] = &options.command[..] else {
            return Err("no command".to_string());
        };
        let mut command = Command::new(program);
        command.args(arguments).arg("--config").arg(&path);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = child.map_err(told("start marketd"))?;
        let mut log = BufReader::new(child.stderr.take().ok_or("no log")?);
        let address = loop {
            let mut line = String::new();
            if log.read_line(&mut line).map_err(told("read the log"))? == 0 {
                return Err("marketd has ended".to_string());
            }
            if let Some((_, address)) = line.split_once("listening on http://") {
                break address.trim().parse().map_err(|_| line.clone())?;
            }
        };
        std::thread::spawn(move || io::copy(&mut log, &mut io::sink()));
        // It has read it.
        let _ = std::fs::remove_file(&path);
        Ok(Server { child, address })
    }

    /// The body of a response of its own connection.
    fn get(&self, path: &str) -> Result<String, String> {
        let mut stream = TcpStream::connect(self.address).map_err(told("connect"))?;
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(told("ask"))?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map_err(told("read"))?;
        let (_, body) = text.split_once("\r\n\r\n").ok_or("no body")?;
        Ok(body.to_string())
    }

    /// A sample of the page of metrics.
    fn metric(page: &str, name: &str) -> u64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|rest| rest.trim().parse::<f64>().ok());
        value.map_or(0, |value| value as u64)
    }

    /// The processor time that it has used, in clock ticks of a hundredth of a second.
    fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        let fields: Vec<u64> = fields.split(' ').map(|it| it.parse().unwrap_or(0)).collect();
        fields.iter().skip(11).take(2).sum()
    }
}

/// One reader.
struct Reader {
    stream: MioStream,
    whose: usize,
    /// How many bytes of [`END`] the last read ended with.
    matched: usize,
    events: u64,
    is_open: bool,
}

/// The readers, and the delays of their events.
struct Crowd {
    poll: Poll,
    readers: Vec<Reader>,
    /// Delays in nanoseconds, one for each event, of both kinds of readers.
    late: [Vec<u32>; 2],
    /// Bytes that marketd has sent.
    bytes: usize,
    closed: usize,
}

impl Crowd {
    fn new() -> Result<Crowd, String> {
        Ok(Crowd {
            poll: Poll::new().map_err(told("a poller"))?,
            readers: Vec::new(),
            late: [Vec::new(), Vec::new()],
            bytes: 0,
            closed: 0,
        })
    }

    /// Adds a reader for each of these targets.
    fn connect(
        &mut self,
        address: SocketAddr,
        targets: &[String],
        whose: usize,
    ) -> Result<(), String> {
        for target in targets {
            let mut stream = TcpStream::connect(address).map_err(told("connect"))?;
            let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
            stream.write_all(request.as_bytes()).map_err(told("ask"))?;
            stream.set_nonblocking(true).map_err(told("a socket"))?;
            let mut stream = MioStream::from_std(stream);
            let token = Token(self.readers.len());
            let registry = self.poll.registry();
            (registry.register(&mut stream, token, Interest::READABLE))
                .map_err(told("register"))?;
            self.readers.push(Reader { stream, whose, matched: 0, events: 0, is_open: true });
        }
        Ok(())
    }

    /// Reads for this time, or until `enough`.
    fn read(
        &mut self,
        exchange: &Exchange,
        span: Duration,
        enough: impl Fn(&Crowd) -> bool,
    ) -> Result<(), String> {
        let mut events = Events::with_capacity(256);
        let mut buffer = vec![0; 256 * 1024];
        let begin = Instant::now();
        while begin.elapsed() < span && !enough(self) {
            let wait = Some(Duration::from_millis(20));
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(format!("wait: {error}"));
                }
                _ => {}
            }
            for event in &events {
                self.read_one(event.token().0, &mut buffer, exchange);
            }
        }
        Ok(())
    }

    fn read_one(&mut self, at: usize, buffer: &mut [u8], exchange: &Exchange) {
        let reader = &mut self.readers[at];
        loop {
            match reader.stream.read(buffer) {
                Ok(0) => break,
                Ok(count) => {
                    let now = exchange.begin.elapsed().as_nanos() as u64;
                    let last = exchange.last_byte[reader.whose].load(Ordering::SeqCst);
                    if reader.whose == SERVED {
                        self.bytes += count;
                    }
                    let events = ends(&buffer[..count], &mut reader.matched);
                    reader.events += events;
                    let late = u32::try_from(now.saturating_sub(last)).unwrap_or(u32::MAX);
                    let late = std::iter::repeat_n(late, events as usize);
                    self.late[reader.whose].extend(late);
                    if count < buffer.len() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
        }
        if std::mem::replace(&mut reader.is_open, false) {
            self.closed += 1;
        }
    }
}

/// How many events end in these bytes. `matched`: how much of an end came with the previous bytes.
fn ends(bytes: &[u8], matched: &mut usize) -> u64 {
    let mut found = 0;
    let mut rest = bytes;
    if *matched == 1 && rest.first() == Some(&b'\n') {
        found += 1;
        rest = &rest[1..];
    }
    *matched = 0;
    while let Some(at) = memchr::memmem::find(rest, END) {
        found += 1;
        rest = &rest[at + END.len()..];
    }
    if rest.last() == Some(&b'\n') {
        *matched = 1;
    }
    found
}

/// Does the least for readers: sends the same bytes to each, again and again.
fn send_only(options: &Options, bytes: usize) -> io::Result<()> {
    let socket = Socket::from(TcpListener::bind("127.0.0.1:0")?);
    socket.set_tcp_nodelay(true)?;
    sockopt::limit_unsent(&socket);
    sockopt::limit_unacknowledged(&socket, Duration::from_secs(30));
    sockopt::defer_accept(&socket);
    let listener = TcpListener::from(socket);
    println!("{}", listener.local_addr()?);
    let mut readers = Vec::new();
    for _ in 0..options.readers {
        let (stream, _) = listener.accept()?;
        let mut lines = BufReader::new(&stream).lines();
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        readers.push(stream);
    }
    let event = [&vec![b'x'; bytes / options.symbols][..], END].concat();
    let all = event[2..].repeat(options.symbols);
    for _ in io::stdin().lock().bytes() {
        for mut reader in &readers {
            reader.write_all(&all)?;
        }
    }
    Ok(())
}

/// Starts the bare loop on marketd's core. It sends this many bytes half a second after each poll.
fn start_bare(
    options: &Options,
    bytes: usize,
    exchange: &Arc<Exchange>,
) -> Result<(Child, SocketAddr), String> {
    let own = std::env::current_exe().map_err(told("this program"))?;
    let own = own.to_string_lossy().into_owned();
    let (_, before) = options.command.split_last().ok_or("no command")?;
    let words = [before, &[own]].concat();
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .args(["--bare".to_string(), bytes.to_string()])
        .args(["--readers".to_string(), options.readers.to_string()])
        .args(["--symbols".to_string(), options.symbols.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(told("start the bare loop"))?;
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().ok_or("no output")?);
    out.read_line(&mut line).map_err(told("read its address"))?;
    let address = line.trim().parse().map_err(|_| line.clone())?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let exchange = exchange.clone();
    std::thread::spawn(move || {
        let mut seen = exchange.polls.load(Ordering::SeqCst);
        loop {
            while exchange.polls.load(Ordering::SeqCst) == seen {
                std::thread::sleep(Duration::from_millis(5));
            }
            seen = exchange.polls.load(Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(500));
            exchange.note(BARE);
            if input.write_all(b"x").is_err() {
                return;
            }
        }
    });
    Ok((child, address))
}

fn run(options: &Options) -> Result<(), String> {
    let (address, exchange) = Exchange::start(options.tickers).map_err(told("an exchange"))?;
    let server = Server::start(options, address)?;
    let begin = Instant::now();
    while exchange.polls.load(Ordering::SeqCst) < 2 {
        if begin.elapsed() > PATIENCE {
            return Err("marketd never polls".to_string());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let symbols: Vec<String> = exchange.generated.markets().iter().map(|it| it.symbol()).collect();
    let target = |reader: usize| {
        let first = reader * options.symbols;
        let names = (0..options.symbols).map(|at| &*symbols[(first + at) % symbols.len()]);
        let names: Vec<&str> = names.collect();
        format!("/api/v1/stream?symbols={}", names.join(","))
    };
    let rss = |page: &str| Server::metric(page, "marketd_resident_memory_bytes");
    let before = server.get("/metrics")?;
    let targets: Vec<String> = (0..options.readers).map(target).collect();
    let mut crowd = Crowd::new()?;
    crowd.connect(server.address, &targets, SERVED)?;
    // Now all readers have everything once, and have seen two polls.
    let wanted = 3 * options.symbols as u64;
    let has_all = |crowd: &Crowd| crowd.readers.iter().all(|it| it.events >= wanted);
    crowd.read(&exchange, PATIENCE, has_all)?;
    let each = crowd.bytes / crowd.late[SERVED].len().max(1) * options.symbols;
    let (mut bare, address) = start_bare(options, each, &exchange)?;
    crowd.connect(address, &targets, BARE)?;
    crowd.read(&exchange, REST, |_| false)?;
    let with_readers = server.get("/metrics")?;
    let mut deaf = Vec::new();
    for _ in 0..options.deaf {
        let mut stream = TcpStream::connect(server.address).map_err(told("connect"))?;
        // Of all symbols, so that what the kernel takes for it is soon full.
        let request = "GET /api/v1/stream?symbols=* HTTP/1.1\r\nHost: h\r\n\r\n";
        stream.write_all(request.as_bytes()).map_err(told("ask"))?;
        deaf.push(stream);
    }
    let ticks = server.cpu_ticks();
    let polls = exchange.polls.load(Ordering::SeqCst);
    crowd.late = [Vec::new(), Vec::new()];
    let begin = Instant::now();
    crowd.read(&exchange, Duration::from_secs(options.seconds), |_| false)?;
    let took = begin.elapsed();
    // Thousandths of a core: a tick is a hundredth of a second.
    let cpu = (server.cpu_ticks() - ticks) * 10_000 / took.as_millis().max(1) as u64;
    let polls = exchange.polls.load(Ordering::SeqCst) - polls;
    let after = server.get("/metrics")?;
    // The processes are gone, or about to go.
    let _ = (bare.kill(), bare.wait());
    report(
        options,
        crowd,
        (polls, cpu),
        [before, with_readers, after].map(|page| {
            let turn = |le: &str| {
                let name = format!("marketd_loop_turn_seconds_bucket{{le=\"{le}\"}}");
                Server::metric(&page, &name)
            };
            let closed = "marketd_stream_closes_total{reason=\"write_timeout\"}";
            [
                rss(&page),
                turn("+Inf"),
                turn("0.001000"),
                Server::metric(&page, "marketd_stream_conflated_total"),
                Server::metric(&page, "marketd_stream_events_total"),
                Server::metric(&page, closed),
            ]
        }),
    )
}

fn report(
    options: &Options,
    mut crowd: Crowd,
    (polls, cpu): (u64, u64),
    [before, with_readers, after]: [[u64; 6]; 3],
) -> Result<(), String> {
    crowd.late.iter_mut().for_each(|late| late.sort_unstable());
    let part_of = |whose: usize, of_a_million: usize| {
        let late = &crowd.late[whose];
        let at = late.len() * of_a_million / 1_000_000;
        late.get(at).copied().unwrap_or(0) / 1000
    };
    let part = |of_a_million| part_of(SERVED, of_a_million);
    let turns = after[1] - with_readers[1];
    let short = 100_000 * (after[2] - with_readers[2]) / turns.max(1);
    let per_reader = with_readers[0].saturating_sub(before[0]) / options.readers.max(1) as u64;
    println!(
        "readers={} symbols={} polls={polls} cpu_mille={cpu} events={} conflated={} p50_us={} p99_us={} \
         p999_us={} max_us={} turns={turns} turns_below_1ms={short} rss_before={} rss={} \
         bytes_per_reader={per_reader} deaf={} closed_for_it={} others_closed={} floor_p50_us={} \
         floor_p99_us={} floor_p999_us={}",
        options.readers,
        options.symbols,
        crowd.late[SERVED].len(),
        after[3] - with_readers[3],
        part(500_000),
        part(990_000),
        part(999_000),
        part(999_999),
        before[0],
        after[0],
        options.deaf,
        after[5],
        crowd.closed,
        part_of(BARE, 500_000),
        part_of(BARE, 990_000),
        part_of(BARE, 999_000),
    );
    Ok(())
}
