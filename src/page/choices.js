// What a person has chosen besides the market and its interval. The address has the choices, so that a link
// shows the same view. They are kept for the next visit.

import { keep, kept } from "./keep.js";

/** The defaults, which the address leaves out. */
const USUAL = {
	show: "all",
	search: "",
	sort: "-quoteVolume",
	style: "candles",
	scale: "linear",
	averages: "off",
	zone: "utc",
};

export const choices = { ...USUAL };
take(kept("choices"));
choices.search = "";

/** Sets the given members; the others stay. */
function take(values) {
	for (const [key, value] of Object.entries(values ?? {}))
		if (Object.hasOwn(USUAL, key) && typeof value === "string") choices[key] = value;
}

export function choose(values) {
	take(values);
	keep("choices", choices);
}

/** The query of the address: the choices that are not the defaults. */
export function query() {
	const unusual = Object.entries(choices).filter(([key, value]) => value !== USUAL[key]);
	return unusual.length ? `?${new URLSearchParams(unusual)}` : "";
}

/** Takes the choices of a link; the others get their defaults. */
export function follow(text) {
	if (text) choose({ ...USUAL, ...Object.fromEntries(new URLSearchParams(text)) });
}
