# The common part of bench.sh and instructions.sh: the marketd that is measured, and the requests
# that it gets. Source it from the repository's root, with `work` set to a directory for temporary
# files.
# shellcheck shell=bash
: "${work:?names no directory}"

# Twenty markets of the demo.
markets=ADA/USDT,AVAX/USDT,BCH/USDT,BNB/USDT,BTC/EUR,BTC/USDC,BTC/USDT,DOGE/USDT,DOT/USDT,ETH/BTC
markets+=,ETH/EUR,ETH/USDC,ETH/USDT,LINK/ETH,LINK/USDT,LTC/BTC,LTC/USDT,SHIB/USDT,SOL/BTC,SOL/ETH

# The demo exchange is polled only once an hour, so that bodies stay the same while they are
# compared, and marketd only serves requests (soak.sh measures the effect of polling on clients). No
# limit closes a connection under load.
write_config() {
    cat >"$work/marketd.json" <<'JSON'
{ "listen": "127.0.0.1:0", "data": ":memory:",
  "sources": [ { "dialect": "demo", "symbols": ["BTC/USDT"], "quoteAssets": ["*"], "pollMs": 3600000,
                 "staleAfterMs": 86400000, "frozenAfterMs": 86400000 } ],
  "history": { "1m": { "keep": 1, "backfill": 0 }, "1h": { "keep": 2000, "backfill": 1500 },
               "1d": { "keep": 1, "backfill": 0 } },
  "limits": { "requestsPerConnection": 4294967295 } }
JSON
}

# Ends the script: the measured server does not behave as it must.
fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Ends the script if a tool is missing.
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null && continue
        echo "${0##*/}: $tool is missing" >&2
        exit 2
    done
}

# Waits until a log names an address, and prints it.
address_in() {
    local line
    for _ in $(seq 300); do
        line=$(grep -so 'http://127.0.0.1:[0-9]*' "$1" | head -n 1 || true)
        [ -n "$line" ] && { echo "$line"; return; }
        sleep 0.1
    done
    fail "nothing is listening: $(cat "$1")"
}

# The target of a case. The chart has a thousand candles up to `closed`, the last closed one.
path_of() {
    case $1 in
        quote | quote-new | 304) echo /api/v1/quotes/BTC-USDT ;;
        20-quotes) echo "/api/v1/quotes?symbols=$markets" ;;
        chart | chart-new | chart-gzip) echo "/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&limit=1000&to=$closed" ;;
        404) echo /api/v1/nothing ;;
        health) echo /health ;;
        *) fail "no case is called $1" ;;
    esac
}

# The status that every answer of a case must have.
status_of() {
    case $1 in
        304 | 404) echo "$1" ;;
        *) echo 200 ;;
    esac
}

# The header field of a case, or nothing. `etag` is the quote's.
header_of() {
    case $1 in
        304) echo "If-None-Match: $etag" ;;
        chart-gzip) echo "Accept-Encoding: gzip" ;;
    esac
}

# A header field of a saved head.
field() {
    sed -n "s/^$1: //Ip" "$2" | tr -d '\r'
}

# Waits until the marketd at this address has all data of the cases, and sets `etag` and `closed`.
await_data() {
    local base=$1 chart='/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&limit=1001'
    for _ in $(seq 1200); do
        if curl -sf -o /dev/null "$base/health/ready" &&
            curl -sf -D "$work/head" -o "$work/body" "$base$chart" &&
            [ "$(field Chart-Coverage "$work/head")" = complete ] &&
            [ "$(grep -o '\[[0-9]' "$work/body" | wc -l)" -eq 1001 ]; then
            closed=$(field Chart-Last-Closed "$work/head")
            curl -sf -D "$work/head" -o /dev/null "$base$(path_of quote)"
            etag=$(field ETag "$work/head")
            return
        fi
        sleep 0.1
    done
    fail "the demo has no chart of 1001 candles after two minutes"
}

# Sends one request and compares the answer with the case; leaves the head in `work`.
check_case() {
    local name=$1 base=$2 header found
    header=$(header_of "$name")
    found=$(curl -s -D "$work/head" -o "$work/body" -w '%{http_code}' ${header:+-H "$header"} \
        "$base$(path_of "$name")")
    [ "$found" = "$(status_of "$name")" ] || fail "$name is answered with $found"
    case $name in
        20-quotes) count='"stale":' expected=20 ;;
        chart*) count='\[[0-9]' expected=1000 ;;
        *) return 0 ;;
    esac
    [ "$name" != chart-gzip ] || { gunzip <"$work/body" >"$work/plain" && mv "$work/plain" "$work/body"; }
    found=$(grep -o "$count" "$work/body" | wc -l)
    [ "$found" -eq "$expected" ] || fail "$name holds $found items"
}
