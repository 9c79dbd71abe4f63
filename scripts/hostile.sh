#!/usr/bin/env bash
# Tests whether any client can stop the loop. Crowds send the worst requests of each endpoint as
# fast as they can, while one well-behaved client requests a quote once a millisecond. Prints one
# line per run. The exit code is 1 if a run or the memory does not pass.
#
#     scripts/hostile.sh              every case, by 1, 8 and 64 connections that read and that do not,
#                                     and then by 4000, for what they take of the memory
#     scripts/hostile.sh CASE...      these alone
#     scripts/hostile.sh --memory [CASE...]  the memory alone
#     scripts/hostile.sh --list       their names
#
# MS (default 1500) is the length of each run. A run passes if the well-behaved client waits at most 10 ms in
# 99.9 % of its requests, or four times as long as it does alone, and no turn of the loop with one of its
# requests takes more than 10 ms. On a machine that others use everything takes longer: MARGIN=2 doubles the
# limits. The memory passes if 4000 connections take at most 64 MB more than none, and all but 8 MB of this is
# freed within 10 s after they have left.
#
# On a machine that others use, root may give all of it priority: FIRST=1 scripts/hostile.sh
#
# MARKETD names another program than the one that is built here. Needs curl and taskset. Sends traffic only to
# 127.0.0.1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The kernel first divides the processor among sessions (sched(7), "The autogroup feature").
if [ -n "${FIRST:-}" ]; then
    FIRST='' exec setsid -w bash -c 'echo -20 >/proc/self/autogroup && exec "$0" "$@"' \
        "scripts/${0##*/}" "$@"
fi

ms=${MS:-1500}
crowd_size=${CROWD:-4000}
margin=${MARGIN:-1}
names='metrics prometheus openapi openapi-gzip openapi-head 100-quotes 100-quotes-string 100-quotes-gzip
100-quotes-304 unknown-quotes all-quotes all-quotes-gzip chart-5000 chart-fill chart-string chart-weeks
chart-gzip chart-deep charts-50 sorted-quotes searched-quotes sorted-markets sorted-ecosystem
udf-history udf-roll-up udf-search udf-quotes page page-gzip streams streams-all categories category-markets ecosystem
record huge-heads not-found health mixed flood flood-metrics flood-streams silent'
case ${1:-} in
    --list) tr ' ' '\n' <<<"$names" && exit ;;
    --memory) memory_alone=yes && shift ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" && exit ;;
esac
read -ra cases <<<"${*:-$(tr '\n' ' ' <<<"$names")}"

