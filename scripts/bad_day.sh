#!/usr/bin/env bash
# Plays a bad day in virtual time: three sources on two exchanges whose candles stop, whose clocks lie, whose
# lists are short and who refuse, by turns and all at once (tests/sim/bad_day.rs).
#
#     scripts/bad_day.sh [SEED]      default: 1
#
# Prints the requests of each source by kind, the number of charts and of lines of the log, and how much was
# false: requests over a budget or while the exchange refused, candles lost, false claims. If anything was, the
# first of each kind are told, and the exit code is not 0.
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
