// The candles of one symbol and interval: which are loaded, and what is known about slots without
// one. Drawing and input are elsewhere.

import { get } from "./api.js";
import { slotOf, timeOf } from "./slots.js";

const PAGE = 500;
/** Most candles of one answer. */
const MOST = 5000;
/** marketd may answer with a part, and is asked for the rest again. */
const RETRIES = 3;
const RETRY_MS = 1500;
/** Pauses after a first load without a result: the first, and the longest. */
const ANEW_MS = { first: 2000, most: 30_000 };
/** The time after which unknown older candles may be requested again. */
const AGAIN_MS = 20_000;
/** The time after which missing newer candles may be requested again. */
const BEHIND_MS = 2000;

/** marketd reads a number below this as seconds. */
const EARLIEST_MS = 100_000_000_000;
/** How many of the newest slots are proved empty only by a second reading. */
const FRESH = 6;
/** How many requests find out which slots of a partial answer are unknown. */
const PARTS = 6;

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export class Series {
	/** Slot to candle: `{ slot, time, text: [open, high, low, close, volume], open, high, ... }`. */
	candles = new Map();
	/** The requested ranges, oldest first: `{ from, to, complete }`, in slots. */
	spans = [];
	newest = null;
	source = null;
	lastClosed = null;
	loading = false;
	error = null;
	status = null;
	behind = false;
	/** True if the last request for older candles did not get them; a person may try again. */
	stuck = false;
	stuckAt = 0;
	gone = false;
	/** True once the newest candles have been loaded. Before, a candle of the stream stands alone. */
	loaded = false;
	anew = ANEW_MS.first;
	/** marketd's time, by the newest quote. */
	now = null;

	/** `changed()` is called after each change. */
	constructor(symbol, interval, changed) {
		Object.assign(this, { symbol, interval, changed });
		this.refreshedAt = Date.now();
	}

	/** The newest slot: that of the newest candle, or of now. */
	get present() {
		const now = slotOf(this.interval, this.now ?? Date.now());
		return this.newest === null ? now : this.now === null ? this.newest : Math.max(this.newest, now);
	}

	/** The oldest requested slot. */
	get oldest() {
		return this.spans.length ? this.spans[0].from : null;
	}

	/** The newest slot with a closed candle. */
	get closed() {
		return this.lastClosed === null ? -Infinity : slotOf(this.interval, this.lastClosed);
	}

	/** The first span of newer slots that are unknown. */
	get unknown() {
		return this.spans.find((span) => !span.complete && span.to > this.present - PAGE);
	}

	/** The kind of a slot: "candle", "empty" (nobody traded), "unknown", "before" (not requested) or "after". */
	kind(slot) {
		if (this.candles.has(slot)) return "candle";
		for (const span of this.spans) {
			if (slot < span.from) return "before";
			if (slot <= span.to) return span.complete ? "empty" : "unknown";
		}
		if (this.oldest === null) return "before";
		return this.newest !== null && slot < this.newest ? "unknown" : "after";
	}

	async load() {
		await this.work(async () => {
			for (let turn = 0; turn <= RETRIES && !this.gone; turn++) {
				const answer = await this.ask({ limit: PAGE });
				if (answer.rows.length) await this.settle(answer.rows[0].slot, this.end(answer), answer.complete);
				this.loaded ||= answer.complete || answer.rows.length > 1;
				if (answer.rows.length >= PAGE / 2 || answer.complete || this.gone) return;
				this.changed();
				if (turn < RETRIES) await sleep(RETRY_MS);
			}
			if (this.oldest === null) this.stick();
		});
		if (this.loaded || this.gone || this.status === 404) return;
		setTimeout(() => !this.gone && this.load(), this.anew);
		this.anew = Math.min(this.anew * 2, ANEW_MS.most);
	}

	/**
	 * Notes what an answer says of its slots. One unknown slot makes a whole answer partial, and the
	 * newest slots without a trade are unknown for a while: parts of the range are asked again.
	 */
	async settle(from, to, complete) {
		this.cover(from, to, complete);
		const ranges = complete
			? []
			: [
					[from, to - FRESH],
					[Math.max(from, to - FRESH + 1), to],
				];
		for (let asked = 0; ranges.length && asked < PARTS && !this.gone;) {
			const [first, last] = ranges.shift();
			if (first > last || this.whole(first, last)) continue;
			asked++;
			const answer = await this.ask(this.range(first, last));
			if (answer.complete) this.cover(first, last, true);
			else if (first < last) {
				const middle = (first + last) >> 1;
				ranges.push([first, middle], [middle + 1, last]);
			}
		}
	}

	/** True if every slot of a range has a candle. */
	whole(from, to) {
		for (let slot = from; slot <= to; slot++) if (!this.candles.has(slot)) return false;
		return true;
	}

	/** Loads the newest slots of a view that were not requested. */
	async need(first, last) {
		if (this.loading || this.stuck || !this.loaded || this.oldest === null) return;
		let to = Math.min(last, this.spans.at(-1).to),
			least = slotOf(this.interval, EARLIEST_MS) + 1;
		for (const span of this.spans.toReversed()) {
			if (span.to < to) {
				least = Math.max(least, span.to + 1);
				break;
			}
			if (span.from <= to) to = span.from - 1;
		}
		const from = Math.max(to - PAGE + 1, least);
		if (to < first) return;
		if (to < from) return this.stick();
		await this.work(async () => {
			for (let turn = 0; turn <= RETRIES && !this.gone; turn++) {
				const answer = await this.ask(this.range(from, to));
				if (answer.complete) return this.cover(from, to, true);
				if (turn < RETRIES) {
					this.changed();
					await sleep(RETRY_MS);
					continue;
				}
				// They stay unknown. The slots before the first candle are left to a later request.
				if (answer.rows.length) await this.settle(answer.rows[0].slot, to, false);
				this.stick();
			}
		});
	}

	stick() {
		this.stuck = true;
		this.stuckAt = Date.now();
	}

	/** A person has moved the chart, or newer candles are missing: requests them again, after a while. */
	again() {
		const now = Date.now();
		if (now - this.stuckAt > AGAIN_MS) this.stuck = false;
		const since = now - this.refreshedAt;
		const pause = this.behind && !this.error ? BEHIND_MS : AGAIN_MS;
		if ((this.behind || this.unknown) && since > pause) this.refresh();
	}

	/** Loads the slots since the newest candle, and requests new slots again that were unknown. */
	async refresh() {
		if (!this.loaded) return;
		this.behind = true;
		if (this.loading) return;
		this.refreshedAt = Date.now();
		await this.work(async () => {
			const known = Math.min(this.closed, this.present) - 1;
			const from = Math.max(this.present - PAGE, Math.min(known, this.unknown?.from ?? known));
			const answer = await this.ask({ from: timeOf(this.interval, from), limit: MOST });
			this.behind = false;
			// With `from`, the limit cuts off newer candles.
			await this.settle(from, Math.min(this.end(answer), from + MOST - 1), answer.complete);
		});
	}

	apply(event) {
		if (this.source !== null && event.source !== this.source) return false;
		const row = this.row(event.candle);
		if (this.newest !== null && row.slot > this.newest + 1) this.behind = true;
		this.keep([row]);
		if (event.closed) {
			// In between, nobody traded or a close was missed: these are loaded again.
			for (const slot of this.candles.keys())
				if (slot > this.closed && slot < row.slot) this.candles.delete(slot);
			this.lastClosed = Math.max(this.lastClosed, row.time);
			this.cover(row.slot, row.slot, true);
		}
		if (this.behind) this.again();
		this.changed();
		return true;
	}

	async work(task) {
		this.loading = true;
		this.error = this.status = null;
		this.changed();
		try {
			await task();
		} catch (error) {
			this.error = error.message;
			this.status = error.status;
			this.stick();
		}
		this.loading = false;
		// Newest candles that could not be loaded are missing until a later request gets them.
		if (this.error && this.loaded) this.behind = true;
		if (!this.gone) this.changed();
	}

	range(from, to) {
		return { from: timeOf(this.interval, from), to: timeOf(this.interval, to) };
	}

	async ask(query) {
		const { body, headers } = await get("api/ecosystem/chart", {
			symbol: this.symbol,
			interval: this.interval,
			source: this.source,
			...query,
			decimals: "string",
		});
		const closed = headers.get("Chart-Last-Closed");
		if (closed) this.lastClosed = Math.max(this.lastClosed, Number(closed));
		this.source ??= headers.get("Chart-Source");
		const rows = body.map((row) => this.row(row));
		this.keep(rows);
		return { rows, complete: headers.get("Chart-Coverage") === "complete" };
	}

	/** The texts are for people; the numbers are for drawing. */
	row([time, ...text]) {
		const [open, high, low, close, volume] = text.map(Number);
		const slot = slotOf(this.interval, time);
		return { slot, time, text: text.map(String), open, high, low, close, volume };
	}

	keep(rows) {
		for (const row of rows) this.candles.set(row.slot, row);
		if (rows.length) this.newest = Math.max(this.newest ?? -Infinity, rows.at(-1).slot);
	}

	/** The last slot about which an answer up to now is definite: a candle that is not closed still forms. */
	end({ rows }) {
		return Math.max(rows.at(-1)?.slot - 1 || -Infinity, this.closed);
	}

	/** Notes what is known about a span of slots; a later note replaces an earlier one. */
	cover(from, to, complete) {
		if (!(from <= to)) return;
		const spans = [];
		for (const span of this.spans) {
			if (span.from < from) spans.push({ ...span, to: Math.min(span.to, from - 1) });
			if (span.to > to) spans.push({ ...span, from: Math.max(span.from, to + 1) });
		}
		spans.push({ from, to, complete });
		spans.sort((a, b) => a.from - b.from);
		this.spans = [];
		for (const span of spans) {
			const last = this.spans.at(-1);
			if (last && last.complete === span.complete && last.to + 1 === span.from) last.to = span.to;
			else this.spans.push(span);
		}
	}

	/** Slots between the oldest and the newest, by kind. */
	tally() {
		const tally = { candles: this.candles.size, empty: 0, unknown: 0, before: 0 };
		if (this.oldest === null || this.newest === null) return tally;
		for (let slot = this.oldest; slot < this.newest; slot++) {
			const kind = this.kind(slot);
			if (kind !== "candle") tally[kind]++;
		}
		return tally;
	}

	/** True while marketd is asked about new slots, or may be asked. */
	get mayHaveOlder() {
		return this.loading || !this.stuck;
	}
}
