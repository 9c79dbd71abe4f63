// Small charts of the last day: one request gets the points for all rows in view, and then quotes move them.
// marketd answers from memory and sends no requests to the exchange. If marketd has no candles of a market,
// the row shows the day's range from its quote.

import { get } from "./api.js";

const HOUR = 3_600_000;
const hourOf = (ms) => Math.floor(ms / HOUR);
const POINTS = 24;
/** The size in CSS pixels, as in the style sheet. */
const HEIGHT = 20;
/** Most symbols in one request: `MAX_SYMBOLS` of marketd. */
const BATCH = 50;
/** Waits this long, so that rows that are only scrolled past are not requested. */
const REST_MS = 250;
/** The pause after a failed request, or one for a market without candles. */
const RETRY_MS = 4000;
const AGAIN_MS = 300_000;

export class Sparks {
	/** `changed(symbol)` is called when a symbol's points have arrived. */
	constructor(changed) {
		this.changed = changed;
		/** Symbol to `[slot, price]` pairs, oldest first, at least two. */
		this.points = new Map();
		/** Symbol to the time when it may be requested again. */
		this.due = new Map();
	}

	/** These symbols are in view: requests their missing points once the view rests. */
	show(symbols) {
		this.shown = symbols;
		clearTimeout(this.timer);
		this.timer = setTimeout(() => {
			const wanted = this.shown.filter((symbol) => !(performance.now() < this.due.get(symbol)));
			for (let i = 0; i < wanted.length; i += BATCH) this.ask(wanted.slice(i, i + BATCH));
		}, REST_MS);
	}

	/** Moves the newest point, or begins the next hour. */
	quote(symbol, price) {
		const slot = hourOf(Date.now());
		// The points end at a rest of the tab.
		if (slot > this.slot + 1) {
			this.points.clear();
			this.due.clear();
			this.show(this.shown);
		}
		this.slot = slot;
		const points = this.points.get(symbol);
		if (!points) return;
		const last = points.at(-1);
		if (last && last[0] === slot) last[1] = price;
		else points.push([slot, price]);
		while (points.length && points[0][0] <= slot - POINTS) points.shift();
	}

	async ask(symbols) {
		for (const symbol of symbols) this.due.set(symbol, Infinity);
		let wait = RETRY_MS;
		try {
			const { body } = await get("api/ecosystem/chart", {
				symbols: symbols.join(","),
				interval: "1h",
				limit: POINTS,
				fetch: "none",
			});
			symbols = symbols.filter((symbol) => !this.take(symbol, body[symbol]));
			wait = AGAIN_MS;
		} catch {
			// The table works without small charts, too.
		}
		const due = performance.now() + wait;
		for (const symbol of symbols) this.due.set(symbol, due);
		setTimeout(() => this.show(this.shown), wait);
	}

	/** Keeps the candles of the last day; true if nothing is missing. */
	take(symbol, chart) {
		const rows = chart?.candles;
		if (!Array.isArray(rows)) return false;
		const since = hourOf(Date.now()) - POINTS;
		const points = rows
			.map((row) => [hourOf(row[0]), Number(row[4])])
			.filter(([slot]) => slot > since);
		if (points.length > 1) this.points.set(symbol, points);
		this.changed(symbol);
		return chart.coverage === "complete" && points.length > 1;
	}
}

/** Clears a canvas, and returns its context, in CSS pixels. */
function blank(canvas, width, color) {
	const ratio = devicePixelRatio || 1;
	if (canvas.width !== Math.round(width * ratio)) {
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(HEIGHT * ratio);
	}
	const context = canvas.getContext("2d");
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, HEIGHT);
	context.strokeStyle = context.fillStyle = color;
	context.lineWidth = 1.25;
	context.lineJoin = "round";
	return context;
}

/** Draws the day's range: a line from low to high, thick from the opening price to the last. */
export function drawRange(canvas, width, { low, high, open, last }, color, ground) {
	const context = blank(canvas, width, ground);
	if (low === null || high === null || last === null || !(Number(high) > Number(low))) return;
	const middle = HEIGHT / 2;
	const x = (text) => {
		const share = (Number(text) - Number(low)) / (Number(high) - Number(low));
		return 2.5 + Math.max(0, Math.min(1, share)) * (width - 5);
	};
	context.fillRect(2.5, middle - 0.5, width - 5, 1);
	context.fillStyle = color;
	if (open !== null) {
		const [from, to] = [x(open), x(last)].sort((a, b) => a - b);
		context.fillRect(from, middle - 1.5, Math.max(1, to - from), 3);
	}
	context.beginPath();
	context.arc(x(last), middle, 2.5, 0, 7);
	context.fill();
}

/** Draws points by their time, so that an hour without a trade is a longer line and not a jump. */
export function drawSpark(canvas, width, points, color) {
	const context = blank(canvas, width, color);
	const prices = points.map(([, price]) => price);
	const low = Math.min(...prices),
		high = Math.max(...prices);
	const last = points.at(-1)[0];
	const x = (slot) => width - 2.5 - ((last - slot) / (POINTS - 1)) * (width - 5);
	const y = (price) => 3 + (high > low ? (high - price) / (high - low) : 0.5) * (HEIGHT - 6);
	context.beginPath();
	for (const [slot, price] of points) context.lineTo(x(slot), y(price));
	context.stroke();
	context.beginPath();
	context.arc(x(last), y(prices.at(-1)), 1.75, 0, 7);
	context.fill();
}
