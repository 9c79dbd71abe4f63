//! Replies of the engine: each is handed to who has asked.

use super::Cluster;
use super::engine::Which;
use super::link::{EngineCommand, PendingCommand};
use crate::core::context::Context;
use crate::core::sources::Sources;
use crate::log_targets::CLUSTER;
use crate::market::SourceId;
use crate::resp::{RespValue, parse};
use crate::table::Key;
use std::time::Duration;

/// How long after the return of the engine a lease is left to the node that had it: all have tried to
/// connect by then.
const SETTLING: Duration = Duration::from_millis(2200);

/// Characters of an error of the engine that are told.
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
        let inbox = self.engine.link(which).take_inbox();
        let mut at = 0;
        loop {
            match parse(&inbox[at..]) {
                Ok(None) => return self.engine.link(which).put_back(inbox, at),
                Ok(Some((reply, used))) => {
                    let Some(pending) = self.engine.link(which).next_pending() else {
                        return self.engine.fail("it replies to what was not asked", cx);
                    };
                    self.replied(&pending, &reply, sources, cx);
                    at += used;
                }
                Err(error) => return self.engine.fail(&error.to_string(), cx),
            }
            if self.engine.which(key).is_none() {
                // The reply has closed it.
                return;
            }
        }
    }

    /// Takes in the reply to a command.
    fn replied(
        &mut self,
        pending: &PendingCommand,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        if matches!(reply, RespValue::Error(error) if error.starts_with(b"NOSCRIPT")) {
            log::info!(target: CLUSTER, "scripts loaded again");
            return self.script_is_gone(&pending.command, cx);
        }
        if let RespValue::Error(error) = reply
            && let Some(told) = error.strip_prefix(b"MOVED ")
        {
            return self.engine.moved(told, cx);
        }
        if let Some(why) = refusal(pending, reply) {
            return self.engine.fail(&why, cx);
        }
        match &pending.command {
            EngineCommand::Auth | EngineCommand::Other => {}
            EngineCommand::Load(script) => {
                let name = reply.bytes().unwrap_or_default();
                if self.engine.loaded(*script, name) && !self.engine.is_up() {
                    self.engine.beat(self.keys.nodes(), &self.run, cx);
                }
            }
            EngineCommand::Beat => self.beaten(pending, reply, sources, cx),
            EngineCommand::Look(id) => self.looked(*id, reply, cx),
            EngineCommand::Acquire(id) => self.acquired(*id, pending.sent_at, reply, sources, cx),
            EngineCommand::Renew(id, spent) => {
                let is_ours = reply.number() == Some(1);
                self.renewed(*id, is_ours.then_some(*spent), pending.sent_at, sources, cx);
            }
            EngineCommand::Publish(id) if *reply == RespValue::Null => self.fenced(*id, cx),
            EngineCommand::Publish(_) => {}
            EngineCommand::GetList(id, version) => {
                self.seats[id.index()].fetches_list = false;
                let bytes = reply.bytes();
                if self.read_list(*id, bytes, sources, cx) {
                    self.seats[id.index()].list = Some(*version);
                }
            }
            EngineCommand::Read => {
                self.reading.came(reply.list(), &mut self.seats);
                self.read_on(cx);
            }
        }
    }

    /// The engine has lost its scripts: what was asked by this one is asked again.
    fn script_is_gone(&mut self, command: &EngineCommand, cx: &mut Context) {
        self.engine.load_scripts(cx);
        if let EngineCommand::Look(id) | EngineCommand::Acquire(id) | EngineCommand::Renew(id, _) =
            command
        {
            let seat = &mut self.seats[id.index()];
            (seat.is_asking, seat.due) = (false, cx.now.mono);
        }
    }

    /// The engine's time and the runs that live have come: it is up.
    fn beaten(
        &mut self,
        pending: &PendingCommand,
        reply: &RespValue<'_>,
        sources: &mut Sources,
        cx: &mut Context,
    ) {
        let Some(time) = reply.number_at(0) else {
            return self.engine.fail("it does not tell its time", cx);
        };
        self.reading.note_time(time, pending.sent_at);
        let nodes = reply.list().get(1).map_or(&[][..], RespValue::list).iter();
        let name = |it: &RespValue<'_>| Some(String::from_utf8_lossy(it.bytes()?).into_owned());
        self.live = nodes.filter_map(name).collect();
        let was_up_before = cx.stats.cluster.as_ref().is_some_and(|it| it.was_up);
        if self.engine.note_up(cx) {
            if was_up_before {
                self.settled_at = cx.now.mono + SETTLING;
            }
            for (at, seat) in (0..).zip(&mut self.seats) {
                // What was told while the engine was away may be lost, and what others told may be
                // trimmed.
                (seat.due, seat.list) = (cx.now.mono, None);
                if seat.collects() {
                    sources[SourceId(at)].list_changed();
                }
            }
            self.handle_timeout(sources, cx);
        }
    }
}

/// Why a command was refused, in words.
fn refusal(pending: &PendingCommand, reply: &RespValue<'_>) -> Option<String> {
    let RespValue::Error(error) = reply else {
        return None;
    };
    // Engines repeat the arguments of commands that they do not know.
    if pending.command == EngineCommand::Auth {
        return Some("it does not take user and password".to_string());
    }
    let error = String::from_utf8_lossy(error);
    let word = error.split(' ').next().unwrap_or("");
    let told: String = error.chars().take(MOST_TOLD).collect();
    Some(match word {
        "NOAUTH" => "it wants user and password".to_string(),
        "WRONGPASS" => "it does not take user and password".to_string(),
        "NOPERM" => format!("the user may not do all that is needed: {told}"),
        "READONLY" => "it is a replica, which takes no writes".to_string(),
        "LOADING" => "it is loading its data".to_string(),
        "OOM" => "its memory is full".to_string(),
        // Some keys are at either node, until all are at one, which `MOVED` names then.
        "ASK" | "TRYAGAIN" => "its cluster is moving the keys to another node".to_string(),
        _ => format!("it refuses a command: {told}"),
    })
}