work=$(mktemp -d)
children=()
finish() {
    [ ${#children[@]} -eq 0 ] || kill "${children[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
# shellcheck source=scripts/cases.sh
. scripts/cases.sh
need curl taskset
ulimit -Sn "$(ulimit -Hn)"
[ -n "${BUILT:-}" ] || cargo build --release --locked --quiet --bin marketd --features examples --example hostile --example fake_exchange
hostile=target/release/examples/hostile
marketd=${MARKETD:-target/release/marketd}
# The crowd must not keep the well-behaved client from the processor: then it would measure itself. And
# where that may be, neither must others who use the machine.
calm=() eager=(nice -n 10)
[ "$(nice -n -20 nice 2>/dev/null)" != -20 ] || calm=(nice -n -20) eager=(nice -n -5)

"${calm[@]}" taskset -c 1 target/release/examples/fake_exchange --port 0 --tickers 3500 >"$work/exchange.log" 2>&1 &
children+=($!)
exchange=$(address_in "$work/exchange.log")
cat >"$work/marketd.json" <<JSON
{ "listen": "127.0.0.1:0", "data": ":memory:",
  "sources": [ { "dialect": "binance", "url": "$exchange", "symbols": ["BTC/USDT"],
                 "quoteAssets": ["*"], "pollMs": 1000 } ],
  "history": { "1h": { "keep": 20000, "backfill": 6000 }, "1d": { "keep": 3000, "backfill": 2500 } },
  "limits": { "requestsPerConnection": 4294967295 } }
JSON

# Starts a marketd with the data of the cases; sets `base` and `server`.
start() {
    "${calm[@]}" taskset -c 0 "$marketd" --config "$work/marketd.json" >"$work/marketd.log" 2>&1 &
    server=$!
    children+=("$server")
    base=$(address_in "$work/marketd.log")
    for _ in $(seq 600); do
        curl -sf -o /dev/null "$base/health/ready" && break
        sleep 0.1
    done
    for _ in $(seq 600); do
        curl -sf -D "$work/head" -o /dev/null "$base$chart&interval=1h&limit=5000" &&
            [ "$(field Chart-Coverage "$work/head")" = complete ] && return
        sleep 0.1
    done
    fail "there is no chart of 5000 candles: $(tail -n 3 "$work/marketd.log")"
}
chart='/api/ecosystem/chart?symbol=BTC/USDT'
start
curl -sf -o "$work/all" "$base/api/v1/quotes?symbols=*"
grep -o '"symbol":"[^"]*"' "$work/all" >"$work/symbols"
hundred=$(head -n 100 "$work/symbols" | cut -d '"' -f 4 | paste -sd ,)
fifty=$(head -n 50 "$work/symbols" | cut -d '"' -f 4 | paste -sd ,)
unknown=$(seq -f 'NOSUCH%g/USDT' 100 | paste -sd ,)
curl -sf "$base/api/v1/categories" | grep -o '"id":"[^"]*"' >"$work/categories"
category=$(head -n 1 "$work/categories" | cut -d '"' -f 4)
curl -sf -D "$work/head" -o /dev/null "$base/api/v1/quotes?symbols=$hundred"
tag=$(field ETag "$work/head")
cookie=$(head -c 15000 /dev/zero | tr '\0' x)

# The arguments for the crowd of a case.
crowd_of() {
    local gzip='Accept-Encoding: gzip'
    case $1 in
        metrics) set -- "$base/api/v1/metrics" ;;
        prometheus) set -- "$base/metrics" ;;
        openapi) set -- "$base/openapi.json" ;;
        openapi-gzip) set -- --header "$gzip" "$base/openapi.json" ;;
        openapi-head) set -- --method HEAD "$base/openapi.json" ;;
        100-quotes) set -- "$base/api/v1/quotes?symbols=$hundred" ;;
        100-quotes-string) set -- --method HEAD "$base/api/v1/quotes?decimals=string&symbols=$hundred" ;;
        100-quotes-gzip) set -- --header "$gzip" "$base/api/v1/quotes?decimals=string&symbols=$hundred" ;;
        100-quotes-304) set -- --header "If-None-Match: $tag" "$base/api/v1/quotes?symbols=$hundred" ;;
        unknown-quotes) set -- "$base/api/v1/quotes?symbols=$unknown" ;;
        all-quotes) set -- "$base/api/v1/quotes?symbols=*" ;;
        all-quotes-gzip) set -- --header "$gzip" "$base/api/v1/quotes?symbols=*&decimals=string" ;;
        chart-5000) set -- "$base$chart&interval=1h&limit=5000" ;;
        chart-fill) set -- "$base$chart&interval=1h&limit=5000&fill=previous" ;;
        chart-string) set -- "$base$chart&interval=1h&limit=5000&fill=previous&decimals=string" ;;
        chart-weeks) set -- "$base$chart&interval=1w&limit=5000" ;;
        chart-gzip) set -- --header "$gzip" "$base$chart&interval=1h&limit=5000&decimals=string" ;;
        chart-deep) set -- "$base$chart&interval=4h&limit=5000&from=1" "$base$chart&interval=1d&limit=5000&from=1" ;;
        charts-50) set -- "$base/api/ecosystem/chart?symbols=$fifty&interval=1h&limit=500" ;;
        sorted-quotes) set -- "$base/api/v1/quotes?symbols=*&sort=percentage&order=desc&limit=20" ;;
        searched-quotes) set -- "$base/api/v1/quotes?symbols=*&search=zz&sort=last" ;;
        sorted-markets) set -- "$base/api/v1/categories/$category/markets?sort=quoteVolume&offset=3000" ;;
        sorted-ecosystem) set -- "$base/api/ecosystem/market?sort=last&limit=20" ;;
        udf-history) set -- "$base/udf/history?symbol=BTC/USDT&resolution=60&to=$(date +%s)&countback=5000" ;;
        udf-roll-up) set -- "$base/udf/history?symbol=BTC/USDT&resolution=3&to=$(date +%s)&countback=5000" ;;
        udf-search) set -- "$base/udf/search?query=t&limit=30" ;;
        udf-quotes) set -- "$base/udf/quotes?symbols=$hundred" ;;
        page) set -- --header 'Accept: text/html' "$base/" ;;
        page-gzip) set -- --header "$gzip" --header 'Accept: text/html' "$base/" ;;
        streams) set -- "$base/api/v1/stream?symbols=$hundred" ;;
        streams-all) set -- "$base/api/v1/stream?symbols=*" ;;
        categories) set -- "$base/api/v1/categories" ;;
        category-markets) set -- "$base/api/v1/categories/$category/markets" ;;
        ecosystem) set -- "$base/api/ecosystem/market" ;;
        record) set -- "$base/api/ecosystem/market/BTC-USDT" ;;
        huge-heads) set -- --header "Cookie: $cookie" "$base/health" ;;
        not-found) set -- "$base/api/v1/nothing" ;;
        health) set -- "$base/health" ;;
        mixed) set -- "$base/metrics" "$base$chart&interval=1h&limit=5000&fill=previous" \
            "$base/api/v1/quotes?symbols=$hundred" "$base/openapi.json" "$base/api/v1/quotes?symbols=*" ;;
        flood) set -- --close "$base/health" ;;
        flood-metrics) set -- --close "$base/metrics" ;;
        flood-streams) set -- --close "$base/api/v1/stream?symbols=*" ;;
        silent) set -- --silent "$base/health" ;;
        *) fail "no case is called $1" ;;
    esac
    crowd=("$@")
}

