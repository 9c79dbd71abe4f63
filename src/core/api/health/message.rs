//! The reasons of `/health` as sentences for people.

use super::{Code, Reason};
use crate::core::stats::{Status, on_wall};
use crate::market::{Quotes, SourceId};
use crate::time::Now;

/// The most characters of an exchange's last error that a message repeats.
pub(super) const ERROR_CHARS: usize = 200;

impl Reason {
    /// The reason as a sentence for people.
    pub fn message(self, status: &Status, quotes: &Quotes, now: Now) -> String {
        let Some(id) = self.source else {
            return of_service(self.code, status, now);
        };
        let mut text = of_source(self.code, id, status, quotes, now);
        let error = match (self.code, self.code.kind()) {
            (Code::SourceBackoff | Code::SourceDown, _) => &status[id].last_error,
            (_, Some((kind, _))) => &status[id].kind_errors[kind as usize],
            _ => &None,
        };
        if let Some(error) = error {
            text.push_str(" Last error: ");
            text.extend(error.chars().take(ERROR_CHARS));
        }
        text
    }
}

/// A reason about the whole service.
fn of_service(code: Code, status: &Status, now: Now) -> String {
    let (why, cluster) = (&status.history.why, status.cluster.as_ref());
    match code {
        Code::Stopping => "The service is stopping.".into(),
        Code::Starting => "No quote has been collected or restored yet.".into(),
        Code::QuotesStale => "Every quote is stale.".into(),
        Code::HistoryLost => "The history file has gone; a new one is written from memory.".into(),
        Code::HistoryUnusable => format!("The history file cannot be used: {why}."),
        Code::HistoryWriteFailed => {
            format!("The last write to the history file failed, or takes very long: {why}.")
        }
        Code::LogLosesLines => {
            let lost = status.log.lost;
            format!("Log lines could not be written: {lost} were lost since the start.")
        }
        Code::ReloadRefused => {
            let at = status.reloads.refused_at.unwrap_or(now.unix);
            format!("The reload at {at} was refused and has changed nothing; the log says why.")
        }
        Code::ClusterDown => match cluster.and_then(|it| it.down.as_ref()) {
            Some((at, why)) => format!("The cluster's engine cannot be used since {at}: {why}."),
            None => "The cluster's engine is not reached yet.".into(),
        },
        Code::ClusterFormat => {
            let version = cluster.and_then(|it| it.format).unwrap_or(0);
            format!("Another node writes entries of version {version}, which this one cannot read.")
        }
        Code::ClusterName => {
            let taken = cluster.and_then(|it| it.taken_name.as_deref()).unwrap_or("");
            let node = cluster.map_or("", |it| &it.node);
            format!("Another live node is called {taken}; this one calls itself {node}.")
        }
        Code::ClusterClock => {
            let ms = cluster.and_then(|it| it.clock_off_ms).unwrap_or(0);
            let order = if ms < 0 { "behind" } else { "ahead of" };
            format!("This node's clock is {} ms {order} that of the cluster's engine.", ms.abs())
        }
        _ => String::new(),
    }
}

/// A reason about a source.
fn of_source(code: Code, id: SourceId, status: &Status, quotes: &Quotes, now: Now) -> String {
    let source = &status[id];
    if let Some((kind, what)) = code.kind() {
        let since = source.kind_failing_since[kind as usize].unwrap_or(now.unix);
        return format!("{what} cannot be fetched since {since}.");
    }
    match code {
        Code::SourceStarting => "No quote of this source has come yet.".into(),
        Code::SourceBackoff => {
            let since = source.failing_since.unwrap_or(now.unix);
            match source.backoff_until {
                Some(until) => format!("Failing since {since}; next try at {until}."),
                None => format!("Failing since {since}."),
            }
        }
        Code::SourceDown => match (source.quotes_at, source.last_success_at) {
            (Some(at), _) => format!("No request for quotes has succeeded since {at}."),
            (None, Some(_)) => {
                "The exchange responds, but no request for quotes has succeeded.".into()
            }
            (None, None) => {
                format!("No request has succeeded since the start at {}.", status.started.unix)
            }
        },
        Code::SourceFrozen => {
            let since = on_wall(quotes.last_change(id).unwrap_or(now.mono), now);
            format!("No figure of this source has changed since {since}.")
        }
        Code::SourceRound => {
            let ms = source.round_ms.unwrap_or(0);
            format!("A round of quotes takes {ms} ms, longer than quotes stay fresh.")
        }
        Code::SourceBudget => {
            let units = source.spent_by_others.unwrap_or(0);
            format!("Others have spent {units} units of the exchange's limit.")
        }
        Code::SourceClockInDoubt => {
            let why = source.clock_doubt.as_ref().map_or("", |it| &it.why);
            format!("The time of this exchange is in doubt, and so are its newest candles: {why}.")
        }
        Code::ClusterAlone => {
            let shared = status.cluster.as_ref().and_then(|it| it.sources.get(id.index()));
            let why = shared.and_then(|it| it.alone.as_deref()).unwrap_or("");
            format!("This node collects the source for itself: {why}.")
        }
        _ => String::new(),
    }
}
