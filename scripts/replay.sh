#!/bin/sh
# Measures a replay: records a day of the demo exchange's 24 markets, plays it a thousand times as fast,
# prints the processor time, and fails if a 1m candle differs. Then measures the time from SIGTERM to the end,
# with an idle client and without a reader of the log. It takes three minutes.
#   scripts/replay.sh [SPEED]
set -eu
cd "$(dirname "$0")/.."
speed=${1:-1000}
cargo build --release --quiet
exec python3 - "$PWD/target/release/marketd" "$speed" <<'EOF'
import atexit, json, os, signal, socket, subprocess, sys, tempfile, time, urllib.request

program, speed = sys.argv[1], int(sys.argv[2])
DAY, END = 86_400_000, 1_790_000_100_000
holder = tempfile.TemporaryDirectory()
folder = holder.name


def start(name, demo, backfill, **more):
    symbols = SYMBOLS or []
    source = {"dialect": "demo", "symbols": symbols, "quoteAssets": ["*"], "pollMs": 100}
    config = {"listen": "127.0.0.1:0", "data": f"{folder}/{name}.db", "sources": [source], "demo": demo,
              "history": {"1m": {"backfill": backfill}, "1h": {"backfill": 100}, "1d": {"backfill": 10}}}
    json.dump(config, open(f"{folder}/{name}.json", "w"))
    addresses = f"{folder}/{name}-addresses"
    words = [program, "--config", f"{folder}/{name}.json", "--address-file", addresses]
    process = subprocess.Popen(words, **{"stderr": open(f"{folder}/{name}.log", "w"), **more})
    atexit.register(process.kill)
    while not os.path.exists(addresses):
        assert process.poll() is None, open(f"{folder}/{name}.log").read()
        time.sleep(0.01)
    url = json.load(open(addresses))["listen"]
    subprocess.run([program, "healthcheck", "--wait", "60", url], check=True)
    return process, url


def get(url, target):
    with urllib.request.urlopen(url + target) as response:
        return json.load(response), response.headers


def stop(process):
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    return 1000 * (time.monotonic() - begin)


def candles(name, symbols):
    words = [program, "export", "--data", f"{folder}/{name}.db", "--interval", "1m",
             "--from", str(END - DAY), "--to", str(END)]
    words += [word for symbol in symbols for word in ("--symbol", symbol)]
    return set(subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines())


SYMBOLS = None
process, url = start("list", {"at": END, "speed": 0}, 0)
SYMBOLS = [quote["symbol"] for quote in get(url, "/api/v1/quotes?symbols=*")[0]["quotes"]]
stop(process)

process, url = start("recorded", {"at": END, "speed": 0}, 3000)
for symbol in SYMBOLS:
    while get(url, f"/api/ecosystem/chart?symbol={symbol}&interval=1m&limit=1441")[1]["Chart-Coverage"] != "complete":
        time.sleep(0.1)
stop(process)

replay = {"data": f"{folder}/recorded.db", "from": END - DAY, "speed": speed}
process, url = start("played", {"replay": replay}, 1500)
tick = os.sysconf("SC_CLK_TCK")
spent = lambda: sum(int(it) for it in open(f"/proc/{process.pid}/stat").read().rsplit(")")[1].split()[11:13]) / tick
begin, cpu = time.monotonic(), spent()
while get(url, "/api/v1/quotes/BTC-USDT")[0]["timestamp"] < END - 60_000:
    time.sleep(0.05)
took, cpu = time.monotonic() - begin, spent() - cpu
print(f"played in {took:.1f} s with {cpu:.1f} s of processor time: {100 * cpu / took:.0f} % of a core")
time.sleep(1)
stop(process)
recorded, played = (candles(name, SYMBOLS) for name in ("recorded", "played"))
print(f"{len(recorded) - 1} candles recorded, {len(recorded - played)} missing or other in what was played")

process, url = start("stopped", {"at": END}, 1500, stderr=subprocess.PIPE)
client = socket.create_connection(url.removeprefix("http://").rsplit(":", 1))
client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
client.recv(65536)
print(f"stopped {stop(process):.1f} ms after SIGTERM, with an idle client and nobody who reads the log")
sys.exit(len(recorded - played) > 0 or len(recorded) <= len(SYMBOLS) * DAY // 60_000 * 9 // 10)
EOF
