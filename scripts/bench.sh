#!/usr/bin/env bash
# Compares marketd with the least that a server can do: a bare loop that sends the same bytes without reading
# the requests (scripts/bare_loop.rs). Prints one table in Markdown. The table marks where a request takes
# more processor time, relative to the bare loop, than its limit; then the exit code is 1.
#
#     scripts/bench.sh              five rounds, some eight minutes
#     scripts/bench.sh --quick      shorter runs of fewer cases, below a minute (without building)
#     scripts/bench.sh --rounds N   more or fewer of them
#     scripts/bench.sh --json FILE  every single run as well, one JSON object a line
#
# The two run alternately under the same load, each on core SERVER_CORE (default 0); the load runs
# on LOAD_CORE (default 1). The load comes from wrk (Debian: apt-get install wrk). It comes from
# scripts/load.rs if wrk is missing, for pipelined requests, for one connection per request, and
# with --quick.
#
# On a machine that others use, root may give the servers priority: FIRST=1 scripts/bench.sh
#
# Needs curl and taskset; system calls are counted by perf or strace, if one of them is installed.
# Sends traffic only to 127.0.0.1.
set -euo pipefail
# A failure counts inside of $(...), too.
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=5
ms=2000
quick=
json=
while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=yes ms=200 ;;
        --rounds) rounds=${2:?a number is missing} && shift ;;
        --json) json=${2:?a file is missing} && shift ;;
        -h | --help)
            sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
            exit
            ;;
        *) echo "bench.sh: $1 is no option" >&2 && exit 2 ;;
    esac
    shift
done
server_core=${SERVER_CORE:-0}
load_core=${LOAD_CORE:-1}
first=()
[ -z "${FIRST:-}" ] || first=(chrt -f 1)

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

# Case, connections, and their use: kept open with this many requests at a time, or closed.
scenarios() {
    local name connections
    for name in quote 20-quotes chart 304 404 health; do
        for connections in 1 64 1000; do
            if [ -z "$quick" ] || [ "$connections" -eq 64 ] || [ "$name" = quote ]; then
                echo "$name $connections kept"
            fi
        done
    done
    echo "chart-gzip 64 kept"
    echo "quote-new 64 kept"
    echo "chart-new 64 kept"
    echo "quote 64 16"
    echo "quote 64 closed"
}

need curl taskset
taskset -c "$server_core,$load_core" true ||
    fail "cores $server_core and $load_core are needed; SERVER_CORE and LOAD_CORE name others"
# For a thousand connections and some more: above the usual soft limit.
ulimit -Sn "$(ulimit -Hn)"
cargo build --release --locked --quiet --bin marketd --example bare_loop --example load
load=target/release/examples/load

# Starts marketd, and records its answers, which the bare loop sends too.
write_config
"${first[@]}" taskset -c "$server_core" target/release/marketd --config "$work/marketd.json" >"$work/marketd.log" 2>&1 &
marketd_pid=$!
children+=("$marketd_pid")
marketd=$(address_in "$work/marketd.log")
await_data "$marketd"
answers=()
for name in quote 20-quotes chart chart-gzip 304 404 health closed; do
    ask=$name extra=()
    if [ "$name" = closed ]; then
        ask=quote extra=(-H 'Connection: close')
    fi
    check_case "$ask" "$marketd"
    header=$(header_of "$ask")
    curl -s -i "${extra[@]}" ${header:+-H "$header"} "$marketd$(path_of "$ask")" >"$work/answer.$name"
    answers+=("$name=$work/answer.$name")
done
"${first[@]}" taskset -c "$server_core" target/release/examples/bare_loop "${answers[@]}" >"$work/bare.log" 2>&1 &
bare_pid=$!
children+=("$bare_pid")
address_in "$work/bare.log" >/dev/null

# The address at which a server answers a case.
url_of() {
    local which=$1 answer=$2 name=$3 base=$marketd
    [ "$which" = marketd ] || base=$(awk -v name="$answer" '$1 == name { print $2 }' "$work/bare.log")
    [ -n "$base" ] || fail "nobody answers $answer"
    echo "$base$(path_of "$name")"
}

# The counts of wrk, with the names of scripts/load.rs.
cat >"$work/wrk.lua" <<'LUA'
done = function(summary, latency)
    local e = summary.errors
    io.write(string.format("requests=%d bytes=%d ns=%d p50=%d p99=%d p999=%d failed=%d refused=%d\n",
        summary.requests, summary.bytes, summary.duration * 1000, latency:percentile(50) * 1000,
        latency:percentile(99) * 1000, latency:percentile(99.9) * 1000,
        e.connect + e.read + e.write + e.timeout, e.status))
end
LUA

