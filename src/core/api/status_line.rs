//! How the service does, in one line for people: for the service manager.

use crate::core::stats::{Backfill, SourceState, Status};

/// The line. It changes when a source changes its state, and with the backfill.
pub fn status_line(status: &Status) -> String {
    if status.stopping {
        return "Stopping".to_string();
    }
    let all = || status.running().map(|(_, source)| source);
    let up = all().filter(|it| it.state == SourceState::Up).count();
    let mut line = format!("{up} of {} sources up", all().count());
    for source in all().filter(|it| it.state != SourceState::Up) {
        line += &format!(", {} {}", source.id, source.state.name());
    }
    let sum = |of: fn(&Backfill) -> u64| all().map(|it| of(&it.backfill)).sum::<u64>();
    let (wanted, done) = (sum(|it| it.wanted), sum(|it| it.done));
    if done < wanted {
        line += &format!(", backfill {} %", 100 * done / wanted);
    }
    line
}
