//! Packs the JSON files that the program contains. Those that are printed or served as a whole are packed
//! with gzip, to an eighth of their size. The dialects lose their white space, which leaves a fifth of their
//! size.

#[path = "openapi.rs"]
mod openapi;

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

const OPENAPI: &str = "src/core/api/openapi.json";
const METRICS: &str = "src/core/api/metrics/schema.json";

/// Files that are packed with gzip, and their packed names.
const PACKED: [(&str, &str); 2] = [
    ("src/config/schema.json", "config-schema.json.gz"),
    ("src/exchange/dialects/schema.json", "dialect-schema.json.gz"),
];

const DIALECTS: &str = "src/exchange/dialects";

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed={DIALECTS}");
    let out = std::env::var("OUT_DIR").expect("cargo says where to write");
    let out = Path::new(&out);
    for (path, name) in PACKED {
        println!("cargo::rerun-if-changed={path}");
        pack(&std::fs::read(path)?, &out.join(name))?;
    }
    println!("cargo::rerun-if-changed={OPENAPI}");
    println!("cargo::rerun-if-changed={METRICS}");
    let (source, metrics) = (std::fs::read_to_string(OPENAPI)?, std::fs::read_to_string(METRICS)?);
    let document = openapi::expanded(&source, &metrics, env!("CARGO_PKG_VERSION"));
    pack(document.as_bytes(), &out.join("openapi.gz"))?;
    println!("cargo::rustc-env=MARKETD_COMMIT={}", commit());
    for dialect in std::fs::read_dir(DIALECTS)? {
        let dialect = dialect?;
        let text = minified(&std::fs::read(dialect.path())?);
        std::fs::write(out.join(dialect.file_name()), text)?;
    }
    Ok(())
}

fn pack(text: &[u8], file: &Path) -> std::io::Result<()> {
    let mut gzip = GzEncoder::new(std::fs::File::create(file)?, Compression::best());
    gzip.write_all(text)?;
    gzip.finish().map(drop)
}

/// The commit that a release is built from, by the variable, or else by git. Empty if neither has it. Empty
/// also in other builds, which would be rebuilt after each commit.
fn commit() -> String {
    println!("cargo::rerun-if-env-changed=MARKETD_COMMIT");
    if let Ok(commit) = std::env::var("MARKETD_COMMIT") {
        return commit;
    }
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let git = |words: &[&str]| {
        let output = std::process::Command::new("git").args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    };
    let Some(commit) = is_release.then(|| git(&["rev-parse", "--short=12", "HEAD"])).flatten()
    else {
        return String::new();
    };
    // Every commit and every change of the branch writes this file.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    commit
}

/// Removes the white space of JSON outside of strings.
fn minified(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in text {
        if !in_string && byte.is_ascii_whitespace() {
            continue;
        }
        if *byte == b'"' && !is_escaped {
            in_string = !in_string;
        }
        is_escaped = in_string && *byte == b'\\' && !is_escaped;
        out.push(*byte);
    }
    out
}