# The number of turns of the loop so far: all, those up to 1 ms, and those up to 10 ms.
turns() {
    curl -sf "$base/metrics" | awk -F'[" ]' '
        /^marketd_loop_turn_seconds_bucket/ { if ($2 + 0 == 0.001) short = $NF; if ($2 + 0 == 0.01) fair = $NF }
        /^marketd_loop_turn_seconds_count/ { all = $NF }
        END { print all, short, fair }'
}

# Runs the well-behaved client, and prints its figures.
ask() {
    "${calm[@]}" taskset -c 1 "$hostile" probe --ms "$ms" "$base/api/v1/quotes/BTC-USDT"
}

# Resident memory of the server, in KB.
resident() {
    awk '/^VmRSS/ { print $2 }' "/proc/$server/status"
}

bad=0
# Measures how much memory a large crowd takes, and how soon it is freed.
remember() {
    local name=$1 reads=$2 extra=() crowd_pid quiet most now back=- verdict=
    [ "$reads" = yes ] || extra=(--deaf)
    quiet=$(resident)
    most=$quiet
    "${eager[@]}" taskset -c 1 "$hostile" crowd --connections "$crowd_size" --depth 100 \
        "${extra[@]}" "${crowd[@]}" 2>"$work/crowd.log" &
    crowd_pid=$!
    children+=("$crowd_pid")
    for _ in $(seq "${MEMORY_S:-8}0"); do
        sleep 0.1
        now=$(resident)
        [ "$now" -le "$most" ] || most=$now
    done
    kill "$crowd_pid" 2>/dev/null || true
    wait "$crowd_pid" 2>/dev/null || true
    unset 'children[-1]'
    for tenths in $(seq 150); do
        [ $(($(resident) - quiet)) -gt 8192 ] || { back=$tenths && break; }
        sleep 0.1
    done
    [ $((most - quiet)) -le 65536 ] || verdict='**holds too much**'
    [ "$back" != - ] && [ "$back" -le 100 ] || verdict+=' **gives it back too late**'
    [ -z "$verdict" ] || bad=$((bad + 1))
    awk -v name="$name" -v size="$crowd_size" -v reads="$reads" -v quiet="$quiet" -v most="$most" \
        -v back="$back" -v verdict="$verdict" 'BEGIN {
        printf "| %s | %d | %s | %.1f | %.1f | %s | %s |\n", name, size, reads, quiet / 1024,
            (most - quiet) / 1024, back == "-" ? "-" : back / 10, verdict }'
}

