// The table of quotes. Only the rows in view are in the document, so that thousands of markets
// cost no more than thirty.

import { choices } from "./choices.js";
import { inFrame } from "./dom.js";
import { palette } from "./draw.js";
import { chartLink } from "./links.js";
import { Rates } from "./rates.js";
import { Row } from "./row.js";
import { Sparks } from "./spark.js";

/** Extra rows above and below the view, for fast scrolling. */
const SPARE = 6;
/** How often the order may change: rows that jump all the time cannot be read. */
const SORT_MS = 2000;
/** The width of the price column in characters, at first and at most. */
const PRICE = { usual: 11, most: 16 };
/** The share of prices that must fit into the column: a few long ones do not widen it. */
const MOST_PRICES = 0.9;
/** How often the rates of conversion are updated. */
const RATES_MS = 10_000;
/** No reordering under a pointer that has just moved. */
const CALM_MS = 2500;

const TEXTS = new Set(["symbol", "source"]);

export class Table {
	/** Symbol to the newest quote, as marketd sent it. */
	quotes = new Map();
	order = [];
	rows = new Map();
	ratedAt = -Infinity;
	selected = null;
	movedAt = 0;
	dirty = new Set();

	/**
	 * `on.open(symbol, how)` shows a market's chart, `on.interval()` is the one that charts open with,
	 * `on.sort(sort)` sorts in another way, and `on.show(symbols)` says what is in view.
	 */
	constructor({ scroller, table, empty, count }, views, on) {
		Object.assign(this, { scroller, table, empty, count, views, on });
		this.body = table.tBodies[0];
		this.rates = new Rates();
		this.sparks = new Sparks((symbol) => this.mark(symbol));
		this.above = this.body.insertRow();
		this.below = this.body.insertRow();
		for (const spacer of [this.above, this.below]) {
			spacer.className = "spacer";
			spacer.ariaHidden = true;
		}
		this.listen();
	}

	take(quote) {
		const old = this.quotes.get(quote.symbol);
		this.quotes.set(quote.symbol, quote);
		if (quote.last !== null) this.sparks.quote(quote.symbol, Number(quote.last));
		if (!old) return this.reorderSoon();
		this.mark(quote.symbol);
		const { key } = this.sort;
		if (key !== "symbol" && old[key] !== quote[key]) this.resortSoon();
	}

	/** Takes the list of all quotes. Other markets are gone; quotes that the stream has sent since are newer. */
	takeAll(quotes) {
		const symbols = new Set(quotes.map((quote) => quote.symbol));
		for (const [symbol, { last }] of this.quotes)
			if (last !== null && !symbols.has(symbol)) this.remove(symbol);
		for (const quote of quotes)
			if (!(this.quotes.get(quote.symbol)?.receivedAt > quote.receivedAt)) this.take(quote);
	}

	/** Takes a market that has no quote yet. */
	expect({ symbol, base, quote, source }) {
		if (this.quotes.has(symbol)) return;
		const names = "last bid ask open high low change percentage baseVolume quoteVolume".split(" ");
		const unknown = Object.fromEntries(names.map((name) => [name, null]));
		this.take({ ...unknown, symbol, base, quote, source: source ?? "", receivedAt: 0, stale: false });
	}

	remove(symbol) {
		if (this.quotes.delete(symbol)) this.reorderSoon();
	}

	mark(symbol) {
		if (!this.rows.has(symbol)) return;
		this.dirty.add(symbol);
		this.paint();
	}

	paint = inFrame(() => {
		for (const symbol of this.dirty) this.fill(this.rows.get(symbol));
		this.dirty.clear();
	});

	reorderSoon = inFrame(() => this.reorder());

	layoutSoon = inFrame(() => this.layout());

	resortSoon() {
		this.resorting ??= setTimeout(() => {
			this.resorting = null;
			if (performance.now() - this.movedAt < CALM_MS) this.resortSoon();
			else this.reorder();
		}, SORT_MS);
	}

	/** The choices have changed: shows the rows that they choose, from the first. */
	filter() {
		this.scroller.scrollTop = 0;
		this.reorder();
	}

