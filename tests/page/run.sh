#!/usr/bin/env bash
# Checks the page in headless Chromium, against a real marketd and a made-up exchange.
#
#     tests/page/run.sh [MARKETD_BINARY] [--breaks] [WORDS]
#
# The binary is $MARKETD or target/release/marketd unless another one is named. WORDS chooses checks by their
# names. With --breaks each check runs against a page that is broken for it, and must fail. Without either,
# the cost of 3,500 markets is measured, axe-core looks for faults of accessibility, and a chart library that
# others use (lightweight-charts) draws the candles too; both come from the npm registry.
# Skips, and says so, where Chromium, Node (20 or later) or one of them is missing. All other traffic stays
# on 127.0.0.1.
set -euo pipefail
library=lightweight-charts@5.0.8
rules=axe-core@4.10.3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

skip() {
    printf '\n== NOT CHECKED: in a browser: for want of %s\n' "$1" >&2
    exit 0
}

binary=${MARKETD:-$here/../../target/release/marketd}
if [ $# -gt 0 ] && [ -x "$1" ]; then
    binary=$1
    shift
fi
command -v node >/dev/null || skip 'Node'
[ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] || skip 'Node 20 or later'
chromium=
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if chromium=$(command -v "$name"); then break; fi
done
[ -n "$chromium" ] || skip 'Chromium'
[ -x "$binary" ] || { echo "page: there is no $binary: cargo build --release" >&2; exit 2; }

binary=$(realpath "$binary")
[ $# -eq 0 ] || exec node "$here/run.mjs" "$binary" "$chromium" "$@"

work=$(mktemp -d)
# Both halves mostly wait, and do not need each other.
node "$here/run.mjs" "$binary" "$chromium" >"$work/checks" 2>&1 &
checks=$!
end() {
    local is_well=$?
    wait "$checks" || is_well=1
    cat "$work/checks"
    rm -rf "$work"
    exit "$is_well"
}
trap end EXIT
node "$here/many.mjs" "$binary" "$chromium"

# Gets a package of the npm registry. Its files are in $work/NAME.
bring() {
    local folder=$work/${1%@*}
    command -v npm >/dev/null || return 1
    mkdir "$folder"
    (cd "$folder" && timeout 60 npm pack --silent "$1" >/dev/null 2>&1 && tar xzf ./*.tgz --strip-components=1)
}

if bring "$rules"; then
    node "$here/axe.mjs" "$binary" "$chromium" "$work/${rules%@*}/axe.min.js"
else
    printf '\n== NOT CHECKED: accessibility: for want of npm, or of %s from its registry\n' "$rules" >&2
fi
bring "$library" || skip "npm, or of $library from its registry"
script=$work/${library%@*}/dist/lightweight-charts.standalone.production.js
node "$here/foreign.mjs" "$binary" "$chromium" "$script"
