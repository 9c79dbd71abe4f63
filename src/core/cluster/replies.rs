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
            EngineCommand::Run(script, id, note) => match script {
                Script::Beat => self.beaten(sent_at, reply, cx),
                Script::Look => self.looked(id, sent_at, reply, sources, cx),
                Script::Renew => self.renewed(id, (sent_at, note), reply, sources, cx),
                Script::Publish | Script::List if *reply == RespValue::Null => {
                    // The lease is not ours, or has run out.
                    self.leases[id.index()].due = cx.now.mono;
                    cx.stats.cluster.get_or_insert_default().fenced += 1;
                    log::warn!(target: CLUSTER, "entry refused source={}", cx.stats[id].id);
                }
                Script::Publish | Script::List | Script::Release => {}
            },
            EngineCommand::GetList(id) => {
                if !self.read_list(id, reply.bytes(), sources, cx) {
                    self.leases[id.index()].list = None;
                }
            }
            EngineCommand::Read => {
                if !self.engine.is_up {
                    self.engine.came_up(cx);
                    self.resume(sources, cx);
                }
                self.take_entries(reply, cx);
            }
        }
    }

    /// Takes in that a command was refused.
    fn refused(&mut self, command: EngineCommand, error: &[u8], cx: &mut Context) {
        let is_of_key = memchr::memmem::find(error, b"WRONGTYPE").is_some();
        match command {
            _ if error.starts_with(b"MOVED ") => self.engine.moved(&error[6..], cx),
            EngineCommand::Run(_, id, _) if is_of_key && id != SourceId::ENGINE => {
                self.spoil(id, "a key of the source is malformed".to_string(), cx);
            }
            EngineCommand::Read if is_of_key => {
                // Each renewal and each look finds out of which source it is.
                self.reads_from = cx.now.mono + self.engine.tick();
            }
            EngineCommand::GetList(_) | EngineCommand::Other if is_of_key => {}
            _ => self.engine.fail(&refusal(command, error), cx),
        }
    }

    /// The engine's time and the runs of nodes have come.
    fn beaten(&mut self, sent_at: Mono, reply: &RespValue<'_>, cx: &mut Context) {
        let (Some(time), [_, runs]) = (reply.number_at(0), reply.list()) else {
            return self.engine.fail("malformed reply to a heartbeat", cx);
        };
        self.engine.beaten(time, sent_at, cx);
        let run = |it: &[RespValue<'_>]| {
            let name = String::from_utf8_lossy(it[0].bytes()?).into_owned();
            Some((name, time.saturating_sub(it[1].number()?)))
        };
        let runs: Vec<_> = runs.list().chunks_exact(2).filter_map(run).collect();
        self.note_nodes(&runs, cx);
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
