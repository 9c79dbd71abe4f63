// The table of quotes. Only the rows in view are in the document, so that thousands of markets
// cost no more than thirty.

import { palette } from "./draw.js";
import { drawSpark, Sparks } from "./spark.js";
import { compact, direction, percent, shared } from "./text.js";

/** Rows above and below the view, for a quick hand. */
const SPARE = 6;
/** How often the order may change: rows that jump cannot be read. */
const SORT_MS = 2000;
/** How long the digits that moved stay marked. */
const MARK_MS = 500;
/** Characters of a price that the column has room for at first, and at most. */
const PRICE = { usual: 11, most: 16 };
/** No reordering under a pointer that has just moved. */
const CALM_MS = 2500;

const TEXTS = new Set(["symbol", "source"]);

export class Table {
  constructor({ scroller, table, empty, count }, open) {
    Object.assign(this, { scroller, table, empty, count, open });
    this.body = table.tBodies[0];
    /** Symbol to the newest quote, as it was sent. */
    this.quotes = new Map();
    this.previous = new Map();
    this.order = [];
    this.rows = new Map();
    this.sort = { key: "quoteVolume", descending: true };
    this.search = "";
    this.only = null;
    this.selected = null;
    this.movedAt = 0;
    this.sparks = new Sparks((symbol) => this.mark(symbol));
    this.dirty = new Set();
    this.above = this.body.insertRow();
    this.below = this.body.insertRow();
    for (const spacer of [this.above, this.below]) {
      spacer.className = "spacer";
      spacer.setAttribute("aria-hidden", "true");
    }
    this.listen();
  }

  /** Takes a quote. */
  take(quote) {
    const old = this.quotes.get(quote.symbol);
    this.quotes.set(quote.symbol, quote);
    this.sparks.quote(quote.symbol, Number(quote.last));
    if (old) {
      if (old.last !== quote.last) this.previous.set(quote.symbol, { last: old.last, at: performance.now() });
      this.mark(quote.symbol);
      if (this.sort.key !== "symbol" && old[this.sort.key] !== quote[this.sort.key]) this.resortSoon();
    } else this.reorderSoon();
  }

  /** Forgets a market. */
  remove(symbol) {
    if (this.quotes.delete(symbol)) this.reorderSoon();
  }

  /** Forgets the markets that are not in `symbols`. */
  retain(symbols) {
    for (const symbol of this.quotes.keys()) if (!symbols.has(symbol)) this.quotes.delete(symbol);
    this.reorderSoon();
  }

  mark(symbol) {
    if (!this.rows.has(symbol)) return;
    this.dirty.add(symbol);
    this.paint();
  }

