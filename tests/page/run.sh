#!/usr/bin/env bash
# Checks the page in headless Chromium, against a real marketd and a made-up exchange.
#
#     tests/page/run.sh [MARKETD_BINARY] [--breaks] [WORDS]
#
# The binary is target/release/marketd unless another one is named. WORDS chooses checks by their
# names. With --breaks each check runs against a page that is broken for it, and must fail. Without either,
# a chart library that others use (lightweight-charts, from the npm registry) draws the candles too.
# Skips, and says so, where Chromium, Node (18 or later) or that library is missing. All other traffic stays
# on 127.0.0.1.
set -euo pipefail
library=lightweight-charts@5.0.8
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
    printf '\n== NOT CHECKED: in a browser: for want of %s\n' "$1" >&2
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

binary=$(realpath "$binary")
[ $# -eq 0 ] || exec node "$here/run.mjs" "$binary" "$chromium" "$@"
node "$here/run.mjs" "$binary" "$chromium"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
script=$work/package/dist/lightweight-charts.standalone.production.js
if ! command -v npm >/dev/null; then
    skip "npm, which brings $library"
elif ! (cd "$work" && timeout 60 npm pack --silent "$library" >/dev/null 2>&1 && tar xzf ./*.tgz); then
    skip "$library, which the npm registry did not give"
fi
node "$here/foreign.mjs" "$binary" "$chromium" "$script"
