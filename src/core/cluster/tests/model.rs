//! A model of the engine: what the commands and scripts of a cluster do, in memory, and the faults that a
//! real one has.

use super::ENGINES;
use crate::core::cluster::link::EntryId;
use crate::core::cluster::scripts::Script;
use crate::resp::{RespValue, parse};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;

const SCRIPTS: [Script; 6] =
    [Script::Beat, Script::Look, Script::Renew, Script::Publish, Script::List, Script::Release];

type Entry = (EntryId, Vec<u8>);

/// What the engine holds.
#[derive(Clone, Default)]
pub struct Model {
    pub time_ms: i64,
    pub hashes: HashMap<String, HashMap<String, String>>,
    pub streams: HashMap<String, Vec<Entry>>,
    pub texts: HashMap<String, Vec<u8>>,
    nodes: BTreeMap<String, i64>,
    /// A command that this user may not use.
    pub forbids: Option<&'static str>,
    /// A key that holds something else.
    pub malformed: Option<&'static str>,
    /// The format that all entries have, whoever writes them.
    pub format: Option<u8>,
    /// An error that every write gets.
    pub refuses: Option<&'static str>,
    /// The node of the engine that has the keys. `None`: there is only one node.
    pub keys_at: Option<SocketAddr>,
    /// A node of the engine to which nobody can connect.
    pub is_deaf: Option<SocketAddr>,
    /// True if each of its nodes redirects to another one.
    pub is_circle: bool,
    /// How many commands were run.
    pub asked: usize,
    /// Publications that were refused for their epoch.
    pub fenced: usize,
    /// Publications: lease, epoch, holder.
    pub published: BTreeSet<(String, u64, String)>,
}

/// Replies that a command gets; `None`: it waits.
pub type Answer = Option<Vec<u8>>;

fn bulk(bytes: &[u8]) -> Vec<u8> {
    let mut out = format!("${}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", items.len()).into_bytes();
    items.iter().for_each(|item| out.extend_from_slice(item));
    out
}

fn number(value: i64) -> Vec<u8> {
    format!(":{value}\r\n").into_bytes()
}

impl Model {
    /// Takes the next whole command from the front of `bytes`. Returns its words.
    pub fn next_command(bytes: &mut Vec<u8>) -> Option<Vec<Vec<u8>>> {
        let (words, used) = match parse(bytes).expect("nodes speak RESP") {
            Some((RespValue::Array(words), used)) => {
                let words: Vec<_> =
                    words.iter().filter_map(RespValue::bytes).map(<[u8]>::to_vec).collect();
                (words, used)
            }
            _ => return None,
        };
        bytes.drain(..used);
        Some(words)
    }

    /// Runs a command at one of its nodes.
    pub fn ask(&mut self, at: SocketAddr, words: &[Vec<u8>], is_over: bool) -> Answer {
        self.asked += 1;
        let has_keys = !["AUTH", "SELECT"].map(str::as_bytes).contains(&&*words[0]);
        let other = match self.is_circle {
            true => ENGINES.map(SocketAddr::from).into_iter().find(|it| *it != at),
            false => self.keys_at.filter(|it| *it != at),
        };
        match other.filter(|_| has_keys) {
            Some(other) => Some(format!("-MOVED 7 {other}\r\n").into_bytes()),
            None => self.run(words, is_over),
        }
    }

