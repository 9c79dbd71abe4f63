//! Loading: makes one configuration of command line, environment and file, or reports the faults.
//!
//! Flags override the environment, the environment overrides the file, the file overrides the defaults. This
//! module also decides which sources run. The caller passes in a function that looks up variables of the
//! environment.

use super::check::{Dialects, KnownDialect, check, dialect_of};
use super::fault::{ConfigFault, Report, quoted, wrong};
use super::files::{Files, Secret, text_of_file, variable_of};
use super::flags::{FLAGS, Flags};
use super::forms::SYMBOL;
use super::json::{self, Node};
use super::log_rules;
use super::members::{Named as _, names};
use super::schema::{Config, DEMO, HistoryConfig, SourceConfig};
use super::url::{Proxies, Url};
use super::values::{KeyValue, list_keys, read_key, read_text};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A configuration without faults.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: Config,
    /// The rules of the log, in the syntax of `RUST_LOG`.
    pub log: String,
    /// The form of the log's lines.
    pub log_format: LogFormat,
    /// The file to write the addresses to.
    pub address_file: Option<PathBuf>,
    /// The warnings about values that are allowed but unwise.
    pub warnings: Vec<ConfigFault>,
}

names! {
    /// The form of the log's lines.
    pub enum LogFormat {
        /// For people, or for the journal of systemd.
        Text "text"
        /// One JSON object a line, for programs.
        Json "json"
    }
}

impl LoadedConfig {
    /// The filter of the log. `accessLog` decides about the target `access` if no rule of
    /// [`LoadedConfig::log`] names it.
    pub fn filter(&self) -> String {
        // A later rule for a target replaces an earlier one.
        let level = if self.config.access_log { "info" } else { "off" };
        format!("access={level},{}", self.log)
    }
}

/// The inputs of a configuration, and the report of its faults.
pub(super) struct Loader<'a> {
    pub(super) flags: Flags,
    /// Looks up the environment. An empty variable counts as unset.
    pub(super) variable: &'a dyn Fn(&str) -> Option<OsString>,
    pub(super) dialects: &'a Dialects,
    pub(super) files: Files,
    /// The sources since the start, if marketd runs: each keeps its dialect, because its candles are stored
    /// under its id.
    pub(super) running: &'a [SourceConfig],
    /// True if a configuration without sources is a fault. Otherwise the demo exchange runs.
    pub(super) needs_sources: bool,
    /// True if the task sends requests to exchanges. Then the keys for the exchanges are read.
    pub(super) asks: bool,
    /// Checks the files that the configuration names, for `--check`.
    pub(super) look: Option<LookAtFiles>,
    pub(super) report: Report,
}

