// The chart for a person: it pans, zooms and points, loads the candles that come into view, and
// shows the values under the crosshair.

import { choices } from "./choices.js";
import { inFrame, make } from "./dom.js";
import { draw, extent, Geometry, palette } from "./draw.js";
import { INTERVALS, slotOf, timeOf } from "./slots.js";
import { compact, percent } from "./text.js";
import { date } from "./time.js";

const STEP = { least: 0.5, most: 48, first: 7 };
/** How much a pixel of a drag stretches the price axis. */
const STRETCH = 0.006;
const FONT = "11px ui-sans-serif, system-ui, 'Segoe UI', Roboto, Inter, sans-serif";
/** The largest share of the width for the price axis. */
const MOST_AXIS = 0.3;
/** Slots kept free after the newest. */
const AHEAD = 3;
const NAMES = ["O", "H", "L", "C", "V"];

export class Chart {
	series = null;
	step = STEP.first;
	right = 0;
	cross = null;
	pointers = new Map();
	/** How many slots the view shows, `Infinity` for all; null once a person has moved it. */
	span = null;
	/** How much more than the range of its candles the price axis has. */
	stretch = 1;

	/** `drawn(geometry)` is called after each drawing. */
	constructor(canvas, values, newest, drawn) {
		Object.assign(this, { canvas, values, newest, drawn });
		new ResizeObserver(() => this.resize()).observe(canvas);
		this.listen();
	}

	show(series) {
		this.series = series;
		this.cross = null;
		this.following = true;
		this.stretch = 1;
		this.right = this.end;
		this.changed();
	}

	/** The series has changed: new candles move a view that follows them. */
	changed() {
		if (!this.series) return;
		if (this.following) this.right = this.end;
		this.paint();
	}

	/** Fits the chosen slots into the width of the view. */
	fit() {
		if (this.span === null || this.series.newest === null) return;
		const width = this.now?.plot.width ?? this.width;
		const all = this.series.present - Math.min(...this.series.candles.keys()) + 1;
		this.step = this.bounded(width / (Math.min(this.span, all) + AHEAD + 1));
	}

	bounded(step) {
		return Math.max(STEP.least, Math.min(STEP.most, step));
	}

	/** Shows this many of the newest slots. */
	showSpan(slots) {
		this.span = slots;
		this.toNewest();
	}

	/** Shows a time, in the middle of the view. */
	goTo(ms) {
		const half = this.now.plot.width / this.step / 2;
		this.span = null;
		this.cross = null;
		this.right = Math.min(this.end, slotOf(this.series.interval, ms) + half);
		this.following = this.right === this.end;
		this.series.stuck = false;
		this.touched();
	}

	/** The slot at which a view that follows the market ends: now, even if nobody trades. */
	get end() {
		return this.series.present + AHEAD;
	}

	recolor() {
		this.colors = null;
		this.paint();
	}

	resize() {
		const ratio = devicePixelRatio || 1;
		const { clientWidth: width, clientHeight: height } = this.canvas;
		if (!width || !height) return;
		this.width = width;
		this.height = height;
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(height * ratio);
		this.context = this.canvas.getContext("2d");
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.render();
	}

	paint = inFrame(() => this.render());

	geometry() {
		this.context.font = FONT;
		const newest = this.series.candles.get(this.series.newest);
		const texts = newest ? newest.text.slice(0, 4) : ["00000"];
		const widest = Math.max(...texts.map((text) => this.context.measureText(text + "0").width));
		const axis = Math.min(Math.ceil(widest) + 18, this.width * MOST_AXIS);
		const seen = (this.width - axis) / this.step;
		this.range = extent(this.series, Math.ceil(this.right - seen), Math.floor(this.right));
		const { right, step, range, stretch } = this;
		const log = choices.scale === "log";
		// The values take two lines if prices are long or the chart is narrow.
		const top = widest * 5 + 250 > this.width - axis ? 44 : 26;
		return new Geometry(this.width, this.height, axis, { right, step, range, log, stretch, top });
	}

