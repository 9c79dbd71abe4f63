#!/usr/bin/env bash
# Measures marketd without requests: memory, processor time and wake-ups, with its demo exchange,
# after the backfill. Prints one Markdown table with limits; the exit code is 1 above any limit.
#
#     scripts/idle.sh [SECONDS]        each measurement, default: 20
#
# Needs curl. Sends traffic only to 127.0.0.1. Each connection needs a descriptor: `ulimit -n` is
# raised as far as possible, and there are fewer connections if that is not enough.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-20}
command -v curl >/dev/null || { echo "idle: curl is missing" >&2; exit 2; }
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

cargo build --release --locked --quiet --bin marketd --example load
cargo build --release --locked --quiet --bin marketd --no-default-features --target-dir target/bare
work=$(mktemp -d)
children=()
finish() {
    [ ${#children[@]} -eq 0 ] || kill "${children[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
# shellcheck source=scripts/cases.sh
. scripts/cases.sh

# Starts a marketd with the demo exchange, and waits for the end of its backfill; sets $pid, $base.
begin() {
    local name=$1 program=$2 poll_ms=$3 done wanted
    cat >"$work/$name.json" <<JSON
{ "listen": "127.0.0.1:0", "data": "$4", "limits": { "idleTimeoutMs": 3600000 },
  "sources": [ { "dialect": "demo", "symbols": ["BTC/USDT", "ETH/USDT"], "quoteAssets": ["*"],
                 "pollMs": $poll_ms, "staleAfterMs": 86400000, "frozenAfterMs": 86400000 } ] }
JSON
    "$program" --config "$work/$name.json" >"$work/$name.log" 2>&1 &
    pid=$!
    children+=("$pid")
    base=$(address_in "$work/$name.log")
    for _ in $(seq 600); do
        read -r wanted done < <(curl -s "$base/api/v1/metrics" |
            sed -nE 's/.*"backfill":\{"wanted":([0-9]+),"done":([0-9]+).*/\1 \2/p') || true
        [ "${wanted:-0}" -gt 0 ] && [ "$wanted" = "$done" ] && return
        sleep 0.2
    done
    fail "the backfill does not come to its end: $wanted candles, $done are there"
}

# The resident memory of the process in kilobytes, private or shared.
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

# How often all threads have gone to sleep voluntarily.
sleeps() { cat /proc/"$1"/task/*/status | awk '/^voluntary/ { sum += $2 } END { print sum }'; }

# For how many nanoseconds all threads have run.
used() { cat /proc/"$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'; }

echo "| | measured | at most |"
echo "|---|---:|---:|"
over=0
# Prints a line of the table; figures may have a fraction.
line() {
    local what=$1 figure=$2 limit=$3
    echo "| $what | $figure | $limit |"
    awk -v figure="$figure" -v limit="$limit" 'BEGIN { exit !(figure > limit) }' || return 0
    over=$((over + 1))
}

# With the default configuration, except for its address and file.
begin demo target/release/marketd 1000 "$work/demo.db"
demo=$pid
# With no poll of quotes for an hour, so that polls cause no wake-ups.
begin quiet target/release/marketd 3600000 "$work/quiet.db"
begin_used=$(used "$demo")
begin_sleeps=$(sleeps "$pid")
sleep "$seconds"
line "wake-ups a second beyond those of polls" \
    "$(awk -v n=$(($(sleeps "$pid") - begin_sleeps)) -v s="$seconds" 'BEGIN { printf "%.1f", n / s }')" 5
line "processor, % of a core, polling each second" \
    "$(awk -v n=$(($(used "$demo") - begin_used)) -v s="$seconds" 'BEGIN { printf "%.2f", n / s / 1e7 }')" 0.5
line "resident memory of the demo, MiB" \
    "$(awk -v kb="$(resident "$demo")" 'BEGIN { printf "%.1f", kb / 1024 }')" 10
quiet=$pid
begin small target/bare/release/marketd 1000 :memory:
line "the same without default features, MiB" \
    "$(awk -v kb="$(resident "$pid")" 'BEGIN { printf "%.1f", kb / 1024 }')" 6

# Opens this many connections and keeps them. Each has had one answer, like real idle connections.
hold() {
    target/release/examples/load --hold --ms 3600000 --connections "$2" "$base/health" >"$work/$1" &
    children+=($!)
    for _ in $(seq 300); do
        grep -q held "$work/$1" && return
        sleep 0.1
    done
    fail "not all connections were answered"
}

# Measures the second half of them: the first half uses memory that the backfill has freed.
pid=$quiet
base=$(address_in "$work/quiet.log")
most=$(($(ulimit -n) / 2 - 100))
connections=$((most < 8000 ? most : 8000))
hold first "$connections"
before=$(resident "$pid")
hold second "$connections"
line "memory of an idle connection, B ($connections beside $connections)" \
    $((($(resident "$pid") - before) * 1024 / connections)) 150
[ "$over" -eq 0 ] || fail "$over of the figures are above their limit"