  paint() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      for (const symbol of this.dirty) this.fill(this.rows.get(symbol));
      this.dirty.clear();
    });
  }

  reorderSoon() {
    this.reordering ??= requestAnimationFrame(() => {
      this.reordering = null;
      this.reorder();
    });
  }

  resortSoon() {
    this.resorting ??= setTimeout(() => {
      this.resorting = null;
      if (performance.now() - this.movedAt < CALM_MS) this.resortSoon();
      else this.reorder();
    }, SORT_MS);
  }

  filter(search, only) {
    this.search = search.trim().toUpperCase();
    this.only = only;
    this.scroller.scrollTop = 0;
    this.reorder();
  }

  reorder() {
    const wanted = this.search.replace(/[-_/ ]/g, "");
    const chosen = [];
    for (const quote of this.quotes.values()) {
      if (this.only && !this.only(quote)) continue;
      if (wanted && !(quote.base + quote.quote).includes(wanted)) continue;
      chosen.push(quote);
    }
    const { key, descending } = this.sort;
    const value = TEXTS.has(key) ? (q) => q[key] : (q) => (q[key] === null ? -Infinity : Number(q[key]));
    const keyed = chosen.map((q) => [value(q), q.symbol]);
    const sign = descending ? -1 : 1;
    keyed.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1] < b[1] ? -1 : 1));
    this.order = keyed.map(([, symbol]) => symbol);
    this.count.textContent =
      this.order.length === this.quotes.size
        ? String(this.order.length)
        : `${this.order.length} of ${this.quotes.size}`;
    this.fit();
    this.empty.hidden = this.order.length > 0;
    this.empty.textContent = this.quotes.size ? "No market matches." : "No quotes have come yet.";
    for (const th of this.table.tHead.rows[0].cells) {
      if (!th.dataset.key) continue;
      if (th.dataset.key === key) th.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
    this.layout();
  }

  /** Gives the prices the room that the longest needs: a cut one would hide what matters. */
  fit() {
    const longest = this.order.reduce(
      (most, symbol) => Math.max(most, this.quotes.get(symbol).last.length),
      0,
    );
    const width = Math.min(longest, PRICE.most);
    this.table.classList.toggle("long", longest > PRICE.usual);
    this.table.querySelector('th[data-key="last"]').style.width =
      longest > PRICE.usual ? `${width + 2.5}ch` : "";
  }

  /** The height of a row: the style sheet's, which differs for fingers. */
  get rowHeight() {
    this.height ??= parseFloat(getComputedStyle(this.table).getPropertyValue("--row"));
    return this.height;
  }

  /** Puts the rows in view into the document, and takes the others out. */
  layout() {
    const height = this.rowHeight;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / height) - SPARE);
    const last = Math.min(
      this.order.length,
      Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / height) + SPARE,
    );
    const shown = this.order.slice(first, last);
    const keep = new Set(shown);
    for (const [symbol, row] of this.rows) {
      if (keep.has(symbol)) continue;
      row.tr.remove();
      this.rows.delete(symbol);
      this.sparks.forget(symbol);
    }
    this.above.style.height = `${first * height}px`;
    this.below.style.height = `${(this.order.length - last) * height}px`;
    let next = this.above.nextSibling;
    shown.forEach((symbol, i) => {
      let row = this.rows.get(symbol);
      if (!row) {
        row = this.build(symbol);
        this.rows.set(symbol, row);
      }
      row.tr.setAttribute("aria-rowindex", first + i + 2);
      row.tr.classList.toggle("odd", (first + i) % 2 === 1);
      if (row.tr === next) next = next.nextSibling;
      else this.body.insertBefore(row.tr, next);
      if (!row.filled) this.fill(row);
    });
    this.table.setAttribute("aria-rowcount", this.order.length + 1);
  }

  build(symbol) {
    const tr = document.createElement("tr");
    tr.id = `row-${symbol.replace("/", "-")}`;
    tr.dataset.symbol = symbol;
    const cell = (kind, name = "td") => {
      const made = document.createElement(name);
      if (kind) made.className = kind;
      tr.append(made);
      return made;
    };
    const row = {
      symbol,
      tr,
      market: cell("market", "th"),
      spark: cell("spark"),
      last: cell("last"),
      change: cell("change"),
      bid: cell("wide2"),
      ask: cell("wide2"),
      volume: cell("wide1"),
      source: cell("wide3 source"),
    };
    row.market.scope = "row";
    const [base, quote] = symbol.split("/");
    const dim = document.createElement("span");
    dim.textContent = `/${quote}`;
    row.market.append(base, dim);
    row.canvas = document.createElement("canvas");
    row.spark.append(row.canvas);
    this.select(row);
    return row;
  }

  select(row) {
    const is = row.symbol === this.selected;
    row.tr.setAttribute("aria-selected", is);
  }

  fill(row) {
    const quote = row && this.quotes.get(row.symbol);
    if (!quote) return;
    row.filled = true;
    row.last.title = quote.last;
    this.price(row, quote);
    const kind = direction(quote.percentage);
    put(row.change, quote.stale ? "stale" : percent(quote.percentage), quote.percentage);
    row.change.className = `change ${quote.stale ? "" : kind}`;
    put(row.bid, quote.bid ?? "");
    put(row.ask, quote.ask ?? "");
    put(row.volume, compact(quote.quoteVolume), quote.quoteVolume && `${quote.quoteVolume} ${quote.quote}`);
    put(row.source, quote.source);
    row.tr.classList.toggle("stale", quote.stale);
    row.tr.title = quote.stale ? "Stale: its source has not confirmed this quote in time" : "";
    this.colors ??= palette(this.scroller);
    drawSpark(row.canvas, this.sparks.of(row.symbol), this.colors[kind || "quiet"]);
  }

  /** The price, with the digits that moved marked for a moment. The text is what was sent. */
  price(row, quote) {
    const before = this.previous.get(quote.symbol);
    const age = before ? performance.now() - before.at : Infinity;
    if (age > MARK_MS) return put(row.last, quote.last);
    const kept = shared(before.last, quote.last);
    const tail = document.createElement("b");
    tail.className = Number(quote.last) < Number(before.last) ? "down" : "up";
    tail.textContent = quote.last.slice(kept);
    row.last.replaceChildren(quote.last.slice(0, kept), tail);
    clearTimeout(row.calm);
    row.calm = setTimeout(() => this.mark(quote.symbol), MARK_MS + 20);
  }

  recolor() {
    this.colors = null;
    this.height = null;
    for (const row of this.rows.values()) this.fill(row);
  }

  /** Marks the market whose chart is open. */
  choose(symbol) {
    this.selected = symbol;
    for (const row of this.rows.values()) this.select(row);
    if (symbol) this.scroller.setAttribute("aria-activedescendant", `row-${symbol.replace("/", "-")}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  /** Moves the selection, and scrolls it into view. */
  move(by) {
    const at = this.order.indexOf(this.selected);
    const next = at < 0 ? 0 : Math.max(0, Math.min(this.order.length - 1, at + by));
    if (!this.order.length) return;
    this.choose(this.order[next]);
    const top = next * this.rowHeight,
      head = this.table.tHead.offsetHeight;
    const { scroller } = this;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + this.rowHeight + head > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = top + this.rowHeight + head - scroller.clientHeight;
    }
    this.movedAt = performance.now();
    this.layout();
  }

  listen() {
    this.scroller.addEventListener(
      "scroll",
      () => {
        this.scrolling ??= requestAnimationFrame(() => {
          this.scrolling = null;
          this.layout();
        });
      },
      { passive: true },
    );
    this.scroller.addEventListener(
      "pointermove",
      () => {
        this.movedAt = performance.now();
      },
      { passive: true },
    );
    new ResizeObserver(() => {
      this.height = null;
      this.layout();
      for (const row of this.rows.values()) this.fill(row);
    }).observe(this.scroller);
    this.table.tHead.addEventListener("click", (event) => {
      const key = event.target.closest("th")?.dataset.key;
      if (!key || !event.target.closest("button")) return;
      const same = this.sort.key === key;
      this.sort = { key, descending: same ? !this.sort.descending : !TEXTS.has(key) };
      this.reorder();
    });
    this.body.addEventListener("click", (event) => {
      const symbol = event.target.closest("tr")?.dataset.symbol;
      if (symbol) this.open(symbol, "click");
    });
    this.scroller.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.target.closest("button") || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 2);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[
      event.key
    ];
    if (by !== undefined) {
      this.move(by);
      this.open(this.selected, "move");
    } else if (event.key === "Enter" && this.selected) this.open(this.selected, "enter");
    else return;
    event.preventDefault();
  }
}

function put(cell, text, title) {
  // A price with marked digits has the right text already, and has to lose its mark.
  if (cell.textContent !== text || cell.firstElementChild) cell.textContent = text;
  if (title !== undefined) cell.title = title ?? "";
}
