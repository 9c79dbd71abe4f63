// The page: puts the parts together, and handles the address, the connection's state and the keys.

import { get } from "./api.js";
import { choices, choose, follow } from "./choices.js";
import { Feed } from "./feed.js";
import { keep, kept } from "./keep.js";
import { chartLink, readLink, tableLink } from "./links.js";
import { Panel } from "./panel.js";
import { Service } from "./service.js";
import { Table } from "./table.js";
import { count } from "./text.js";
import { clock, useLocal, zoneName } from "./time.js";
import { Tools } from "./tools.js";
import { countBy, Views } from "./views.js";

const WIDE = matchMedia("(min-width: 900px)");
const FIRST_INTERVAL = "1h";
/** Arrow keys open a market only after this time. */
const REST_MS = 220;

const by = (id) => document.getElementById(id);
const elements = (ids) => Object.fromEntries(ids.split(" ").map((id) => [id, by(id)]));

let interval = FIRST_INTERVAL;
let health = null;
let lostAt = null;
let resting = null;
let ticking = null;
let expected = false;
let listed = "";
let said = "";

const views = new Views(by("views"), chosen, () => table.filter());
export const table = new Table(
	{ scroller: by("scroller"), table: by("quotes"), empty: by("empty"), count: by("count") },
	views,
	{
		open,
		interval: () => interval,
		sort: (sort) => chosen({ sort }),
		show: (symbols) => feed.show(symbols),
	},
);
export const panel = new Panel(
	elements("title last change mark facts intervals canvas values newest closes say known"),
	go,
	(chart) => feed.follow(chart),
);
export const tools = new Tools(elements("panel ranges day csv full"), panel, chosen);
export const service = new Service(elements("health sources backfill figures cluster asof"), answers);

export const feed = new Feed({
	list(quotes) {
		panel.time(Math.max(...quotes.map((quote) => quote.receivedAt)));
		table.takeAll(quotes);
		if (panel.symbol) panel.quote(table.quotes.get(panel.symbol));
		chooseFirst();
		views.load();
		loadCategories();
		stateSoon();
	},
	quote(quote) {
		panel.time(quote.receivedAt);
		table.take(quote);
		panel.quote(quote);
		if (!panel.symbol) chooseFirst();
		stateSoon();
	},
	gone({ symbol, interval, code }) {
		const isExpected = table.quotes.get(symbol)?.last === null && code !== "symbol_not_found";
		if (interval || isExpected) return;
		table.remove(symbol);
		panel.gone(symbol);
		stateSoon();
	},
	status(status) {
		health = status;
		service.health(status);
		stateSoon();
	},
	candle: (event) => panel.candle(event),
	resumed: () => panel.resumed(),
	state: connection,
});

// ---- The address: `#/BTC-USDT/1h`, `#service`, or nothing for the table. ----

function go(symbol, interval, replace = false) {
	const hash = chartLink(symbol, interval);
	if (replace) {
		history.replaceState(null, "", hash);
		route();
	} else if (location.hash !== hash) location.hash = hash;
}

function route() {
	const { view, name, joined, interval: linked, chosen: asked } = readLink(location.hash);
	if (linked && linked !== interval) {
		interval = linked;
		table.redraw();
	}
	if (asked !== undefined) {
		follow(asked);
		apply();
	}
	if (joined) return part(name);
	// A wide page keeps the chart that it had.
	if (view === "markets" && WIDE.matches && panel.shown) return go(panel.shown, interval, true);
	document.body.dataset.view = view;
	by("service-view").hidden = view !== "service";
	by("markets").hidden = view === "service";
	by("panel").hidden = view !== "chart";
	for (const link of document.querySelectorAll("nav a"))
		link.ariaCurrent = (link.dataset.view === "service") === (view === "service") ? "page" : null;
	service.show(view === "service");
	if (view === "chart") show(name);
	else if (view === "service" || !WIDE.matches) panel.close();
	else chooseFirst();
	sayTitle();
	address();
}

function address() {
	const { view } = document.body.dataset;
	if (view === "service") return;
	const hash = view === "chart" && panel.symbol ? chartLink(panel.symbol, interval) : tableLink();
	if (location.hash !== hash && (location.hash || hash !== "#/")) history.replaceState(null, "", hash);
}

/** A person has chosen something. */
function chosen(values) {
	choose(values);
	apply();
	address();
}

function apply() {
	useLocal(choices.zone === "local");
	if (by("search").value !== choices.search) by("search").value = choices.search;
	const list = [choices.show, choices.search, choices.sort].join();
	if (list !== listed) table.filter();
	listed = list;
	table.redraw();
	views.update();
	tools.update();
	panel.chart.changed();
}

/** A name like ETHUSDT: marketd is asked which market it is, if any. */
async function part(name) {
	const { hash } = location;
	const known = [...table.quotes.values()].find(({ base, quote }) => base + quote === name);
	const asked = () =>
		get(`api/v1/quotes/${name}`).then(
			({ body }) => body,
			() => null,
		);
	const symbol = (known ?? (await asked()))?.symbol;
	if (hash !== location.hash) return;
	if (symbol) return go(symbol, interval, true);
	choose({ search: name });
	apply();
	history.replaceState(null, "", tableLink());
	route();
}

