//! Reads the configuration again at a signal, and hands it to the core.
//!
//! The file is read on the loop: a regular file of at most 16 MiB, which takes as long as the disk does,
//! once for each signal.

use super::driver::Driver;
use crate::config::Config;
use crate::log_targets::{CONFIG, quoted};
use crate::time::Now;

impl Driver {
    /// Reads the configuration again. One with a fault changes nothing.
    pub(super) fn reload(&mut self, now: Now) {
        self.notifier.reloading();
        if let Some(config) = (self.reread.read)()
            && let Err(why) = self.reconfigure(config, now)
        {
            log::error!(target: CONFIG, "not reloaded error={}", quoted(&why));
        }
        self.reread.is_waiting = true;
        self.end_reload();
    }

    fn reconfigure(&mut self, mut config: Config, now: Now) -> Result<(), String> {
        let mut next = config.clone();
        if let Some(source) = next.demo_source() {
            // It listens from the start or not at all.
            let url = self.listeners.iter().find_map(|it| it.demo_url());
            next.sources[source].url =
                Some(url.ok_or("sources: the demo exchange runs from the start or not at all")?);
        }
        let fixed = self.reread.loaded.fixed_changes(&config);
        let accepts = next.limits.accepts_per_turn;
        self.core.reconfigure(next, fixed, now)?;
        config.keep_fixed(&self.reread.loaded);
        (self.accepts, self.reread.loaded) = (accepts, config);
        Ok(())
    }

    /// Tells the service manager once the core has taken the configuration in.
    pub(super) fn end_reload(&mut self) {
        if self.reread.is_waiting && !self.core.is_reloading() {
            self.reread.is_waiting = false;
            self.notifier.ready();
        }
    }
}
