// The labels of the time axis: which slots have a label, and its text.

import { INTERVALS, timeOf } from "./slots.js";
import { MONTHS, pad, zoned } from "./time.js";

/** The least pixels between labels of one level, and between any. */
const APART = 76,
	CLOSE = 46;
/** The share of a level's pixels that a coarser label keeps free, so that days stand apart evenly. */
const FREE = 0.6;

const MINUTE = 60_000,
	DAY = 86_400_000;
const month = (t) => {
	const d = new Date(t);
	return d.getUTCFullYear() * 12 + d.getUTCMonth();
};
const every = (ms) => [ms, (t) => Math.floor(t / ms)];
const weeks = (n) => [n * 7 * DAY, (t) => Math.floor((t / DAY - 4) / 7 / n)];
const months = (n) => [n * 30 * DAY, (t) => Math.floor(month(t) / n)];

/** The length of each level, and its unit; the coarsest first. */
const LEVELS = [
	...[240, 120, 60, 24, 12, 6, 3, 1].map(months),
	...[2, 1].map(weeks),
	every(2 * DAY),
	every(DAY),
	...[720, 240, 120, 60, 30, 15, 5, 1].map((n) => every(n * MINUTE)),
];

/**
 * The labels from slot `first` to `last`: `{ slot, label, strong }`. A turn of the year comes before a
 * turn of the month, and this before a day, so that each stands at its own place.
 */
export function ticks(interval, first, last, step) {
	const times = [];
	// Days are days of UTC in every zone.
	const shown = INTERVALS[interval] < DAY ? (ms) => zoned(ms).getTime() : (ms) => ms;
	for (let slot = first - 1; slot <= last; slot++) times.push(shown(timeOf(interval, slot)));
	const slotMs = (times.at(-1) - times[0]) / (times.length - 1);
	const found = [];
	for (const [length, key] of LEVELS) {
		const apart = (length / slotMs) * step,
			close = Math.max(CLOSE, apart * FREE);
		if (found.length && apart < APART) break;
		const coarser = found.length;
		for (let i = 1; i < times.length; i++) {
			const slot = first - 1 + i;
			if (key(times[i]) === key(times[i - 1])) continue;
			const isNear = (other, at) => Math.abs(other.slot - slot) * step < (at < coarser ? close : CLOSE);
			if (found.some(isNear)) continue;
			found.push({ slot, ...say(times[i], times[i - 1]) });
		}
	}
	return found;
}

/** The text of a label: the largest unit that changes at this time. */
function say(time, before) {
	const [d, b] = [new Date(time), new Date(before)];
	if (d.getUTCFullYear() !== b.getUTCFullYear()) return { label: String(d.getUTCFullYear()), strong: true };
	if (d.getUTCMonth() !== b.getUTCMonth()) return { label: MONTHS[d.getUTCMonth()], strong: true };
	if (time - before >= DAY) return { label: String(d.getUTCDate()), strong: false };
	if (d.getUTCDate() !== b.getUTCDate())
		return { label: `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]}`, strong: true };
	return { label: `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}`, strong: false };
}
