//! The recorded bodies of real exchanges, kept in a folder beside the repository.
//!
//! `../shared/exchange-fixtures` as seen from the repository, or the folder that
//! `MARKETD_FIXTURES` names. A clone alone does not have them: then the tests that
//! need them say so on the terminal and pass.

use serde_json::value::RawValue;
use std::path::{Path, PathBuf};

/// The folder of recorded bodies.
#[derive(Clone, Debug)]
pub struct Fixtures {
    dir: PathBuf,
}

/// One recorded answer, and what a well-known library makes of the same bytes.
#[derive(Clone, Debug)]
pub struct Fixture {
    /// Name of the file.
    pub file: String,
    /// The call's arguments.
    pub input: serde_json::Value,
    /// The address that the body belongs to.
    pub url: String,
    /// The body, byte for byte as in the file.
    pub body: String,
    /// What the library returned for it, byte for byte as in the file.
    pub expected: Option<String>,
}

impl Fixtures {
    /// The folder; `None`, and a line that no test runner swallows, where there is none.
    pub fn find() -> Option<Fixtures> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let named = std::env::var_os("MARKETD_FIXTURES").map(PathBuf::from);
        let dir = named.unwrap_or_else(|| root.join("../shared/exchange-fixtures"));
        let found = dir.is_dir().then_some(dir);
        if found.is_none() {
            super::skipped("no recorded exchange bodies here; MARKETD_FIXTURES names their folder");
        }
        found.map(|dir| Fixtures { dir })
    }

    /// The names of all files that begin with `prefix` (`"binance."`), sorted.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).expect("the folder of fixtures is readable");
        let names = entries.map(|entry| entry.expect("a directory entry").file_name());
        let mut names: Vec<String> = names
            .filter_map(|name| name.into_string().ok())
            .filter(|name| name.starts_with(prefix) && name.ends_with(".json"))
            .collect();
        names.sort();
        names
    }

    /// One file, by its name with or without `.json`.
    #[track_caller]
    pub fn load(&self, name: &str) -> Fixture {
        let file = format!("{}.json", name.trim_end_matches(".json"));
        let path = self.dir.join(&file);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(fault) => panic!("{}: {fault}", path.display()),
        };
        match read(&file, &text) {
            Ok(fixture) => fixture,
            Err(fault) => panic!("{}: {fault}", path.display()),
        }
    }
}

impl Fixture {
    /// Path and query of the address.
    pub fn target(&self) -> &str {
        let host = self.url.find("://").map_or(0, |at| at + 3);
        let slash = self.url[host..].find('/').map(|at| host + at);
        slash.map_or("/", |slash| &self.url[slash..])
    }
}

fn read(file: &str, text: &str) -> serde_json::Result<Fixture> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct File<'a> {
        input: serde_json::Value,
        url: String,
        #[serde(borrow)]
        http_response: &'a RawValue,
        #[serde(borrow)]
        expected: Option<&'a RawValue>,
    }
    let parsed: File<'_> = serde_json::from_str(text)?;
    Ok(Fixture {
        file: file.to_string(),
        input: parsed.input,
        url: parsed.url,
        body: parsed.http_response.get().to_string(),
        expected: parsed.expected.map(|raw| raw.get().to_string()),
    })
}
