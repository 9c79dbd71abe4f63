// Draws a chart's slots on a canvas. Input and loading are elsewhere.

import { ticks } from "./axis.js";
import { drawAverages, drawExtremes, drawLine } from "./overlay.js";
import { INTERVALS, timeOf } from "./slots.js";
import { date } from "./time.js";

const TIME_AXIS = 24;
const VOLUME_SHARE = 0.16;
const TICK_Y = 46;
/** The distance from the newest price and its countdown to a label. */
const LABEL = 24;
const MOST_LABELS = 60;

/** Free space above and below the candles, as a share of their total height. */
const AIR = 0.1;

const COLORS = "ground ink quiet faint grid up down warn accent hatch on-accent".split(" ");

/** The colours of the style sheet, by name, as they are now in light or dark. */
export function palette(element) {
	const style = getComputedStyle(element);
	const colors = {};
	for (const name of COLORS) {
		element.style.color = `var(--${name})`;
		colors[name] = style.color;
	}
	element.style.color = "";
	return colors;
}

/**
 * Where things are: slots to x, prices to y. `view` has the slot `right` at the right edge, the pixels of
 * a slot (`step`), and of the prices: their `range`, whether they are `log`, and the factor `stretch`.
 */
export class Geometry {
	constructor(width, height, axis, { right, step, range, log, stretch, top }) {
		this.plot = { width: Math.max(40, width - axis), height: Math.max(40, height - TIME_AXIS) };
		this.right = right;
		this.step = step;
		this.top = top;
		this.room = this.plot.height * (1 - VOLUME_SHARE) - top - 8;
		this.log = log && range?.low > 0;
		if (!range) return;
		const low = this.measure(range.low),
			high = this.measure(range.high);
		const air = (high - low || Math.abs(low) * 0.001 || 1) * AIR;
		const half = ((high - low + air) / 2) * stretch;
		this.base = (low + high) / 2 - half;
		this.scale = this.room / (2 * half);
	}
	/** The value that is linear on the price axis: the price, or its logarithm. */
	measure(price) {
		return this.log ? Math.log(price) : price;
	}
	x(slot) {
		return this.plot.width - (this.right - slot) * this.step;
	}
	slot(x) {
		return Math.round(this.right - (this.plot.width - x) / this.step);
	}
	y(price) {
		return this.top + this.room - (this.measure(price) - this.base) * this.scale;
	}
	price(y) {
		const at = this.base + (this.top + this.room - y) / this.scale;
		return this.log ? Math.exp(at) : at;
	}
	get first() {
		return Math.floor(this.right - this.plot.width / this.step);
	}
	get last() {
		return Math.ceil(this.right);
	}
	/** Pixels of a candle's body: odd, so that the wick is in its middle. */
	get body() {
		const width = Math.max(1, Math.floor(this.step * 0.72));
		return width > 2 && width % 2 === 0 ? width - 1 : width;
	}
}

/** Lowest and highest price and the largest volume of the visible candles; null without any. */
export function extent(series, first, last) {
	let lowest = null,
		highest = null,
		volume = 0;
	for (let slot = first; slot <= last; slot++) {
		const candle = series.candles.get(slot);
		if (!candle) continue;
		if (!lowest || candle.low < lowest.low) lowest = candle;
		if (!highest || candle.high > highest.high) highest = candle;
		volume = Math.max(volume, candle.volume);
	}
	return lowest && { low: lowest.low, high: highest.high, lowest, highest, volume };
}

/** Draws a `view`: the context, the series, the geometry, the colours, and the choices. */
export function draw(view) {
	const { context, geometry, colors, range } = view;
	const { width, height } = geometry.plot;
	context.fillStyle = colors.ground;
	context.fillRect(0, 0, view.width, view.height);
	context.font = view.font;
	context.lineWidth = 1;
	timeAxis(view);
	if (range) priceAxis(view);
	ranges(view);
	if (range) prices(view);
	line(context, colors.grid, width + 0.5, 0, width + 0.5, height);
	line(context, colors.grid, 0, height + 0.5, view.width, height + 0.5);
	if (range) lastPrice(view);
	if (view.cross) crosshair(view);
}

