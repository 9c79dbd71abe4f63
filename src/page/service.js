// What marketd does: its health, its sources, its backfill, and the figures that a person reads.

import { get } from "./api.js";
import { bytes, clock, count, date, span } from "./text.js";

const REFRESH_MS = 2000;
/** Without a hand on the page the figures rest, and say so. */
const REST_MS = 60_000;

export class Service {
  /** `answers()` counts the symbols that each source answers for. */
  constructor(elements, answers) {
    this.elements = elements;
    this.answers = answers;
    this.open = false;
    this.metrics = null;
    this.before = null;
    this.touchedAt = 0;
    for (const name of ["pointermove", "pointerdown", "keydown", "wheel", "focus"]) {
      addEventListener(name, () => this.touch(), { passive: true });
    }
    document.addEventListener("visibilitychange", () => this.touch());
  }

  show(open) {
    this.open = open;
    clearTimeout(this.timer);
    this.timer = null;
    if (open) {
      this.before = null;
      this.touchedAt = performance.now();
      this.load();
    }
  }

  touch() {
    this.touchedAt = performance.now();
    if (this.open && !this.timer && !this.busy && !document.hidden) this.load();
  }

  /** Reads the metrics, and again soon while somebody looks. */
  async load() {
    clearTimeout(this.timer);
    this.timer = null;
    this.busy = true;
    try {
      const { body } = await get("api/v1/metrics");
      this.before =
        this.metrics && this.metrics.startedAt === body.startedAt
          ? { metrics: this.metrics, at: this.at }
          : null;
      this.metrics = body;
      this.at = Date.now();
      if (this.open) this.render();
    } catch (error) {
      this.elements.asof.textContent = `No new figures: ${error.message}.`;
    }
    this.busy = false;
    if (!this.open || document.hidden) return;
    if (performance.now() - this.touchedAt < REST_MS) this.timer = setTimeout(() => this.load(), REFRESH_MS);
    else
      this.elements.asof.textContent = `As of ${clock(this.at)} UTC. The figures rest while nobody moves; any key or movement wakes them.`;
  }

  /** What `/health` says. */
  health(health) {
    this.state = health;
    if (this.open) this.renderHealth();
  }

  renderHealth() {
    const { state } = this;
    if (!state) return;
    const line = node("p", { class: `verdict ${state.status}` }, [
      node("i", { class: "dot" }),
      node("b", {}, state.status),
      ` ${state.upstreams.up} of ${state.upstreams.total} sources up, ${count(state.quotes.fresh)} quotes fresh, ${count(state.quotes.stale)} stale`,
    ]);
    const reasons = state.reasons.map((r) =>
      node("li", {}, [r.source ? node("b", {}, r.source + " ") : "", r.message]),
    );
    this.elements.health.replaceChildren(line, ...(reasons.length ? [node("ul", {}, reasons)] : []));
  }

  render() {
    this.renderHealth();
    const answers = this.answers();
    this.elements.sources.replaceChildren(
      ...this.metrics.upstreams.map((s) => this.source(s, answers.get(s.id) ?? 0)),
    );
    this.elements.backfill.replaceChildren(...this.metrics.upstreams.map((s) => this.fill(s)));
    this.elements.figures.replaceChildren(...this.figures().map(([title, pairs]) => group(title, pairs)));
    this.elements.asof.textContent = `As of ${clock(this.at)} UTC.`;
  }

  source(s, symbols) {
    const age = s.lastSuccessAt === null ? "never" : `${span(this.at - s.lastSuccessAt)} ago`;
    const state = s.frozen ? "frozen" : s.state;
    const next = s.backoffUntil
      ? ["Tries again", `in ${span(Math.max(0, s.backoffUntil - this.at))}`]
      : ["Next poll", s.nextPollAt ? `in ${span(Math.max(0, s.nextPollAt - this.at))}` : "–"];
    const head = node("h3", {}, [node("i", { class: "dot" }), s.id, node("span", {}, state)]);
    const pairs = pairsOf([
      ["Last answer", age],
      ["Latency", s.lastLatencyMs === null ? "–" : span(s.lastLatencyMs)],
      next,
      ["Budget left", count(s.budgetLeft)],
      ["Budget spent", count(s.budgetSpent)],
      ["Answers for", `${count(symbols)} markets`],
      ["Stale quotes", count(s.stale)],
      ["Failed over", `${count(s.failovers)}, returned ${count(s.returns)}`],
      ["Polls", `${count(s.ok)} of ${count(s.polls)} good`],
      ["Failures", `${count(s.errors)}, ${count(s.timeouts)} timeouts, ${count(s.rateLimited)} rate limited`],
      ["Received", bytes(s.bytesReceived)],
    ]);
    const error = s.lastError
      ? node("p", { class: "error" }, [`${date(s.lastErrorAt, true)}: `, s.lastError])
      : "";
    return node("article", { "data-state": state }, [head, pairs, error]);
  }

