#!/usr/bin/env bash
# Measures growth: memory, processor time and the response time of a quote with more markets, more
# connections, more readers of streams and more history. Prints Markdown tables. Each line is a separate
# process: it has SECONDS to settle, is then measured for SECONDS, and then gets requests for a quote for
# SECONDS. There are no limits, because machines differ.
#
#     scripts/growth.sh [SECONDS [PART...]]      default: 15, and all parts
#
# Parts: symbols, connections, readers, history, start. Needs curl, and sqlite3 for `start`. Sends traffic
# only to 127.0.0.1. Each connection needs a descriptor: `ulimit -n` is raised as far as possible, and lines
# that need more are left out with a message.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-15}
[ $# -eq 0 ] || shift
parts=${*:-symbols connections readers history start}
command -v curl >/dev/null || { echo "growth: curl is missing" >&2; exit 2; }
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

cargo build --release --quiet --bin marketd --features examples --example fake_exchange --example load --example stream
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

# Starts marketd with a configuration and waits until it is ready; sets $pid and $base.
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

# Prints one line of the table: its name, the process to measure, and the address for quotes.
line() {
    local what=$1 pid=$2 quote=$3 before after rss told late turns
    sleep "$seconds"
    before=$(used "$pid")
    sleep "$seconds"
    after=$(used "$pid")
    told=$(target/release/examples/load --connections 1 --ms $((seconds * 1000)) "$quote")
    late=$(sed 's/.*p99=\([0-9]*\).*/\1/' <<<"$told")
    rss=$(awk '/VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$pid/status")
    # The longest turn of the loop is below this bound.
    turns=$(curl -s "$base/metrics" | awk -F'[" ]' '
        /^marketd_loop_turn_seconds_bucket/ { if ($NF > last) bound = $2; last = $NF } END { print bound * 1000 }')
    awk -v what="$what" -v rss="$rss" -v used=$((after - before)) -v seconds="$seconds" -v late="$late" \
        -v turns="$turns" 'BEGIN { printf "| %s | %s | %.2f | %.2f | %s |\n", what, rss,
            used / seconds / 1e7, late / 1e6, turns }'
}

has() { [[ " $parts " = *" $1 "* ]]; }

# True if this many connections fit.
fits() {
    [ "$(ulimit -n)" -gt $(($1 + 200)) ] && return
    echo "growth: $1 connections need more than $(ulimit -n) descriptors" >&2
    return 1
}

head="| | resident memory, MiB | processor, % of a core | p99 of a quote, ms | longest turn, ms, below |"
rule="|---|---:|---:|---:|---:|"
if has symbols; then
    printf '%s\n%s\n' "$head" "$rule"
    for tickers in 10 100 1000 10000 100000; do
        begin "exchange-$tickers" target/release/examples/fake_exchange --port 0 --tickers "$tickers"
        exchange=$started
        url=$(address "$log")
        marketd "symbols-$tickers" "{ \"listen\": \"127.0.0.1:0\", \"data\": \":memory:\",
            \"limits\": { \"requestsPerConnection\": 4000000000, \"candleSeries\": 1, \"symbols\": 200000,
            \"upstreamBodyBytes\": 200000000 },
            \"sources\": [ { \"dialect\": \"binance\", \"url\": \"$url\", \"quoteAssets\": [\"*\"],
            \"pollMs\": 1000, \"timeoutMs\": 20000, \"staleAfterMs\": 60000 } ] }"
        symbol=
        for _ in $(seq 100); do
            body=$(curl -s "$base/api/v1/quotes?symbols=*")
            [[ $body =~ \"symbol\":\"([^\"]*)/([^\"]*)\" ]] && symbol=${BASH_REMATCH[1]}-${BASH_REMATCH[2]} && break
            sleep 0.1
        done
        line "$tickers symbols polled each second, no candles" "$pid" "$base/api/v1/quotes/$symbol"
        stop "$pid"
        stop "$exchange"
    done
fi
if has connections; then
    printf '\n%s\n%s\n' "$head" "$rule"
    for connections in 0 1000 10000 19000; do
        fits "$connections" || continue
        marketd "connections-$connections" '{ "listen": "127.0.0.1:0", "data": ":memory:",
            "limits": { "requestsPerConnection": 4000000000, "idleTimeoutMs": 3600000, "maxConnections": 20000 } }'
        if [ "$connections" -gt 0 ]; then
            begin "held-$connections" target/release/examples/load --hold --ms 3600000 \
                --connections "$connections" "$base/health"
            held=$started
            for _ in $(seq 300); do
                grep -q held "$log" && break
                sleep 0.1
            done
            grep -q held "$log" || { echo "growth: not all connections were answered" >&2; exit 1; }
        fi
        line "demo, $connections idle connections" "$pid" "$base/api/v1/quotes/BTC-USDT"
        stop "$pid"
        [ "$connections" -eq 0 ] || stop "$held"
    done
fi
if has readers; then
    echo
    echo "| readers of 100 of 3,500 symbols, all of which change each second | processor, % of a core |" \
        "p50, p99 after the poll's last byte, ms | the kernel alone | B a reader | conflated |"
    echo "|---:|---:|---:|---:|---:|---:|"
    # The loop that only sends serves the same number.
    for readers in 100 1000 9500; do
        fits $((2 * readers)) || continue
        target/release/examples/stream --readers "$readers" --seconds "$seconds" -- target/release/marketd |
            awk '{
                for (n = 1; n <= NF; n++) { split($n, part, "="); v[part[1]] = part[2] }
                printf "| %d | %.0f | %.0f, %.0f | %.0f, %.0f | %d | %d of %d |\n", v["readers"],
                    v["cpu_mille"] / 10, v["p50_us"] / 1000, v["p99_us"] / 1000, v["floor_p50_us"] / 1000,
                    v["floor_p99_us"] / 1000, v["bytes_per_reader"], v["conflated"], v["events"]
            }'
    done
fi
if has history; then
    printf '\n%s\n%s\n' "$head" "$rule"
    begin exchange-history target/release/examples/fake_exchange --port 0 --tickers 50
    url=$(address "$log")
    symbols=$(curl -s "$url/api/v3/exchangeInfo" | grep -o '"baseAsset":"[^"]*"\|"quoteAsset":"[^"]*"' |
        paste -d/ - - | sed 's/"baseAsset":"\([^"]*\)"\/"quoteAsset":"\([^"]*\)"/"\1\/\2"/')
    for count in 1 50; do
        named=$(head -n "$count" <<<"$symbols" | paste -sd, -)
        marketd "history-$count" "{ \"listen\": \"127.0.0.1:0\", \"data\": \"$work/history-$count.db\",
            \"limits\": { \"requestsPerConnection\": 4000000000 }, \"sources\": [ { \"dialect\": \"binance\", \"url\": \"$url\", \"symbols\": [$named] } ] }"
        symbol=$(head -n 1 <<<"$symbols" | tr -d '"')
        line "$count symbols with the default history, on disk" "$pid" "$base/api/v1/quotes/${symbol/\//-}"
        stop "$pid"
    done
fi
# Copies the rows of one market's candles to other markets. marketd does not believe them, but it still finds
# them at its start.
if has start && ! command -v sqlite3 >/dev/null; then
    echo "growth: start is left out: sqlite3 is missing" >&2
elif has start; then
    echo
    echo "| candles on disk | series | MB | until the first quote, ms | resident memory then, MiB |"
    echo "|---:|---:|---:|---:|---:|"
    for count in 1000000 10000000; do
        config="{ \"listen\": \"127.0.0.1:0\", \"data\": \"$work/start-$count.db\",
            \"limits\": { \"historyBytes\": 100000000000 } }"
        marketd "start-$count" "$config"
        sleep 5
        stop "$pid"
        sqlite3 "$work/start-$count.db" "
            PRAGMA synchronous = OFF;
            WITH RECURSIVE n(at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < $count / 1000)
            INSERT INTO series (id, source, symbol, interval, candles)
                SELECT 100000 + at, 'demo', 'A' || at || '/USDT', '1m', 1000 FROM n;
            WITH RECURSIVE n(at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM n WHERE at < 999)
            INSERT INTO candle SELECT id, unixepoch() / 60 * 60 - 60 * (1000 - at), '1', '1', '1', '1', '1', 0
                FROM series, n WHERE id > 100000;
            INSERT INTO span SELECT id, unixepoch() / 60 * 60 - 60000, unixepoch() / 60 * 60, 0 FROM series
                WHERE id > 100000;" >/dev/null
        size=$(du -m "$work/start-$count.db" | cut -f1)
        begun=$(date +%s%N)
        begin "begun-$count" target/release/marketd --config "$work/start-$count.json"
        pid=$started
        base=$(address "$log")
        until curl -sf -o /dev/null "$base/api/v1/quotes/BTC-USDT"; do sleep 0.01; done
        ended=$(date +%s%N)
        sleep 5
        rss=$(awk '/VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$pid/status")
        echo "| $count | $((count / 1000)) | $size | $(((ended - begun) / 1000000)) | $rss |"
        stop "$pid"
        rm -f "$work/start-$count.db"*
    done
fi
