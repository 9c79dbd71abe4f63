//! The script file of the demo exchange: read at the start, and again when it changes.
//!
//! It is read on the loop: it is a regular file of at most 16 MiB, and is probably in the page cache because
//! a person or a test has just written it.

#[cfg(feature = "sqlite")]
use super::replay_file;
use crate::config::{Config, text_of_regular};
use crate::demo::{Demo, DemoScript};
use crate::log_targets::{CONFIG, quoted};
use crate::time::Mono;
use std::time::Duration;

/// The pause between two reads of the file: it is read 100 times a second. For a script of some KB, this
/// costs less than 0.2 % of a core.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A script file that is followed.
pub struct ScriptFile {
    name: String,
    /// The text that was read last, or why the file could not be read.
    text: Result<String, String>,
    /// True if that text was new. A text is applied only if the next read finds the same text, because a file
    /// may be half written.
    is_new: bool,
    looked_at: Mono,
}

impl ScriptFile {
    /// Reads the script that the configuration names, if any.
    pub fn open(config: &Config, now: Mono) -> Result<Option<(ScriptFile, DemoScript)>, String> {
        let Some(name) = config.demo.as_ref().and_then(|demo| demo.script.clone()) else {
            return Ok(None);
        };
        let file = ScriptFile { text: text(&name), name, is_new: false, looked_at: now };
        let script = file.script()?;
        Ok(Some((file, script)))
    }

    /// Loads the recording and the script that the configuration names into the demo exchange. Returns the
    /// script file.
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

    /// When the file is read next.
    pub fn due(&self) -> Mono {
        self.looked_at + LOOK_EVERY
    }

    /// Reads the file. Returns the script if it has changed. A script with a fault changes nothing.
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
