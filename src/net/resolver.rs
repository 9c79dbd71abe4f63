//! The name look-up: the system's resolver, which blocks, in a thread of its own.
//!
//! Owns that thread, which starts with the first name to look up and does nothing else. It shares
//! no state with the loop: questions go in and answers come out by messages, and the waker tells
//! the loop that one has come.
//!
//! It never keeps an answer; what to do with addresses is the core's to decide.

use crate::market::SourceId;
use mio::Waker;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

/// Questions that may wait for the thread: at most one a source is under way, so this is no real
/// limit on anybody.
const QUESTIONS: usize = 64;

/// Addresses taken from one answer: more than any exchange publishes.
const ADDRESSES: usize = 16;

/// What came of one look-up: addresses in the system's order, or what it said.
pub type Resolved = Result<Vec<SocketAddr>, String>;

struct Question {
    source: SourceId,
    host: String,
    port: u16,
}

/// See the module's page.
#[derive(Debug)]
pub struct Resolver {
    waker: Arc<Waker>,
    questions: Option<SyncSender<Question>>,
    answers: Receiver<(SourceId, Resolved)>,
    answer_end: Sender<(SourceId, Resolved)>,
}

impl Resolver {
    /// A resolver without a thread yet.
    pub fn new(waker: Arc<Waker>) -> Resolver {
        let (answer_end, answers) = channel();
        Resolver {
            waker,
            questions: None,
            answers,
            answer_end,
        }
    }

    /// Asks for the addresses of a host. The error is what keeps it from being asked at all.
    pub fn ask(&mut self, source: SourceId, host: &str, port: u16) -> Result<(), String> {
        if self.questions.is_none() {
            self.questions = Some(self.start()?);
        }
        let questions = self.questions.as_ref().expect("started just above");
        let question = Question {
            source,
            host: host.to_string(),
            port,
        };
        questions.try_send(question).map_err(|error| match error {
            TrySendError::Full(_) => "the resolver is busy".to_string(),
            TrySendError::Disconnected(_) => "the resolver's thread has ended".to_string(),
        })
    }

    /// The next answer that has come.
    pub fn answer(&mut self) -> Option<(SourceId, Resolved)> {
        self.answers.try_recv().ok()
    }

    fn start(&self) -> Result<SyncSender<Question>, String> {
        let (questions, inbox) = sync_channel::<Question>(QUESTIONS);
        let answers = self.answer_end.clone();
        let waker = Arc::clone(&self.waker);
        let body = move || {
            for question in inbox {
                let resolved = look_up(&question.host, question.port);
                if answers.send((question.source, resolved)).is_err() || waker.wake().is_err() {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("resolver".to_string())
            .stack_size(256 * 1024)
            .spawn(body)
            .map_err(|error| format!("cannot start the resolver's thread: {error}"))?;
        Ok(questions)
    }
}

fn look_up(host: &str, port: u16) -> Resolved {
    let addresses: Vec<_> = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("cannot resolve {host}: {error}"))?
        .take(ADDRESSES)
        .collect();
    if addresses.is_empty() {
        return Err(format!("{host} has no address"));
    }
    Ok(addresses)
}