function line(context, color, x1, y1, x2, y2) {
	context.strokeStyle = color;
	context.beginPath();
	context.moveTo(x1, y1);
	context.lineTo(x2, y2);
	context.stroke();
}

/** Hatches unknown slots, and marks slots in which nobody traded. */
function ranges(view) {
	const { context, series, geometry, colors } = view;
	let start = null,
		kind = null;
	const flush = (end) => {
		if (start === null) return;
		const left = Math.max(0, geometry.x(start) - geometry.step / 2);
		const right = Math.min(geometry.plot.width, geometry.x(end) - geometry.step / 2);
		if (kind === "empty") {
			context.fillStyle = colors.faint;
			context.fillRect(left, geometry.plot.height - 3, right - left, 2);
		} else hatch(view, left, right, kind);
		start = null;
	};
	for (let slot = geometry.first; slot <= geometry.last + 1; slot++) {
		let now = series.kind(slot);
		if (now === "before") now = series.oldest !== null && !series.mayHaveOlder ? "unknown" : "loading";
		const marked = now === "empty" || now === "unknown" || (now === "loading" && series.oldest !== null);
		if (start !== null && (now !== kind || !marked)) flush(slot);
		if (marked && start === null && slot <= geometry.last) {
			start = slot;
			kind = now;
		}
	}
	flush(geometry.last + 1);
}

/** Draws only in this part of the plot, until `restore()`. */
function clip(context, left, width, height) {
	context.save();
	context.beginPath();
	context.rect(left, 0, width, height);
	context.clip();
}

function hatch({ context, geometry, colors }, left, right, kind) {
	const { height } = geometry.plot;
	if (right - left < 1) return;
	clip(context, left, right - left, height);
	if (kind === "unknown") {
		context.strokeStyle = colors.hatch;
		context.beginPath();
		for (let x = left - height - ((left - height) % 8); x < right; x += 8) {
			context.moveTo(x, height);
			context.lineTo(x + height, 0);
		}
		context.stroke();
	}
	const words = kind === "unknown" ? "not known" : "loading";
	const width = context.measureText(words).width;
	if (right - left > width + 16) {
		const middle = (left + right - width) / 2;
		context.fillStyle = colors.ground;
		context.fillRect(middle - 6, height / 2 - 11, width + 12, 20);
		context.fillStyle = colors.quiet;
		context.textAlign = "left";
		context.fillText(words, middle, height / 2 + 3);
	}
	context.restore();
}

function prices(view) {
	const { context, series, geometry, colors } = view;
	clip(context, 0, geometry.plot.width, geometry.plot.height);
	candles(view);
	if (view.isLine) drawLine(context, series, geometry, colors.accent);
	if (view.hasAverages) drawAverages(context, series, geometry, colors);
	drawExtremes(context, view.range, geometry, colors.quiet);
	context.restore();
}

/** Draws the candles, or only their volumes if a line shows their prices. */
function candles({ context, series, geometry, colors, range, isLine }) {
	const body = geometry.body;
	const depth = geometry.plot.height * VOLUME_SHARE;
	for (let slot = geometry.first; slot <= geometry.last + 1; slot++) {
		const candle = series.candles.get(slot);
		if (!candle) continue;
		const x = Math.round(geometry.x(slot) - 0.5);
		const left = x - (body - 1) / 2;
		const color = candle.close < candle.open ? colors.down : colors.up;
		context.fillStyle = color;
		if (range.volume > 0 && candle.volume > 0) {
			const tall = Math.max(1, (candle.volume / range.volume) * depth);
			context.globalAlpha = 0.28;
			context.fillRect(Math.floor(left), geometry.plot.height - tall, body, tall);
			context.globalAlpha = 1;
		}
		if (isLine) continue;
		const top = Math.round(geometry.y(candle.high)),
			bottom = Math.round(geometry.y(candle.low));
		context.fillRect(x, top, 1, Math.max(1, bottom - top));
		if (body < 2) continue;
		const open = Math.round(geometry.y(candle.open)),
			close = Math.round(geometry.y(candle.close));
		context.fillRect(Math.floor(left), Math.min(open, close), body, Math.max(1, Math.abs(open - close)));
	}
}

