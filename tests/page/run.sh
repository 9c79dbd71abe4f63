#!/usr/bin/env bash
# Checks the page in headless Chromium, against a real marketd and a made-up exchange.
#
#     tests/page/run.sh [MARKETD_BINARY] [--breaks] [WORDS]
#
# The binary is target/release/marketd unless another one is named. WORDS chooses checks by their
# names. With --breaks each check runs against a page that is broken for it, and must fail.
# Skips, and says so, where Chromium or Node (18 or later) is missing. Traffic stays on 127.0.0.1.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
    printf '\n== NOT CHECKED: the page in a browser, for want of %s\n' "$1" >&2
    exit 0
}

binary=$here/../../target/release/marketd
if [ $# -gt 0 ] && [ -x "$1" ]; then
    binary=$1
    shift
fi
command -v node >/dev/null || skip 'Node'
[ "$(node -p 'parseInt(process.versions.node)')" -ge 18 ] || skip 'Node 18 or later'
chromium=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if chromium=$(command -v "$name"); then break; fi
done
[ -n "$chromium" ] || skip 'Chromium'
[ -x "$binary" ] || { echo "page: there is no $binary: cargo build --release" >&2; exit 2; }

exec node "$here/run.mjs" "$(realpath "$binary")" "$chromium" "$@"
