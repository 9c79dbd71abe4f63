// Times for people, in UTC or in the zone of the browser.

export const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

export const pad = (n) => String(n).padStart(2, "0");

let isLocal = false;
export function useLocal(is) {
	isLocal = is;
}
export const zoneName = () => (isLocal ? "local time" : "UTC");

/** A date whose UTC fields have the local time of the zone. */
export const zoned = (ms) => new Date(isLocal ? ms - new Date(ms).getTimezoneOffset() * 60_000 : ms);

export const clock = (ms) => zoned(ms).toISOString().slice(11, 19);

/** A date, and with `minutes` also the time of day. Without it, the day is a day of UTC in every zone. */
export function date(ms, minutes) {
	const d = minutes ? zoned(ms) : new Date(ms);
	const day = `${d.getUTCDate()} ${MONTHS[d.getUTCMonth()]} ${d.getUTCFullYear()}`;
	return minutes ? `${day} ${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}` : day;
}

/** The remaining time, in the form of a clock. */
export function countdown(ms) {
	const s = Math.max(0, Math.ceil(ms / 1000));
	const [days, hours] = [Math.floor(s / 86_400), Math.floor(s / 3600) % 24];
	if (days) return `${days} d ${hours} h`;
	const clock = `${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}`;
	return hours ? `${hours}:${clock}` : clock;
}
