#!/usr/bin/env bash
# What taking in a poll of 3,500 tickers costs marketd, beside what serde_json takes to read the
# same body into structs; exit code 1 above a limit (scripts/ingest.rs).
#
#     scripts/ingest.sh
#
# serde_json, which marketd itself builds for size, is built for speed here, in a place of its own.
# Runs on core SERVER_CORE (default 0) where there is taskset. Without network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --release --locked --quiet --target-dir target/ingest \
    --config profile.release.package.serde_json.opt-level=3 --example ingest
pinned=()
! command -v taskset >/dev/null || pinned=(taskset -c "${SERVER_CORE:-0}")
exec "${pinned[@]}" target/ingest/release/examples/ingest
