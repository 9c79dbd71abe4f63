#!/usr/bin/env bash
# How large the stripped binary is: for speed with everything on and with nothing, and for size with nothing, as
# on a box of 64 MB, which has little flash too. Exit code 1 where it is above its limit below.
#
#     scripts/size.sh
#
# Builds in a place of its own, so that no other build is undone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

over=0

# size PROFILE FEATURES LIMIT FLAG...: builds with these flags of cargo, and judges.
size() {
    local profile=$1 features=$2 limit=$3
    shift 3
    cargo build --profile "$profile" --locked --quiet --target-dir target/size --bin marketd "$@"
    local bytes
    bytes=$(wc -c <"target/size/$profile/marketd")
    printf '| %s | %s | %d | %d |\n' "$profile" "$features" "$bytes" "$limit"
    [ "$bytes" -le "$limit" ] || over=1
}

echo '| profile | features | bytes | at most |'
echo '|---|---|---:|---:|'
size release all 5500000
size release none 2600000 --no-default-features
size small none 2000000 --no-default-features
exit $over
