// Small charts of the last day: one request for all rows in view, then moved by the quotes.

import { get } from "./api.js";

const HOUR = 3_600_000;
const POINTS = 24;
/** What marketd takes in one request. */
const BATCH = 50;
/** Rows that are only scrolled past are not asked for. */
const REST_MS = 250;
/** marketd answers at once, and asks the exchange for what it does not have. */
const RETRIES = 2;
const RETRY_MS = 4000;

export class Sparks {
  /** `changed(symbol)` is called when a symbol's points have come. */
  constructor(changed) {
    this.changed = changed;
    /** Symbol to `[slot, price]` pairs, oldest first; null while they are asked for. */
    this.points = new Map();
    this.wanted = new Set();
  }

  /** The points of a symbol; asks for them when they are not there. */
  of(symbol) {
    if (!this.points.has(symbol) && !this.wanted.has(symbol)) {
      this.wanted.add(symbol);
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.load(), REST_MS);
    }
    return this.points.get(symbol) ?? null;
  }

  /** A row has left the view before its turn. */
  forget(symbol) {
    this.wanted.delete(symbol);
  }

  /** Moves the newest point, or begins the next hour. */
  quote(symbol, price) {
    const points = this.points.get(symbol);
    if (!points) return;
    const slot = Math.floor(Date.now() / HOUR);
    const last = points[points.length - 1];
    if (last && last[0] === slot) last[1] = price;
    else points.push([slot, price]);
    while (points.length && points[0][0] <= slot - POINTS) points.shift();
  }

  load() {
    const symbols = [...this.wanted];
    this.wanted.clear();
    for (const symbol of symbols) this.points.set(symbol, null);
    for (let i = 0; i < symbols.length; i += BATCH) this.ask(symbols.slice(i, i + BATCH), RETRIES);
  }

  /** Asks for the charts of a batch, and again for those that were not whole. */
  async ask(symbols, retries) {
    try {
      const { body } = await get("api/ecosystem/chart", {
        symbols: symbols.join(","),
        interval: "1h",
        limit: POINTS,
      });
      const partial = symbols.filter((symbol) => !this.take(symbol, body[symbol]));
      if (partial.length && retries) setTimeout(() => this.ask(partial, retries - 1), RETRY_MS);
    } catch {
      // Without small charts the table is still whole.
    }
  }

  /** Keeps the candles of the last day; true if nothing is missing. */
  take(symbol, chart) {
    const rows = chart?.candles;
    if (!Array.isArray(rows)) return true;
    const since = Math.floor(Date.now() / HOUR) - POINTS;
    const points = rows
      .map((row) => [Math.floor(row[0] / HOUR), Number(row[4])])
      .filter(([slot]) => slot > since);
    this.points.set(symbol, points);
    this.changed(symbol);
    return chart.coverage === "complete";
  }
}

/** Draws points by their time, so that an hour without a trade is a longer line and not a jump. */
export function drawSpark(canvas, points, color) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth,
    height = canvas.clientHeight;
  if (!width) return;
  if (canvas.width !== Math.round(width * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  if (!points || points.length < 2) return;
  const prices = points.map(([, price]) => price);
  const low = Math.min(...prices),
    high = Math.max(...prices);
  const last = points[points.length - 1][0];
  const x = (slot) => width - 2.5 - ((last - slot) / (POINTS - 1)) * (width - 5);
  const y = (price) => (high > low ? height - 3 - ((price - low) / (high - low)) * (height - 6) : height / 2);
  context.strokeStyle = context.fillStyle = color;
  context.lineWidth = 1.25;
  context.lineJoin = "round";
  context.beginPath();
  points.forEach(([slot, price], i) =>
    i ? context.lineTo(x(slot), y(price)) : context.moveTo(x(slot), y(price)),
  );
  context.stroke();
  context.beginPath();
  context.arc(x(last), y(prices[prices.length - 1]), 1.75, 0, 7);
  context.fill();
}
