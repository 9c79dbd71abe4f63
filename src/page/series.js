// The candles of one symbol and interval: what is loaded, and what is known about the slots
// between. Drawing and input are elsewhere.

import { get } from "./api.js";
import { slotOf, timeOf } from "./slots.js";

/** Candles of one request. */
const PAGE = 500;
/** marketd answers with what has arrived while it asks the exchange for the rest. */
const RETRIES = 3;
const RETRY_MS = 1500;
/** When older candles that were not known may be asked for again. */
const AGAIN_MS = 20_000;

/** A number below this is a time in seconds to marketd: March 1973. */
const EARLIEST_MS = 100_000_000_000;
/** The newest slots, whose emptiness is proved only by a second reading. */
const FRESH = 6;
/** Requests that tell the known slots of a partial answer from the unknown ones. */
const PARTS = 6;

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export class Series {
  /** `changed()` is called after each change. */
  constructor(symbol, interval, changed) {
    this.symbol = symbol;
    this.interval = interval;
    this.changed = changed;
    /** Slot to candle: `{ slot, time, text: [open, high, low, close, volume], open, high, ... }`. */
    this.candles = new Map();
    /** What was asked for, oldest first: `{ from, to, complete }`, in slots. */
    this.spans = [];
    this.newest = null;
    this.source = null;
    this.lastClosed = null;
    this.loading = false;
    this.error = null;
    this.behind = false;
    /** True when the last request for older candles did not get them; a person may ask again. */
    this.stuck = false;
    this.stuckAt = 0;
    this.refreshedAt = Date.now();
    this.gone = false;
  }

  /** The oldest slot that was asked for. */
  get oldest() {
    return this.spans.length ? this.spans[0].from : null;
  }

  /** What a slot is: "candle", "empty" (nobody traded), "unknown", "before" or "after" what is loaded. */
  kind(slot) {
    if (this.candles.has(slot)) return "candle";
    if (this.oldest === null || slot < this.oldest) return "before";
    for (const span of this.spans) {
      if (slot <= span.to) return slot >= span.from && span.complete ? "empty" : "unknown";
    }
    return this.newest !== null && slot < this.newest ? "unknown" : "after";
  }

  /** Loads the newest candles. */
  async load() {
    await this.work(async () => {
      for (let turn = 0; turn <= RETRIES && !this.gone; turn++) {
        const answer = await this.ask({ limit: PAGE });
        this.keep(answer.rows);
        if (answer.rows.length) await this.settle(answer.rows[0].slot, this.end(answer), answer.complete);
        if (answer.rows.length >= PAGE / 2 || answer.complete || this.gone) return;
        this.changed();
        if (turn < RETRIES) await sleep(RETRY_MS);
      }
      if (this.oldest === null) this.stick();
    });
  }

  /**
   * Notes what an answer says of its slots. One unknown slot makes a whole answer partial, and the
   * newest slots without a trade are unknown for a while: parts of the range are asked again.
   */
  async settle(from, to, complete) {
    this.cover(from, to, complete);
    const ranges = complete
      ? []
      : [
          [from, to - FRESH],
          [Math.max(from, to - FRESH + 1), to],
        ];
    for (let asked = 0; ranges.length && asked < PARTS && !this.gone;) {
      const [first, last] = ranges.shift();
      if (first > last || this.whole(first, last)) continue;
      asked++;
      const answer = await this.ask(this.range(first, last));
      this.keep(answer.rows);
      if (answer.complete) this.cover(first, last, true);
      else if (first < last) {
        const middle = (first + last) >> 1;
        ranges.push([first, middle], [middle + 1, last]);
      }
    }
  }

  /** True if every slot of a range has a candle. */
  whole(from, to) {
    for (let slot = from; slot <= to; slot++) if (!this.candles.has(slot)) return false;
    return true;
  }

  /** Loads what lies before the oldest slot that was asked for. */
  async older() {
    if (this.loading || this.stuck || this.oldest === null) return;
    const to = this.oldest - 1;
    const from = Math.max(to - PAGE + 1, slotOf(this.interval, EARLIEST_MS) + 1);
    if (to < from) return this.stick();
    await this.work(async () => {
      for (let turn = 0; turn <= RETRIES && !this.gone; turn++) {
        const answer = await this.ask(this.range(from, to));
        this.keep(answer.rows);
        if (answer.complete) return this.cover(from, to, true);
        if (turn < RETRIES) {
          this.changed();
          await sleep(RETRY_MS);
          continue;
        }
        // Not known in the end. The slots before the first candle are left to a later request.
        if (answer.rows.length) await this.settle(answer.rows[0].slot, to, false);
        this.stick();
      }
    });
  }

  stick() {
    this.stuck = true;
    this.stuckAt = Date.now();
  }

  /** A person has moved the chart: what is missing may be asked for again, after a while. */
  again() {
    const now = Date.now();
    if (now - this.stuckAt > AGAIN_MS) this.stuck = false;
    const unknown = this.spans.some((span) => !span.complete && span.to > this.newest - PAGE);
    if (this.behind || (unknown && now - this.refreshedAt > AGAIN_MS)) this.refresh();
  }

  /** Loads what has come since the newest candle, and asks again about new slots not known before. */
  async refresh() {
    if (this.loading) return;
    if (this.newest === null) return this.load();
    await this.work(async () => {
      const unknown = this.spans.find((span) => !span.complete && span.to > this.newest - PAGE);
      const known = Math.min(slotOf(this.interval, this.lastClosed ?? Infinity), this.newest) - 1;
      const from = Math.max(this.newest - PAGE, Math.min(known, unknown ? unknown.from : known));
      const answer = await this.ask({ from: timeOf(this.interval, from), limit: 5000 });
      this.keep(answer.rows);
      await this.settle(from, this.end(answer), answer.complete);
      this.behind = false;
      this.refreshedAt = Date.now();
    });
  }

  /** Takes a candle of the stream. */
  apply(event) {
    if (this.source !== null && event.source !== this.source) return false;
    const row = this.row(event.candle);
    if (this.newest !== null && row.slot > this.newest + 1) this.behind = true;
    this.keep([row]);
    if (event.closed) {
      this.lastClosed = Math.max(this.lastClosed ?? 0, row.time);
      this.cover(row.slot, row.slot, true);
    }
    this.changed();
    return true;
  }

  async work(task) {
    this.loading = true;
    this.error = null;
    this.changed();
    try {
      await task();
    } catch (error) {
      this.error = error.message;
      this.status = error.status;
      this.stick();
    }
    this.loading = false;
    if (!this.gone) this.changed();
  }

  range(from, to) {
    return { from: timeOf(this.interval, from), to: timeOf(this.interval, to) };
  }

  async ask(query) {
    const { body, headers } = await get("api/ecosystem/chart", {
      symbol: this.symbol,
      interval: this.interval,
      source: this.source,
      ...query,
      decimals: "string",
    });
    const closed = headers.get("Chart-Last-Closed");
    if (closed) this.lastClosed = Math.max(this.lastClosed ?? 0, Number(closed));
    this.source ??= headers.get("Chart-Source");
    return {
      rows: body.map((row) => this.row(row)),
      complete: headers.get("Chart-Coverage") === "complete",
    };
  }

  /** The texts are for people; the numbers are for the places of the pixels. */
  row([time, ...text]) {
    const [open, high, low, close, volume] = text.map(Number);
    return {
      slot: slotOf(this.interval, time),
      time,
      text: text.map(String),
      open,
      high,
      low,
      close,
      volume,
    };
  }

  keep(rows) {
    for (const row of rows) this.candles.set(row.slot, row);
    if (rows.length) this.newest = Math.max(this.newest ?? -Infinity, rows[rows.length - 1].slot);
  }

  /** The last slot that an answer which ends now speaks of: the slot that is forming is open. */
  end(answer) {
    const row = answer.rows.length ? answer.rows[answer.rows.length - 1].slot : -Infinity;
    const closed = this.lastClosed === null ? -Infinity : slotOf(this.interval, this.lastClosed);
    return Math.max(row, closed);
  }

  /** Notes what is known of a span of slots; a later word takes the place of an earlier one. */
  cover(from, to, complete) {
    if (!(from <= to)) return;
    const spans = [];
    for (const span of this.spans) {
      if (span.from < from) spans.push({ ...span, to: Math.min(span.to, from - 1) });
      if (span.to > to) spans.push({ ...span, from: Math.max(span.from, to + 1) });
    }
    spans.push({ from, to, complete });
    spans.sort((a, b) => a.from - b.from);
    this.spans = [];
    for (const span of spans) {
      const last = this.spans[this.spans.length - 1];
      if (last && last.complete === span.complete && last.to + 1 === span.from) last.to = span.to;
      else this.spans.push(span);
    }
  }

  /** Slots between the oldest and the newest, by kind. */
  tally() {
    const tally = { candles: this.candles.size, empty: 0, unknown: 0 };
    if (this.oldest === null || this.newest === null) return tally;
    for (let slot = this.oldest; slot < this.newest; slot++) {
      const kind = this.kind(slot);
      if (kind !== "candle") tally[kind]++;
    }
    return tally;
  }

  /** True while marketd is asked about slots before the oldest, or may be. */
  get mayHaveOlder() {
    return this.loading || !this.stuck;
  }
}