  fill(s) {
    const { wanted, done, perMinute, endsAt } = s.backfill;
    const bar = node("progress", {
      max: Math.max(1, wanted),
      value: done,
      "aria-label": `Backfill of ${s.id}`,
    });
    const share = wanted ? `${Math.floor((done / wanted) * 100)} %` : "–";
    const words = !wanted
      ? "nothing is wanted yet"
      : done >= wanted
        ? `${count(done)} candles, done`
        : `${count(done)} of ${count(wanted)} candles, ${count(perMinute)} a minute, ${endsAt ? `done in about ${span(Math.max(0, endsAt - this.at))}` : "no estimate yet"}`;
    return node("div", { class: "fill" }, [
      node("b", {}, s.id),
      bar,
      node("span", {}, share),
      node("span", { class: "words" }, words),
    ]);
  }

  /** What happened in a second, between the last two readings. */
  rate(pick) {
    if (!this.before || this.at <= this.before.at) return "–";
    const a = ((pick(this.metrics) - pick(this.before.metrics)) * 1000) / (this.at - this.before.at);
    return `${a < 10 ? a.toFixed(1) : count(Math.round(a))} /s`;
  }

  figures() {
    const m = this.metrics,
      h = m.http;
    return [
      [
        "Quotes",
        [
          ["Held", count(m.cachedEntries)],
          ["Stale", count(m.quotes.stale)],
          ["Collected", count(m.quotes.collected)],
          ["Rate", this.rate((x) => x.quotes.collected)],
          ["Rejected", count(m.quotes.rejected)],
          ["Failovers", count(m.quotes.failovers)],
        ],
      ],
      [
        "Candles",
        [
          ["Stored", count(m.candlesStored)],
          ["Series stored", count(m.chartsStored)],
          ["In memory", count(m.charts.candles)],
          ["Memory", bytes(m.charts.bytes)],
          ["Slots without trade", count(m.charts.gaps)],
          ["Failed writes", count(m.charts.persistErrors)],
          [
            "History file",
            m.history.enabled ? (m.history.usable ? bytes(m.history.bytes) : "unusable") : "none",
          ],
        ],
      ],
      [
        "Requests",
        [
          ["Answered", count(h.requests)],
          ["Rate", this.rate((x) => x.http.requests)],
          ["2xx", count(h.status["2xx"])],
          ["Not modified", count(h.notModified)],
          ["4xx", count(h.status["4xx"])],
          ["5xx", count(h.status["5xx"])],
          ["Rejected", count(h.rejected)],
          ["Connections", count(h.connectionsOpen)],
          ["Sent", bytes(h.bytesOut)],
        ],
      ],
      [
        "Process",
        [
          ["Version", m.version],
          ["Up for", span(m.uptimeMs)],
          ["Memory", bytes(m.process.rssBytes)],
          ["Open files", count(m.process.openFds)],
          ["Longest stall", m.process.loopMaxStallMs === null ? "–" : `${m.process.loopMaxStallMs} ms`],
        ],
      ],
    ];
  }
}

function group(title, pairs) {
  return node("section", { class: "group" }, [node("h3", {}, title), pairsOf(pairs)]);
}

function pairsOf(pairs) {
  return node(
    "dl",
    {},
    pairs.map(([name, value]) => node("div", {}, [node("dt", {}, name), node("dd", {}, value)])),
  );
}

function node(name, attributes, children = []) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...(Array.isArray(children) ? children : [children]));
  return made;
}
