// Addresses of the page: `#/BTC-USDT/1h` for a chart, `#service`, and `#/` for the table; `?` and
// other choices may follow.

import { query } from "./choices.js";
import { INTERVALS } from "./slots.js";

export const chartLink = (symbol, interval) => `#/${symbol.replace("/", "-")}/${interval}${query()}`;
export const tableLink = () => `#/${query()}`;

/**
 * What an address names: `{ view, name, joined, interval, chosen }`. A market may be written as people and
 * programs write it: `eth-usdt`, `ETH_USDT`, `ETH/USDT`, `ETH%2FUSDT`. How to split
 * `ETHUSDT` depends on the markets: `joined` is true.
 */
export function readLink(hash) {
	const [path, chosen] = hash.split("?");
	return { ...readPath(path), chosen };
}

function readPath(path) {
	if (path === "#service") return { view: "service" };
	let text;
	try {
		text = decodeURIComponent(path.replace(/^#\/?/, ""));
	} catch {
		return { view: "markets" };
	}
	const parts = text.split("/").filter(Boolean);
	const last = parts.at(-1);
	const interval = parts.length > 1 && Object.hasOwn(INTERVALS, last) ? parts.pop() : undefined;
	const name = parts.join("/").toUpperCase();
	if (/^[A-Z0-9]+[-_/][A-Z0-9]+$/.test(name))
		return { view: "chart", name: name.replace(/[-_]/, "/"), interval };
	if (/^[A-Z0-9]{2,}$/.test(name)) return { view: "chart", name, joined: true, interval };
	return { view: "markets", interval };
}