	render() {
		if (!this.context || !this.series || !this.canvas.clientWidth) return;
		this.colors ??= palette(this.canvas);
		this.fit();
		const geometry = (this.now = this.geometry());
		draw({
			context: this.context,
			series: this.series,
			geometry,
			width: this.width,
			height: this.height,
			colors: this.colors,
			range: this.range,
			cross: this.cross,
			font: FONT,
			isLine: choices.style === "line",
			hasAverages: choices.averages === "on",
		});
		this.say();
		this.drawn(geometry);
		this.newest.hidden = this.series.newest === null || geometry.last >= this.series.present;
		// Half a view more than is visible: a slow drag never reaches the end.
		const half = geometry.plot.width / geometry.step / 2;
		this.series.need(geometry.first - half, geometry.last + half);
	}

	/** Writes the values under the crosshair, or of the newest candle. */
	say() {
		const { series } = this;
		const slot = this.cross ? this.cross.slot : series.newest;
		if (slot === null) return this.write("", []);
		const candle = series.candles.get(slot);
		const when = date(timeOf(series.interval, slot), INTERVALS[series.interval] < INTERVALS["1d"]);
		if (candle) {
			const forming = series.lastClosed !== null && candle.time > series.lastClosed;
			return this.write(
				when,
				candle.text,
				candle.close < candle.open ? "down" : "up",
				forming ? "forming" : "",
				this.change(slot, candle),
			);
		}
		const words = {
			empty: "nobody traded",
			after: "not yet",
			before: series.mayHaveOlder ? "loading" : "not known",
			unknown: "not known: the exchange has not said whether anybody traded",
		};
		this.write(when, [], "", words[series.kind(slot)]);
	}

	/** The change from the previous close, as charts usually show it. */
	change(slot, candle) {
		let before = slot - 1;
		while (this.series.kind(before) === "empty") before--;
		const close = this.series.candles.get(before)?.close;
		return close ? (candle.close / close - 1) * 100 : null;
	}

	write(when, texts, direction = "", note = "", change = null) {
		const key = [when, ...texts, note, change].join("|");
		if (key === this.written) return;
		this.written = key;
		const parts = [make("time", {}, when)];
		texts.forEach((text, i) => {
			const value =
				i < 4 ? make("span", { class: direction }, text) : make("span", { title: text }, compact(text));
			parts.push(make("b", {}, make("i", {}, NAMES[i]), value));
		});
		if (change !== null) {
			const way = change < 0 ? "down" : change > 0 ? "up" : "";
			parts.push(make("em", { class: way }, percent(change.toFixed(4))));
		}
		if (note) parts.push(make("em", {}, note));
		this.values.replaceChildren(...parts);
	}

	pan(slots) {
		const most = this.end + this.width / this.step / 2;
		const least = Math.min((this.series.oldest ?? 0) - this.width / this.step / 2, this.right);
		this.span = null;
		this.right = Math.max(least, Math.min(most, this.right + slots));
		this.following = Math.abs(this.right - this.end) < 0.5;
		this.touched();
	}

	zoom(factor, x = this.now.plot.width) {
		const step = this.bounded(this.step * factor);
		this.span = null;
		const away = this.now.plot.width - x;
		const atNewest = this.following && away < 1;
		this.right += away / step - away / this.step;
		this.step = step;
		if (!atNewest) this.following = false;
		this.touched();
	}

	toNewest() {
		this.cross = null;
		this.following = true;
		this.touched();
		this.changed();
	}

	touched() {
		this.series.again();
		this.paint();
	}

	isOnAxis(x) {
		return !!this.now && x > this.now.plot.width;
	}

	point(x, y) {
		this.canvas.classList.toggle("axis", this.isOnAxis(x));
		if (!this.now || this.isOnAxis(x)) this.cross = null;
		else this.cross = { slot: this.now.slot(x), y };
		this.touched();
	}

