#!/usr/bin/env bash
# Makes packages of a static marketd for this machine's processor: a tarball for any Linux, and a .deb, each
# with the manual page and the documentation, the units for systemd, example configurations, files for proxies
# and monitoring, completions for shells, and the licence texts of what is compiled in. Prints their names.
#
#     scripts/package.sh             into target/package
#     scripts/package.sh --try       installs, starts, upgrades, removes and purges the .deb in a Debian
#                                    of its own, from debootstrap, and fails where one of that fails
#     scripts/package.sh --from FILE ...    packages this marketd instead of building one
#
# Needs the Rust target *-unknown-linux-musl (rustup target add), musl-gcc (Debian: apt-get install
# musl-tools) and dpkg-deb; --try needs root, debootstrap, curl and a Debian mirror.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

try=
program=
while [ $# -gt 0 ]; do
    case $1 in
        --try) try=yes ;;
        --from) program=${2:?a file is missing} && shift ;;
        *) sed -n '2,/^set /s/^# \{0,1\}//p' "$0" && exit 2 ;;
    esac
    shift
done
fail() {
    echo "package.sh: $*" >&2
    exit 1
}

machine=$(uname -m)
triple=$machine-unknown-linux-musl
version=$(sed -n 's/^version = "\(.*\)"/\1/p;T;q' Cargo.toml)
if [ -z "$program" ]; then
    export "CC_${triple//-/_}=musl-gcc"
    cargo build --release --locked --bin marketd --target "$triple"
    program=target/$triple/release/marketd
fi
[ "$("$program" --version | head -n 1)" = "marketd $version" ] || fail "$program is another version"
if ldd "$program" >/dev/null 2>&1 && ! ldd "$program" 2>&1 | grep -q 'statically linked\|not a dynamic'; then
    fail "$program is not static"
fi

out=target/package
rm -rf "$out"
name=marketd-$version-$machine
tree=$out/$name
mkdir -p "$tree"

# The licence texts of every crate that is compiled in, as shipped by its authors.
notices() {
    local package version licence rest sources file
    echo "marketd contains these works of others, under these licences:"
    cargo tree --locked --edges normal --prefix none --target "$triple" --format '{p} {l}' | sort -u |
        while read -r package version licence rest; do
            [ "$package" != marketd ] || continue
            # (*) marks a crate that was listed before.
            licence=$(sed 's/ *(\*)$//' <<<"$licence $rest")
            printf '\n=== %s %s: %s\n' "$package" "$version" "$licence"
            # Each registry has its directory. Those of one version have the same texts.
            sources=("${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$package-${version#v}")
            [ -d "${sources[0]}" ] || fail "the sources of $package are not in ${sources[0]%/*}"
            for file in "${sources[0]}"/{LICEN[CS]E,COPYING,COPYRIGHT,NOTICE}*; do
                [ -f "$file" ] || continue
                printf -- '--- %s\n' "${file##*/}"
                cat "$file"
            done
        done
    printf '\n=== SQLite: public domain (https://www.sqlite.org/copyright.html)\n'
}

