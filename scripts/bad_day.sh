#!/usr/bin/env bash
# Plays a bad day in virtual time: three sources on two exchanges whose candles stop, whose clocks lie, whose
# lists are short and who refuse, by turns and all at once (tests/sim/bad_day.rs).
#
#     scripts/bad_day.sh [SEED]      default: 1
#
# Prints the requests of each source by kind, and the number of requests over a budget or while the exchange
# refused, of candles lost, of false claims, and of lines of the log. All but the first and the last must be 0:
# else the first of each kind are told, and the exit code is not 0.
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
