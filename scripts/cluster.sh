#!/usr/bin/env bash
# Runs a cluster of three nodes on one Redis, with exchanges that count the requests of each node. First
# nothing happens; then collectors are stopped, then killed; Redis goes away, is out of one node's reach, is
# frozen, and is lost while all nodes start; a node that lacks sources joins. The exit code is 1 above a limit
# (scripts/cluster.rs).
#
#     scripts/cluster.sh [OPTION...]                those of scripts/cluster.rs: --sources N, --kills N, ...
#     FULL=1 scripts/cluster.sh                     8 exchanges of 3,500 tickers, 10 kills, a minute without Redis
#
# Prints a table: the processor time of each node and of Redis, how far followers are behind, how soon others
# take over, the age of the quotes that clients of each node saw, answers while Redis is away, the requests in
# the fullest window of a budget, polls by two nodes at once, and the candles that differ between the nodes'
# files. If something is tried several times, the table has each trial. Needs redis-server (Debian: apt-get
# install redis-server), and starts one of its own. Sends traffic only to 127.0.0.1. On a machine that others
# use, MARGIN=2 doubles the limits.
#
# On a machine that others use, root may give all of it priority: FIRST=1 scripts/cluster.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The kernel first divides the processor among sessions (sched(7), "The autogroup feature").
if [ -n "${FIRST:-}" ]; then
    FIRST='' exec setsid -w bash -c 'echo -20 >/proc/self/autogroup && exec "$0" "$@"' \
        "scripts/${0##*/}" "$@"
fi

case ${1:-} in
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d' && exit ;;
esac
full=()
[ -z "${FULL:-}" ] || full=(--sources 8 --tickers 3500 --kills 10 --away 60 --steady 30)
[ -n "${BUILT:-}" ] || cargo build --release --locked --quiet --bin marketd --features examples --example cluster
exec target/release/examples/cluster --margin "${MARGIN:-1}" "${full[@]}" "$@" target/release/marketd
