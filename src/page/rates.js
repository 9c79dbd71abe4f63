// Converts turnovers of markets with different quote assets into one unit: the asset in which most
// markets are quoted. The rates come from the tracked pairs, in as many steps as necessary.

export class Rates {
	constructor() {
		/** The asset of all amounts, and the value of one unit of each other asset in it. */
		this.unit = null;
		this.worth = new Map();
	}

	update(quotes) {
		const counts = new Map(),
			pairs = new Map();
		const link = (from, to, rate) => {
			if (!pairs.has(from)) pairs.set(from, []);
			pairs.get(from).push([to, rate]);
		};
		for (const { base, quote, last, stale } of quotes) {
			counts.set(quote, (counts.get(quote) ?? 0) + 1);
			const price = Number(last);
			if (!price || stale) continue;
			link(quote, base, price);
			link(base, quote, 1 / price);
		}
		this.unit = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0]?.[0] ?? null;
		this.worth = new Map([[this.unit, 1]]);
		// A map returns its entries in the order of insertion, so the shortest path is found first.
		for (const [asset, worth] of this.worth)
			for (const [other, rate] of pairs.get(asset) ?? [])
				if (!this.worth.has(other)) this.worth.set(other, worth * rate);
	}

	/** The turnover of a quote in the unit, or null. */
	turnover({ quote, quoteVolume }) {
		const worth = this.worth.get(quote);
		return quoteVolume === null || worth === undefined ? null : Number(quoteVolume) * worth;
	}
}
