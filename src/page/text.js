// Texts for people. A decimal stays the text that marketd sent. It is cut, rounded and compared as
// text, because a binary number would change its digits.

/** The direction of a signed decimal: "up", "down", or "" for zero and for nothing. */
export function direction(text) {
	if (text == null || !/[1-9]/.test(text)) return "";
	return text.startsWith("-") ? "down" : "up";
}

/** `text` rounded to `places` decimal places, half away from zero. */
export function round(text, places) {
	const negative = text.startsWith("-");
	const [whole, fraction = ""] = text.replace("-", "").split(".");
	const kept = fraction.slice(0, places).padEnd(places, "0");
	let digits = BigInt(whole + kept);
	if (fraction[places] >= "5") digits += 1n;
	const all = digits.toString().padStart(places + 1, "0");
	const cut = all.length - places;
	const point = places > 0 ? "." + all.slice(cut) : "";
	return (negative && digits > 0n ? "−" : "") + all.slice(0, cut) + point;
}

export function signed(text) {
	if (text == null) return "";
	return direction(text) === "up" ? `+${text}` : text.replace("-", "−");
}

/** A percentage with its sign and two places. */
export function percent(text) {
	if (text == null) return "";
	const short = round(text, 2);
	return (direction(text) === "up" ? "+" : "") + short + " %";
}

const UNITS = ["", " K", " M", " B", " T", " Q"];

/** An amount in at most four digits and a unit: "1.42 B". */
export function compact(text) {
	if (text == null) return "";
	const [whole, fraction = ""] = text.split(".");
	if (whole === "0") return text.length > 7 ? significant(text, 3) : text;
	const unit = Math.min(Math.floor((whole.length - 1) / 3), UNITS.length - 1);
	const cut = whole.length - 3 * unit;
	const shifted = `${whole.slice(0, cut)}.${whole.slice(cut)}${fraction}`;
	return round(shifted, Math.max(0, 3 - cut)) + UNITS[unit];
}

/** A decimal below one, with `count` digits after its leading zeros. */
function significant(text, count) {
	const zeros = text.slice(2).search(/[1-9]/);
	return zeros < 0 ? "0" : round(text, zeros + count);
}

/** How many leading characters two texts have in common. */
export function shared(a, b) {
	let i = 0;
	while (i < a.length && a[i] === b[i]) i++;
	return i;
}

/** A count with a thin space between thousands. */
export function count(n) {
	return n == null ? "–" : String(n).replace(/\B(?=(\d{3})+$)/g, " ");
}

export function bytes(n) {
	if (n == null) return "–";
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let unit = 0;
	while (n >= 1024 && unit < units.length - 1) {
		n /= 1024;
		unit++;
	}
	return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit]}`;
}

const LENGTHS = Object.entries({ d: 86_400, h: 3600, min: 60, s: 1 });

/** A length of time in its two largest units. */
export function span(ms) {
	if (ms == null) return "–";
	if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
	let s = Math.floor(ms / 1000);
	const first = LENGTHS.findIndex(([, length]) => s >= length);
	const parts = LENGTHS.slice(first, first + 2).map(([unit, length]) => {
		const n = Math.floor(s / length);
		s %= length;
		return n ? `${n} ${unit}` : "";
	});
	return parts.join(" ").trim();
}