/** A step of at least `least`: 1, 2 or 5 times a power of ten; and its decimal places. */
function niceStep(least) {
	const power = 10 ** Math.floor(Math.log10(least));
	const step = [1, 2, 5, 10].map((n) => n * power).find((s) => s >= least);
	return { step, places: Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) };
}

/** The step of the price axis at a height: the difference of two labels there. */
const stepAt = (geometry, y) => niceStep(geometry.price(y - TICK_Y) - geometry.price(y));

function priceAxis({ context, series, geometry, colors }) {
	const newest = series.candles.get(series.newest);
	const taken = newest ? geometry.y(newest.close) + 9 : -Infinity;
	context.textAlign = "left";
	for (let at = geometry.top + geometry.room + 8, n = 0; at > 6 && n < MOST_LABELS; n++) {
		const { step, places } = stepAt(geometry, at);
		const price = Math.ceil(geometry.price(at) / step) * step;
		const y = Math.round(geometry.y(price)) + 0.5;
		// The next label is a step further; on a logarithmic axis the steps grow.
		at = geometry.y(price + step * 0.5);
		if (y < 6) break;
		line(context, colors.grid, 0, y, geometry.plot.width, y);
		if (Math.abs(y - taken) < LABEL) continue;
		context.fillStyle = colors.quiet;
		context.fillText(price.toFixed(places), geometry.plot.width + 8, y + 4);
	}
}

function timeAxis({ context, series, geometry, colors }) {
	const { first, last, step } = geometry;
	context.textAlign = "center";
	for (const { slot, label, strong } of ticks(series.interval, first, last, step)) {
		const x = Math.round(geometry.x(slot)) + 0.5;
		line(context, colors.grid, x, 0, x, geometry.plot.height);
		context.fillStyle = strong ? colors.ink : colors.quiet;
		if (x < geometry.plot.width - 16 && x > 16) context.fillText(label, x, geometry.plot.height + 16);
	}
}

/** Draws a label on the price axis. Its text is as marketd sent it. */
function tag({ context, geometry: { plot }, width }, y, text, back, ink) {
	const middle = Math.max(10, Math.min(plot.height - 10, y));
	context.fillStyle = back;
	context.fillRect(plot.width + 1, middle - 9, width - plot.width - 1, 18);
	context.fillStyle = ink;
	context.textAlign = "left";
	context.fillText(text, plot.width + 8, middle + 4);
}

function lastPrice(view) {
	const { context, series, geometry, colors } = view;
	const candle = series.newest === null ? null : series.candles.get(series.newest);
	if (!candle) return;
	const color = candle.close < candle.open ? colors.down : colors.up;
	const y = Math.round(geometry.y(candle.close)) + 0.5;
	if (y > 0 && y < geometry.plot.height) {
		context.setLineDash([1, 3]);
		line(context, color, 0, y, geometry.plot.width, y);
		context.setLineDash([]);
	}
	tag(view, y, candle.text[3], color, colors["on-accent"]);
}

function crosshair(view) {
	const { context, geometry, cross, colors } = view;
	const { width, height } = geometry.plot;
	const x = Math.round(geometry.x(cross.slot) - 0.5) + 0.5,
		y = Math.round(cross.y) + 0.5;
	const hasPrice = cross.y !== null && cross.y < height;
	context.setLineDash([3, 3]);
	line(context, colors.quiet, x, 0, x, height);
	if (hasPrice) line(context, colors.quiet, 0, y, width, y);
	context.setLineDash([]);
	timeTag(view, x);
	if (hasPrice && view.range) {
		const { places } = stepAt(geometry, cross.y);
		tag(view, cross.y, geometry.price(cross.y).toFixed(places + 1), colors.ink, colors.ground);
	}
}

/** Writes the time under the crosshair on the time axis. */
function timeTag({ context, series, geometry: { plot }, colors, cross }, x) {
	const { interval } = series;
	const text = date(timeOf(interval, cross.slot), INTERVALS[interval] < INTERVALS["1d"]);
	const width = context.measureText(text).width + 14;
	const left = Math.max(0, Math.min(plot.width - width, x - width / 2));
	context.fillStyle = colors.ink;
	context.fillRect(left, plot.height + 2, width, 19);
	context.fillStyle = colors.ground;
	context.textAlign = "left";
	context.fillText(text, left + 7, plot.height + 16);
}
