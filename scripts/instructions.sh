#!/usr/bin/env bash
# Counts with callgrind how many instructions marketd itself spends on one request. The exit code is
# 1 if a count is more than 10 % above its limit below. The kernel's share is not counted. Once a second
# marketd drops the responses that it keeps, and a busy machine serves fewer requests in a second: so a
# count above its limit is taken again, twice at most, and the least one holds.
#
#     scripts/instructions.sh                        every case against its limit
#     scripts/instructions.sh CASE...                these alone
#     scripts/instructions.sh --functions CASE...    and the functions that the instructions are in
#     scripts/instructions.sh --build                builds what is measured, and ends
#
# Each case is requested REQUESTS times (default 2000) on one connection that is kept open. Needs
# valgrind (Debian: apt-get install valgrind) and curl. Sends traffic only to 127.0.0.1.
set -euo pipefail
# A failure counts inside of $(...), too.
shopt -s inherit_errexit
cd "$(dirname "${BASH_SOURCE[0]}")/.."

requests=${REQUESTS:-2000}

# The most instructions per request.
limits='quote 2000
20-quotes 2700
chart 2200
chart-gzip 2200
health 3470
304 1990
quote-new 3500
chart-new 3500'

work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
# shellcheck source=scripts/cases.sh
. scripts/cases.sh

functions=
builds_only=
cases=()
for argument in "$@"; do
    case $argument in
        --functions) functions=yes ;;
        --build) builds_only=yes ;;
        -h | --help)
            sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
            exit
            ;;
        *) cases+=("$argument") ;;
    esac
done
[ ${#cases[@]} -gt 0 ] || mapfile -t cases < <(cut -d ' ' -f 1 <<<"$limits")
limit_of() {
    awk -v name="$1" '$1 == name { print $2 }' <<<"$limits"
}
for name in "${cases[@]}"; do
    [ -n "$(limit_of "$name")" ] || { echo "instructions.sh: no case is called $name" >&2; exit 2; }
done

# Builds like a release, but with the names of functions, without what no request of a case passes (TLS,
# SQLite, the cluster), and in a separate target directory, so that neither build overwrites the other.
built=target/callgrind/release
CARGO_PROFILE_RELEASE_STRIP=false \
    cargo build --release --locked --quiet --target-dir target/callgrind --no-default-features --features page \
    --bin marketd --example load
[ -z "$builds_only" ] || exit 0
need valgrind callgrind_control callgrind_annotate curl

write_config

# Starts a marketd for only one case: callgrind's profile of a second case would begin in the middle
# of calls that were counted for the first.
start() {
    valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$work/out.$1" \
        "$built/marketd" --config "$work/marketd.json" >"$work/log" 2>&1 &
    server=$!
    base=$(address_in "$work/log")
    await_data "$base"
}

stop() {
    kill "$server"
    wait "$server" || fail "marketd did not end well: $(tail -n 5 "$work/log")"
    server=
}

control() {
    callgrind_control "$@" "$server" >"$work/control" 2>&1 ||
        fail "callgrind does not listen: $(cat "$work/control")"
}

# All instructions of the server during a command; the profile is the dump with this number.
count() {
    local dump=$work/out.$1.$2
    shift 2
    control --instr=on
    "$@" >/dev/null
    control --dump
    control --instr=off
    [ -s "$dump" ] || fail "callgrind has left no profile: $(tail -n 5 "$work/log")"
    awk '/^totals:/ { print $2; exit }' "$dump"
}

load() {
    local name=$1 count=$2 header
    header=$(header_of "$name")
    set -- --requests "$count" --status "$(status_of "$name")" ${header:+--header "$header"}
    # All heads differ.
    [ "${name%-new}" = "$name" ] || set -- "$@" --vary
    "$built/examples/load" "$@" "$base$(path_of "$name")"
}

echo "| case | instructions a request | limit | |"
echo "|---|---:|---:|---|"
over=0
for name in "${cases[@]}"; do
    start "$name"
    check_case "$name" "$base"
    # Work that is done once, at the first request, is not counted.
    load "$name" 50 >/dev/null
    limit=$(limit_of "$name")
    each=
    for dump in 1 2 3; do
        all=$(count "$name" "$dump" load "$name" "$requests")
        [ -n "$each" ] && [ "$each" -le $((all / requests)) ] || each=$((all / requests))
        [ "$each" -gt "$limit" ] || break
    done
    verdict=
    if [ "$each" -gt "$limit" ]; then
        verdict="$((each - limit)) above the limit"
        if [ $((each * 10)) -gt $((limit * 11)) ]; then
            verdict+=", more than a tenth: too much"
            over=$((over + 1))
        fi
    fi
    echo "| $name | $each | $limit | $verdict |"
    [ "$name" != "${cases[-1]}" ] || idle=$(count "$name" $((dump + 1)) sleep 2)
    stop
done
echo
echo "$requests requests each. Without any, marketd spends $((idle / 2)) instructions a second, which the" \
    "counts hold as well."
if [ -n "$functions" ]; then
    for name in "${cases[@]}"; do
        printf '\n%s: functions with the calls they make, share of the instructions\n' "$name"
        callgrind_annotate --inclusive=yes --threshold=100 --show-percs=yes "$work/out.$name.1" |
            sed -nE '/PROGRAM TOTALS/d; s/ \[[^]]*\]$//; s/^( *[0-9,]+ \([^)]*\)) +[^:]*:/\1  /p' |
            awk 'NR <= 40'
    done
fi
[ "$over" -eq 0 ] || fail "$over of ${#cases[@]} cases cost more than their limit and a tenth"
