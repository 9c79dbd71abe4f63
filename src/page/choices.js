// What a person has chosen beside the market and its interval. It stands in the address, so that a link
// shows the same, and holds for the next visit.

import { keep, kept } from "./keep.js";

/** What needs no word in the address. */
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

/** Takes the members that there are; the others stay. */
function take(values) {
	for (const [key, value] of Object.entries(values ?? {}))
		if (Object.hasOwn(USUAL, key) && typeof value === "string") choices[key] = value;
}

export function choose(values) {
	take(values);
	keep("choices", choices);
}

/** The query of the address: what is not as usual. */
export function query() {
	const unusual = Object.entries(choices).filter(([key, value]) => value !== USUAL[key]);
	return unusual.length ? `?${new URLSearchParams(unusual)}` : "";
}

/** Takes what a link says; what it does not name is as usual. */
export function follow(text) {
	if (text) choose({ ...USUAL, ...Object.fromEntries(new URLSearchParams(text)) });
}
