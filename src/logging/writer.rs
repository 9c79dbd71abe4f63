//! The writer of the log: sends the lines to standard error. A thread that logs never waits for the
//! reader.
//!
//! A regular file has no reader, and is written at once. Anything else is written by the log's own thread,
//! which alone waits. Owns the buffer of lines between the other threads and the log's thread, at most
//! [`BUFFER_BYTES`] large. While the buffer is full, lines are lost and counted. Once the buffer is half
//! empty, lines are taken again, and a line in front of the first one tells how many were lost.
//!
//! Standard error stays as it is, mostly blocking: other processes may share its terminal or pipe, which
//! would become non-blocking for them too. If one of them has made it non-blocking, the log's thread tries
//! again until it is writable.

use crate::core::LogFigures;
use crate::time::Clock;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// Bytes of lines that wait for the reader: some ten thousand lines, a second of a busy access log.
const BUFFER_BYTES: usize = 1024 * 1024;

/// How long the log's thread waits before it tries again, if standard error is full and does not block.
const FULL_PAUSE: Duration = Duration::from_millis(10);

/// The writer of the log's lines.
pub struct LogWriter {
    /// The channel to the thread. `None` if standard error is a regular file.
    messages: Option<Sender<Message>>,
    figures: Arc<Figures>,
}

enum Message {
    /// One line to write, perhaps behind a line that tells of `tells` lost ones. If the write fails, the
    /// report is lost too.
    Write { bytes: Vec<u8>, tells: u64 },
    /// A request to answer once all messages before it are written.
    Flush(SyncSender<()>),
}

#[derive(Default)]
struct Figures {
    /// Bytes that are not written yet.
    waiting: AtomicUsize,
    /// Lost lines since the start.
    lost: AtomicU64,
    /// Lost lines that the log has not reported yet.
    untold: AtomicU64,
    /// When the current write began, in microseconds of the system's clock; 0 if no write is in
    /// progress.
    since_us: AtomicU64,
    /// True if the last write ended within a line.
    is_cut: AtomicBool,
}

impl Figures {
    fn write(&self, out: &mut impl Write, mut bytes: Vec<u8>, tells: u64) {
        self.since_us.store(Clock::system_us(), Relaxed);
        if self.is_cut.load(Relaxed) {
            bytes.insert(0, b'\n');
        }
        let mut written = 0;
        while written < bytes.len() {
            match out.write(&bytes[written..]) {
                Ok(count @ 1..) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(FULL_PAUSE),
                _ => {
                    self.lose(tells);
                    break;
                }
            }
        }
        if let Some(last) = bytes[..written].last() {
            self.is_cut.store(*last != b'\n', Relaxed);
        }
        self.since_us.store(0, Relaxed);
    }

    /// How long the current write has taken so far.
    fn stalled(&self) -> Duration {
        match self.since_us.load(Relaxed) {
            0 => Duration::ZERO,
            since => Duration::from_micros(Clock::system_us().saturating_sub(since)),
        }
    }

    fn lose(&self, tells: u64) {
        self.lost.fetch_add(1, Relaxed);
        self.untold.fetch_add(1 + tells, Relaxed);
    }

    /// True if lines are lost: the buffer was full, and is not half empty again.
    fn is_full(&self) -> bool {
        self.untold.load(Relaxed) > 0 && self.waiting.load(Relaxed) > BUFFER_BYTES / 2
    }
}

impl LogWriter {
    /// Starts the thread, which writes to `out`.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<LogWriter> {
        let (messages, received) = channel();
        let figures = Arc::new(Figures::default());
        let shared = Arc::clone(&figures);
        let thread = thread::Builder::new().name("log".to_string());
        thread.spawn(move || write_all(&received, &shared, out))?;
        Ok(LogWriter { messages: Some(messages), figures })
    }

    /// Writes to standard error at once.
    pub fn without_thread() -> LogWriter {
        LogWriter { messages: None, figures: Arc::default() }
    }

    /// Queues a line without waiting. `tell` makes the line that reports how many were lost.
    pub fn write(&self, line: Vec<u8>, tell: impl Fn(u64) -> Vec<u8>) {
        let Figures { waiting, untold, .. } = &*self.figures;
        if self.figures.is_full() || waiting.load(Relaxed) + line.len() > BUFFER_BYTES {
            return self.figures.lose(0);
        }
        let tells = untold.swap(0, Relaxed);
        let bytes = match tells {
            0 => line,
            _ => [tell(tells), line].concat(),
        };
        let Some(messages) = &self.messages else {
            return self.figures.write(&mut io::stderr(), bytes, tells);
        };
        waiting.fetch_add(bytes.len(), Relaxed);
        if messages.send(Message::Write { bytes, tells }).is_err() {
            self.figures.lose(tells);
        }
    }

    /// Waits until all lines are written, for at most this time. The time for which the current write has
    /// waited already counts.
    pub fn flush(&self, within: Duration) {
        let within = within.saturating_sub(self.figures.stalled());
        let (done, is_done) = sync_channel(1);
        if self.messages.as_ref().is_some_and(|it| it.send(Message::Flush(done)).is_ok()) {
            // After a timeout the rest is lost with the process.
            let _ = is_done.recv_timeout(within);
        }
    }

    /// How many lines were lost, and whether the buffer is full.
    pub fn figures(&self) -> LogFigures {
        let Figures { lost, .. } = &*self.figures;
        LogFigures { lost: lost.load(Relaxed), is_full: self.figures.is_full() }
    }
}

