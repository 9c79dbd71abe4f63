#!/usr/bin/env bash
# Measures the cost of many readers of the stream: 1,000 readers of 100 symbols each, with an exchange whose
# 3,500 quotes all change once a second. Then it adds 100 readers that never read, and measures again. The
# exit code is 1 above a limit (scripts/stream.rs).
#
#     scripts/stream.sh
#
# Prints the share of a core that marketd uses, the time from the last byte of a poll until its events are
# read, the share of the loop's turns that take less than a millisecond, and the memory of a reader. For
# comparison, it prints the time that the kernel takes for the same number of bytes and readers, sent by a
# loop that does nothing else. marketd decodes the poll first, so it may take 2.5 times as long, or 20 ms. If
# there is taskset, marketd runs on core 0, and the readers and the exchange on core 1. SECONDS_EACH (default
# 20) is the length of each measurement. On a machine that others use, MARGIN=2 doubles the limits. Sends
# traffic only to 127.0.0.1.
#
# On a machine that others use, root may give all of it priority: FIRST=1 scripts/stream.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The kernel first divides the processor among sessions (sched(7), "The autogroup feature").
if [ -n "${FIRST:-}" ]; then
    FIRST='' exec setsid -w bash -c 'echo -20 >/proc/self/autogroup && exec "$0" "$@"' \
        "scripts/${0##*/}" "$@"
fi

case ${1:-} in
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" && exit ;;
esac
margin=${MARGIN:-1}
seconds=${SECONDS_EACH:-20}
[ -n "${BUILT:-}" ] || cargo build --release --locked --quiet --bin marketd --features examples --example stream
server=(target/release/marketd)
readers=(target/release/examples/stream)
if command -v taskset >/dev/null; then
    server=(taskset -c 0 "${server[@]}")
    readers=(taskset -c 1 "${readers[@]}")
fi
ulimit -Sn "$(ulimit -Hn)"

bad=0
run() {
    local line
    line=$("${readers[@]}" --seconds "$seconds" "$@" -- "${server[@]}")
    awk -v margin="$margin" '{
        for (n = 1; n <= NF; n++) { split($n, part, "="); v[part[1]] = part[2] }
        printf "%d readers of %d symbols, %d that never read, %d polls:\n", v["readers"], v["symbols"],
            v["deaf"], v["polls"]
        printf "  marketd uses %.2f of a core for %d events (%d conflated)\n", v["cpu_mille"] / 1000, v["events"],
            v["conflated"]
        printf "  after the last byte of the poll: p50 %.1f ms, p99 %.1f ms, p99.9 %.1f ms\n",
            v["p50_us"] / 1000, v["p99_us"] / 1000, v["p999_us"] / 1000
        printf "  the kernel alone: p50 %.1f ms, p99 %.1f ms, p99.9 %.1f ms: p99 is %.2f times as long\n",
            v["floor_p50_us"] / 1000, v["floor_p99_us"] / 1000, v["floor_p999_us"] / 1000,
            v["p99_us"] / v["floor_p99_us"]
        printf "  %.3f %% of %d turns below a millisecond\n", v["turns_below_1ms"] / 1000, v["turns"]
        printf "  %d B a reader, %.1f MiB in all; closed: %d that never read, %d others\n",
            v["bytes_per_reader"], v["rss"] / 1048576, v["closed_for_it"], v["others_closed"]
        late = v["floor_p99_us"] > 8000 ? 2.5 * v["floor_p99_us"] : 20000
        over = v["cpu_mille"] > 500 * margin || v["p99_us"] > late * margin || v["turns_below_1ms"] < 99900 ||
            v["bytes_per_reader"] > 4096 + 100 * 32 || v["closed_for_it"] != v["deaf"] || v["others_closed"]
        if (over) print "  **above a limit**"
        exit over
    }' <<<"$line" || bad=1
}
run
run --deaf 100
exit "$bad"
