// Slots: an interval divides time into numbered slots, and a candle belongs to the slot of its open
// time. A chart draws slots side by side, so that a slot without a candle keeps its place.

const MINUTE = 60_000,
	HOUR = 60 * MINUTE,
	DAY = 24 * HOUR;

/** Every interval that marketd serves, with its length; months have different lengths. */
export const INTERVALS = {
	"1m": MINUTE,
	"3m": 3 * MINUTE,
	"5m": 5 * MINUTE,
	"15m": 15 * MINUTE,
	"30m": 30 * MINUTE,
	"1h": HOUR,
	"2h": 2 * HOUR,
	"4h": 4 * HOUR,
	"6h": 6 * HOUR,
	"8h": 8 * HOUR,
	"12h": 12 * HOUR,
	"1d": DAY,
	"3d": 3 * DAY,
	"1w": 7 * DAY,
	"1M": 30 * DAY,
};

/** Weeks start on Monday, and 1970 began on a Thursday. */
const offset = (interval) => (interval === "1w" ? 4 * DAY : 0);

/** The number of the slot that holds the time `ms`. */
export function slotOf(interval, ms) {
	if (interval === "1M") {
		const d = new Date(ms);
		return (d.getUTCFullYear() - 1970) * 12 + d.getUTCMonth();
	}
	return Math.floor((ms - offset(interval)) / INTERVALS[interval]);
}

export function timeOf(interval, slot) {
	if (interval === "1M") return Date.UTC(1970, slot, 1);
	return slot * INTERVALS[interval] + offset(interval);
}
