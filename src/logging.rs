//! The log: which lines it keeps, their form, and where they go.
//!
//! Owns the one logger of the process. A thread that logs a line never waits for the reader of the
//! log (`writer`).
//!
//! Lines go to standard error. A line as text is `TIME LEVEL TARGET: MESSAGE`. If journald reads standard
//! error, a line has no time, because journald adds its own. A prefix tells journald the level (sd-daemon(3),
//! "LOGGING"). A line as JSON is one object, for programs that collect logs.

mod writer;

use crate::config::{LogFormat, unquoted};
use crate::core::LogFigures;
use crate::json::{Object, Value as _};
use crate::log_targets::NET;
use crate::time::{Clock, UnixMs};
use arc_swap::ArcSwap;
use log::{Level, Record};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use writer::LogWriter;

/// How long the process waits at its end for the last lines to be written.
const FLUSH: Duration = Duration::from_secs(1);

/// The logger of the process. Set by [`start`].
static LOGGER: OnceLock<Logger> = OnceLock::new();

struct Logger {
    /// Chooses the lines by the rules, and hands them to `out`. A reload replaces it, for all threads.
    lines: ArcSwap<env_logger::Logger>,
    out: Lines,
}

impl log::Log for Logger {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        self.lines.load().enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        self.lines.load().log(record);
    }

    fn flush(&self) {
        self.out.writer.flush(FLUSH);
    }
}

/// Hands each whole line to the writer.
#[derive(Clone)]
struct Lines {
    writer: Arc<LogWriter>,
    format: LineFormat,
    clock: Clock,
}

impl Lines {
    /// The logger that hands over the lines that these rules choose.
    fn chosen_by(&self, rules: &str) -> env_logger::Logger {
        let Lines { format, clock, .. } = *self;
        env_logger::Builder::new()
            .parse_filters(rules)
            .format(move |out, record| out.write_all(&format.line(record, clock.now().unix)))
            .target(env_logger::Target::Pipe(Box::new(self.clone())))
            .build()
    }

