//! Packs the files of JSON that the program holds. Without white space and in gzip, the description of the
//! interface is an eighth of its file, which is a twentieth of the smallest program. A fifth of the
//! dialects' files is white space.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

const INTERFACE: &str = "src/core/api/openapi.json";
const DIALECTS: &str = "src/exchange/dialects";

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed={INTERFACE}");
    println!("cargo::rerun-if-changed={DIALECTS}");
    let out = std::env::var("OUT_DIR").expect("cargo says where to write");
    let out = Path::new(&out);
    let file = std::fs::File::create(out.join("openapi.json.gz"))?;
    let mut gzip = GzEncoder::new(file, Compression::best());
    gzip.write_all(&minified(&std::fs::read(INTERFACE)?))?;
    gzip.finish()?;
    for dialect in std::fs::read_dir(DIALECTS)? {
        let dialect = dialect?;
        let text = minified(&std::fs::read(dialect.path())?);
        std::fs::write(out.join(dialect.file_name()), text)?;
    }
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
