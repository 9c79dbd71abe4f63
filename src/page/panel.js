// The chart's panel: the market's name and figures, intervals, candles, and what is known.

import { Chart } from "./chart.js";
import { padZeros, writePrice } from "./digits.js";
import { button, make } from "./dom.js";
import { Series } from "./series.js";
import { INTERVALS, slotOf, timeOf } from "./slots.js";
import { compact, count, direction, percent, signed } from "./text.js";
import { clock, countdown, date, zoneName } from "./time.js";

/** A chart whose source changes is reloaded, but not more often than this. */
const RESTART_MS = 20_000;

export class Panel {
	symbol = null;
	interval = null;
	series = null;
	/** marketd's time, by the newest quote. */
	now = null;
	/** The least time by which the browser's clock is behind marketd's. */
	behindMs = -Infinity;

	/** `go(symbol, interval)` changes the page's address, and `follow(chart)` the stream's. */
	constructor(elements, go, follow) {
		Object.assign(this, { elements, go, follow });
		this.chart = new Chart(elements.canvas, elements.values, elements.newest, (geometry) =>
			this.place(geometry),
		);
		setInterval(() => this.tick(), 1000);
		for (const interval of Object.keys(INTERVALS)) {
			const click = () => {
				this.chart.span = null;
				go(this.symbol, interval, true);
			};
			elements.intervals.append(button({ "data-interval": interval }, interval, click));
		}
		elements.intervals.addEventListener("keydown", (event) => this.walk(event));
	}

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
			button.ariaPressed = is;
			button.tabIndex = is ? 0 : -1;
			if (is) button.scrollIntoView({ block: "nearest", inline: "nearest" });
		}
		this.start();
	}

	/** Shows this many of the newest slots of an interval. */
	showSpan(interval, slots) {
		this.chart.showSpan(slots);
		this.go(this.symbol, interval, true);
	}

	/** Says when the newest candle closes. */
	tick() {
		const { closes } = this.elements;
		if (!this.series || document.hidden) return;
		const now = Date.now() + this.behindMs,
			{ interval } = this.series;
		const text = this.now === null ? "" : countdown(timeOf(interval, slotOf(interval, now) + 1) - now);
		if (closes.textContent !== text) closes.textContent = text;
	}

	/** Places the time to the close below the newest price, and what is over the plot beside the axis. */
	place(geometry) {
		const { closes, values, newest: button } = this.elements;
		values.style.right = button.style.right = `${this.chart.width - geometry.plot.width + 8}px`;
		const newest = this.series?.candles.get(this.series.newest);
		const y = newest && geometry.scale ? geometry.y(newest.close) : -1;
		closes.hidden = !(y >= 0 && y < geometry.plot.height - 30);
		closes.style.top = `${Math.max(10, y) + 10}px`;
		closes.style.left = `${geometry.plot.width + 8}px`;
	}

	/** Removes the figures of another market. */
	clear() {
		this.last = null;
		for (const name of ["last", "change", "mark", "facts"]) this.elements[name].replaceChildren();
	}

	start() {
		this.startedAt = performance.now();
		if (this.series) this.series.gone = true;
		const series = (this.series = new Series(this.symbol, this.interval, () => {
			if (series !== this.series) return;
			this.chart.changed();
			this.say();
		}));
		series.now = this.now;
		this.chart.show(series);
		this.follow(`${this.symbol}:${this.interval}`);
		series.load().then(() => {
			if (series === this.series && series.status === 404) this.follow(null);
		});
	}

	candle(event) {
		if (!this.series || event.symbol !== this.symbol || event.interval !== this.interval) return;
		// Another source serves the market now, and series of two sources are never mixed.
		if (!this.series.apply(event)) this.restart();
	}

	restart() {
		if (performance.now() - this.startedAt > RESTART_MS) this.start();
	}

	/** The stream is back: loads what has changed meanwhile. */
	resumed() {
		this.series?.refresh();
	}

	/** Moves a view of the newest candles with marketd's time, even if nobody trades. */
	time(now) {
		this.behindMs = Math.max(this.behindMs, now - Date.now());
		if (!(now > this.now)) return;
		this.now = now;
		if (!this.series) return;
		const before = this.series.present;
		this.series.now = now;
		if (this.series.present !== before) this.chart.changed();
	}

	close() {
		if (this.series) {
			this.follow(null);
			this.series.gone = true;
		}
		this.series = this.symbol = this.interval = null;
	}

	/** The market is no longer served, so its last quote is not current. */
	gone(symbol) {
		if (symbol === this.symbol) this.elements.mark.textContent = "not served";
	}

	quote(quote) {
		if (!quote || quote.symbol !== this.symbol) return;
		if (quote.last === null) {
			this.elements.mark.textContent = "no quote yet";
			return;
		}
		// It is served again.
		if (this.series.status === 404 && !this.series.loaded) this.restart();
		const { last, change, mark, facts } = this.elements;
		if (this.last !== quote.last || !last.textContent) writePrice(last, quote, this.last);
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
			["As of", `${clock(quote.receivedAt)} ${zoneName()}`],
		];
		if (facts.children.length !== pairs.length) {
			facts.replaceChildren(...pairs.map(([name]) => make("div", {}, make("dt", {}, name), make("dd"))));
		}
		pairs.forEach(([name, value, title], i) => {
			const dd = facts.children[i].lastChild;
			if (value === quote[name.toLowerCase()] && name !== "Source") padZeros(dd, quote, value);
			if (dd.textContent !== (value ?? "–")) dd.textContent = value ?? "–";
			if (title) dd.title = title;
		});
	}

	/** Says how complete the loaded candles are. */
	say() {
		const { say, known } = this.elements;
		const { series } = this;
		const failed = series.error && `${series.error}${series.status === 404 ? "" : "; trying again"}`;
		const words = series.loaded && series.newest !== null ? "" : this.silence(series, failed);
		say.hidden = !words;
		say.textContent = words;
		known.replaceChildren();
		known.dataset.coverage = "";
		if (series.newest === null || !series.loaded) return;
		const minutes = INTERVALS[series.interval] < INTERVALS["1d"];
		const tally = series.tally();
		const oldest = series.candles.get(series.oldest);
		const parts = [
			`${count(tally.candles)} ${tally.candles === 1 ? "candle" : "candles"} of ${series.source}${oldest ? ` since ${date(oldest.time, minutes)}` : ""}`,
			tally.empty && `${count(tally.empty)} slots in which nobody traded`,
			tally.before && `${count(tally.before)} slots between not loaded`,
			tally.unknown && `${count(tally.unknown)} slots not known`,
			!tally.before && !tally.unknown && !series.loading && !series.error && !series.behind && "complete",
			series.error
				? `not loaded: ${series.error}`
				: series.loading
					? "loading more"
					: series.stuck && "nothing older is known",
			series.lastClosed && `last closed ${date(series.lastClosed, minutes)} ${minutes ? zoneName() : "UTC"}`,
		];
		known.textContent = parts.filter(Boolean).join("  ·  ");
		known.dataset.coverage = tally.unknown ? "partial" : "complete";
	}

	/** Says why there are no candles. */
	silence(series, failed) {
		if (failed) return `No candles: ${failed}`;
		if (series.loading) return "Loading candles";
		return series.loaded ? "No candles are known." : "The exchange has not sent candles yet; trying again";
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
