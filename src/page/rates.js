// Turnovers of markets with different quote assets, in one unit: the asset that most markets are
// quoted in. Rates come from the tracked pairs themselves, at most as many steps away as there are.

export class Rates {
	constructor() {
		/** The asset of all amounts, and what one of each other asset is worth in it. */
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
		// A map gives its entries in the order in which they came, so the shortest way is found first.
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
