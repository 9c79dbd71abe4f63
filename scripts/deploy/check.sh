#!/usr/bin/env bash
# Tests the files in this directory with their programs: the units with systemd-analyze, a passed socket with
# systemd-socket-activate, the alerts with promtool, nginx and Caddy in front of a running marketd, the steps
# of the Dockerfile without Docker. It names missing programs, and skips their parts.
#
#     scripts/deploy/check.sh [MARKETD]      default: target/release/marketd
#
# The exit code is 1 if a test fails. Sends traffic only to 127.0.0.1. The image listens on port 8080, which
# must be free.
set -euo pipefail
marketd=${1:+$(realpath "$1")}
cd "$(dirname "${BASH_SOURCE[0]}")"
marketd=${marketd:-$(realpath -m ../../target/release/marketd)}
[ -x "$marketd" ] || { echo "check.sh: no program $marketd: cargo build --release" >&2; exit 2; }

work=$(mktemp -d)
chmod 755 "$work"
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

failed=0
good() { echo "ok      $1"; }
bad() { echo "FAILED  $1"; failed=1; }
has() { command -v "$1" >/dev/null || { echo "SKIPPED $2: no $1 here"; return 1; }; }

# The address of a free port.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
await() {
    for _ in $(seq 100); do curl -sf -o /dev/null "$1" && return 0; sleep 0.1; done
    return 1
}

if has systemd-analyze marketd.service; then
    # The number is ten times the exposure: at most 1.5.
    if systemd-analyze security --offline=yes --threshold=15 --no-pager marketd.service >"$work/unit" 2>&1
    then good "marketd.service: $(tail -n 1 "$work/unit")"
    else tail -n 1 "$work/unit"; bad marketd.service; fi
fi

# The units as they are installed, except for the path of the program.
mkdir "$work/units"
for unit in marketd.service marketd.socket; do
    sed "s|/usr/bin/marketd|$marketd|; s|/etc/marketd/marketd.json|$PWD/small.json|" $unit >"$work/units/$unit"
done
if has systemd-analyze marketd.socket; then
    if systemd-analyze verify --man=no "$work/units/marketd.socket" >"$work/socket" 2>&1 \
        && ! grep marketd "$work/socket"
    then good marketd.socket
    else cat "$work/socket"; bad marketd.socket; fi
fi

if has systemd-socket-activate "passed sockets"; then
    port=$(free_port)
    systemd-socket-activate -l "127.0.0.1:$port" "$marketd" --data :memory: >"$work/passed.log" 2>&1 &
    pids+=($!)
    if await "http://127.0.0.1:$port/health/ready"
    then good "a passed socket"
    else cat "$work/passed.log"; bad "a passed socket"; fi
fi

if has promtool "prometheus.yml, prometheus-rules.yml"; then
    # The configuration names the rules.
    if promtool check config prometheus.yml >"$work/rules" 2>&1
    then good "prometheus.yml, prometheus-rules.yml"
    else cat "$work/rules"; bad "prometheus.yml, prometheus-rules.yml"; fi
fi

port=$(free_port)
"$marketd" --listen "127.0.0.1:$port" --data :memory: >"$work/marketd.log" 2>&1 &
pids+=($!)
await "http://127.0.0.1:$port/health/ready" || { cat "$work/marketd.log"; bad "marketd does not start"; }

# Through a proxy, a client sees what marketd sends, and entity tags still work.
through() {
    local name=$1 base=$2 direct="http://127.0.0.1:$port" target tag status
    for target in /api/v1/categories /health/live '/api/ecosystem/chart?symbol=BTC/USDT&interval=1d&to=2'; do
        curl -sf "$direct$target" >"$work/direct" || bad "$name: $target: marketd itself has no response"
        if ! diff <(curl -s "$direct$target" | sed 's/"uptimeMs":[0-9]*//') \
            <(curl -s "$base$target" | sed 's/"uptimeMs":[0-9]*//') >"$work/diff"
        then cat "$work/diff"; bad "$name: $target"; fi
    done
    tag=$(curl -s -o /dev/null -D - "$base/openapi.json" | tr -d '\r' | sed -n 's/^[Ee][Tt]ag: //p')
    status=$(curl -s -o /dev/null -w '%{http_code}' -H "If-None-Match: $tag" "$base/openapi.json")
    if [ -n "$tag" ] && [ "$status" = 304 ]; then good "$name"; else bad "$name: a tag $tag gives $status"; fi
}