    /// Runs a command. `is_over`: one that waits has waited long enough.
    fn run(&mut self, words: &[Vec<u8>], is_over: bool) -> Answer {
        let text = |at: usize| String::from_utf8_lossy(&words[at]).into_owned();
        let is_spoilt = |word: &Vec<u8>| self.malformed.is_some_and(|it| it.as_bytes() == *word);
        // Setting a list replaces it, whatever it was.
        let is_list = self.malformed.is_some_and(|it| it.ends_with(":list"));
        if words.iter().any(is_spoilt) && (!is_list || text(0) == "GET") {
            return Some(b"-WRONGTYPE Operation against a key of another kind\r\n".to_vec());
        }
        let answer = match &*text(0) {
            word if self.forbids == Some(word) => {
                b"-NOPERM this user has no permissions\r\n".to_vec()
            }
            "EVAL" => {
                let count: usize = text(2).parse().expect("a number of keys");
                let script = SCRIPTS.into_iter().find(|it| it.text().as_bytes() == words[1]);
                let script = script.expect("it is one of ours");
                let all: Vec<Vec<u8>> = words[3..].to_vec();
                let (keys, arguments) = all.split_at(count);
                let keys: Vec<String> =
                    keys.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
                match self.refuses {
                    Some(error) => format!("-{error}\r\n").into_bytes(),
                    _ => self.script(script, &keys, arguments),
                }
            }
            "GET" => match self.texts.get(&text(1)) {
                Some(bytes) => bulk(bytes),
                None => b"$-1\r\n".to_vec(),
            },
            "XADD" => {
                let id = self.add(&text(1), words.last().expect("it has an entry"), 256);
                bulk(id.to_string().as_bytes())
            }
            "XREAD" => return self.read(words, is_over),
            "ZREM" => {
                self.nodes.remove(&text(2));
                number(1)
            }
            "AUTH" | "SELECT" => b"+OK\r\n".to_vec(),
            other => panic!("{other} is no command of ours"),
        };
        Some(answer)
    }

    fn add(&mut self, key: &str, bytes: &[u8], most: usize) -> EntryId {
        let ms = self.time_ms as u64;
        let stream = self.streams.entry(key.to_string()).or_default();
        let last = stream.last().map_or(EntryId::default(), |(id, _)| *id);
        let id = match last.ms >= ms {
            true => EntryId { number: last.number + 1, ..last },
            false => EntryId { ms, number: 0 },
        };
        stream.push((id, bytes.to_vec()));
        let excess = stream.len().saturating_sub(most);
        stream.drain(..excess);
        id
    }

    fn read(&self, words: &[Vec<u8>], is_over: bool) -> Answer {
        let texts: Vec<String> =
            words.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
        let from = texts.iter().position(|it| it == "STREAMS").expect("it names streams") + 1;
        let is_over = is_over || !texts.iter().any(|it| it == "BLOCK");
        let count = (texts.len() - from) / 2;
        let most: usize = texts[2].parse().expect("a count");
        let mut streams = Vec::new();
        for at in 0..count {
            let (key, place) =
                (&texts[from + at], EntryId::parse(texts[from + count + at].as_bytes()));
            let entries = self.streams.get(key).into_iter().flatten();
            let entries = entries.filter(|(id, _)| Some(*id) > place).take(most);
            let entries: Vec<_> = entries
                .map(|(id, bytes)| {
                    let fields = list(&[bulk(b"e"), bulk(bytes)]);
                    list(&[bulk(id.to_string().as_bytes()), fields])
                })
                .collect();
            if !entries.is_empty() {
                streams.push(list(&[bulk(key.as_bytes()), list(&entries)]));
            }
        }
        match streams.is_empty() {
            true => is_over.then(|| b"*-1\r\n".to_vec()),
            false => Some(list(&streams)),
        }
    }