/// Writes the messages that arrive, until all senders are gone.
fn write_all(messages: &Receiver<Message>, figures: &Figures, mut out: impl Write) {
    for message in messages {
        match message {
            Message::Write { bytes, tells } => {
                let count = bytes.len();
                figures.write(&mut out, bytes, tells);
                figures.waiting.fetch_sub(count, Relaxed);
            }
            Message::Flush(done) => {
                // The waiting thread may have given up.
                let _ = done.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, mpsc};

    const ALL: usize = usize::MAX;

    /// Takes a write each time that it is let, of at most as many bytes as it is told.
    struct Slow {
        let_go: Receiver<io::Result<usize>>,
        text: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.let_go.recv().unwrap_or(Ok(ALL))?.min(bytes.len());
            self.text.lock().expect("no panic").extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Written = Arc<Mutex<Vec<u8>>>;

    /// A log, the way to let it write, and what it has written.
    fn slow() -> (LogWriter, Sender<io::Result<usize>>, Written) {
        let (let_go, waits) = mpsc::channel();
        let text = Arc::new(Mutex::new(Vec::new()));
        let out = Slow { let_go: waits, text: Arc::clone(&text) };
        (LogWriter::start(out).expect("a thread"), let_go, text)
    }

    fn write(log: &LogWriter, line: &str) {
        log.write(line.into(), |lost| format!("lost {lost}\n").into_bytes());
    }

    #[test]
    fn lines_beyond_the_buffer_are_lost_and_told_in_their_place_once_it_is_half_empty() {
        let (log, let_go, text) = slow();
        let line = format!("{}\n", "x".repeat(1023));
        for _ in 0..1024 {
            write(&log, &line);
        }
        assert_eq!((log.figures().lost, log.figures().is_full), (0, false));
        for _ in 0..3 {
            write(&log, &line);
        }
        assert_eq!((log.figures().lost, log.figures().is_full), (3, true));
        // As long as it does not flow, a flush gives up.
        log.flush(Duration::from_millis(1));
        for _ in 0..511 {
            let_go.send(Ok(ALL)).expect("it waits");
        }
        while log.figures.waiting.load(Relaxed) > 513 * 1024 {
            thread::yield_now();
        }
        write(&log, "lost too\n");
        let_go.send(Ok(ALL)).expect("it waits");
        while log.figures().is_full {
            thread::yield_now();
        }
        write(&log, "taken\n");
        drop(let_go);
        log.flush(Duration::from_secs(60));
        assert_eq!((log.figures().lost, log.figures().is_full), (4, false));
        let text = String::from_utf8(text.lock().expect("no panic").clone()).expect("UTF-8");
        assert_eq!(text, line.repeat(1024) + "lost 4\ntaken\n");
        assert_eq!(log.figures.waiting.load(Relaxed), 0);
    }

    #[test]
    fn lines_that_cannot_be_written_are_lost_and_told_when_others_can() {
        let (log, let_go, text) = slow();
        let_go.send(Ok(1)).expect("it waits");
        for _ in 0..3 {
            let_go.send(Err(io::ErrorKind::BrokenPipe.into())).expect("it waits");
            write(&log, "a\n");
            log.flush(Duration::from_secs(60));
        }
        assert_eq!(log.figures().lost, 3);
        drop(let_go);
        write(&log, "b\n");
        log.flush(Duration::from_secs(60));
        assert_eq!(log.figures().lost, 3);
        assert_eq!(text.lock().expect("no panic").as_slice(), b"a\nlost 3\nb\n");
    }

    #[test]
    fn a_pipe_that_does_not_block_loses_no_line() {
        let (log, let_go, text) = slow();
        let_go.send(Err(io::ErrorKind::WouldBlock.into())).expect("it waits");
        drop(let_go);
        write(&log, "a\n");
        log.flush(Duration::from_secs(60));
        assert_eq!(log.figures().lost, 0);
        assert_eq!(text.lock().expect("no panic").as_slice(), b"a\n");
    }

    #[test]
    fn a_reader_that_has_stopped_reading_is_not_waited_for_again() {
        let (log, let_go, _) = slow();
        write(&log, "a\n");
        while log.figures.stalled().is_zero() {
            thread::yield_now();
        }
        let an_hour = Duration::from_secs(3600);
        let since = Clock::system_us().saturating_sub(an_hour.as_micros() as u64).max(1);
        log.figures.since_us.store(since, Relaxed);
        log.flush(log.figures.stalled());
        drop(let_go);
    }
}
