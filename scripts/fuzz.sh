#!/usr/bin/env bash
# Damages raw requests, seed after seed, and feeds them to the parser, cut at every byte, and to the
# whole core, each in four ways: no panic, strict answers, the same however the bytes are cut, every
# end counted once. Then, for as long again, side by side: exchanges' answers and bodies for their
# parsers alone.
#
#     scripts/fuzz.sh [SECONDS [FIRST_SEED]]
#
# Without a seed it begins at one that no other run has begun at. A failure names its seed:
# MARKETD_SEED=7 cargo test --test library requests::fuzz:: repeats seed 7 alone, and so does
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