install -m 755 "$program" "$tree/marketd"
"$tree/marketd" man | gzip -9n >"$tree/marketd.1.gz"
notices >"$tree/NOTICES"
mkdir "$tree"/{docs,examples,completions}
sed 's|(src/docs/|(docs/|g; s|(scripts/deploy/|(|g' README.md >"$tree/README.md"
cp scripts/deploy/marketd.{service,socket} scripts/deploy/{small,large}.json "$tree"
cp src/docs/*.md "$tree/docs"
cp scripts/deploy/{nginx.conf,Caddyfile,prometheus.yml,prometheus-rules.yml,grafana-dashboard.json} "$tree/examples"
"$tree/marketd" completions bash >"$tree/completions/marketd"
"$tree/marketd" completions zsh >"$tree/completions/_marketd"
"$tree/marketd" completions fish >"$tree/completions/marketd.fish"
# The same sources give a package with the same bytes.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -C "$out" -c "$name" | gzip -9n >"$out/$name.tar.gz"
echo "$out/$name.tar.gz"

# The .deb: upgrades keep its configuration; it does not start the service by itself.
arch=$(dpkg --print-architecture)
maintainer=${MAINTAINER:-the marketd authors <marketd@localhost.localdomain>}
make_deb() {
    local version=$1 root=$out/deb share=$out/deb/usr/share
    rm -rf "$root"
    install -D -m 755 "$tree/marketd" "$root/usr/bin/marketd"
    install -D -m 644 "$tree/marketd.1.gz" "$share/man/man1/marketd.1.gz"
    install -D -m 644 "$tree/NOTICES" "$share/doc/marketd/copyright"
    install -D -m 644 -t "$share/doc/marketd" "$tree"/docs/*.md
    sed 's|(docs/|(|g; s|(marketd.service)|(/lib/systemd/system/marketd.service)|' "$tree/README.md" \
        >"$share/doc/marketd/README.md"
    install -D -m 644 -t "$share/doc/marketd/examples" "$tree/large.json" "$tree"/examples/*
    install -D -m 644 "$tree/completions/marketd" "$share/bash-completion/completions/marketd"
    install -D -m 644 "$tree/completions/_marketd" "$share/zsh/vendor-completions/_marketd"
    install -D -m 644 "$tree/completions/marketd.fish" "$share/fish/vendor_completions.d/marketd.fish"
    gzip -9n >"$share/doc/marketd/changelog.gz" <<TEXT
marketd ($version) unstable; urgency=medium

  * /usr/share/doc/marketd/changelog.md says what is new.

 -- $maintainer  $(date -uRd "@$SOURCE_DATE_EPOCH")
TEXT
    # One file for any system, with its SQLite inside. The licences are as the authors of the crates ship them.
    # Nobody is its maintainer who is not named in MAINTAINER. systemctl is called where systemd runs.
    mkdir -p "$share/lintian/overrides"
    # A static program that can be loaded anywhere looks like a library that needs none.
    printf 'marketd: %s\n' statically-linked-binary 'shared-library-lacks-prerequisites *' 'embedded-library *' \
        copyright-file-contains-full-apache-2-license copyright-not-using-common-license-for-apache2 \
        'bogus-mail-host *' 'bogus-mail-host-in-debian-changelog *' \
        'maintainer-script-calls-systemctl *' >"$share/lintian/overrides/marketd"
    install -D -m 644 "$tree/small.json" "$root/etc/marketd/marketd.json"
    install -D -m 644 -t "$root/lib/systemd/system" "$tree"/marketd.{service,socket}
    mkdir -p "$root/DEBIAN"
    cat >"$root/DEBIAN/control" <<TEXT
Package: marketd
Version: $version
Architecture: $arch
Section: net
Priority: optional
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Description: market data over HTTP
 Polls exchanges, keeps the latest quotes, stores candles in one file, and
 answers read-only JSON over HTTP GET. /etc/marketd/marketd.json says what is
 polled; then: systemctl enable --now marketd
TEXT
    echo /etc/marketd/marketd.json >"$root/DEBIAN/conffiles"
    cat >"$root/DEBIAN/postinst" <<'TEXT'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # An upgrade: the new one takes the place of the old one, if that runs.
    # It is not stopped for one that would refuse its configuration.
    if [ -n "$2" ] &&
        marketd --config /etc/marketd/marketd.json --data /var/lib/marketd/marketd.db --check; then
        systemctl try-restart marketd.service || true
    fi
fi
TEXT
    cat >"$root/DEBIAN/prerm" <<'TEXT'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now marketd.socket marketd.service || true
fi
TEXT
    cat >"$root/DEBIAN/postrm" <<'TEXT'
#!/bin/sh
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
# The history goes with a purge alone.
[ "$1" != purge ] || rm -rf /var/lib/private/marketd /var/lib/marketd /etc/marketd
TEXT
    chmod 755 "$root"/DEBIAN/{postinst,prerm,postrm}
    dpkg-deb --root-owner-group --build "$root" "$out/marketd_${version}_$arch.deb" >/dev/null
    rm -rf "$root"
    echo "$out/marketd_${version}_$arch.deb"
}
make_deb "$version"
[ -n "$try" ] || exit 0

# A separate Debian. It has no systemd, so the program is started by hand, as the unit would start
# it.
[ "$(id -u)" = 0 ] || fail "--try needs root"
for tool in debootstrap curl; do
    command -v "$tool" >/dev/null || fail "$tool is missing (Debian: apt-get install $tool)"
done
debian=$out/debian
debootstrap --variant=minbase stable "$debian" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$out/debootstrap.log" ||
    fail "debootstrap failed, see $out/debootstrap.log"
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; umount -q "$debian/proc" || true' EXIT
mount -t proc proc "$debian/proc"

inside() { chroot "$debian" "$@"; }
add() {
    cp "$1" "$debian/tmp/marketd.deb"
    inside dpkg -i /tmp/marketd.deb >"$out/dpkg.log" || fail "dpkg: $(cat "$out/dpkg.log")"
}
# Without DynamicUser, and with the demo exchange, because there is no network.
serve() {
    mkdir -p "$debian/var/lib/marketd"
    chroot "$debian" /usr/bin/marketd --demo --source demo --listen 127.0.0.1:0 \
        --data /var/lib/marketd/marketd.db 2>"$out/log" &
    pid=$!
    for _ in $(seq 100); do
        base=$(grep -so 'http://127.0.0.1:[0-9]*' "$out/log" | head -n 1 || true)
        if [ -n "$base" ] && inside /usr/bin/marketd healthcheck "$base" 2>/dev/null; then return; fi
        sleep 0.1
    done
    fail "marketd never was ready: $(cat "$out/log")"
}
halt() {
    kill "$pid"
    wait "$pid" || fail "marketd did not end well: $(tail -n 3 "$out/log")"
    pid=
}
stored() {
    inside /usr/bin/marketd export --data /var/lib/marketd/marketd.db --id demo --symbol BTC/USDT \
        --interval 1h | wc -l
}

add "$out/marketd_${version}_$arch.deb"
inside /usr/bin/marketd --config /etc/marketd/marketd.json --check
serve
curl -fsS "$base/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&limit=1000" >/dev/null
sleep 3
# An upgrade of a running program: the changed configuration file stays.
echo '{ "sources": [ { "dialect": "demo" } ] }' >"$debian/etc/marketd/marketd.json"
before=$(stored)
make_deb "$version+1"
add "$out/marketd_$version+1_$arch.deb"
curl -fsS "$base/health" >/dev/null || fail "the upgrade disturbed the running marketd"
halt
serve
grep -q demo "$debian/etc/marketd/marketd.json" || fail "the upgrade overwrote the configuration"
after=$(stored)
[ "$before" -gt 100 ] && [ "$after" -ge "$before" ] || fail "candles: $before before, $after after"
halt
inside dpkg -r marketd >"$out/dpkg.log" || fail "dpkg: $(cat "$out/dpkg.log")"
[ ! -e "$debian/usr/bin/marketd" ] || fail "the program is still there"
[ -e "$debian/var/lib/marketd/marketd.db" ] || fail "a removal took the history"
inside dpkg -P marketd >"$out/dpkg.log" || fail "dpkg: $(cat "$out/dpkg.log")"
[ ! -e "$debian/var/lib/marketd" ] || fail "a purge left the history"
rm -f "$out/marketd_$version+1_$arch.deb"
echo "installed, started, upgraded ($before lines of candles before, $after after), removed, purged"
