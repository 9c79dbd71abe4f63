#!/usr/bin/env bash
# Plays a bad day in virtual time: three sources use two exchanges. The exchanges stop their candles, lie
# about the time, shorten their lists and refuse requests, one after the other and all at once
# (tests/sim/bad_day.rs).
#
#     scripts/bad_day.sh [SEED]      default: 1
#
# Prints the requests of each source by kind, and the number of charts and of log lines. An error ends it: a
# request over a budget or while the exchange refuses, a lost candle, a false claim. It is printed, and the exit
# code is not 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-0}" in
    *[!0-9]*)
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
esac
export MARKETD_FIRST_SEED=${1:-1}
exec cargo test --locked --quiet --test library -- --ignored --exact --nocapture sim::a_bad_day