# Sends the load of a scenario and prints its results; `through` precedes the command.
through=()
send() {
    local which=$1 name=$2 connections=$3 use=$4 header url answer=${2%-new}
    shift 4
    # All heads of these differ, which wrk cannot do.
    [ "${name%-new}" = "$name" ] || set -- "$@" --vary
    [ "$use" != closed ] || answer=closed
    header=$(header_of "$name")
    url=$(url_of "$which" "$answer" "$name")
    if [ $# -eq 0 ] && [ "$use" = kept ] && [ -z "$quick" ] && command -v wrk >/dev/null; then
        taskset -c "$load_core" wrk -t1 -c"$connections" -d"$((ms / 1000))s" -s "$work/wrk.lua" \
            ${header:+-H "$header"} "$url" | grep ^requests=
        return
    fi
    case $use in
        kept) set -- "$@" ;;
        closed) set -- "$@" --close ;;
        *) set -- "$@" --pipeline "$use" ;;
    esac
    "${through[@]}" taskset -c "$load_core" "$load" --ms "$ms" --connections "$connections" --status "$(status_of "$name")" \
        ${header:+--header "$header"} "$@" "$url"
}

# For how many nanoseconds all threads of a process ran, and for how many they waited for a core.
cpu_of() {
    # Not %d: some awks have whole numbers only up to 2^31.
    awk '{ ran += $1; waited += $2 } END { printf "%.0f %.0f\n", ran, waited }' "/proc/$1"/task/*/schedstat
}

# Makes one run, and appends its figures to `runs`. Every answer must have the expected status (the
# load checks it) and length (compared here with the recorded one).
run() {
    local round=$1 which=$2 name=$3 connections=$4 use=$5 pid before after line rss length
    pid=${which}_pid
    pid=${!pid}
    before=$(cpu_of "$pid")
    send "$which" "$name" "$connections" "$use" >"$work/sent" &
    local sender=$!
    children+=("$sender")
    sleep "$(awk -v ms="$ms" 'BEGIN { print ms / 2000 }')"
    rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$pid/status")
    wait "$sender" || fail "$which, $name on $connections connections ($use): the load failed"
    unset 'children[-1]'
    after=$(cpu_of "$pid")
    line=$(cat "$work/sent")
    length=$(wc -c <"$work/answer.$([ "$use" = closed ] && echo closed || echo "${name%-new}")")
    echo "round=$round which=$which case=$name connections=$connections use=$use rss=$rss" \
        "length=$length cpu=$((${after% *} - ${before% *})) waited=$((${after#* } - ${before#* })) $line" |
        awk '{
            for (n = 1; n <= NF; n++) { split($n, part, "="); v[part[1]] = part[2] }
            # wrk only counts refusals; the other load has checked each answer.
            refusals = v["case"] == 404 && ("refused" in v) ? v["requests"] : 0
            bad = v["failed"] > 0 || v["requests"] == 0 || v["refused"] + 0 < refusals
            bad = bad || v["cpu"] <= 0 || (v["refused"] > 0 && v["case"] != 404)
            bad = bad || v["bytes"] < v["requests"] * v["length"] * 0.98
            bad = bad || v["bytes"] > (v["requests"] + 16 * v["connections"]) * v["length"] * 1.02
            print
            exit bad
        }' >>"$work/runs" ||
        fail "answers are not as they must be: $(tail -n 1 "$work/runs")"
}

# How system calls are counted: perf hardly slows the server down, strace does.
counter=
if perf stat -x, -o "$work/calls" -e raw_syscalls:sys_enter -p "$marketd_pid" true 2>/dev/null &&
    ! grep -q 'not supported' "$work/calls"; then
    counter=perf
elif command -v strace >/dev/null; then
    counter=strace
fi

# System calls per request, from a separate run.
calls() {
    local which=$1 name=$2 connections=$3 use=$4 pid=${1}_pid count=$((20 * $3 + 2000)) tracer
    pid=${!pid}
    if [ "$counter" = perf ]; then
        through=(perf stat "-x," -o "$work/calls" -e raw_syscalls:sys_enter -p "$pid")
        send "$which" "$name" "$connections" "$use" --requests "$count" >/dev/null
        through=()
        awk -F, -v count="$count" '/sys_enter/ { printf "%.2f\n", $1 / count }' "$work/calls"
        return
    fi
    strace -c -f -o "$work/calls" -p "$pid" 2>"$work/strace.log" &
    tracer=$!
    children+=("$tracer")
    for _ in $(seq 100); do
        grep -q attached "$work/strace.log" && break
        sleep 0.05
    done
    send "$which" "$name" "$connections" "$use" --requests "$count" >/dev/null
    kill -TERM "$tracer" 2>/dev/null || true
    wait "$tracer" || true
    unset 'children[-1]'
    awk -v count="$count" '/ total$/ { printf "%.2f\n", $4 / count }' "$work/calls"
}

: >"$work/counted"
mapfile -t list < <(scenarios)
say() { [ ! -t 2 ] || printf '\r\033[K%s' "$*" >&2; }
for round in $(seq "$rounds"); do
    for scenario in "${list[@]}"; do
        say "round $round of $rounds: $scenario"
        read -r name connections use <<<"$scenario"
        for which in marketd bare; do
            run "$round" "$which" "$name" "$connections" "$use"
        done
    done
done
for name in quote 20-quotes chart chart-gzip 304 404 health; do
    check_case "$name" "$marketd"
done
if [ -n "$counter" ]; then
    for scenario in "${list[@]}"; do
        say "system calls: $scenario"
        read -r name connections use <<<"$scenario"
        for which in marketd bare; do
            found=$(calls "$which" "$name" "$connections" "$use")
            echo "calls $which $name/$connections/$use ${found:-?}" >>"$work/counted"
        done
    done
fi
say

cat <<TEXT
Each cell: marketd / bare loop = ratio, the median of $rounds rounds of $ms ms (lowest..highest).
CPU and times are microseconds, memory is KiB. $(uname -sm), $(nproc) cores, $(date -u +%F).

TEXT
awk '
    function cell(key, metric, digits,    n, i, r, a, b) {
        n = count[key]
        for (i = 1; i <= n; i++) {
            a[i] = value[key, "marketd", metric, i]
            b[i] = value[key, "bare", metric, i]
            r[i] = b[i] > 0 ? a[i] / b[i] : 0
        }
        sort(a, n); sort(b, n); sort(r, n)
        ratio = median(r, n)
        return sprintf("%.*f / %.*f = %.2f (%.2f..%.2f)", digits, median(a, n), digits, median(b, n),
            ratio, r[1], r[n])
    }
    # The limit for the cost of a request relative to the bare loop, and whether the cost exceeds
    # it.
    function verdict(key) {
        if (!(key in most)) return ""
        if (ratio <= most[key]) return sprintf(", at most %.2f", most[key])
        over++
        return sprintf(", **above %.2f**", most[key])
    }
    function sort(list, n,    i, j, x) {
        for (i = 2; i <= n; i++) {
            x = list[i]
            for (j = i - 1; j > 0 && list[j] > x; j--) list[j + 1] = list[j]
            list[j + 1] = x
        }
    }
    function median(list, n) { return (list[int((n + 1) / 2)] + list[int(n / 2) + 1]) / 2 }
    BEGIN {
        split("quote/64/kept 1.10 quote/1000/kept 1.15 quote/64/16 1.12 quote/64/closed 1.15 " \
            "20-quotes/64/kept 1.08 chart/64/kept 1.10 chart-gzip/64/kept 1.10 quote-new/64/kept 1.10 " \
            "chart-new/64/kept 1.14 304/64/kept 1.10 health/64/kept 1.10", limits, " ")
        for (n = 1; n in limits; n += 2) most[limits[n]] = limits[n + 1]
    }
    $1 == "calls" { calls[$3, $2] = $4; next }
    {
        for (n = 1; n <= NF; n++) { split($n, part, "="); v[part[1]] = part[2] }
        key = v["case"] "/" v["connections"] "/" v["use"]
        if (!(key in count)) order[++keys] = key
        if (v["which"] == "marketd") count[key]++
        i = count[key]
        value[key, v["which"], "cpu", i] = v["cpu"] / v["requests"] / 1000
        value[key, v["which"], "rate", i] = v["requests"] / v["ns"] * 1e9
        value[key, v["which"], "p50", i] = v["p50"] / 1000
        value[key, v["which"], "p99", i] = v["p99"] / 1000
        value[key, v["which"], "p999", i] = v["p999"] / 1000
        value[key, v["which"], "rss", i] = v["rss"]
        waits[++runs] = 100 * v["waited"] / v["ns"]
    }
    END {
        print "| case | connections | CPU a request | requests/s | p50 | p99 | p99.9 | system calls a request | memory |"
        print "|---|---|---|---|---|---|---|---|---|"
        for (k = 1; k <= keys; k++) {
            key = order[k]
            split(key, part, "/")
            use = part[3] == "kept" ? "" : part[3] == "closed" ? ", one a request" : ", pipelined by " part[3]
            a = calls[key, "marketd"]; b = calls[key, "bare"]
            called = b > 0 ? sprintf("%s / %s = %.2f", a, b, a / b) : "not counted"
            cpu = cell(key, "cpu", 2)
            cpu = cpu verdict(key)
            printf "| %s | %s%s | %s | %s | %s | %s | %s | %s | %s |\n", part[1], part[2], use, cpu,
                cell(key, "rate", 0), cell(key, "p50", 0), cell(key, "p99", 0),
                cell(key, "p999", 0), called, cell(key, "rss", 0)
        }
        if (over > 0) printf "\n%d of the ratios of CPU a request above their limit.\n", over
        sort(waits, runs)
        printf "\nNoise: while a server could have run, others had its core for %.1f %% of the time (median of the\n", median(waits, runs)
        printf "runs; at worst %.1f %%). ", waits[runs]
        exit over > 0
    }' "$work/counted" "$work/runs" || above=$?
echo "The load of the machine was $(cut -d ' ' -f 1-3 /proc/loadavg) in the last 1, 5 and 15 minutes."
if [ -n "$counter" ]; then
    echo "System calls were counted by $counter, in runs of their own."
else
    echo "System calls are not counted: strace is missing (Debian: apt-get install strace)."
fi
if [ -n "$json" ]; then
    sed -E 's/([a-z0-9]+)=([^ ]*)/"\1":"\2"/g; s/:"([0-9]+)"/:\1/g; s/ /,/g; s/.*/{&}/' "$work/runs" >"$json"
fi
exit "${above:-0}"
