// The tools of the chart: how it is drawn, how much time it shows, and a file of the visible
// candles.

import { choices } from "./choices.js";
import { button, make } from "./dom.js";
import { timeOf } from "./slots.js";

const SPANS = {
	"1D": ["5m", 288],
	"1W": ["1h", 168],
	"1M": ["4h", 180],
	"1Y": ["1d", 365],
	All: ["1w", Infinity],
};

export class Tools {
	/** `choose(values)` changes the choices. A button's `data-choice` is like "scale:log". */
	constructor(elements, panel, choose) {
		this.panel = panel;
		this.buttons = [...elements.panel.querySelectorAll("[data-choice]")].map((button) => {
			const [key, value] = button.dataset.choice.split(":");
			const usual = button.dataset.usual;
			button.addEventListener("click", () => choose({ [key]: choices[key] === value ? usual : value }));
			return { button, key, value };
		});
		for (const [name, [interval, slots]] of Object.entries(SPANS)) {
			elements.ranges.append(button({}, name, () => panel.showSpan(interval, slots)));
		}
		elements.day.addEventListener("change", () => {
			if (elements.day.value) panel.chart.goTo(Date.parse(elements.day.value));
		});
		elements.csv.addEventListener("click", () => this.save());
		elements.full.addEventListener("click", () => {
			if (document.fullscreenElement) document.exitFullscreen();
			else elements.panel.requestFullscreen();
		});
		elements.full.hidden = !document.fullscreenEnabled;
	}

	update() {
		for (const { button, key, value } of this.buttons)
			button.ariaPressed = choices[key] === value;
	}

	/** The candles in view, with the digits that marketd sent. */
	get csv() {
		const { series, now } = this.panel.chart;
		const lines = ["time,open,high,low,close,volume"];
		for (let slot = now.first; slot <= now.last; slot++) {
			const candle = series.candles.get(slot);
			if (!candle) continue;
			const time = new Date(timeOf(series.interval, slot)).toISOString();
			lines.push([time, ...candle.text].join());
		}
		return lines.join("\n") + "\n";
	}

	save() {
		const { symbol, interval } = this.panel;
		const href = URL.createObjectURL(new Blob([this.csv], { type: "text/csv" }));
		make("a", { href, download: `${symbol.replace("/", "-")}-${interval}.csv` }).click();
		URL.revokeObjectURL(href);
	}
}