remember_all() {
    echo
    echo "| case | connections | reads | quiet MB | at most MB more | given back after s | |"
    echo "|---|---:|---|---:|---:|---:|---|"
    # Memory that is allocated once and then kept does not count.
    for name in "${cases[@]}"; do
        crowd_of "$name"
        timeout 2 "$hostile" crowd --connections 8 "${crowd[@]}" 2>/dev/null || true
    done
    sleep 5
    for name in "${cases[@]}"; do
        crowd_of "$name"
        for reads in yes no; do remember "$name" "$reads"; done
        kill -0 "$server" 2>/dev/null || fail "marketd has ended: $(tail -n 3 "$work/marketd.log")"
    done
    [ "$bad" -eq 0 ] || fail "$bad runs in which somebody was kept waiting, or memory was"
}
if [ -n "${memory_alone:-}" ]; then
    remember_all
    exit
fi

before=$(turns)
quiet=$(ask | sed 's/.*p999=\([0-9]*\).*/\1/')
most=$(awk -v quiet="$quiet" -v margin="$margin" 'BEGIN {
    most = 4 * quiet > 10e6 ? 4 * quiet : 10e6; printf "%.0f", most * margin }')
echo "Alone, the well-behaved client waits for $((quiet / 1000)) us at p99.9; allowed are $((most / 1000)) us."
echo
echo "| case | connections | reads | p50 us | p99 us | p99.9 us | longest us | turns below 1 ms | turns above 10 ms | |"
echo "|---|---:|---|---:|---:|---:|---:|---:|---:|---|"

run() {
    local name=$1 connections=$2 reads=$3 depth=$4 extra=() line before after verdict= crowd_pid
    [ "$reads" = yes ] || extra=(--deaf)
    "${eager[@]}" taskset -c 1 "$hostile" crowd --connections "$connections" --depth "$depth" \
        "${extra[@]}" "${crowd[@]}" 2>"$work/crowd.log" &
    crowd_pid=$!
    children+=("$crowd_pid")
    sleep 0.3
    before=$(turns)
    line=$(ask 2>"$work/probe.log") || { line='p50=0 p99=0 p999=0 max=0'; verdict="**$(cat "$work/probe.log")**"; }
    after=$(turns)
    kill "$crowd_pid" 2>/dev/null || true
    wait "$crowd_pid" 2>/dev/null || true
    unset 'children[-1]'
    [ -n "$verdict" ] || verdict=$(awk -v most="$most" -v turns="$before $after" '{
        for (n = 1; n <= NF; n++) { split($n, part, "="); v[part[1]] = part[2] }
        split(turns, t, " ")
        if (v["p999"] > most) printf "**waits too long** "
        if (t[4] - t[1] > t[6] - t[3]) printf "**a turn above 10 ms**"
    }' <<<"$line")
    [ -z "$verdict" ] || bad=$((bad + 1))
    awk -v name="$name" -v connections="$connections" -v reads="$reads" -v turns="$before $after" -v verdict="$verdict" '{
        for (n = 1; n <= NF; n++) { split($n, part, "="); v[part[1]] = part[2] }
        split(turns, t, " ")
        printf "| %s | %d | %s | %d | %d | %d | %d | %.2f %% of %d | %d | %s |\n", name, connections, reads,
            v["p50"] / 1000, v["p99"] / 1000, v["p999"] / 1000, v["max"] / 1000,
            100 * (t[5] - t[2]) / (t[4] - t[1]), t[4] - t[1], t[4] - t[1] - (t[6] - t[3]), verdict
    }' <<<"$line"
}

for name in "${cases[@]}"; do
    crowd_of "$name"
    case $name in
        flood*) for connections in 8 64 512; do run "$name" "$connections" yes 1; done ;;
        silent) run "$name" 6000 no 1 ;;
        *)
            for connections in 1 8 64; do
                run "$name" "$connections" yes 3000
                run "$name" "$connections" no 3000
            done
            ;;
    esac
    kill -0 "$server" 2>/dev/null || fail "marketd has ended: $(tail -n 3 "$work/marketd.log")"
done
stall=$(curl -sf "$base/api/v1/metrics" | grep -o '"loopMaxStallMs":[0-9.]*' | cut -d : -f 2)
echo
echo "loopMaxStallMs of the last minute: $stall"
remember_all
