//! Packs the description of the interface: without white space and in gzip it is an eighth of its file, which
//! is a twentieth of the smallest program.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

const FILE: &str = "src/core/api/openapi.json";

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed={FILE}");
    let text = std::fs::read(FILE)?;
    let out = std::env::var("OUT_DIR").expect("cargo says where to write");
    let file = std::fs::File::create(Path::new(&out).join("openapi.json.gz"))?;
    let mut gzip = GzEncoder::new(file, Compression::best());
    gzip.write_all(&minified(&text))?;
    gzip.finish()?;
    Ok(())
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