	listen() {
		const { canvas } = this;
		const place = (event) => [event.offsetX, event.offsetY];
		const on = (...about) => canvas.addEventListener(...about);
		on(
			"wheel",
			(event) => {
				event.preventDefault();
				if (!this.now) return;
				const sideways = event.shiftKey ? event.deltaY : event.deltaX;
				const unit = event.deltaMode === 1 ? 16 : 1;
				if (sideways && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)))
					this.pan((sideways * unit) / this.step);
				else this.zoom(Math.exp(-event.deltaY * unit * 0.0015), event.offsetX);
			},
			{ passive: false },
		);
		on("pointerdown", (event) => {
			canvas.setPointerCapture(event.pointerId);
			this.pointers.set(event.pointerId, place(event));
			this.moved = false;
		});
		on("pointermove", (event) => this.move(event, ...place(event)));
		const up = (event) => {
			if (event.pointerType !== "mouse" && !this.moved && event.type === "pointerup")
				this.point(...place(event));
			this.pointers.delete(event.pointerId);
			canvas.classList.remove("held");
		};
		on("pointerup", up);
		on("pointercancel", up);
		on("pointerleave", (event) => {
			if (event.pointerType === "mouse" && this.cross) this.leave();
		});
		on("dblclick", (event) => {
			this.stretch = 1;
			if (this.isOnAxis(event.offsetX)) this.paint();
			else this.toNewest();
		});
		on("keydown", (event) => this.key(event));
		this.newest.addEventListener("click", () => this.toNewest());
	}

	move(event, x, y) {
		const from = this.pointers.get(event.pointerId);
		if (!this.series || !this.now) return;
		if (!from) {
			if (event.pointerType === "mouse") this.point(x, y);
			return;
		}
		if (!this.moved && Math.hypot(x - from[0], y - from[1]) < 4) return;
		this.moved = true;
		this.canvas.classList.add("held");
		const others = [...this.pointers].filter(([id]) => id !== event.pointerId);
		if (others.length) {
			const [ox] = others[0][1];
			const before = Math.abs(from[0] - ox),
				after = Math.abs(x - ox);
			if (before > 10 && after > 10) this.zoom(after / before, (x + ox) / 2);
		} else if (this.isOnAxis(from[0])) {
			this.stretch = Math.max(0.05, Math.min(20, this.stretch * Math.exp((y - from[1]) * STRETCH)));
			this.touched();
			// A drag that began on the axis stays a drag of the axis.
			x = from[0];
		} else {
			this.cross = null;
			this.pan((from[0] - x) / this.step);
		}
		this.pointers.set(event.pointerId, [x, y]);
	}

	/** Arrow keys move the crosshair, and the view with it; with Shift they move it by ten slots. */
	key(event) {
		if (!this.series || !this.now || event.ctrlKey || event.metaKey || event.altKey) return;
		const by = event.shiftKey ? 10 : 1,
			page = this.now.plot.width / this.step;
		const closer = () => this.zoom(1.25),
			wider = () => this.zoom(0.8);
		const actions = {
			ArrowLeft: () => this.stepCross(-by),
			ArrowRight: () => this.stepCross(by),
			ArrowUp: closer,
			ArrowDown: wider,
			"+": closer,
			"=": closer,
			"-": wider,
			PageUp: () => this.pan(-page),
			PageDown: () => this.pan(page),
			Home: () => this.pan((this.series.oldest ?? this.now.first) - this.now.first),
			End: () => this.toNewest(),
			Escape: this.cross && (() => this.leave()),
		};
		if (!actions[event.key]) return;
		actions[event.key]();
		event.preventDefault();
		event.stopPropagation();
	}

	leave() {
		this.cross = null;
		this.paint();
	}

	stepCross(by) {
		const { series, now } = this;
		if (series.newest === null) return;
		const at = this.cross ? this.cross.slot + by : Math.min(series.newest, now.last - 1);
		const slot = Math.min(at, series.newest);
		this.cross = { slot, y: null };
		this.values.ariaLive = "polite";
		if (slot < now.first + 2) this.pan(slot - now.first - 2);
		else if (slot > now.right - 1) this.pan(slot + 1 - now.right);
		this.touched();
	}
}
