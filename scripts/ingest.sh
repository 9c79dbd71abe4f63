#!/usr/bin/env bash
# Compares the time that marketd takes to decode and apply a poll of 3,500 tickers with the time
# that serde_json takes to read the same body into structs. The exit code is 1 above a limit
# (scripts/ingest.rs).
#
#     scripts/ingest.sh
#
# marketd itself builds serde_json for size; here it is built for speed, in a separate target
# directory. Runs on core SERVER_CORE (default 0) if there is taskset. Needs no network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --release --locked --quiet --target-dir target/ingest \
    --config profile.release.package.serde_json.opt-level=3 --features examples --example ingest
pinned=()
! command -v taskset >/dev/null || pinned=(taskset -c "${SERVER_CORE:-0}")
exec "${pinned[@]}" target/ingest/release/examples/ingest
