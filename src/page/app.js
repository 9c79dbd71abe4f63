// The page: it puts the parts together, keeps the address, the connection's state and the keys.

import { address, get } from "./api.js";
import { Feed } from "./feed.js";
import { Panel } from "./panel.js";
import { Service } from "./service.js";
import { INTERVALS } from "./slots.js";
import { Table } from "./table.js";
import { clock, count } from "./text.js";

const WIDE = matchMedia("(min-width: 900px)");
const FIRST_INTERVAL = "1h";
/** A market that the arrow keys only pass is not opened. */
const REST_MS = 220;

const by = (id) => document.getElementById(id);

export const table = new Table(
  { scroller: by("scroller"), table: by("quotes"), empty: by("empty"), count: by("count") },
  open,
);
export const panel = new Panel(
  Object.fromEntries(
    [
      "title",
      "last",
      "change",
      "mark",
      "facts",
      "intervals",
      "canvas",
      "values",
      "newest",
      "say",
      "known",
    ].map((id) => [id, by(id)]),
  ),
  go,
);
export const service = new Service(
  Object.fromEntries(["health", "sources", "backfill", "figures", "asof"].map((id) => [id, by(id)])),
  answers,
);

let interval = FIRST_INTERVAL;
let health = null;
let lostAt = null;
let resting = null;
let ticking = null;

export const feed = new Feed(address("api/v1/stream", { symbols: "*", decimals: "string" }), {
  quote(quote) {
    table.take(quote);
    panel.quote(quote);
    if (quote.symbol === panel.symbol) document.title = `${quote.last} ${quote.symbol}`;
    if (!panel.symbol) chooseFirst();
    stateSoon();
  },
  gone({ symbol }) {
    table.remove(symbol);
    panel.gone(symbol);
    stateSoon();
  },
  status(status) {
    health = status;
    service.health(status);
    stateSoon();
  },
  state: connection,
});

// ---- The address: `#/BTC-USDT/1h`, `#service`, or nothing for the table. ----

function go(symbol, chosen = interval, replace = false) {
  const hash = `#/${symbol.replace("/", "-")}/${chosen}`;
  if (replace) {
    history.replaceState(null, "", hash);
    route();
  } else if (location.hash !== hash) location.hash = hash;
}

