// The tabs above the table: all markets, favourites, the markets that rose and fell most, the configured
// categories, and one tab for each of the largest quote assets.

import { get } from "./api.js";
import { choices } from "./choices.js";
import { button } from "./dom.js";
import { keep, kept } from "./keep.js";

/** Each tab has its name in the address, its text, and its order. */
const TABS = [
	["all", "All"],
	["favourites", "★"],
	["gainers", "Gainers", "-percentage"],
	["losers", "Losers", "percentage"],
];
const MOST_ASSETS = 12;

/** How many quotes have each value of a field. */
export function countBy(quotes, field) {
	const counts = new Map();
	for (const { [field]: value } of quotes) counts.set(value, (counts.get(value) ?? 0) + 1);
	return counts;
}

export class Views {
	/** `choose(values)` shows another tab, and `changed()` is called when the markets of one are known. */
	constructor(element, choose, changed) {
		Object.assign(this, { element, choose, changed });
		this.favourites = new Set(kept("favourites"));
		this.set(TABS);
		/** The symbols of each configured category; null until they are requested. */
		this.members = new Map();
	}

	/** Takes the categories. The tabs of quote assets follow from the quotes. */
	know(categories, quotes) {
		const counts = countBy(quotes, "quote");
		const isAsset = ({ id, name }) => id === name.toLowerCase() && counts.has(name);
		const assets = categories.filter(isAsset).sort((a, b) => b.marketCount - a.marketCount);
		const named = categories.filter((category) => !isAsset(category));
		for (const { id } of named) if (!this.members.has(id)) this.members.set(id, null);
		const shown = [...named, ...(assets.length > 1 ? assets.slice(0, MOST_ASSETS) : [])];
		this.set([...TABS, ...shown.map(({ id, name }) => [id, name])]);
		this.update();
	}

	/** Makes new buttons only for new tabs: a replaced button loses a click that has begun, and the focus. */
	set(tabs) {
		if (String(tabs) === String(this.tabs)) return;
		this.tabs = tabs;
		const buttons = tabs.map(([show, text, sort]) => {
			const about = { "data-show": show };
			if (text === "★") about["aria-label"] = "Favourites";
			return button(about, text, () => this.choose({ show, sort }));
		});
		this.element.replaceChildren(...buttons);
	}

	update() {
		for (const tab of this.element.children) tab.ariaPressed = tab.dataset.show === choices.show;
		this.load();
	}

	/** True if the markets of the chosen category are not known. */
	get lacks() {
		return this.members.get(choices.show) === null;
	}

	async load(id = choices.show) {
		if (!this.lacks) return;
		this.members.set(id, new Set());
		try {
			const { body } = await get(`api/v1/categories/${id}/markets`);
			this.members.set(id, new Set(body.markets.map((market) => market.symbol)));
		} catch {
			this.members.set(id, null);
		}
		this.changed();
	}

	/** True if the chosen tab has a quote. */
	has({ symbol, quote, percentage }) {
		const { show } = choices;
		if (show === "favourites") return this.favourites.has(symbol);
		if (show === "gainers") return Number(percentage) > 0;
		if (show === "losers") return Number(percentage) < 0;
		return show === "all" || (this.members.get(show)?.has(symbol) ?? show === quote.toLowerCase());
	}

	/** Makes a market a favourite, or no longer one. */
	star(symbol) {
		const is = this.favourites.has(symbol);
		// Another tab may have changed them.
		this.favourites = new Set(kept("favourites") ?? this.favourites);
		this.favourites[is ? "delete" : "add"](symbol);
		keep("favourites", [...this.favourites]);
	}
}
