//! A `redis-server` of one's own: on a port of the loopback, in a directory of its own, without a
//! configuration of the system's, killed when the last hold on it goes.
//!
//! Its port stays the same when it is started again: it is held, so that nobody else gets it.

use super::daemon::{TempDir, signal};
use super::exchange::bound;
use super::{Json, PATIENCE, poll_until};
use marketd::resp::{RespValue, parse, write_command};
use socket2::Socket;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The server. Valkey is the same for all that is asked of it here.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// Names another one, or its path.
const VARIABLE: &str = "REDIS_SERVER";

/// A running server, or one that is down for a while.
pub struct Redis {
    child: Option<Child>,
    addr: SocketAddr,
    dir: Arc<TempDir>,
    program: String,
    arguments: Vec<String>,
    /// Bound, never listening: keeps the port while the server is down.
    _holder: Socket,
}

impl Redis {
    /// A server with these more arguments; `None`, said loudly, where none is installed.
    pub fn start(arguments: &[&str]) -> Option<Redis> {
        let Some(program) = program() else {
            super::skipped("no redis-server here; Debian: apt-get install redis-server");
            return None;
        };
        let holder = bound((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        let addr = holder.local_addr().ok().and_then(|addr| addr.as_socket());
        let mut redis = Redis {
            child: None,
            addr: addr.expect("it is bound"),
            dir: Arc::new(TempDir::new()),
            program,
            arguments: arguments.iter().map(|it| (*it).to_string()).collect(),
            _holder: holder,
        };
        redis.run();
        Some(redis)
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends it this signal.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        signal(self.pid().expect("it runs"), name);
    }

    /// Ends it without a word, as a crash does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it runs");
            child.wait().expect("it ends");
        }
    }

    /// Starts it again, with the data that it has saved if it has saved any.
    pub fn run(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        let mut command = Command::new(&self.program);
        command
            .args(["--port", &self.addr.port().to_string()])
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--dir", &self.dir.path().to_string_lossy()])
            .args(&self.arguments)
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it has run before");
        let out = child.stdout.take().expect("it is piped");
        self.child = Some(child);
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let is_ready = lines.any(|line| {
            said.push(line);
            said[said.len() - 1].contains("Ready to accept connections")
        });
        assert!(is_ready, "{}: {}", self.program, said.join("\n"));
        // A full pipe would hold it up.
        std::thread::spawn(move || lines.for_each(drop));
    }

    /// Writes its data to the file from which it starts.
    #[track_caller]
    pub fn save(&self) {
        assert_eq!(self.ask(&["SAVE"]), "OK");
    }

    /// Asks it something on a connection of its own; panics when none comes, or an error.
    #[track_caller]
    pub fn ask(&self, words: &[&str]) -> Json {
        match self.try_ask(words) {
            Ok(answer) => answer,
            Err(fault) => panic!("{words:?}: {fault}"),
        }
    }

    /// The same, for one that may be down.
    pub fn try_ask(&self, words: &[&str]) -> io::Result<Json> {
        let mut stream = TcpStream::connect(self.addr)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let (mut bytes, mut room) = (Vec::new(), [0; 16 * 1024]);
        write_command(&mut bytes, &words);
        stream.write_all(&bytes)?;
        bytes.clear();
        loop {
            match stream.read(&mut room)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => bytes.extend_from_slice(&room[..count]),
            }
            if let Some((answer, _)) = parse(&bytes).map_err(io::Error::other)? {
                return read(&answer);
            }
        }
    }

    /// Asks it something until the answer is as wanted; panics when it never is.
    #[track_caller]
    pub fn await_answer(&self, words: &[&str], wanted: impl Fn(&Json) -> bool) -> Json {
        let mut last = None;
        let found = poll_until(PATIENCE, || {
            last = self.try_ask(words).ok();
            last.clone().filter(&wanted)
        });
        found.unwrap_or_else(|| panic!("{words:?}: never as wanted, but {last:?}"))
    }

    /// The names of its keys, in order.
    #[track_caller]
    pub fn keys(&self) -> Vec<String> {
        let keys = self.ask(&["KEYS", "*"]);
        let mut keys: Vec<String> = keys.texts().into_iter().map(str::to_string).collect();
        keys.sort();
        keys
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An answer as JSON has it. An error is no answer.
fn read(value: &RespValue<'_>) -> io::Result<Json> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(match value {
        RespValue::Simple(bytes) | RespValue::Bulk(bytes) => Json::Text(text(bytes)),
        RespValue::Error(bytes) => return Err(io::Error::other(text(bytes))),
        RespValue::Integer(number) => Json::Number(number.to_string()),
        RespValue::Null => Json::Null,
        RespValue::Array(list) => Json::Array(list.iter().map(read).collect::<io::Result<_>>()?),
    })
}

/// The first one that is installed. One that was named must be.
fn program() -> Option<String> {
    let runs = |program: &String| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    match std::env::var(VARIABLE) {
        Ok(named) => {
            assert!(runs(&named), "{VARIABLE}={named} does not run");
            Some(named)
        }
        Err(_) => PROGRAMS.map(String::from).into_iter().find(runs),
    }
}
