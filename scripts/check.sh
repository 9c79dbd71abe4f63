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
step cargo clippy --locked --all-targets --all-features -- -D warnings
RUSTDOCFLAGS='-D warnings' step cargo doc --locked --no-deps
step cargo test
# Of the tests in tests/ without features, this runs the claims: all else has passed already. The simulation only
# leaves out what such a build has not. The unit tests run where a word has 32 bits, if NARROW names such a
# target: a build without features is for small machines. Dependencies without optimisation: to optimise them takes
# longer than it saves here.
step cargo clippy --locked --all-targets --no-default-features -- -D warnings
step cargo test --no-default-features --lib ${NARROW:+--target "$NARROW" --target-dir target/narrow
    --config 'profile.dev.package."*".opt-level=0'}
step cargo test --no-default-features --test daemon -- \
    cli:: commands:: deploy:: docs:: loopback:: running:: testing::
step cargo test --no-default-features --test library -- claims::
printf '\n== all is well\n'
