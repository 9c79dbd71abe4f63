#!/usr/bin/env bash
# Checks everything that must hold before a change lands. Works from any directory, stops at the
# first step that fails, and prints each step before it runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

step() {
    printf '\n== %s\n' "$*"
    "$@"
}

step cargo fmt --check
step cargo clippy --locked --all-targets -- -D warnings
RUSTDOCFLAGS='-D warnings' step cargo doc --locked --no-deps
step cargo test
# Without features of its own, the crate built without them is the same crate. Of the tests of the built binary, this
# runs those that ask for features: all else has passed already, and calls what no feature changes.
if grep -q '^\[features\]' Cargo.toml; then
    step cargo clippy --locked --all-targets --no-default-features -- -D warnings
    step cargo test --no-default-features --lib --bins
    step cargo test --no-default-features --test daemon -- \
        cli:: commands:: deploy:: docs:: loopback:: running:: testing::
fi
printf '\n== all is well\n'
