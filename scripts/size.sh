#!/usr/bin/env bash
# Measures the stripped binary: built for speed with all features and with none, and built for size with none
# (for a box of 64 MB, which also has little flash). The exit code is 1 if a binary exceeds its limit below.
#
#     scripts/size.sh
#
# Builds in a separate target directory, so that no other build is overwritten.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

over=0

# size PROFILE FEATURES LIMIT FLAG...: builds with these flags of cargo, and checks the limit.
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