function show(symbol) {
	table.choose(symbol);
	panel.show(symbol, interval);
	panel.quote(table.quotes.get(symbol));
}

/** A wide page shows the chart of the first market of the table. */
function chooseFirst() {
	if (!WIDE.matches || document.body.dataset.view !== "markets" || panel.symbol || chooseFirst.waiting)
		return;
	chooseFirst.waiting = setTimeout(() => {
		chooseFirst.waiting = null;
		if (document.body.dataset.view === "markets" && !panel.symbol && table.order.length)
			go(table.order[0], interval, true);
	}, 50);
}

/** Shows a market's chart for the table. */
function open(symbol, how) {
	clearTimeout(resting);
	clearTimeout(chooseFirst.waiting);
	chooseFirst.waiting = null;
	if (how !== "move") return go(symbol, interval);
	if (WIDE.matches) resting = setTimeout(() => go(symbol, interval, true), REST_MS);
}

// ---- The connection. ----

function connection(state, retryAt) {
	if (state === "live") {
		if (lostAt !== null) expected = false;
		lostAt = null;
	} else if (state === "lost") lostAt = feed.heard ?? lostAt ?? Date.now();
	// What was shown before a rest stays grey until it is live.
	if (state !== "connecting") document.body.classList.toggle("lost", state !== "live");
	service.connection(state, lostAt);
	by("notice").hidden = state !== "lost";
	if (state === "lost") {
		const words = retryAt
			? `trying again in ${Math.max(1, Math.round((retryAt - Date.now()) / 1000))} s`
			: "trying again";
		by("notice-text").textContent = table.quotes.size
			? `The connection was lost at ${clock(lostAt)} ${zoneName()}. Everything below is from then; ${words}.`
			: `marketd does not respond; ${words}.`;
	}
	stateSoon();
}

/** Reads the categories, and the markets without a quote. */
async function loadCategories() {
	if (expected) return;
	expected = true;
	try {
		const { body } = await get("api/v1/categories");
		const counts = countBy(table.quotes.values(), "quote");
		views.know(body.categories, table.quotes.values());
		for (const { id, name, marketCount } of body.categories) {
			if (id !== name.toLowerCase() || marketCount === (counts.get(name) ?? 0)) continue;
			const { body } = await get(`api/v1/categories/${id}/markets`);
			for (const market of body.markets) if (market.active && market.last === null) table.expect(market);
		}
	} catch {
		expected = false;
	}
}

by("retry").addEventListener("click", () => feed.retry());

/** Writes the line of the state, at most four times a second. */
function stateSoon() {
	ticking ??= setTimeout(sayState, table.quotes.size ? 250 : 0);
}

/** Writes the title: with the price, while it is current. */
function sayTitle() {
	const { last, stale } = table.quotes.get(panel.symbol) ?? {};
	const price = feed.state === "live" && last && !stale ? `${last} ` : "";
	document.title = price + (panel.symbol ?? "marketd");
}

function sayState() {
	ticking = null;
	sayTitle();
	const stale = [...table.quotes.values()].reduce((n, quote) => n + (quote.stale ? 1 : 0), 0);
	const troubled = health && health.status !== "ok";
	const words =
		{ connecting: "connecting", lost: "no connection", paused: "resting" }[feed.state] ??
		[troubled ? trouble() : "live", stale ? `${count(stale)} stale` : ""].filter(Boolean).join(" · ");
	const state = feed.state === "live" && (troubled || stale) ? "degraded" : feed.state;
	const title = troubled ? health.reasons.map((reason) => reason.message).join("\n") : "";
	if (said === (said = state + title + words)) return;
	Object.assign(by("state"), { title }).dataset.state = state;
	by("state-text").textContent = words;
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

/** How many markets each source serves. */
function answers() {
	return countBy(table.quotes.values(), "source");
}

// ---- Search. ----

by("search").addEventListener("input", () => chosen({ search: by("search").value.trim() }));
by("search").addEventListener("keydown", (event) => {
	if (event.key === "Escape") chosen({ search: "" });
	else if (event.key === "Enter" && table.order.length) open(table.order[0], "enter");
	else if (event.key === "ArrowDown") event.preventDefault();
	else return;
	by("quotes").focus();
});

// ---- Colours and keys. ----

const SIGNS = { system: "◐", light: "○", dark: "●" };
const THEMES = Object.keys(SIGNS);
let theme = Object.hasOwn(SIGNS, kept("colours")) ? kept("colours") : "system";

function paintTheme() {
	if (theme === "system") delete document.documentElement.dataset.theme;
	else document.documentElement.dataset.theme = theme;
	by("theme").textContent = SIGNS[theme];
	by("theme").ariaLabel = `Colours: ${theme}`;
	recolor();
}

function recolor() {
	table.redraw();
	panel.chart.recolor();
}

by("theme").addEventListener("click", () => {
	theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
	keep("colours", theme);
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
apply();
route();
