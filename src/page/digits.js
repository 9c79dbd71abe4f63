// Aligns the prices of a market: zeros that a decimal lacks to the market's precision are shown dimmed. They
// are not part of the text, which stays as marketd sent it.

import { make } from "./dom.js";
import { shared } from "./text.js";

const PRICES = ["last", "bid", "ask", "open", "high", "low"];
/** Symbol to the largest number of decimal places that its prices have had. */
const places = new Map();

const fraction = (text) => (text?.includes(".") ? text.length - text.indexOf(".") - 1 : 0);

/** Gives an element with a price of a quote its missing zeros. */
export function padZeros(element, quote, text) {
	const most = Math.max(places.get(quote.symbol) ?? 0, ...PRICES.map((name) => fraction(quote[name])));
	places.set(quote.symbol, most);
	const lacks = text == null ? 0 : most - fraction(text);
	const zeros = lacks > 0 ? (text.includes(".") ? "" : ".") + "0".repeat(lacks) : "";
	if ((element.dataset.zeros ?? "") !== zeros) element.dataset.zeros = zeros;
}

/** Writes the last price of a quote, and marks the digits that differ from the previous price. */
export function writePrice(element, quote, before) {
	const { last } = quote;
	const kept = before == null ? last.length : shared(before, last);
	const way = kept === last.length ? "" : Number(last) < Number(before) ? "down" : "up";
	element.replaceChildren(last.slice(0, kept), make("b", { class: way }, last.slice(kept)));
	padZeros(element, quote, last);
}
