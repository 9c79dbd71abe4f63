#!/usr/bin/env bash
# Measures how much polling slows down clients: marketd under a load of quotes, alternately with
# 3,500 tickers polled each second and without any polling. Prints one line per run, then the
# medians, the share of the loop's turns below a millisecond, and memory. There are no limits,
# because machines differ.
#
#     scripts/soak.sh [PAIRS] [SECONDS]        default: 5 pairs of runs of 10 seconds
#     SOURCES=8 scripts/soak.sh                as many exchanges, of 3,500 tickers each
#
# The marketd that polls also fetches history from each exchange and writes it to a file, all the
# time. Needs wrk (Debian: apt-get install wrk), curl and taskset. Sends traffic only to 127.0.0.1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pairs=${1:-5}
seconds=${2:-10}
sources=${SOURCES:-1}
tickers=3500
for tool in wrk curl taskset; do
    command -v "$tool" >/dev/null || { echo "soak: $tool is missing" >&2; exit 2; }
done

cargo build --release --quiet --bin marketd --features examples --example fake_exchange
work=$(mktemp -d)
children=()
finish() {
    kill "${children[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

# The percentile that wrk does not print by itself.
cat >"$work/tail.lua" <<'LUA'
done = function(summary, latency)
    io.write(string.format("tail %d %d %d\n", latency:percentile(50), latency:percentile(99),
        latency:percentile(99.9)))
end
LUA

# Waits until a log names an address, and prints it.
address() {
    local log=$1 line
    for _ in $(seq 100); do
        line=$(grep -so 'http://127.0.0.1:[0-9]*' "$log" | head -n 1 || true)
        [ -n "$line" ] && { echo "$line"; return; }
        sleep 0.1
    done
    echo "soak: nothing is listening: $(cat "$log")" >&2
    exit 1
}

# Exchanges, and as many entries of a configuration, with this many milliseconds between polls.
exchanges=()
for number in $(seq "$sources"); do
    taskset -c 1 target/release/examples/fake_exchange --port 0 --tickers "$tickers" --seed "$number" \
        >"$work/exchange-$number.log" 2>&1 &
    children+=($!)
    exchanges+=("$(address "$work/exchange-$number.log")")
done
entries() {
    local number entries=()
    for number in "${!exchanges[@]}"; do
        entries+=("{ \"id\": \"source-$number\", \"dialect\": \"binance\",
            \"url\": \"${exchanges[number]}\", \"symbols\": [$2], \"quoteAssets\": [\"*\"],
            \"pollMs\": $1, \"staleAfterMs\": 86400000, \"frozenAfterMs\": 86400000 }")
    done
    (IFS=, && echo "${entries[*]}")
}

# Starts marketd on core 0 with these sources and this file. There is always more history to fetch than the
# file has.
start() {
    local name=$1 sources=$2 data=$3
    cat >"$work/$name.json" <<JSON
{ "listen": "127.0.0.1:0", "data": "$data", "sources": [ $sources ],
  "history": { "1m": { "keep": 2000000, "backfill": 2000000 } } }
JSON
    taskset -c 0 target/release/marketd --config "$work/$name.json" >"$work/$name.log" 2>&1 &
    children+=($!)
    echo $! >"$work/$name.pid"
}
start polling "$(entries 1000 '"BTC/USDT","ETH/USDT"')" "$work/polling.db"
start quiet "$(entries 3600000 '')" :memory:
polling=$(address "$work/polling.log")
quiet=$(address "$work/quiet.log")
for base in "$polling" "$quiet"; do
    "$PWD/target/release/marketd" healthcheck --wait 10 "$base"
done
curl -s -o "$work/markets" "$polling/api/v1/quotes?symbols=*"
symbol=$(sed 's/^{"quotes":\[{"symbol":"\([A-Z0-9]*\)\/\([A-Z0-9]*\)".*/\1-\2/' "$work/markets")
curl -sf -o /dev/null "$polling/api/v1/quotes/$symbol"

run() {
    taskset -c 1 wrk -t1 -c4 -d"$seconds" -s "$work/tail.lua" "$1/api/v1/quotes/$symbol" |
        awk '/^tail/ { print $2, $3, $4 } /Requests\/sec/ { print $2 }' | tr '\n' ' '
}
echo "pair  which    p50us p99us p99.9us requests/s"
for pair in $(seq "$pairs"); do
    for which in polling quiet; do
        base=${!which}
        # wrk prints the rate before the script's line.
        figures=$(run "$base")
        read -r rate p50 p99 p999 <<<"$figures"
        echo "$pair     $which $p50 $p99 $p999 $rate" | tee -a "$work/rows"
    done
done
awk '
    { rows[$1, $2] = $5 }
    END {
        for (pair = 1; (pair, "polling") in rows; pair++)
            print rows[pair, "polling"] - rows[pair, "quiet"]
    }' "$work/rows" | sort -n | awk '
    { difference[NR] = $1 }
    END { print "p99.9 with polling less p99.9 without, median of pairs: " \
        difference[int((NR + 1) / 2)] " us" }'
curl -s "$polling/metrics" | awk -F'[ "]' '
    /loop_turn_seconds_bucket\{le="0.001000"/ { below = $NF }
    /loop_turn_seconds_count/ { all = $NF }
    /loop_max_stall_seconds / { longest = $NF }
    END {
        printf "turns of the loop below 1 ms: %.3f %% of %d; the longest of the last minute: %.2f ms\n",
            100 * below / all, all, 1000 * longest
    }'
for which in polling quiet; do
    echo "$which: $(grep VmRSS "/proc/$(cat "$work/$which.pid")/status")"
done
