//! The dialects that sources may name: those of this build, and files.
//!
//! A `dialect` with a slash or the ending `.json` is the path of a file. Its text is read here; what
//! it says is read by a function that the caller passes in, because this module knows no exchange.

use super::fault::{ConfigFault, Report, quoted};
use super::file::{Files, text_of_file};
use super::schema::{Config, SourceConfig};
use super::url::Url;
use std::path::Path;
use std::time::Duration;

/// An exchange that can be polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDialect {
    /// The name that `dialect` in the file and `--source` take.
    pub name: String,
    /// Address of the exchange.
    pub url: Url,
    /// Time in which the rate limit of the exchange refills by the cost of one poll of all quotes.
    pub poll_cost: Duration,
    /// The same for one symbol, if the exchange has no call for all quotes; else zero.
    pub symbol_cost: Duration,
    /// False if the exchange has no market list: its markets are those that `symbols` names.
    pub has_list: bool,
}

/// The dialects that a source may have.
pub struct Dialects {
    /// Those of this build.
    pub built_in: Vec<KnownDialect>,
    /// Reads a file: its name and its text.
    pub read: fn(&str, &str) -> Result<KnownDialect, Vec<ConfigFault>>,
}

/// Reads the files that sources name, relative to the configuration's file, and returns all dialects.
/// The dialect of a source whose file is faulty is cleared: one fault is enough.
pub(super) fn read_files(
    config: &mut Config,
    base: &Path,
    (dialects, files): (&Dialects, Files),
    report: &mut Report,
) -> Vec<KnownDialect> {
    let mut known = dialects.built_in.clone();
    for (at, source) in config.sources.iter_mut().enumerate() {
        if !source.names_file() {
            continue;
        }
        match read_file(source, base, (dialects, files), report) {
            Ok(dialect) => known.push(dialect),
            Err(message) => {
                report.fault(&format!("sources[{at}].dialect"), message);
                source.dialect.clear();
            }
        }
    }
    known
}

fn read_file(
    source: &mut SourceConfig,
    base: &Path,
    (dialects, files): (&Dialects, Files),
    report: &mut Report,
) -> Result<KnownDialect, String> {
    let path = base.join(&source.dialect).display().to_string();
    let text = text_of_file(&path, files);
    let text = text.map_err(|fault| format!("{}: {}", quoted(&path), fault.message))?;
    match (dialects.read)(&path, &text) {
        Ok(dialect) => {
            source.dialect_text = text;
            Ok(KnownDialect { name: source.dialect.clone(), ..dialect })
        }
        Err(faults) => {
            let count = match faults.len() {
                1 => "1 fault".to_string(),
                count => format!("{count} faults"),
            };
            faults.into_iter().for_each(|fault| report.add(fault));
            Err(format!("{} is not a dialect: it has {count}", quoted(&path)))
        }
    }
}