function route() {
  const [, name, chosen] = location.hash.match(/^#\/([A-Z0-9]+-[A-Z0-9]+)(?:\/(\w+))?$/) ?? [];
  const view = location.hash === "#service" ? "service" : name ? "chart" : "markets";
  if (chosen && Object.hasOwn(INTERVALS, chosen)) interval = chosen;
  // A wide page keeps the chart that it had.
  if (view === "markets" && WIDE.matches && panel.shown) return go(panel.shown, interval, true);
  document.body.dataset.view = view;
  by("service").hidden = view !== "service";
  by("markets").hidden = view === "service";
  by("panel").hidden = view !== "chart";
  for (const link of document.querySelectorAll("nav a")) {
    const is = (link.dataset.view === "service") === (view === "service");
    if (is) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  service.show(view === "service");
  if (view === "chart") show(name.replace("-", "/"));
  else if (view === "service" || !WIDE.matches) panel.close();
  else chooseFirst();
  document.title = view === "chart" ? name.replace("-", "/") : "marketd";
}

function show(symbol) {
  table.choose(symbol);
  panel.show(symbol, interval);
  panel.quote(table.quotes.get(symbol));
}

/** A wide page has room for a chart: it shows the first market of the table. */
function chooseFirst() {
  if (!WIDE.matches || document.body.dataset.view !== "markets" || panel.symbol || chooseFirst.waiting)
    return;
  chooseFirst.waiting = setTimeout(() => {
    chooseFirst.waiting = null;
    if (document.body.dataset.view === "markets" && !panel.symbol && table.order.length)
      go(table.order[0], interval, true);
  }, 50);
}

/** The table asks for a market's chart. */
function open(symbol, how) {
  clearTimeout(resting);
  clearTimeout(chooseFirst.waiting);
  chooseFirst.waiting = null;
  if (how !== "move") return go(symbol);
  if (WIDE.matches) resting = setTimeout(() => go(symbol, interval, true), REST_MS);
}

// ---- The connection. ----

function connection(state, retryAt) {
  if (state === "live") {
    if (lostAt !== null) resync();
    lostAt = null;
  } else if (state === "lost") lostAt ??= Date.now();
  document.body.classList.toggle("lost", state === "lost");
  by("notice").hidden = state !== "lost";
  if (state === "lost") {
    const words = retryAt
      ? `trying again in ${Math.max(1, Math.round((retryAt - Date.now()) / 1000))} s`
      : "trying again";
    by("notice-text").textContent = table.quotes.size
      ? `The connection was lost at ${clock(lostAt)} UTC. Everything below is from then; ${words}.`
      : `marketd does not respond; ${words}.`;
  }
  stateSoon();
}

/** After a loss markets may be gone: the whole list is read once. */
async function resync() {
  try {
    const { body } = await get("api/v1/quotes", { symbols: "*", decimals: "string" });
    table.retain(new Set(body.quotes.map((quote) => quote.symbol)));
    for (const quote of body.quotes) {
      const held = table.quotes.get(quote.symbol);
      if (!held || held.receivedAt <= quote.receivedAt) {
        table.take(quote);
        panel.quote(quote);
      }
    }
  } catch {
    /* The stream has sent what it has, and the next loss comes here again. */
  }
}

by("retry").addEventListener("click", () => feed.open());

/** The state's line, at most four times a second. */
function stateSoon() {
  ticking ??= setTimeout(
    () => {
      ticking = null;
      sayState();
    },
    table.quotes.size ? 250 : 0,
  );
}

function sayState() {
  const lost = feed.state === "lost";
  const stale = [...table.quotes.values()].reduce((n, quote) => n + (quote.stale ? 1 : 0), 0);
  const troubled = health && health.status !== "ok";
  const words =
    { connecting: "connecting", lost: "no connection", paused: "resting" }[feed.state] ??
    [troubled ? trouble() : "live", stale ? `${count(stale)} stale` : ""].filter(Boolean).join(" · ");
  by("state").dataset.state = lost
    ? "lost"
    : feed.state !== "live"
      ? feed.state
      : troubled || stale
        ? "degraded"
        : "live";
  by("state").title = troubled ? health.reasons.map((reason) => reason.message).join("\n") : "";
  if (by("state-text").textContent !== words) by("state-text").textContent = words;
}

/** The reasons of `/health` in a few words: "binance down". */
function trouble() {
  const words = health.reasons
    .slice(0, 2)
    .map(({ source, code }) =>
      source ? `${source} ${code.replace("source_", "")}` : code.replaceAll("_", " "),
    );
  if (health.reasons.length > 2) words.push(`${health.reasons.length - 2} more`);
  return words.join(", ") || health.status;
}

/** Markets by the source that answers for them. */
function answers() {
  const counts = new Map();
  for (const quote of table.quotes.values()) counts.set(quote.source, (counts.get(quote.source) ?? 0) + 1);
  return counts;
}

// ---- Search and categories. ----

let only = null;
by("search").addEventListener("input", () => table.filter(by("search").value, only));
by("search").addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    by("search").value = "";
    table.filter("", only);
    by("scroller").focus();
  } else if (event.key === "Enter" && table.order.length) {
    open(table.order[0], "enter");
    by("scroller").focus();
  } else if (event.key === "ArrowDown") {
    event.preventDefault();
    by("scroller").focus();
  }
});

const category = by("category");
category.addEventListener("focus", loadCategories, { once: true });
category.addEventListener("pointerdown", loadCategories, { once: true });
category.addEventListener("change", async () => {
  const id = category.value;
  only = null;
  if (id) {
    try {
      const { body } = await get(`api/v1/categories/${id}/markets`);
      const symbols = new Set(body.markets.map((market) => market.symbol));
      only = (quote) => symbols.has(quote.symbol);
    } catch {
      category.value = "";
    }
  }
  if (category.value === id) table.filter(by("search").value, only);
});

async function loadCategories() {
  if (category.options.length > 1) return;
  try {
    const { body } = await get("api/v1/categories");
    if (category.options.length > 1) return;
    for (const { id, name, marketCount } of body.categories)
      category.add(new Option(`${name} (${marketCount})`, id));
  } catch {
    /* "All" is left. */
  }
}

// ---- Colours and keys. ----

const THEMES = ["system", "light", "dark"];
const stored = (() => {
  try {
    return localStorage.getItem("marketd-colours");
  } catch {
    return null;
  }
})();
let theme = THEMES.includes(stored) ? stored : "system";

function paintTheme() {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  by("theme").textContent = { system: "◐", light: "○", dark: "●" }[theme];
  by("theme").setAttribute("aria-label", `Colours: ${theme}`);
  recolor();
}

function recolor() {
  table.recolor();
  panel.chart.recolor();
}

by("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  try {
    localStorage.setItem("marketd-colours", theme);
  } catch {
    /* It holds until the page is closed. */
  }
  paintTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolor);

addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    if (by("markets").hidden || !by("markets").offsetParent) location.hash = "#/";
    requestAnimationFrame(() => {
      by("search").focus();
      by("search").select();
    });
  } else if (event.key === "Escape" && !typing && !WIDE.matches && document.body.dataset.view === "chart")
    location.hash = "#/";
});

WIDE.addEventListener("change", route);
addEventListener("hashchange", route);
paintTheme();
route();
table.reorder();
