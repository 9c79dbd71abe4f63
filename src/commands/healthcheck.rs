//! `marketd healthcheck [--wait SECONDS] [URL]` and `marketd reload PID [URL]`: requests to a running
//! marketd, for containers without curl and for service managers.

use crate::config::{ConfigFault, HttpPlace};
use crate::net::connect;
use crate::time::Clock;
use rustix::process::{Pid, Signal, kill_process};
use socket2::Socket;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The longest time for a request, from the look-up of the name to the last byte of the response.
const PATIENCE: Duration = Duration::from_secs(3);

/// Most bytes of a response that are read: the metrics of a hundred sources.
const MOST: u64 = 1024 * 1024;

/// How often the result of a reload is checked, and the pause between two checks.
const LOOKS: u32 = 300;
const PAUSE: Duration = Duration::from_millis(100);

/// The pause between two requests for readiness.
const READY_PAUSE: Duration = Duration::from_millis(10);

/// Asks whether a marketd is ready. Repeats this until it is ready, or until `wait` has passed. Returns the
/// text to print, which is empty.
///
/// # Errors
/// One line, if no server answers or the status is not 200.
pub fn ask(at: &HttpPlace, wait: Duration) -> Result<String, String> {
    let begin = Clock::system_us();
    loop {
        let left = wait.saturating_sub(Duration::from_micros(Clock::system_us() - begin));
        let patience = if wait.is_zero() { PATIENCE } else { left.min(PATIENCE) };
        match get(at, patience) {
            Err(_) if left > READY_PAUSE => thread::sleep(READY_PAUSE),
            answer => return answer.map(|_| String::new()),
        }
    }
}

/// Makes a marketd reload its configuration, and waits until it is applied or refused. Returns the text to
/// print.
///
/// # Errors
/// A line for each fault, if the configuration is refused; one line, if no server answers or tells the result
/// in time, or the process is no marketd that serves.
pub fn reload(pid: u32, metrics: Result<HttpPlace, Vec<ConfigFault>>) -> Result<String, String> {
    // The process must be a marketd, because the signal ends most other programs.
    let name = |pid: &str| fs::read_to_string(format!("/proc/{pid}/comm"));
    let (own, found) = (name("self"), name(&pid.to_string()));
    match found.map_err(|error| format!("process {pid}: {error}"))? {
        found if own.is_ok_and(|own| own == found) => {}
        found => return Err(format!("process {pid} is {}, and no marketd", found.trim_end())),
    }
    let unsent = |why: String| format!("{why}; process {pid} was told nothing");
    if !serves(pid) {
        return Err(unsent("it does not serve".to_string()));
    }
    let send = || {
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("it has a name");
        kill_process(process, Signal::HUP).map_err(|error| format!("process {pid}: {error}"))
    };
    let metrics = match metrics {
        Ok(metrics) => metrics,
        // The process will refuse the file, and log that.
        Err(faults) => {
            send()?;
            let faults: Vec<String> = faults.iter().map(ConfigFault::to_string).collect();
            return Err(faults.join("\n"));
        }
    };
    let [taken, refused] = reloads(&metrics).map_err(unsent)?;
    send()?;
    for _ in 0..LOOKS {
        thread::sleep(PAUSE);
        match reloads(&metrics)? {
            [_, now] if now > refused => {
                return Err(
                    "the configuration was refused, and nothing has changed: see the log".into()
                );
            }
            [now, _] if now > taken => return Ok("reloaded\n".to_string()),
            _ => {}
        }
    }
    Err("the configuration was not taken in yet: see the log".to_string())
}

/// True if the process exists and handles SIGHUP. Otherwise the signal would end it.
fn serves(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    caught.is_some_and(|it| it & 1 == 1)
}

/// How many reloads were applied, and how many refused.
fn reloads(metrics: &HttpPlace) -> Result<[u64; 2], String> {
    let text = get(metrics, PATIENCE)?;
    let count = |result: &str| {
        let name = format!("marketd_config_reloads_total{{result=\"{result}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&*name)?.parse().ok())
    };
    let counts = count("taken").zip(count("refused")).map(<[u64; 2]>::from);
    counts.ok_or_else(|| "the server has no count of reloads: it is no marketd".to_string())
}

/// The body of a response with status 200.
fn get(at: &HttpPlace, patience: Duration) -> Result<String, String> {
    let (name, asked) = (at.to_string(), at.clone());
    let (sender, response) = mpsc::channel();
    // A thread, because a look-up of a name has no timeout, and a timeout of reading never ends a response
    // that comes byte by byte.
    thread::spawn(move || sender.send(response_of(&asked)));
    let response = response.recv_timeout(patience);
    let response = response.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let response = response.map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&response);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let line = head.lines().next().unwrap_or_default();
    match line.strip_prefix("HTTP/1.1 ") {
        Some(status) if status.split(' ').next() == Some("200") => Ok(body.to_string()),
        Some(_) => Err(format!("{line}: {}", body.trim_end())),
        None => Err(format!("{name}: the response is not HTTP")),
    }
}

fn response_of(at: &HttpPlace) -> io::Result<Vec<u8>> {
    let HttpPlace { url, socket } = at;
    let mut stream: Socket = match socket {
        Some(file) => UnixStream::connect(file)?.into(),
        None => connect(url, PATIENCE)?.into(),
    };
    let (path, host) = (&url.path, url.authority());
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    stream.take(MOST).read_to_end(&mut response)?;
    Ok(response)
}
