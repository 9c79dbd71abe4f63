//! A model of the engine: what the commands and scripts of a cluster do, in memory, and the faults that a
//! real one has.

use super::ENGINES;
use crate::core::cluster::scripts::Script;
use crate::core::cluster::streams::EntryId;
use crate::resp::{RespValue, parse};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;

/// An entry of a stream.
type Entry = (EntryId, Vec<u8>);

/// What the engine holds.
#[derive(Clone, Default)]
pub struct Model {
    pub time_ms: i64,
    pub hashes: HashMap<String, HashMap<String, String>>,
    pub streams: HashMap<String, Vec<Entry>>,
    pub texts: HashMap<String, Vec<u8>>,
    nodes: BTreeMap<String, i64>,
    /// True if the scripts were loaded, and not flushed since.
    pub has_scripts: bool,
    /// True if it says nothing of a script that it is to load.
    pub loads_none: bool,
    /// An error that every write gets.
    pub refuses: Option<&'static str>,
    /// The node of the engine that has the keys; `None`: there is only one.
    pub keys_at: Option<SocketAddr>,
    /// One of its nodes that lets nobody connect.
    pub is_deaf: Option<SocketAddr>,
    /// True if each of its nodes takes another for the one that has the keys.
    pub is_circle: bool,
    /// Commands that were asked.
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
        let has_keys = !["SCRIPT", "AUTH", "SELECT"].map(str::as_bytes).contains(&&*words[0]);
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
        let answer = match &*text(0) {
            "SCRIPT" if self.loads_none => b"$-1\r\n".to_vec(),
            "SCRIPT" => {
                self.has_scripts = true;
                let script = Script::ALL.iter().position(|it| it.text().as_bytes() == words[2]);
                bulk(format!("s{}", script.expect("it is one of ours")).as_bytes())
            }
            "EVALSHA" if !self.has_scripts => b"-NOSCRIPT No matching script.\r\n".to_vec(),
            "EVALSHA" => {
                let count: usize = text(2).parse().expect("a number of keys");
                let script: usize = text(1)[1..].parse().expect("a name of ours");
                let all: Vec<Vec<u8>> = words[3..].to_vec();
                let (keys, arguments) = all.split_at(count);
                let keys: Vec<String> =
                    keys.iter().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
                match self.refuses {
                    Some(error) if Script::ALL[script] != Script::Look => {
                        format!("-{error}\r\n").into_bytes()
                    }
                    _ => self.script(Script::ALL[script], &keys, arguments),
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
            let ttl = whole(1);
            let live = self.nodes.iter().filter(|(_, at)| (now - **at).abs() <= ttl);
            let mut live: Vec<_> = live.map(|(name, at)| (at, bulk(name.as_bytes()))).collect();
            live.sort();
            let live: Vec<_> = live.into_iter().map(|(_, name)| name).collect();
            return list(&[bulk(now.to_string().as_bytes()), list(&live)]);
        }
        let lease = self.hashes.entry(keys[0].clone()).or_default().clone();
        let get = |name: &str| lease.get(name).cloned().unwrap_or_default();
        let of = |name: &str| get(name).parse::<i64>().unwrap_or(0);
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
                let last = self.streams.get(&keys[1]).and_then(|it| it.last());
                let last = last.map_or("0-0".to_string(), |(id, _)| id.to_string());
                list(&[
                    bulk(get("epoch").as_bytes()),
                    bulk(get("holder").as_bytes()),
                    number(left(whole(0))),
                    bulk(get("from").as_bytes()),
                    bulk(last.as_bytes()),
                    bulk(get("list").as_bytes()),
                ])
            }
            Script::Acquire => {
                let time = whole(1);
                let until = ("until", (now + time).to_string());
                let is_held = left(time) > 0 && get("holder") != text(0);
                if is_held {
                    return list(&[number(0), bulk(get("epoch").as_bytes())]);
                }
                if get("holder") == text(0) && get("released") != "1" {
                    changes.push(until);
                    let nothing = bulk(b"");
                    list(&[
                        number(1),
                        bulk(get("epoch").as_bytes()),
                        nothing.clone(),
                        number(0),
                        nothing,
                        number(0),
                    ])
                } else {
                    let epoch = of("epoch").max(whole(2)) + 1;
                    changes.extend([
                        until,
                        ("holder", text(0)),
                        ("epoch", epoch.to_string()),
                        ("released", "0".to_string()),
                        ("left", "0".to_string()),
                        ("at", now.to_string()),
                        ("begin", String::new()),
                    ]);
                    list(&[
                        number(1),
                        bulk(epoch.to_string().as_bytes()),
                        bulk(get("holder").as_bytes()),
                        number(of("released")),
                        bulk(get("left").as_bytes()),
                        bulk((now - of("at")).to_string().as_bytes()),
                    ])
                }
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
                changes.extend([
                    ("until", until.to_string()),
                    ("left", text(3)),
                    ("at", now.to_string()),
                ]);
                number(1)
            }
            Script::Publish if of("until") <= now => {
                self.fenced += 1;
                return b"$-1\r\n".to_vec();
            }
            Script::Publish => {
                let epoch = text(1).parse().expect("a number");
                self.published.insert((keys[0].clone(), epoch, text(0)));
                let id = self.add(&keys[1], &arguments[4], whole(2) as usize).to_string();
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
                self.add(&keys[1], &arguments[4], 4096);
                changes.extend([
                    ("released", "1".to_string()),
                    ("left", text(2)),
                    ("at", now.to_string()),
                ]);
                number(1)
            }
        };
        let lease = self.hashes.entry(keys[0].clone()).or_default();
        lease.extend(changes.into_iter().map(|(name, value)| (name.to_string(), value)));
        reply
    }
}
