// A made-up exchange in Binance's dialect, whose candles are known: the price is a function of
// time. It can be stopped, and one of its markets has minutes without a trade.

import { createServer } from "node:http";

const MINUTE = 60_000;
const LENGTHS = { "1m": MINUTE, "1h": 60 * MINUTE, "1d": 1440 * MINUTE };

/** Base asset to its price, decimal places, and the minutes of each ten in which nobody trades. */
export const MARKETS = {
  BTC: { price: 64000, places: 2, quiet: [] },
  // Prices that a binary number writes with an exponent.
  TINY: { price: 0.0000001234, places: 14, quiet: [] },
  GAP: { price: 3.2, places: 4, quiet: [3, 4, 7] },
  // Digits that a binary number does not hold.
  HUGE: { price: 12345678, places: 2, quiet: [], tail: "0123456789012345" },
  ETH: { price: 3100, places: 2, quiet: [] },
  SOL: { price: 140, places: 2, quiet: [] },
};

function price({ price, places, tail = "" }, time) {
  const wave =
    1 + 0.02 * Math.sin(time / 9e6) + 0.004 * Math.sin(time / 3.1e5) + 0.001 * Math.sin(time / 4700);
  return (price * wave).toFixed(places) + tail + (tail ? "7" : "");
}

function candle(market, start, length, now) {
  const end = Math.min(start + length, now);
  const texts = [0, 0.25, 0.5, 0.75, 1].map((part) => price(market, start + (end - start) * part));
  const sorted = [...texts].sort((a, b) => Number(a) - Number(b));
  const volume = (10 + 9 * Math.sin(start / 1e6)).toFixed(5);
  return [start, texts[0], sorted[4], sorted[0], texts[4], volume, start + length - 1, "0", 1, "0", "0", "0"];
}

function candles(market, query, now) {
  const length = LENGTHS[query.get("interval")];
  const most = Number(query.get("limit") ?? 500),
    to = Math.min(Number(query.get("endTime") ?? now), now);
  const rows = [];
  let start = Math.ceil(Number(query.get("startTime") ?? 0) / length) * length;
  for (; start <= to && rows.length < most; start += length) {
    const quiet = length === MINUTE && market.quiet.includes((start / MINUTE) % 10);
    if (!quiet) rows.push(candle(market, start, length, now));
  }
  return rows;
}

function ticker(base, market, now) {
  const last = price(market, now),
    open = price(market, now - 86_400_000);
  const change = (Number(last) - Number(open)).toFixed(Math.min(market.places, 12));
  return {
    symbol: `${base}USDT`,
    priceChange: change,
    priceChangePercent: ((Number(last) / Number(open) - 1) * 100).toFixed(3),
    lastPrice: last,
    bidPrice: last,
    bidQty: "1.5",
    askPrice: last,
    askQty: "2.25",
    openPrice: open,
    highPrice: price(market, 1.4e7),
    lowPrice: price(market, 4.2e7),
    volume: (market.price < 1 ? 9.1e12 : 4321.5).toFixed(2),
    quoteVolume: (4321.5 * market.price).toFixed(4),
    closeTime: now,
  };
}

const info = (base, market) => ({
  symbol: `${base}USDT`,
  status: "TRADING",
  baseAsset: base,
  quoteAsset: "USDT",
  filters: [
    {
      filterType: "PRICE_FILTER",
      minPrice: "0",
      maxPrice: "0",
      tickSize: (10 ** -market.places).toFixed(market.places),
    },
    { filterType: "LOT_SIZE", minQty: "0.00001", maxQty: "9000", stepSize: "0.00001" },
  ],
});

/** So many markets more, of the price of one market or another. */
export function manyMarkets(count) {
  const markets = { ...MARKETS };
  for (let i = 0; i < count; i++)
    markets[`M${i}`] = { price: 0.37 * 1.006 ** (i % 2000), places: 4 + (i % 4), quiet: [] };
  return markets;
}

export class Exchange {
  constructor(markets = MARKETS) {
    this.markets = markets;
  }

  async start(port = 0) {
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise((done, failed) => this.server.on("error", failed).listen(port, "127.0.0.1", done));
    this.port = this.server.address().port;
    return this;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The markets whose candles were asked for. */
  asked = new Set();
  /** A market of the list that has no ticker. */
  withheld = null;

  answer(request, response) {
    const { pathname, searchParams: query } = new URL(request.url, "http://exchange");
    const now = Date.now();
    const chosen = query.get("symbol")?.replace(/USDT$/, "");
    let body = { code: -1121, msg: "Invalid symbol." };
    if (pathname === "/api/v3/time") body = { serverTime: now };
    else if (pathname === "/api/v3/exchangeInfo")
      body = { serverTime: now, symbols: Object.entries(this.markets).map(([b, m]) => info(b, m)) };
    else if (pathname === "/api/v3/ticker/24hr" && !chosen)
      body = Object.entries(this.markets)
        .filter(([b]) => b !== this.withheld)
        .map(([b, m]) => ticker(b, m, now));
    else if (pathname === "/api/v3/ticker/24hr" && this.markets[chosen] && chosen !== this.withheld)
      body = ticker(chosen, this.markets[chosen], now);
    else if (pathname === "/api/v3/klines" && this.markets[chosen]) {
      this.asked.add(chosen);
      body = candles(this.markets[chosen], query, now);
    }
    response.writeHead(body.code ? 400 : 200, { "Content-Type": "application/json" });
    response.end(JSON.stringify(body));
  }

  /** Stops it: connections are refused from now on. */
  async stop() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }
}
