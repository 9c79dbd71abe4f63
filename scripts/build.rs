//! Packs the files of JSON that the program holds: what is printed or served as a whole in gzip, which is an
//! eighth of it, and the dialects without white space, which is a fifth of them.

#[path = "openapi.rs"]
mod openapi;

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

const OPENAPI: &str = "src/core/api/openapi.json";

/// Files that are kept in gzip, and their names then.
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
    let document = openapi::expanded(&std::fs::read_to_string(OPENAPI)?, env!("CARGO_PKG_VERSION"));
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

/// The commit that a release is built from: as the variable says, else as git does. Empty if neither knows
/// it, and in other builds, which would be made again after each commit.
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
    // Written by every commit and every change of the branch.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    commit
}

/// JSON without the white space outside of its strings.
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
