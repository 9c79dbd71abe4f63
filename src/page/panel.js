// The chart's panel: the market's name and figures, the intervals, the candles, and what is known.

import { Chart } from "./chart.js";
import { Feed } from "./feed.js";
import { Series } from "./series.js";
import { INTERVALS } from "./slots.js";
import { clock, compact, count, date, direction, percent, shared, signed } from "./text.js";
import { address } from "./api.js";

/** A chart whose source changes is loaded anew, and no more often than this. */
const RESTART_MS = 20_000;

export class Panel {
  /** `go(symbol, interval)` changes the page's address. */
  constructor(elements, go) {
    this.elements = elements;
    this.chart = new Chart(elements.canvas, elements.values, elements.newest);
    this.symbol = null;
    this.interval = null;
    this.series = null;
    this.feed = null;
    for (const interval of Object.keys(INTERVALS)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = interval;
      button.dataset.interval = interval;
      button.addEventListener("click", () => go(this.symbol, interval));
      elements.intervals.append(button);
    }
    elements.intervals.addEventListener("keydown", (event) => this.walk(event));
  }

  /** Shows a market's candles of an interval. */
  show(symbol, interval) {
    if (symbol === this.symbol && interval === this.interval) return;
    if (symbol !== this.shown) this.clear();
    this.close();
    this.shown = symbol;
    this.symbol = symbol;
    this.interval = interval;
    this.elements.title.textContent = symbol;
    for (const button of this.elements.intervals.children) {
      const is = button.dataset.interval === interval;
      button.setAttribute("aria-pressed", is);
      button.tabIndex = is ? 0 : -1;
      if (is) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    this.start();
  }

  /** Takes away another market's figures. */
  clear() {
    this.last = null;
    for (const name of ["last", "change", "mark", "facts"]) this.elements[name].replaceChildren();
  }

  /** Loads the candles from the beginning. */
  start() {
    this.startedAt = performance.now();
    if (this.series) this.series.gone = true;
    const series = (this.series = new Series(this.symbol, this.interval, () => {
      if (series !== this.series) return;
      this.chart.changed();
      this.say();
    }));
    this.chart.show(series);
    this.listen();
    series.load().then(() => {
      if (series === this.series && series.status === 404) this.feed.close();
    });
  }

  listen() {
    this.feed?.close();
    let lost = false;
    const url = address("api/v1/stream", { charts: `${this.symbol}:${this.interval}`, decimals: "string" });
    this.feed = new Feed(url, {
      state: (state) => {
        if (state === "live" && lost) this.series.refresh();
        lost = state !== "live";
      },
      candle: (event) => {
        if (event.symbol !== this.symbol || event.interval !== this.interval) return;
        // Another source answers now, and series of two sources are never mixed.
        if (!this.series.apply(event) && performance.now() - this.startedAt > RESTART_MS) this.start();
      },
    });
  }

  close() {
    this.feed?.close();
    this.feed = null;
    if (this.series) this.series.gone = true;
    this.series = this.symbol = this.interval = null;
  }

  /** A market is not served any more: its last quote is none of now. */
  gone(symbol) {
    if (symbol === this.symbol) this.elements.mark.textContent = "not served";
  }

  /** The newest quote of the market that is shown. */
  quote(quote) {
    if (!quote || quote.symbol !== this.symbol) return;
    const { last, change, mark, facts } = this.elements;
    const kept = this.last ? shared(this.last, quote.last) : quote.last.length;
    const moved = document.createElement("b");
    moved.textContent = quote.last.slice(kept);
    if (this.last && kept < quote.last.length)
      moved.className = Number(quote.last) < Number(this.last) ? "down" : "up";
    if (this.last !== quote.last || !last.textContent) last.replaceChildren(quote.last.slice(0, kept), moved);
    this.last = quote.last;
    change.textContent = [signed(quote.change), percent(quote.percentage)].filter(Boolean).join("  ");
    change.className = direction(quote.percentage);
    change.title = quote.percentage === null ? "" : `${quote.percentage} % in 24 hours`;
    mark.textContent = quote.stale ? "stale" : "";
    const pairs = [
      ["Bid", quote.bid],
      ["Ask", quote.ask],
      ["Open", quote.open],
      ["High", quote.high],
      ["Low", quote.low],
      ["Volume", quote.baseVolume && `${compact(quote.baseVolume)} ${quote.base}`, quote.baseVolume],
      ["Turnover", quote.quoteVolume && `${compact(quote.quoteVolume)} ${quote.quote}`, quote.quoteVolume],
      ["Source", quote.source],
      ["As of", `${clock(quote.receivedAt)} UTC`],
    ];
    if (facts.children.length !== pairs.length) {
      facts.replaceChildren(
        ...pairs.map(([name]) => {
          const pair = document.createElement("div");
          const [dt, dd] = [document.createElement("dt"), document.createElement("dd")];
          dt.textContent = name;
          pair.append(dt, dd);
          return pair;
        }),
      );
    }
    pairs.forEach(([, value, title], i) => {
      const dd = facts.children[i].lastChild;
      if (dd.textContent !== (value ?? "–")) dd.textContent = value ?? "–";
      if (title) dd.title = title;
    });
  }

  /** Says what is known of the candles that are loaded. */
  say() {
    const { say, known } = this.elements;
    const { series } = this;
    const words =
      series.newest !== null
        ? ""
        : series.error
          ? `No candles: ${series.error}`
          : series.loading
            ? "Loading candles"
            : "No candles are known.";
    say.hidden = !words;
    say.textContent = words;
    known.replaceChildren();
    if (series.newest === null) return;
    const minutes = INTERVALS[series.interval] < INTERVALS["1d"];
    const tally = series.tally();
    const oldest = series.candles.get(series.oldest);
    const parts = [
      `${count(tally.candles)} candles of ${series.source}${oldest ? ` since ${date(oldest.time, minutes)}` : ""}`,
      tally.empty ? `${count(tally.empty)} slots in which nobody traded` : "",
      tally.unknown ? `${count(tally.unknown)} slots not known` : "complete",
      series.error
        ? `not loaded: ${series.error}`
        : series.loading
          ? "loading"
          : series.stuck
            ? "nothing older is known"
            : "",
      series.lastClosed ? `last closed ${date(series.lastClosed, minutes)} UTC` : "",
    ];
    known.textContent = parts.filter(Boolean).join("  ·  ");
    known.dataset.coverage = tally.unknown ? "partial" : "complete";
  }

  /** Arrow keys move between the intervals. */
  walk(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const buttons = [...this.elements.intervals.children];
    const next = buttons[buttons.indexOf(document.activeElement) + by];
    if (next) next.focus();
    event.preventDefault();
  }
}
