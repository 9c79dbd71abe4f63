//! Reads the configuration again at a signal, and hands it to the core.
//!
//! The file is read on the loop: a regular file of at most 16 MiB, which takes as long as the disk does,
//! once for each signal.

use super::driver::Driver;
use super::listen;
use crate::config::{ConfigFault, LoadedConfig};
use crate::log_targets::{CONFIG, quoted};
use crate::time::Now;

impl Driver {
    /// Reads the configuration again. One with a fault changes nothing.
    pub(super) fn reload(&mut self, now: Now) {
        self.notifier.reloading();
        let faults: Vec<String> = match (self.reread.read)() {
            Ok(loaded) => self.reconfigure(loaded, now).err().into_iter().collect(),
            Err(faults) => faults.iter().map(ConfigFault::to_string).collect(),
        };
        for fault in &faults {
            log::error!(target: CONFIG, "not reloaded error={}", quoted(fault));
        }
        if !faults.is_empty() {
            self.core.refuse_reload(now);
        }
        self.reread.is_waiting = true;
        self.end_reload();
    }

    fn reconfigure(&mut self, loaded: LoadedConfig, now: Now) -> Result<(), String> {
        let mut next = loaded.config.clone();
        if next.demo.is_some() {
            // It listens from the start or not at all.
            let url = self.listeners.iter().find_map(|it| it.demo_url());
            let url = url.ok_or("sources: the demo exchange runs from the start or not at all")?;
            listen::place_demo(&mut next, &url);
        }
        let fixed = self.reread.loaded.fixed_changes(&loaded.config);
        let accepts = next.limits.accepts_per_turn;
        let taken = self.reread.taken;
        self.core.reconfigure(next, fixed, || taken(&loaded), now)?;
        let mut config = loaded.config;
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
