#!/usr/bin/env bash
# Damages raw requests, seed after seed. Feeds them to the parser, cut at every byte, and to the
# whole core, each in four ways. Nothing may panic, answers must be strict and must not depend on
# where the bytes are cut, and every end must be counted once. Then it damages, for the same time
# and in parallel, answers of exchanges, and bodies for their parsers.
#
#     scripts/fuzz.sh [SECONDS [FIRST_SEED]]
#
# Without a seed it begins at a seed at which no other run has begun. A failure names its seed:
# MARKETD_SEED=7 cargo test --test library requests::fuzz:: repeats only seed 7, and so does
# MARKETD_SEED=7 cargo test --test library wire::garbage::.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-0}${2:-0}" in
    *[!0-9]*)
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
esac
export MARKETD_FUZZ_SECONDS=${1:-180}
export MARKETD_FUZZ_SEED=${2:-$(date +%s)000}
echo "seeds from $MARKETD_FUZZ_SEED, twice $MARKETD_FUZZ_SECONDS s"
# With the checks of a debug build: an overflow is a finding.
cargo test --locked --test library requests::fuzz:: -- --nocapture
exec cargo test --locked --test library wire::garbage:: -- --nocapture
