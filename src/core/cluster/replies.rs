//! Replies of the engine: each is handed to who has asked.

use super::Cluster;
use super::engine::Which;
use super::link::{EngineCommand, PendingCommand};
use super::scripts::Script;
use crate::core::context::Context;
use crate::core::sources::Sources;
use crate::log_targets::CLUSTER;
use crate::market::SourceId;
use crate::resp::{RespValue, parse};
use crate::table::Key;
use crate::time::Mono;
use std::time::Duration;

/// After the engine is up again, how long a free lease is left to the node that had it: by then, every
/// node has tried to connect.
const SETTLING: Duration = Duration::from_millis(2200);

/// Most characters of an error of the engine that are logged.
const MOST_TOLD: usize = 120;

impl Cluster {
    /// Takes in the replies that have come, one after the other.
    pub(super) fn take_replies(
        &mut self,
        which: Which,
        key: Key,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let inbox = std::mem::take(&mut self.engine.link(which).inbox);
        let mut at = 0;
        // A reply may close the connection.
        while self.engine.which(key).is_some() {
            match parse(&inbox[at..]) {
                Ok(None) => return self.engine.link(which).put_back(inbox, at),
                Ok(Some((reply, used))) => {
                    let Some(pending) = self.engine.link(which).pending.pop_front() else {
                        return self.engine.fail("unexpected reply", cx);
                    };
                    self.replied(pending, &reply, sources, cx);
                    at += used;
                }
                Err(error) => return self.engine.fail(error, cx),
            }
        }
    }

    /// Takes in the reply to a command.
    fn replied(
        &mut self,
        PendingCommand { command, sent_at, .. }: PendingCommand,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        if let RespValue::Error(error) = reply {
            return self.refused(command, error, cx);
        }
        match command {
            EngineCommand::Auth | EngineCommand::Other => {}
            EngineCommand::Load(script) => {
                let Some(name) = reply.bytes() else {
                    return self.engine.fail("it does not load scripts", cx);
                };
                self.engine.scripts[script as usize] = Some(name.into());
                if Some(&script) == Script::ALL.last() && !self.engine.is_up {
                    self.engine.beat(&self.run, cx);
                }
            }
            EngineCommand::Run(script, id) => match script {
                Script::Beat => self.beaten(sent_at, reply, sources, cx),
                Script::Look => self.looked(id, reply, cx),
                Script::Acquire => self.acquired(id, sent_at, reply, sources, cx),
                Script::Renew => {
                    self.renewed(id, sent_at, reply.number() == Some(1), sources, cx);
                }
                Script::Publish | Script::List if *reply == RespValue::Null => {
                    self.fenced(id, cx);
                }
                Script::Publish | Script::List | Script::Release => {}
            },
            EngineCommand::GetList(id, version) => {
                self.leases[id.index()].fetches_list = false;
                if self.read_list(id, reply.bytes(), sources, cx) {
                    self.leases[id.index()].list = Some(version);
                }
            }
            EngineCommand::Read => self.take_entries(reply, cx),
        }
    }

    /// Takes in that a command was refused.
    fn refused(&mut self, command: EngineCommand, error: &[u8], cx: &mut Context) {
        if error.starts_with(b"NOSCRIPT") {
            // The engine has lost its scripts: what was asked by this one is asked again.
            log::info!(target: CLUSTER, "scripts loaded again");
            self.engine.load_scripts(cx);
            if let EngineCommand::Run(Script::Look | Script::Acquire | Script::Renew, id) = command
            {
                let lease = &mut self.leases[id.index()];
                (lease.is_asking, lease.due) = (false, cx.now.mono);
            }
        } else if let Some(told) = error.strip_prefix(b"MOVED ") {
            self.engine.moved(told, cx);
        } else {
            self.engine.fail(&refusal(command, error), cx);
        }
    }

    /// The engine's time and the runs that live have come: it is up.
    fn beaten(
        &mut self,
        sent_at: Mono,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let (Some(time), [_, live]) = (reply.number_at(0), reply.list()) else {
            return self.engine.fail("malformed reply to a heartbeat", cx);
        };
        self.engine.note_time(time, sent_at);
        let was_up_before = !self.live.is_empty();
        let name = |it: &RespValue<'_>| Some(String::from_utf8_lossy(it.bytes()?).into_owned());
        self.live = live.list().iter().filter_map(name).collect();
        if self.engine.note_up(cx) {
            if was_up_before {
                self.settled_at = cx.now.mono + SETTLING;
            }
            for (at, lease) in (0..).zip(&mut self.leases) {
                // What was told while the engine was away may be lost, and what others told may be
                // trimmed.
                (lease.due, lease.list) = (cx.now.mono, None);
                if lease.collects() {
                    sources[SourceId(at)].list_changed();
                }
            }
            self.handle_timeout(sources, cx);
        }
    }
}

/// Why a command was refused, in words.
fn refusal(command: EngineCommand, error: &[u8]) -> String {
    let error = String::from_utf8_lossy(error);
    let word = error.split(' ').next().unwrap_or("");
    let told: String = error.chars().take(MOST_TOLD).collect();
    match word {
        // Engines repeat the arguments of commands that they do not know.
        _ if command == EngineCommand::Auth => "wrong user or password".to_string(),
        "NOAUTH" => "user and password required".to_string(),
        "WRONGPASS" => "wrong user or password".to_string(),
        "NOPERM" => format!("missing permission: {told}"),
        "READONLY" => "read-only replica".to_string(),
        "LOADING" => "loading its data".to_string(),
        "OOM" => "out of memory".to_string(),
        // Some keys are at either node, until all are at one, which `MOVED` names then.
        "ASK" | "TRYAGAIN" => "the Redis cluster is moving the keys to another node".to_string(),
        _ => format!("command refused: {told}"),
    }
}