	/** The order that is chosen: `{ key, descending }`. */
	get sort() {
		const descending = choices.sort.startsWith("-");
		const key = choices.sort.slice(descending ? 1 : 0);
		return this.head(key) ? { key, descending } : { key: "quoteVolume", descending: true };
	}

	head(key) {
		return this.table.querySelector(`th[data-key="${CSS.escape(key)}"]`);
	}

	reorder() {
		const wanted = choices.search.toUpperCase().replace(/[-_/ ]/g, "");
		const chosen = [...this.quotes.values()].filter(
			(quote) => this.views.has(quote) && (quote.base + quote.quote).includes(wanted),
		);
		this.rate();
		const { key, descending } = this.sort;
		const value = this.value(key, descending ? -Infinity : Infinity);
		const keyed = chosen.map((q) => [value(q), q.symbol]);
		const sign = descending ? -1 : 1;
		keyed.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1] < b[1] ? -1 : 1));
		this.order = keyed.map(([, symbol]) => symbol);
		const { length } = this.order,
			{ size } = this.quotes;
		this.count.textContent = length === size ? size : `${length} of ${size}`;
		this.fit();
		this.empty.hidden = length > 0;
		const why = this.views.lacks ? "This list could not be loaded; trying again." : "No market matches.";
		this.empty.textContent = size ? why : "No quotes have come yet.";
		const way = descending ? "descending" : "ascending";
		for (const th of this.table.tHead.rows[0].cells) th.ariaSort = th.dataset.key === key ? way : null;
		this.layout();
	}

	/** The value by which a column is sorted; a market without a value comes last in both directions. */
	value(key, none) {
		if (TEXTS.has(key)) return (quote) => quote[key];
		if (key === "quoteVolume") return (quote) => this.rates.turnover(quote) ?? none;
		return (quote) => (quote[key] === null ? none : Number(quote[key]));
	}

	/** Computes the value of the quote assets now and then. */
	rate() {
		if (performance.now() - this.ratedAt < RATES_MS && this.rates.unit) return;
		this.ratedAt = performance.now();
		this.rates.update(this.quotes.values());
		this.table.querySelector("#unit").textContent = this.rates.unit ?? "";
		for (const symbol of this.rows.keys()) this.mark(symbol);
	}

	/** Sets the width of the price column so that most prices fit. */
	fit() {
		const lengths = this.order
			.map((symbol) => this.quotes.get(symbol).last?.length ?? 0)
			.sort((a, b) => a - b);
		const longest = lengths[Math.ceil(lengths.length * MOST_PRICES) - 1] ?? 0;
		const width = Math.min(longest, PRICE.most);
		this.styled = null;
		this.table.classList.toggle("long", longest > PRICE.usual);
		this.head("last").style.width = longest > PRICE.usual ? `${width + 2.5}ch` : "";
	}

	/** Reads the style of rows: their height, the width of small charts, and colours. */
	get style() {
		if (this.styled) return this.styled;
		const style = getComputedStyle(this.table);
		const px = (name) => parseFloat(style.getPropertyValue(name));
		this.styled = { row: px("--row"), spark: px("--spark"), colors: palette(this.above) };
		return this.styled;
	}

	/** Puts the rows in view into the document, and removes the others. */
	layout() {
		const { row: height } = this.style;
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
		}
		this.above.style.height = `${first * height}px`;
		this.below.style.height = `${(this.order.length - last) * height}px`;
		let next = this.above.nextSibling;
		shown.forEach((symbol, i) => {
			let row = this.rows.get(symbol);
			if (!row) {
				row = new Row(symbol);
				this.select(row);
				this.rows.set(symbol, row);
			}
			row.tr.ariaRowIndex = first + i + 2;
			row.tr.classList.toggle("odd", (first + i) % 2 === 1);
			if (row.tr === next) next = next.nextSibling;
			else this.body.insertBefore(row.tr, next);
		});
		for (const row of this.rows.values()) if (!row.filled) this.fill(row);
		this.table.ariaRowCount = this.order.length + 1;
		this.point();
		// Without rows, a stream of one market still shows whether marketd is there.
		this.sparks.show(shown);
		this.on.show(shown.length ? shown : [...this.quotes.keys()].slice(0, 1));
		if (shown.length && !this.measured) this.measured = performance.mark("first rows");
	}

	select(row) {
		row.tr.ariaSelected = row.symbol === this.selected;
	}

	fill(row) {
		const quote = row && this.quotes.get(row.symbol);
		if (!quote) return;
		const { spark: width, colors } = this.style;
		row.fill(quote, {
			href: chartLink(quote.symbol, this.on.interval()),
			rates: this.rates,
			points: this.sparks.points.get(row.symbol),
			width,
			colors,
			isStarred: this.views.favourites.has(row.symbol),
		});
	}

	/** Draws all rows again, after their size, their colours or their links have changed. */
	redraw() {
		this.styled = null;
		this.layout();
		for (const row of this.rows.values()) {
			row.look = null;
			this.fill(row);
		}
	}

	/** Makes a market a favourite, or no longer one. */
	star(symbol) {
		this.views.star(symbol);
		if (choices.show === "favourites") this.reorder();
		this.fill(this.rows.get(symbol));
	}

	/** Marks the market whose chart is open. */
	choose(symbol) {
		this.selected = symbol;
		for (const row of this.rows.values()) this.select(row);
		this.point();
	}

	/** Names the chosen row to a screen reader while it is in the document. */
	point() {
		const row = this.rows.get(this.selected);
		if (row) this.table.setAttribute("aria-activedescendant", row.tr.id);
		else this.table.removeAttribute("aria-activedescendant");
	}

	/** Moves the selection, and scrolls it into view. */
	move(by) {
		const at = this.order.indexOf(this.selected);
		const next = at < 0 ? 0 : Math.max(0, Math.min(this.order.length - 1, at + by));
		if (!this.order.length) return;
		this.choose(this.order[next]);
		const { scroller } = this,
			top = next * this.style.row;
		const bottom = top + this.style.row + this.table.tHead.offsetHeight;
		scroller.scrollTop = Math.max(Math.min(scroller.scrollTop, top), bottom - scroller.clientHeight);
		this.movedAt = performance.now();
		this.layout();
	}

	listen() {
		this.scroller.addEventListener("scroll", this.layoutSoon);
		this.scroller.addEventListener("pointermove", () => (this.movedAt = performance.now()));
		new ResizeObserver(() => this.redraw()).observe(this.scroller);
		this.table.tHead.addEventListener("click", (event) => {
			const key = event.target.closest("th")?.dataset.key;
			if (!key || !event.target.closest("button")) return;
			const { key: before, descending } = this.sort;
			this.on.sort((key === before ? !descending : !TEXTS.has(key)) ? `-${key}` : key);
		});
		this.body.addEventListener("click", (event) => this.click(event));
		this.body.addEventListener("auxclick", (event) => {
			if (event.button === 1) this.click(event);
		});
		this.table.addEventListener("keydown", (event) => this.key(event));
	}

	/** A row is a link: with Ctrl, Shift or the middle button it opens elsewhere. */
	click(event) {
		const symbol = event.target.closest("tr")?.dataset.symbol;
		if (!symbol) return;
		if (event.target.closest(".star")) return this.star(symbol);
		const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.button === 1;
		if (elsewhere && event.target.closest("a")) return;
		event.preventDefault();
		if (elsewhere) window.open(chartLink(symbol, this.on.interval()), "_blank", "noopener");
		else this.on.open(symbol, "click");
	}

	key(event) {
		if (event.target.closest("button") || event.ctrlKey || event.metaKey || event.altKey) return;
		const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.style.row) - 2);
		const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[
			event.key
		];
		if (by !== undefined) {
			this.move(by);
			this.on.open(this.selected, "move");
		} else if (event.key === "Enter" && this.selected) this.on.open(this.selected, "enter");
		else if (event.key === "*" && this.selected) this.star(this.selected);
		else return;
		event.preventDefault();
	}
}