    fn script(&mut self, script: Script, keys: &[String], arguments: &[Vec<u8>]) -> Vec<u8> {
        let text = |at: usize| String::from_utf8_lossy(&arguments[at]).into_owned();
        let whole = |at: usize| text(at).parse::<i64>().expect("a number");
        let now = self.time_ms;
        if script == Script::Beat {
            self.nodes.insert(text(0), now);
            self.nodes.retain(|_, at| (now - 600_000..=now).contains(at));
            let runs = self.nodes.iter();
            let runs = runs
                .flat_map(|(name, at)| [bulk(name.as_bytes()), bulk(at.to_string().as_bytes())]);
            return list(&[bulk(now.to_string().as_bytes()), list(&runs.collect::<Vec<_>>())]);
        }
        let lease = self.hashes.entry(keys[0].clone()).or_default().clone();
        let get = |name: &str| lease.get(name).cloned().unwrap_or_default();
        let of = |name: &str| get(name).parse::<i64>().unwrap_or(0);
        let epoch = get("epoch").parse::<f64>().unwrap_or(0.0);
        let epoch = if (0.0..2f64.powi(52)).contains(&epoch) { epoch as i64 } else { 0 };
        let left = |time: i64| match of("until") - now {
            ms if get("released") == "1" || ms <= 0 || ms > 2 * time => 0,
            ms => ms,
        };
        let is_mine =
            || get("holder") == text(0) && get("epoch") == text(1) && get("released") != "1";
        let mut changes: Vec<(&str, String)> = Vec::new();
        let reply = match script {
            Script::Beat => unreachable!("it is done above"),
            Script::Look => {
                let (time, held, ms) = (whole(1), whole(4), left(whole(1)));
                let last = self.streams.get(&keys[1]).and_then(|it| it.last());
                let last = last.map_or("0-0".to_string(), |(id, _)| id.to_string());
                let is_own = get("holder") == text(0) && get("released") != "1";
                let takes = ms > 0 && is_own || ms == 0 && text(5) == "1";
                let mut taken = epoch;
                if takes {
                    if !is_own || epoch < whole(2) || epoch == 0 {
                        taken = epoch.max(whole(2)) + 1;
                        changes.push(("begin", String::new()));
                    }
                    changes.extend([
                        ("until", (now + time).to_string()),
                        ("holder", text(0)),
                        ("epoch", taken.to_string()),
                        ("released", "0".to_string()),
                        ("what", text(3)),
                    ]);
                } else if ms > 0 && get("what") == text(3) {
                    if text(6) == "1" {
                        changes.push(("alone_at", now.to_string()));
                    }
                    let is_late = now - of("want_at") > time / 2;
                    if held >= 0 && (is_late || get("want") == text(0) || held < of("want_held")) {
                        let at = now.to_string();
                        changes.extend([
                            ("want", text(0)),
                            ("want_held", text(4)),
                            ("want_at", at),
                        ]);
                    }
                }
                list(&[
                    number(takes.into()),
                    bulk(taken.to_string().as_bytes()),
                    number(ms),
                    bulk(get("from").as_bytes()),
                    bulk(last.as_bytes()),
                    bulk(get("list").as_bytes()),
                    bulk(get("what").as_bytes()),
                    bulk(get("holder").as_bytes()),
                    number(of("released")),
                ])
            }
            _ if !is_mine() => {
                self.fenced += usize::from(script == Script::Publish);
                return match script {
                    Script::Publish | Script::List => b"$-1\r\n".to_vec(),
                    _ => number(0),
                };
            }
            Script::Renew => {
                let until = now + whole(2);
                changes.extend([("until", until.to_string()), ("what", text(3))]);
                let is_alone = number((now - of("alone_at") <= whole(2)).into());
                match now - of("want_at") > whole(2) / 2 {
                    true => list(&[number(1), bulk(b""), number(0), is_alone]),
                    false => {
                        let (want, held) = (get("want"), get("want_held"));
                        let [want, held] = [want, held].map(|it| bulk(it.as_bytes()));
                        list(&[number(1), want, held, is_alone])
                    }
                }
            }
            Script::Publish if of("until") <= now => {
                self.fenced += 1;
                return b"$-1\r\n".to_vec();
            }
            Script::Publish => {
                let epoch = text(1).parse().expect("a number");
                self.published.insert((keys[0].clone(), epoch, text(0)));
                let mut bytes = arguments[4].clone();
                bytes[0] = self.format.unwrap_or(bytes[0]);
                let id = self.add(&keys[1], &bytes, whole(2) as usize).to_string();
                let mark = whole(3);
                let begin = if mark % 2 == 1 { id.clone() } else { get("begin") };
                changes.push(("begin", begin.clone()));
                if mark >= 2 && !begin.is_empty() {
                    changes.push(("from", begin));
                }
                bulk(id.as_bytes())
            }
            Script::List => {
                self.texts.insert(keys[1].clone(), arguments[2].clone());
                changes.push(("list", (of("list") + 1).to_string()));
                number(of("list") + 1)
            }
            Script::Release => {
                self.add(&keys[1], &arguments[5], 4096);
                changes.extend(match text(3).is_empty() {
                    true => vec![("released", "1".to_string())],
                    false => vec![
                        ("holder", text(3)),
                        ("until", (now + whole(4)).to_string()),
                        ("epoch", (epoch + 1).to_string()),
                        ("want_at", "0".to_string()),
                        ("begin", String::new()),
                    ],
                });
                number(1)
            }
        };
        let lease = self.hashes.entry(keys[0].clone()).or_default();
        lease.extend(changes.into_iter().map(|(name, value)| (name.to_string(), value)));
        reply
    }
}
