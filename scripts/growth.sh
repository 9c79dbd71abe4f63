#!/usr/bin/env bash
# What marketd grows with: memory and processor at more markets, more connections and more history.
# Prints one Markdown table; each line is a process of its own that had this many seconds to come to
# rest, and is then measured for as long again. Judges nothing: machines differ.
#
#     scripts/growth.sh [SECONDS]        default: 15
#
# Needs curl. Sends traffic to 127.0.0.1 alone. Ten thousand connections need as many descriptors:
# `ulimit -n` is raised as far as it goes, and lines that do not fit are left out, with a word.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-15}
command -v curl >/dev/null || { echo "growth: curl is missing" >&2; exit 2; }
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

cargo build --release --quiet --bin marketd --example fake_exchange --example load
work=$(mktemp -d)
children=()
finish() {
    kill "${children[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# Waits until a log names an address, and prints it.
address() {
    local log=$1 line
    for _ in $(seq 100); do
        line=$(grep -o 'http://127.0.0.1:[0-9]*' "$log" | head -n 1 || true)
        [ -n "$line" ] && { echo "$line"; return; }
        sleep 0.1
    done
    echo "growth: nothing is listening, see $log" >&2
    exit 1
}

# Starts a program in the background; its process id is in $started, its output in $log.
begin() {
    log=$work/$1.log
    shift
    "$@" >"$log" 2>&1 &
    started=$!
    children+=("$started")
}

stop() {
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# Starts marketd on a configuration and waits until it is ready; sets $pid and $base.
marketd() {
    printf '%s' "$2" >"$work/$1.json"
    begin "$1" target/release/marketd --config "$work/$1.json"
    pid=$started
    base=$(address "$log")
    for _ in $(seq 100); do
        curl -sf -o /dev/null "$base/health/ready" && return
        sleep 0.1
    done
    echo "growth: $1 does not become ready, see $log" >&2
    exit 1
}

# Processor time of all threads of a process so far, in nanoseconds.
used() { cat /proc/"$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f\n", sum }'; }

# One line of the table: what, and the process to look at.
line() {
    local what=$1 pid=$2 before after rss
    sleep "$seconds"
    before=$(used "$pid")
    sleep "$seconds"
    after=$(used "$pid")
    rss=$(awk '/VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$pid/status")
    awk -v what="$what" -v rss="$rss" -v used=$((after - before)) -v seconds="$seconds" \
        'BEGIN { printf "| %s | %s | %.2f |\n", what, rss, used / seconds / 1e7 }'
}

echo "| | resident memory, MiB | processor, % of a core |"
echo "|---|---:|---:|"
for tickers in 10 100 1000 10000; do
    begin "exchange-$tickers" target/release/examples/fake_exchange --port 0 --tickers "$tickers"
    exchange=$started
    url=$(address "$log")
    marketd "symbols-$tickers" "{ \"listen\": \"127.0.0.1:0\", \"data\": \":memory:\",
        \"limits\": { \"candleSeries\": 1 }, \"sources\": [ { \"dialect\": \"binance\",
        \"url\": \"$url\", \"quoteAssets\": [\"*\"], \"pollMs\": 1000 } ] }"
    line "$tickers symbols polled each second, no candles" "$pid"
    stop "$pid"
    stop "$exchange"
done
for connections in 0 1000 10000; do
    marketd "connections-$connections" '{ "listen": "127.0.0.1:0", "data": ":memory:",
        "limits": { "idleTimeoutMs": 3600000 } }'
    if [ "$connections" -gt 0 ]; then
        if [ "$(ulimit -n)" -le $((connections + 100)) ]; then
            echo "growth: $connections connections need more than $(ulimit -n) descriptors" >&2
            stop "$pid"
            continue
        fi
        begin "held-$connections" target/release/examples/load --hold --ms 3600000 \
            --connections "$connections" "$base/health"
        held=$started
        for _ in $(seq 300); do
            grep -q held "$log" && break
            sleep 0.1
        done
        grep -q held "$log" || { echo "growth: not all connections were answered" >&2; exit 1; }
    fi
    line "demo, $connections idle connections" "$pid"
    stop "$pid"
    [ "$connections" -eq 0 ] || stop "$held"
done
begin exchange-history target/release/examples/fake_exchange --port 0 --tickers 50
url=$(address "$log")
symbols=$(curl -s "$url/api/v3/exchangeInfo" | grep -o '"baseAsset":"[^"]*"\|"quoteAsset":"[^"]*"' |
    paste -d/ - - | sed 's/"baseAsset":"\([^"]*\)"\/"quoteAsset":"\([^"]*\)"/"\1\/\2"/')
for count in 1 50; do
    named=$(head -n "$count" <<<"$symbols" | paste -sd, -)
    marketd "history-$count" "{ \"listen\": \"127.0.0.1:0\", \"data\": \"$work/history-$count.db\",
        \"sources\": [ { \"dialect\": \"binance\", \"url\": \"$url\", \"symbols\": [$named] } ] }"
    line "$count symbols with the default history, on disk" "$pid"
    stop "$pid"
done
