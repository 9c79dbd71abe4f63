// A row of the table: its cells, and how a quote fills them.

import { padZeros, writePrice } from "./digits.js";
import { make } from "./dom.js";
import { drawRange, drawSpark } from "./spark.js";
import { compact, direction, percent } from "./text.js";

/** How long changed digits stay marked. */
const MARK_MS = 500;
/** How often a small chart moves. */
const DRAW_MS = 5000;

export class Row {
	constructor(symbol) {
		this.symbol = symbol;
		this.tr = make("tr", { id: `row-${symbol.replace("/", "-")}`, "data-symbol": symbol });
		const cell = (kind, name = "td", attributes = {}) => {
			const made = make(name, { class: kind, ...attributes });
			this.tr.append(made);
			return made;
		};
		const market = cell("market", "th", { scope: "row" });
		const spark = cell("spark");
		this.last = cell("last");
		this.change = cell("change");
		this.bid = cell("wide2");
		this.ask = cell("wide2");
		this.volume = cell("wide1");
		this.source = cell("wide3 source");
		const [base, quote] = symbol.split("/");
		this.star = make("button", { class: "star", tabindex: -1 });
		this.link = make("a", { tabindex: -1 }, base, make("span", {}, `/${quote}`));
		this.canvas = make("canvas");
		market.append(this.star, this.link);
		spark.append(this.canvas);
	}

	/** Writes a quote. `width` is the width of a small chart. */
	fill(quote, { href, rates, points, width, colors, isStarred }) {
		this.filled = true;
		if (this.link.getAttribute("href") !== href) this.link.href = href;
		this.favourite(isStarred);
		this.price(quote);
		const kind = direction(quote.percentage);
		const change = quote.last === null ? "no quote" : quote.stale ? "stale" : percent(quote.percentage);
		put(this.change, change, quote.percentage);
		this.change.className = `change ${quote.stale ? "" : kind}`;
		for (const name of ["bid", "ask"]) {
			put(this[name], quote[name] ?? "");
			padZeros(this[name], quote, quote[name]);
		}
		this.turnover(quote, rates);
		put(this.source, quote.source);
		this.tr.classList.toggle("stale", quote.stale);
		this.tr.title = quote.stale ? "Stale: its source has not confirmed this quote in time" : "";
		this.draw(quote, points, width, colors[kind || "quiet"], colors.faint);
	}

	favourite(is) {
		if (this.isStarred === is) return;
		this.isStarred = is;
		this.star.textContent = is ? "★" : "☆";
		this.star.ariaPressed = is;
		this.star.ariaLabel = `${this.symbol} is a favourite`;
	}

	/** Writes the price as marketd sent it, and marks the changed digits for a moment. */
	price(quote) {
		const { last } = quote;
		const before = this.shown;
		if (before === last) return;
		this.shown = last;
		this.last.title = last ?? "No quote yet";
		clearTimeout(this.calm);
		if (last === null) return put(this.last, "–");
		writePrice(this.last, quote, before);
		this.calm = setTimeout(() => (this.last.lastChild.className = ""), MARK_MS);
	}

	/** Writes the turnover in the common unit, or in its own asset if there is no rate. */
	turnover(quote, rates) {
		const { unit } = rates,
			own = quote.quoteVolume && `${quote.quoteVolume} ${quote.quote}`;
		const worth = quote.quote === unit ? null : rates.turnover(quote);
		if (worth !== null && worth < 1e20)
			return put(this.volume, compact(worth.toFixed(2)), `${own}, about ${worth.toPrecision(3)} ${unit}`);
		const text = compact(quote.quoteVolume);
		put(this.volume, text && quote.quote !== unit ? `${text} ${quote.quote}` : text, own);
	}

	/** Draws the small chart, if it would look different. */
	draw(quote, points, width, color, ground) {
		const { low, high, open, last } = quote;
		const look = [points?.length, points?.at(-1), color, low, high, open, last].join();
		const kind = [points?.length, color].join(),
			now = performance.now();
		const isSoon = this.look && kind === this.kind && now - this.drawnAt < DRAW_MS;
		if (look === this.look || isSoon || !width) return;
		Object.assign(this, { look, kind, drawnAt: now });
		if (points?.length > 1) drawSpark(this.canvas, width, points, color);
		else drawRange(this.canvas, width, quote, color, ground);
	}
}

function put(cell, text, title) {
	if (cell.textContent !== text) cell.textContent = text;
	if (title !== undefined && cell.title !== (title ?? "")) cell.title = title ?? "";
}
