#!/bin/sh
# Kills marketd (kill -9) again and again while it fetches the history of many symbols from an exchange that
# answers at once. Checks that the file has all candles that were reported as stored, and in the end all
# candles of the history.
#
#     scripts/kills.sh [SYMBOLS] [KILLS] [SEED]
#
# Defaults: 60 symbols (270,000 candles), 20 kills, seed 1. Prints a line for each kill.
set -eu
cd "$(dirname "$0")/.."
case "${1:-0}${2:-0}${3:-0}" in
    *[!0-9]*)
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d'
        exit 2
        ;;
esac
MARKETD_SYMBOLS=${1:-60} MARKETD_KILLS=${2:-20} MARKETD_SEED=${3:-1} \
    cargo test --test daemon history::what_is_told_as_stored -- --nocapture