/// Checks files that a configuration names. Returns the faults, each with the key that names the file.
pub type LookAtFiles = fn(&Config) -> Vec<(&'static str, String)>;

/// Reads the configuration again. The sources are those since the start.
pub type Reread = fn(&[SourceConfig]) -> Result<LoadedConfig, Vec<ConfigFault>>;

impl<'a> Loader<'a> {
    /// A loader that reads files of any kind. The caller sets `files`, `needs_sources`, `asks` and
    /// `look` as its task needs.
    pub(super) fn new(
        flags: Flags,
        variable: &'a dyn Fn(&str) -> Option<OsString>,
        dialects: &'a Dialects,
        report: Report,
    ) -> Loader<'a> {
        let (files, needs_sources, asks, look) = (Files::Any, false, false, None);
        let running = &[];
        Loader { flags, variable, dialects, files, running, needs_sources, asks, look, report }
    }

    /// Makes one configuration of flags, environment and file. Reports every fault: first the faults of flags
    /// and variables, then the faults of the file from top to bottom.
    pub(super) fn load(mut self) -> Result<LoadedConfig, Vec<ConfigFault>> {
        let (mut config, mut log) = (Config::default(), None);
        let (mut log_format, mut address_file) = (LogFormat::Text, None);
        for flag in FLAGS {
            let given = match (self.flags.value(flag.name), flag.variable) {
                (Some(text), _) => Some((flag.name, text.to_string())),
                (None, "") => None,
                (None, by) => self.variable(by).map(|text| (by, text)),
            };
            let Some((by, text)) = given else { continue };
            let report = &mut self.report;
            match (flag.name, flag.key) {
                ("--config", _) => match text_of_file(&text, self.files) {
                    Ok(json) => read_file(&mut config, &text, &json, report),
                    Err(fault) => report.add(fault),
                },
                ("--log", _) if by != flag.name => {
                    log = log_rules::read_variable(&text, by, report);
                }
                ("--log-format", _) => {
                    log_format = report.accept(by, LogFormat::chosen(&text));
                }
                ("--demo", _) if text.is_empty() => {}
                ("--address-file", _) => address_file = Some(text.into()),
                (_, "") => {}
                (_, key) => {
                    report.give(key, by);
                    // The other keys of the demo are numbers, or words.
                    let may_be_number = key.starts_with("demo.") && key != "demo.script";
                    let text = match may_be_number && text.bytes().all(|it| it.is_ascii_digit()) {
                        true if !text.is_empty() => text,
                        _ => json::text(&text),
                    };
                    let node = &Node::unplaced(key.to_string(), &text);
                    let (object, key) = key.split_once('.').unwrap_or(("", key));
                    let object: &mut dyn KeyValue = match object {
                        "demo" => &mut (config.demo.get_or_insert_default(), &()),
                        "cluster" => &mut (config.cluster.get_or_insert_default(), &()),
                        _ => &mut (&mut config, &()),
                    };
                    let known = read_key(object, key, node, report);
                    debug_assert!(known.is_ok(), "flags override keys that are there");
                }
            }
        }
        let log = log.unwrap_or_else(|| {
            let rules = config.log.as_deref().unwrap_or("info");
            log_rules::of_flag(rules).unwrap_or_default()
        });
        let (config, warnings) = self.finish(config)?;
        Ok(LoadedConfig { config, log, log_format, address_file, warnings })
    }

    fn variable(&mut self, name: &'static str) -> Option<String> {
        let value = (self.variable)(name).filter(|value| !value.is_empty())?;
        let text = value.into_string().map_err(|_| "expected UTF-8".to_string());
        self.report.accept(name, text.map(Some))
    }

    /// Decides which sources run, checks the whole configuration and completes it. Returns the warnings
    /// too.
    pub(super) fn finish(
        mut self,
        mut config: Config,
    ) -> Result<(Config, Vec<ConfigFault>), Vec<ConfigFault>> {
        let proxies = Proxies::read(|name| self.variable(name));
        self.choose_sources(&mut config);
        let dialects = &self.read_dialects(&mut config);
        if self.asks {
            self.read_keys(&mut config, dialects);
        }
        check(&config, dialects, &mut self.report);
        for (at, source) in config.sources.iter().enumerate() {
            // The name of a dialect that cannot be read is empty here.
            let is_read = !source.dialect.is_empty();
            let is_other =
                |it: &&SourceConfig| is_read && it.id == source.id && it.dialect != source.dialect;
            if let Some(SourceConfig { id, dialect, .. }) = self.running.iter().find(is_other) {
                let rule = "until marketd ends: another exchange needs another id";
                let message = format!("source {id:?} has dialect {dialect:?} {rule}");
                self.report.fault(&format!("sources[{at}].dialect"), message);
            }
        }
        let runs_demo = config.sources.iter().any(|source| source.dialect == DEMO);
        config.demo = runs_demo.then(|| config.demo.take().unwrap_or_default());
        self.read_roots(&mut config);
        for (key, fault) in self.look.map(|look| look(&config)).unwrap_or_default() {
            self.report.fault(key, fault);
        }
        // The demo exchange runs in this process, so it needs no proxy.
        for source in config.sources.iter_mut().filter(|it| it.dialect != DEMO) {
            let own = dialect_of(source, dialects).map(|dialect| &dialect.url);
            match source.url.as_ref().or(own).map(|url| proxies.proxy_for(url)) {
                Some(Ok(proxy)) => source.proxy = proxy,
                Some(Err(fault)) => self.report.add(fault),
                None => {}
            }
        }
        let warnings = self.report.close()?;
        let HistoryConfig { m1, h1, d1 } = &mut config.history;
        for depth in [m1, h1, d1] {
            depth.backfill = depth.backfill.min(depth.keep);
        }
        Ok((config, warnings))
    }

    /// Decides which sources run: the sources of the flags, else of the file, else the demo exchange.
    /// `--demo` adds the demo exchange to the others.
    fn choose_sources(&mut self, config: &mut Config) {
        let Loader { flags, report, needs_sources, .. } = self;
        if flags.has("--source") {
            report.give("sources", "--source");
            config.sources.clear();
            for text in flags.values("--source") {
                let source = source_of(text, &config.sources, report);
                config.sources.push(source);
            }
        }
        let is_demo = |source: &SourceConfig| source.dialect == DEMO;
        let asked = flags.has("--demo") && !config.sources.iter().any(is_demo);
        if asked {
            report.give(&format!("sources[{}]", config.sources.len()), "--demo");
        }
        if *needs_sources && config.sources.is_empty() {
            let message = "expected --config or --source: they name the markets to keep";
            report.add(ConfigFault::by("", message));
        }
        if asked || config.sources.is_empty() {
            config.sources.push(SourceConfig::new(DEMO));
        }
        if !flags.has("--symbols") {
            return;
        }
        let symbols = symbols_of("--symbols", flags.values("--symbols"), report);
        let count = match &config.sources[..] {
            [source] if is_demo(source) => 1,
            _ => flags.values("--source").count(),
        };
        if count == 0 {
            let message = "needs --source: sources in the file have their own symbols";
            report.add(ConfigFault::by("--symbols", message));
        }
        for source in &mut config.sources[..count] {
            source.symbols.clone_from(&symbols);
            source.quote_assets.clear();
        }
    }

    /// Reads the files of dialects that sources name, relative to the configuration's file, and returns all
    /// dialects. Clears the dialect of a source whose file is faulty, because one fault is enough.
    fn read_dialects(&mut self, config: &mut Config) -> Vec<KnownDialect> {
        let mut known = self.dialects.built_in.clone();
        // Files that flags name are relative to the working directory.
        let file = self.report.file().filter(|_| !self.flags.has("--source"));
        let base = file.and_then(|file| Path::new(file).parent());
        let base = base.unwrap_or(Path::new("")).to_path_buf();
        for (at, source) in config.sources.iter_mut().enumerate() {
            if !source.names_file() {
                continue;
            }
            let path = base.join(&source.dialect).display().to_string();
            let read =
                self.text_of(&path).and_then(|text| match (self.dialects.read)(&path, &text) {
                    Ok(dialect) => {
                        source.dialect_text = text;
                        Ok(KnownDialect { name: source.dialect.clone(), ..dialect })
                    }
                    Err(faults) => {
                        faults.into_iter().for_each(|fault| self.report.add(fault));
                        Err(format!("{} is not a dialect: see its faults", quoted(&path)))
                    }
                });
            match read {
                Ok(dialect) => known.push(dialect),
                Err(message) => {
                    self.report.fault(&format!("sources[{at}].dialect"), message);
                    source.dialect.clear();
                }
            }
        }
        known
    }

    /// Reads the key of each source whose dialect sends one.
    fn read_keys(&mut self, config: &mut Config, dialects: &[KnownDialect]) {
        for (at, source) in config.sources.iter_mut().enumerate() {
            let path = format!("sources[{at}].keyFile");
            let has_key = dialect_of(source, dialects).map(|dialect| dialect.has_key);
            let read = match &source.key_file {
                Some(_) if has_key == Some(false) => {
                    Err("nothing reads it: the dialect has no `key`".into())
                }
                _ if has_key != Some(true) => continue,
                Some(name) => self.text_of(name).and_then(|text| {
                    let key = Secret::parse(&text);
                    key.map_err(|message| format!("{}: {message}", quoted(name)))
                }),
                None => {
                    let name = variable_of(&source.id);
                    let text = (self.variable)(&name).unwrap_or_default().into_string();
                    let key = text.map_err(|_| "expected UTF-8".to_owned());
                    let key = key.and_then(|text| Secret::parse(&text));
                    let what = "the key of the source, unless `keyFile` names a file with it";
                    key.map_err(|message| format!("{name}: {message} ({what})"))
                }
            };
            match read {
                Ok(key) => source.key = Some(key),
                Err(message) => self.report.fault(&path, message),
            }
        }
    }

    /// Reads the file of root certificates. It must be text with a certificate. `net` parses the
    /// certificates.
    fn read_roots(&mut self, config: &mut Config) {
        let Some(name) = &config.tls.ca_file else {
            return;
        };
        let is_sound = |text: &String| text.contains("-----BEGIN CERTIFICATE-----");
        let unsound = || format!("{} holds no certificate in PEM form", quoted(name));
        match self.text_of(name).and_then(|it| Some(it).filter(is_sound).ok_or_else(unsound)) {
            Ok(text) => config.tls.ca_text = text,
            Err(message) => self.report.fault("tls.caFile", message),
        }
    }

    /// The text of a file that the configuration names.
    fn text_of(&self, name: &str) -> Result<String, String> {
        let text = text_of_file(name, self.files);
        text.map_err(|fault| format!("{}: {}", quoted(name), fault.message))
    }
}

