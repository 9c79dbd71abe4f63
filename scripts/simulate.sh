#!/usr/bin/env bash
# Simulates the whole core with clients and exchanges, seed after seed, until EVENTS events have happened:
# bytes that come and go, clocks that jump, a disk's answers. Every claim in every answer is compared with the
# trades of the simulated exchanges (tests/sim).
#
#     scripts/simulate.sh [EVENTS [FIRST_SEED]]      default: 1000000 events from seed 1
#
# A failure names its seed. MARKETD_SEED=7 scripts/simulate.sh repeats only seed 7; MARKETD_TRACE=1
# also prints all of its events.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1:-0}${2:-0}" in
    *[!0-9]*)
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
esac
export MARKETD_EVENTS=${1:-1000000}
export MARKETD_FIRST_SEED=${2:-1}
# With the checks of a debug build: an overflow is a finding.
exec cargo test --locked --test library -- --ignored --exact --nocapture \
    sim::among_a_million_events_there_is_no_false_claim