if has nginx nginx.conf; then
    front=$(free_port)
    mkdir "$work/cache"
    {
        echo "pid $work/nginx.pid; error_log $work/nginx.log; events {}"
        echo "http { access_log off; client_body_temp_path $work/b; proxy_temp_path $work/p;"
        echo "fastcgi_temp_path $work/f; uwsgi_temp_path $work/u; scgi_temp_path $work/s;"
        sed -e "s/127.0.0.1:8080/127.0.0.1:$port/; s/127.0.0.1:8443/127.0.0.1:$front/" \
            -e "s|/var/cache/nginx/marketd|$work/cache|" nginx.conf
        echo "}"
    } >"$work/nginx.conf"
    nginx -e "$work/nginx.log" -c "$work/nginx.conf" -g 'daemon off;' >"$work/nginx.out" 2>&1 &
    pids+=($!)
    if await "http://127.0.0.1:$front/health/live"; then
        through nginx.conf "http://127.0.0.1:$front"
        # The proxy keeps a chart of closed candles for the time that marketd permits.
        old="http://127.0.0.1:$front/openapi.json"
        curl -s -o /dev/null "$old"
        cached=$(curl -s -o /dev/null -D - "$old" | tr -d '\r' | sed -n 's/^X-Cache-Status: //p')
        case $cached in
            HIT | REVALIDATED) good "nginx.conf: a second request is $cached" ;;
            *) bad "nginx.conf: a second request is $cached" ;;
        esac
    else cat "$work/nginx.out" "$work/nginx.log"; bad nginx.conf; fi
fi

if has caddy Caddyfile; then
    front=$(free_port)
    { echo "{"; echo "	admin off"; echo "}"
      sed "s/127.0.0.1:8080/127.0.0.1:$port/; s/127.0.0.1:8444/127.0.0.1:$front/" Caddyfile; } >"$work/Caddyfile"
    HOME=$work caddy run --adapter caddyfile --config "$work/Caddyfile" >"$work/caddy.log" 2>&1 &
    pids+=($!)
    if await "http://127.0.0.1:$front/health/live"
    then through Caddyfile "http://127.0.0.1:$front"
    else cat "$work/caddy.log"; bad Caddyfile; fi
fi
# The image, without Docker: what the first stage copies is built as it says, for musl; what the last stage holds is put
# into a directory, and runs with that as its root, as the user, with the variables and the command of the image.
image=$work/image
triple=$(uname -m)-unknown-linux-musl
said() { sed -n "s/^$1 //p" Dockerfile; }
# The words of a JSON array, one in each line.
words() { grep -o '"[^"]*"' | tr -d '"'; }
in_image=(env -i $(said ENV) "$(command -v chroot)" "--userspec=$(said USER)" "$image")
if ! rustup target list --installed 2>/dev/null | grep -q "^$triple"; then echo "SKIPPED Dockerfile: no Rust target $triple"
elif [ "$(id -u)" -ne 0 ]; then echo "SKIPPED Dockerfile: changing the root needs root"
else
    mkdir -p "$work/src" "$image/data"
    while read -r line; do
        from=${line% *}
        (cd ../.. && cp -r $from "$work/src/")
    done < <(said COPY | grep -v '^--from')
    chown "$(said USER)" "$image/data"
    build=$(said RUN | sed -n 's/^\(cargo build[^&]*\) &&.*/\1/p')
    target=$(realpath -m ../../target)
    if (cd "$work/src" && CARGO_TARGET_DIR=$target $build --target "$triple" >"$work/build.log" 2>&1); then
        cp "$target/$triple/release/marketd" "$image/marketd"
        check=$(grep '^HEALTHCHECK' Dockerfile | words)
        "${in_image[@]}" $check 2>/dev/null && bad "Dockerfile: nobody listens, and the health check is content"
        "${in_image[@]}" $(said ENTRYPOINT | words) >"$work/image.log" 2>&1 &
        pids+=($!)
        await http://127.0.0.1:8080/health/ready || true
        if "${in_image[@]}" $check && [ -s "$image/data/marketd.db" ] && kill -s "$(said STOPSIGNAL | sed s/SIG//)" $! && wait $!
        then good "Dockerfile, built and run without Docker"
        else cat "$work/image.log"; bad Dockerfile; fi
    else cat "$work/build.log"; bad "Dockerfile: $build"; fi
fi
exit "$failed"