    /// The line that reports lost lines.
    fn tell(&self, lost: u64) -> Vec<u8> {
        let mut record = Record::builder();
        let record = record.level(Level::Warn).target(NET);
        let time = self.clock.now().unix;
        self.format.line(&record.args(format_args!("log lines lost count={lost}")).build(), time)
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.writer.write(line.into(), |lost| self.tell(lost));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the log. It keeps the lines that these rules choose.
///
/// # Panics
/// If the log has started already.
pub fn start(format: LineFormat, clock: Clock, rules: &str) -> io::Result<()> {
    let writer = Arc::new(match stderr_metadata().is_ok_and(|it| it.is_file()) {
        true => LogWriter::without_thread(),
        false => LogWriter::start(io::stderr())?,
    });
    let out = Lines { writer, format, clock };
    let logger = Logger { lines: ArcSwap::from_pointee(out.chosen_by("")), out };
    log::set_logger(LOGGER.get_or_init(|| logger)).expect("no other logger is set");
    set_rules(rules);
    Ok(())
}

/// Replaces the rules of the log.
pub fn set_rules(rules: &str) {
    if let Some(logger) = LOGGER.get() {
        let lines = logger.out.chosen_by(rules);
        log::set_max_level(lines.filter());
        logger.lines.store(Arc::new(lines));
    }
}

/// How many lines were lost so far, and whether the buffer is full.
pub fn figures() -> LogFigures {
    LOGGER.get().map(|logger| logger.out.writer.figures()).unwrap_or_default()
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineFormat {
    /// `2026-11-22T09:01:24.557Z INFO  net: listening on http://127.0.0.1:8080`
    Text,
    /// `<6>net: listening on http://127.0.0.1:8080`: the time is the journal's.
    Journal,
    /// `{"time":"...","level":"warn","target":"source","message":"request failed","source":"a"}`
    Json,
}

impl LineFormat {
    /// The form of the lines on standard error. `stream` is `JOURNAL_STREAM`: device and inode of what
    /// systemd has connected (systemd.exec(5)).
    pub fn of(format: LogFormat, stream: Option<&str>) -> LineFormat {
        let is_ours = |stream| device_and_inode().is_ok_and(|ours| ours == stream);
        match format {
            LogFormat::Json => LineFormat::Json,
            LogFormat::Text if stream.is_some_and(is_ours) => LineFormat::Journal,
            LogFormat::Text => LineFormat::Text,
        }
    }

    /// One line, with its end.
    pub fn line(self, record: &Record, time: UnixMs) -> Vec<u8> {
        let (level, target, message) = (record.level(), record.target(), record.args());
        match self {
            LineFormat::Text => format!("{time} {level:<5} {target}: {message}\n").into(),
            LineFormat::Journal => format!("<{}>{target}: {message}\n", priority(level)).into(),
            LineFormat::Json => {
                let (time, level) = (time.to_string(), level.as_str().to_ascii_lowercase());
                let text = message.to_string();
                let (message, fields) = fields(&text).unwrap_or((&text, Vec::new()));
                let mut line = Vec::new();
                let mut object = Object::open(&mut line);
                for (key, value) in
                    [("time", &*time), ("level", &level), ("target", target), ("message", message)]
                {
                    value.write(object.key(key));
                }
                for (key, value) in fields {
                    // A key that the line has already gets a `_`.
                    let is_taken = matches!(key, "time" | "level" | "target" | "message");
                    let key = if is_taken { format!("{key}_") } else { key.to_string() };
                    match is_number(&value) {
                        true => object.key(&key).extend_from_slice(value.as_bytes()),
                        false => value.write(object.key(&key)),
                    }
                }
                object.close();
                line.push(b'\n');
                line
            }
        }
    }
}

/// The event of a line, and the names and values of its fields: see [`crate::log_targets`]. `None` if the
/// line has no such form.
fn fields(text: &str) -> Option<(&str, Vec<(&str, String)>)> {
    let is_key =
        |key: &str| !key.is_empty() && key.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
    let begins = |text: &str| text.split_once('=').is_some_and(|(key, _)| is_key(key));
    let starts = text.match_indices(' ').map(|(at, _)| at + 1);
    let first = std::iter::once(0).chain(starts).find(|at| begins(&text[*at..]))?;
    let (event, mut rest) = (text[..first].trim_end(), &text[first..]);
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (key, value) = rest.split_once('=').filter(|(key, _)| is_key(key))?;
        let (value, after) = match value.starts_with('"') {
            true => {
                // A text of JSON (`log_targets::quoted`), up to the next quote that is not escaped.
                let mut is_escaped = false;
                let end = value[1..].find(|char| {
                    let ends = char == '"' && !is_escaped;
                    is_escaped = char == '\\' && !is_escaped;
                    ends
                });
                let (text, after) = value.split_at(end? + 2);
                (unquoted(text)?, after.strip_prefix(' ').or(after.is_empty().then_some(""))?)
            }
            false => {
                let (value, after) = value.split_once(' ').unwrap_or((value, ""));
                (value.to_string(), after)
            }
        };
        fields.push((key, value));
        rest = after;
    }
    Some((event, fields))
}

/// True if this is a number as JSON writes it.
fn is_number(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    is_digits(whole) && is_digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

/// The priority of a level (syslog(3)).
fn priority(level: Level) -> u8 {
    match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    }
}

/// The device and inode of standard error, as `DEVICE:INODE`.
fn device_and_inode() -> io::Result<String> {
    stderr_metadata().map(|it| format!("{}:{}", it.dev(), it.ino()))
}

fn stderr_metadata() -> io::Result<Metadata> {
    File::from(io::stderr().as_fd().try_clone_to_owned()?).metadata()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: LineFormat, level: Level, message: &str) -> String {
        let time = UnixMs(1_795_338_084_557);
        let mut record = Record::builder();
        record.level(level).target("net");
        let line = format.line(&record.args(format_args!("{message}")).build(), time);
        String::from_utf8(line).expect("UTF-8")
    }

    #[test]
    fn a_line_is_for_people_for_the_journal_or_for_programs() {
        let text = written(LineFormat::Text, Level::Warn, "a \"b\"");
        assert_eq!(text, "2026-11-22T09:01:24.557Z WARN  net: a \"b\"\n");
        let journal = written(LineFormat::Journal, Level::Error, "it fails");
        assert_eq!(journal, "<3>net: it fails\n");
        let json = written(LineFormat::Json, Level::Info, "a \"b\"\n\u{1b}");
        let expected = r#"{"time":"2026-11-22T09:01:24.557Z","level":"info","target":"net","message":"a \"b\"\u000a\u001b"}"#;
        assert_eq!(json, format!("{expected}\n"));
        let check = |line: &str, expected: &str| {
            let json = written(LineFormat::Json, Level::Info, line);
            let members = json.trim_matches(['{', '}', '\n']);
            let (_, rest) = members.split_once(r#""target":"net","message":"#).expect("its begin");
            assert_eq!(rest, expected);
        };
        let told = r#"request failed source=a what="a \"b\" c=d\n\u001b\\" ms=0.061 status=503 took=-2 by=0x1 at=007"#;
        check(
            told,
            r#""request failed","source":"a","what":"a \"b\" c=d\u000a\u001b\\","ms":0.061,"status":503,"took":-2,"by":"0x1","at":"007""#,
        );
        check(
            r#"peer=- target="/x" message="y""#,
            r#""","peer":"-","target_":"/x","message_":"y""#,
        );
        for sentence in
            ["poll: marketd --source binance=URL --symbols A", "a b", r#"a b="c"d"#, "a b=\"c"]
        {
            check(sentence, &format!("{sentence:?}"));
        }
    }

    #[test]
    fn only_text_gives_way_to_a_journal_that_reads_standard_error() {
        let ours = device_and_inode().expect("it is open");
        let check = |format, stream, expected| {
            assert_eq!(LineFormat::of(format, stream), expected, "{stream:?}");
        };
        check(LogFormat::Text, Some(&*ours), LineFormat::Journal);
        check(LogFormat::Json, Some(&*ours), LineFormat::Json);
        for other in [None, Some("1:2"), Some(""), Some("x")] {
            check(LogFormat::Text, other, LineFormat::Text);
        }
    }
}