/// Reads the keys of a file of this name and text.
pub(super) fn read_file(config: &mut Config, name: &str, text: &str, report: &mut Report) {
    report.keys.clear();
    list_keys("", &mut (&mut Config::default(), &()), &mut report.keys);
    read_text(&mut (config, &()), name, text, report);
}

/// Makes a source of `DIALECT[=URL]`. It is named after its dialect: `binance`, then `binance-2`.
fn source_of(text: &str, others: &[SourceConfig], report: &mut Report) -> SourceConfig {
    let split = text.split_once('=');
    let (dialect, url) = split.map_or((text, None), |(dialect, url)| (dialect, Some(url)));
    let mut source = SourceConfig::new(dialect);
    let same = others.iter().filter(|it| it.dialect == dialect).count();
    if same > 0 && dialect != DEMO {
        source.id = format!("{}-{}", source.id, same + 1);
    }
    if dialect.is_empty() {
        report.fault("sources", wrong("DIALECT[=URL]", text));
    }
    match url.map(Url::parse).transpose() {
        Ok(url) => source.url = url,
        Err(message) => {
            report.fault("sources", message);
            // The check skips a source without dialect: one fault is enough.
            source.dialect.clear();
        }
    }
    source
}

/// The symbols in the values of the flag `by`. A symbol may be given twice on the command line.
pub(super) fn symbols_of<'t>(
    by: &str,
    texts: impl Iterator<Item = &'t str>,
    report: &mut Report,
) -> Vec<String> {
    let mut symbols = Vec::new();
    let mut parts =
        texts.flat_map(|it| it.split([',', ' '])).filter(|it| !it.is_empty()).peekable();
    if parts.peek().is_none() {
        report.add(ConfigFault::by(by, "expected symbols like BTC/USDT, found none"));
    }
    for part in parts {
        let symbol = report.accept(by, SYMBOL.parse(part));
        if !symbols.contains(&symbol) {
            symbols.push(symbol);
        }
    }
    symbols
}
