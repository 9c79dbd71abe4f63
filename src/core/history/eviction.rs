//! Candles that are older than the window leave the file.

use super::names::name_of;
use crate::core::context::Context;
use crate::history::Batch;
use crate::time::UnixMs;
use std::time::Duration;

/// Between two looks for candles that are older than what is kept.
pub const SWEEP: Duration = Duration::from_secs(60);

/// A series is evicted when its oldest slots are past the window by this part of it: now and then, and not
/// every minute.
const SLACK: i64 = 64;

/// Slots that one batch evicts: some 20 ms of the disk thread, for which reads wait.
pub const SLOTS_A_BATCH: i64 = 4096;

/// Evicts what is older than the window with this batch. True if there is more of it. The slots are not
/// archived from now on.
pub fn evict(batch: &mut Batch, cx: &mut Context) -> bool {
    let charts = &cx.market.charts;
    let (mut leaving, mut left) = (Vec::new(), SLOTS_A_BATCH);
    for (key, archived) in charts.archives() {
        let keep = charts.keep(key.interval);
        // What an exchange says, which may be years ahead, evicts nothing before this machine's clock has got
        // there. The clock of the demo exchange is given.
        let latest = cx.given_clock(key.source).map_or(cx.now.unix, |_| UnixMs(i64::MAX));
        let present = cx.exchange_time(key.source).min(latest);
        let before = key.interval.slot_of(present) - keep;
        if let Some(first) = archived.first().filter(|first| *first < before - keep / SLACK) {
            let end = before.min(first + left);
            left -= end - first;
            leaving.push((key, end));
        }
        if left == 0 {
            break;
        }
    }
    for (key, end) in leaving {
        cx.market.charts.unarchive(key, i64::MIN..end);
        batch.of(&name_of(key, cx)).evict(end);
    }
    left == 0
}
