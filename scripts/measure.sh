#!/usr/bin/env bash
# Measures every figure of the first table of results in src/docs/performance.md on this machine. It takes
# some twelve minutes on an idle machine. The exit code is 1 if a script finds a figure above its limit.
#
#     scripts/measure.sh            all of them
#     scripts/measure.sh --quick    with shorter runs beside the bare loop
#
# The scripts themselves say what they need and do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

over=0
measure() {
    printf '\n## %s\n\n' "$*"
    "$@" || over=1
}
measure scripts/size.sh
measure scripts/instructions.sh
measure scripts/ingest.sh
measure scripts/idle.sh
SOURCES=8 measure scripts/soak.sh 1 60
measure scripts/bench.sh "$@"
exit "$over"
