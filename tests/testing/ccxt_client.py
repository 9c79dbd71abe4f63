"""Reads the demo exchange with CCXT, and compares it with what marketd serves of it.

ccxt_client.py EXCHANGE MARKETD [STATUS]: the two addresses; with a status, each poll of tickers fails with it.
"""
import json
import sys
import urllib.request

import ccxt

exchange_url, marketd_url, *status = sys.argv[1:]
# Futures are other hosts.
exchange = ccxt.binance({"enableRateLimit": False, "options": {"fetchMarkets": ["spot"]}})
exchange.urls["api"]["public"] = exchange_url + "/api/v3"


def marketd(target):
    with urllib.request.urlopen(marketd_url + target) as response:
        return json.load(response)


def fails(kind, call, *words):
    try:
        call(*words)
    except kind as error:
        return error
    raise AssertionError(f"{call.__name__}{words} did not fail")


markets = exchange.load_markets()
assert len(markets) == 24, len(markets)
assert markets["ETH/BTC"]["active"] and markets["ETH/BTC"]["precision"]["price"] == 0.00001
if status:
    expected = ccxt.DDoSProtection if status == ["429"] else ccxt.OperationFailed
    error = fails(expected, exchange.fetch_ticker, "ETH/BTC")
    assert "scripted" in str(error), error
    sys.exit()

quotes = {quote["symbol"]: quote for quote in marketd("/api/v1/quotes?symbols=*")["quotes"]}
some = exchange.fetch_tickers(["BTC/USDT", "SOL/ETH"])
assert sorted(some) == ["BTC/USDT", "SOL/ETH"], some
for tickers in [{"ETH/BTC": exchange.fetch_ticker("ETH/BTC")}, some, exchange.fetch_tickers()]:
    for symbol, ticker in tickers.items():
        for key in ["last", "bid", "ask", "high", "low", "percentage", "baseVolume", "quoteVolume", "timestamp"]:
            assert ticker[key] == quotes[symbol][key], (symbol, key, ticker[key], quotes[symbol])

assert abs(exchange.fetch_time() - quotes["BTC/USDT"]["receivedAt"]) < 1000
chart = marketd("/api/ecosystem/chart?symbol=BTC/USDT&interval=1m&limit=1400")
rows, since = [], chart[0][0]
while since <= chart[-1][0]:
    page = exchange.fetch_ohlcv("BTC/USDT", "1m", since, 600)
    assert 0 < len(page) <= 600, len(page)
    rows += page
    since = page[-1][0] + 60_000
assert rows == chart, (len(rows), len(chart))
hours = exchange.fetch_ohlcv("ETH/EUR", "4h", None, 5)
assert hours == marketd("/api/ecosystem/chart?symbol=ETH/EUR&interval=4h&limit=5")
request = {"symbol": "NONEUSDT", "interval": "1m"}
fails(ccxt.BadSymbol, exchange.public_get_klines, request)
used = exchange.last_response_headers["X-Mbx-Used-Weight-1m"]
assert int(used) > 100, used
