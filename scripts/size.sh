#!/usr/bin/env bash
# How large the stripped release binary is, with everything on and with nothing, and whether that
# is within the limits below: exit code 1 where it is not. A box of 64 MB has little flash too.
#
#     scripts/size.sh
#
# Builds in a place of its own, so that no other build is undone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

over=0

# size NAME LIMIT FLAG...: builds with these flags of cargo, and judges.
size() {
    local name=$1 limit=$2
    shift 2
    cargo build --release --locked --quiet --target-dir target/size --bin marketd "$@"
    local bytes
    bytes=$(wc -c <target/size/release/marketd)
    printf '| %s | %d | %d |\n' "$name" "$bytes" "$limit"
    [ "$bytes" -le "$limit" ] || over=1
}

echo '| features | bytes | at most |'
echo '|---|---:|---:|'
size 'all' 5000000
size 'none' 2000000 --no-default-features
exit $over
