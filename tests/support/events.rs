//! A client of server-sent events: reads a stream strictly, as the WHATWG's standard has it (HTML,
//! 9.2), and every wait has a deadline.

use super::client::{Client, ClientError, Response};
use super::json::Json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// An open stream.
pub struct EventSource {
    client: Client,
    /// The head of the response; its body is empty.
    pub head: Response,
    is_chunked: bool,
    /// Text that is not a whole block yet.
    text: String,
    /// Set once the last chunk has come.
    pub is_over: bool,
    /// What `retry` last said.
    pub retry_ms: Option<u64>,
    /// The id of the last event that had one.
    pub last_id: String,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEvent {
    /// What `event` says.
    pub name: String,
    /// What `data` says.
    pub data: String,
    /// Its own id.
    pub id: Option<String>,
}

impl ServerEvent {
    /// Reads a block, which is an event, and what `retry` says in it.
    pub fn read(block: &str) -> Result<(ServerEvent, Option<u64>), String> {
        let (name, mut retry) = ("message".to_string(), None);
        let mut event = ServerEvent { name, data: String::new(), id: None };
        for line in block.split('\n') {
            match line.split_once(": ") {
                Some(("event", name)) => event.name = name.to_string(),
                Some(("data", data)) => event.data.push_str(data),
                Some(("id", id)) => event.id = Some(id.to_string()),
                Some(("retry", wait)) => retry = wait.parse().ok(),
                _ => return Err(format!("a line that we do not send: {line:?}")),
            }
        }
        // Some clients make an event of every block, whatever it has.
        match event.data.is_empty() {
            true => Err(format!("a block without data: {block:?}")),
            false => Ok((event, retry)),
        }
    }

    /// The data as a tree that keeps every digit.
    #[track_caller]
    pub fn exact(&self) -> Json {
        match Json::parse(&self.data) {
            Ok(value) => value,
            Err(fault) => panic!("data that is no JSON ({fault}): {:?}", self.data),
        }
    }
}

impl EventSource {
    /// Opens a stream; panics unless it is one.
    #[track_caller]
    pub fn open(addr: SocketAddr, target: &str) -> EventSource {
        EventSource::request(addr, &format!("GET {target} HTTP/1.1\r\nHost: {addr}\r\n\r\n"))
    }

    /// The same, going on behind this id.
    #[track_caller]
    pub fn resume(addr: SocketAddr, target: &str, id: &str) -> EventSource {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {addr}\r\nLast-Event-ID: {id}\r\n\r\n");
        EventSource::request(addr, &head)
    }

    /// The same with a request of one's own.
    #[track_caller]
    pub fn request(addr: SocketAddr, request: &str) -> EventSource {
        let mut client = Client::connect(addr);
        let head = client.send(request).and_then(|()| client.read_head());
        let head = head.unwrap_or_else(|fault| panic!("{request:?}: {fault}"));
        assert_eq!(head.status, 200, "{request:?}");
        assert_eq!(head.header("Content-Type"), Some("text/event-stream"));
        EventSource {
            is_chunked: head.header_lists("Transfer-Encoding", "chunked"),
            client,
            head,
            text: String::new(),
            is_over: false,
            retry_ms: None,
            last_id: String::new(),
        }
    }

    /// The connection, to send something on it.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The next event; an error if none comes in time, or the stream ends before it.
    pub fn next(&mut self) -> Result<ServerEvent, ClientError> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                return Ok(self.block(block.trim_end_matches('\n')));
            }
            if self.is_over {
                return Err(ClientError::Closed(self.text.clone()));
            }
            self.read()?;
        }
    }

    /// The next event of this name; others are passed over.
    #[track_caller]
    pub fn next_of(&mut self, name: &str) -> ServerEvent {
        self.until(|event| event.name == name)
    }

    /// The next event that is as wanted; others are passed over. Panics if none comes.
    #[track_caller]
    pub fn until(&mut self, mut wanted: impl FnMut(&ServerEvent) -> bool) -> ServerEvent {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match self.next() {
                Ok(event) if wanted(&event) => return event,
                Ok(event) => assert!(Instant::now() < deadline, "never, but {event:?}"),
                Err(fault) => panic!("no such event: {fault}"),
            }
        }
    }

    /// Waits for more of the body.
    fn read(&mut self) -> Result<(), ClientError> {
        match self.client.read_more(self.is_chunked)? {
            Some(data) => self.text += std::str::from_utf8(&data).expect("JSON of ours is ASCII"),
            None => self.is_over = true,
        }
        Ok(())
    }

    fn block(&mut self, block: &str) -> ServerEvent {
        let (event, retry) = ServerEvent::read(block).unwrap_or_else(|why| panic!("{why}"));
        self.retry_ms = retry.or(self.retry_ms);
        if let Some(id) = &event.id {
            self.last_id = id.clone();
        }
        event
    }
}
