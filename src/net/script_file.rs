//! The script of the demo exchange: read at the start, and again when it changes.
//!
//! It is read on the loop: a regular file of at most 16 MiB, which a person or a test has just written.

#[cfg(feature = "sqlite")]
use super::replay_file;
use crate::config::{Config, text_of_regular};
use crate::demo::{Demo, DemoScript};
use crate::log_targets::{CONFIG, quoted};
use crate::time::Mono;
use std::time::Duration;

/// How often the file is read: 100 times a second, which costs a script of some KB below 0.2 % of a core.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// See the module's page.
pub struct ScriptFile {
    name: String,
    /// What was read last, or why it could not be read.
    text: Result<String, String>,
    /// True if that was new. It is followed if it is the same at the next look: it may be half written.
    is_new: bool,
    looked_at: Mono,
}

impl ScriptFile {
    /// Reads the script of the configuration, if that names one.
    pub fn open(config: &Config, now: Mono) -> Result<Option<(ScriptFile, DemoScript)>, String> {
        let Some(name) = config.demo.as_ref().and_then(|demo| demo.script.clone()) else {
            return Ok(None);
        };
        let file = ScriptFile { text: text(&name), name, is_new: false, looked_at: now };
        let script = file.script()?;
        Ok(Some((file, script)))
    }

    /// Lets the demo exchange play and follow what the configuration says. Returns the file of the script.
    pub fn follow(
        config: &mut Config,
        demo: Option<&mut Demo>,
        now: Mono,
    ) -> Result<Option<ScriptFile>, String> {
        let opened = ScriptFile::open(config, now).map_err(|why| format!("demo.script: {why}"))?;
        let Some(demo) = demo else { return Ok(None) };
        #[cfg(feature = "sqlite")]
        replay_file::play(config, demo).map_err(|why| format!("demo.replay.data: {why}"))?;
        let Some((file, script)) = opened else { return Ok(None) };
        let at = demo.follow(script);
        config.demo.iter_mut().for_each(|it| it.at = at.or(it.at));
        Ok(Some(file))
    }

    /// When it is looked at next.
    pub fn due(&self) -> Mono {
        self.looked_at + LOOK_EVERY
    }

    /// Reads the file. Returns the script if it has changed. One with a fault changes nothing.
    pub fn look(&mut self, now: Mono) -> Option<DemoScript> {
        self.looked_at = now;
        let text = text(&self.name);
        let was_new = std::mem::replace(&mut self.is_new, text != self.text);
        self.text = text;
        if self.is_new || !was_new {
            return None;
        }
        let read = self.script();
        match &read {
            Ok(_) => log::info!(target: CONFIG, "script read file={}", quoted(&self.name)),
            Err(why) => log::error!(target: CONFIG, "script not read error={}", quoted(why)),
        }
        read.ok()
    }

    fn script(&self) -> Result<DemoScript, String> {
        let faults = match DemoScript::read(&self.name, self.text.as_ref().map_err(String::clone)?)
        {
            Ok(script) => return Ok(script),
            Err(faults) => faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        };
        Err(faults.join("; "))
    }
}

fn text(name: &str) -> Result<String, String> {
    text_of_regular(name).map_err(|fault| fault.to_string())
}
