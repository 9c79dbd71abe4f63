// A tab's connection to the hub: tells the hub what the tab shows, and receives events. A hidden tab leaves
// the hub after a while.

const HIDDEN_MS = 60_000;
/** Rows that are only scrolled past are not streamed. */
const REST_MS = 250;
/** So that all events of one poll are drawn in one frame. */
const GATHER_MS = 50;
const WORKER = new URL("hub.js", import.meta.url);

export class Feed {
	rows = [];
	chart = null;
	port = null;
	/** When marketd last said anything to a tab. */
	heard = null;

	/** `on` has a function for each event's name, `list(list)`, `state(state, retryAt)`, and `resumed()`. */
	constructor(on) {
		this.on = on;
		this.state = "connecting";
		document.addEventListener("visibilitychange", () => this.visibility());
		addEventListener("pagehide", () => this.leave());
		addEventListener("pageshow", () => this.join());
		this.join();
	}

	/** Joins the hub in the shared worker, or a hub in this tab without one. */
	join() {
		if (this.port) return;
		try {
			const worker = new SharedWorker(WORKER, { type: "module" });
			worker.onerror = () => worker.port === this.port && this.joinAlone();
			this.listen(worker.port);
		} catch {
			this.joinAlone();
		}
	}

	async joinAlone() {
		const { port1, port2 } = new MessageChannel();
		this.listen(port1);
		const { Hub } = await import("./hub.js");
		new Hub().listen(port2);
	}

	listen(port) {
		this.port = port;
		this.said = "";
		const came = [];
		port.onmessage = ({ data }) => {
			if (came.push(data) > 1) return;
			const take = () => {
				for (const data of came.splice(0)) if (port === this.port) this.take(data);
			};
			setTimeout(take, data.events ? GATHER_MS : 0);
		};
		port.postMessage({ join: true });
		this.say();
		this.on.resumed();
	}

	take({ list, events, state, retryAt, resumed, heard }) {
		this.heard = heard ?? this.heard;
		if (list) this.on.list(JSON.parse(list).quotes);
		for (const [name, text] of events ?? []) this.on[name]?.(JSON.parse(text));
		if (state) this.set(state, retryAt);
		if (resumed) this.on.resumed();
	}

	show(symbols) {
		this.rows = symbols;
		clearTimeout(this.resting);
		this.resting = setTimeout(() => this.say(), this.said ? REST_MS : 0);
	}

	/** Follows the candles and the quote of a chart like "BTC/USDT:1h", or of none. */
	follow(chart) {
		this.chart = chart;
		this.say();
	}

	say() {
		const names = [...this.rows, ...(this.chart ? [this.chart.split(":")[0], this.chart] : [])];
		const said = names.toSorted().join();
		if (said === this.said) return;
		this.said = said;
		this.port?.postMessage({ names });
	}

	retry() {
		this.port?.postMessage({ retry: true });
	}

	leave() {
		this.port?.postMessage({ leave: true });
		this.port = null;
	}

	visibility() {
		clearTimeout(this.hidden);
		if (!document.hidden) return this.join();
		this.hidden = setTimeout(() => {
			this.leave();
			this.set("paused");
		}, HIDDEN_MS);
	}

	set(state, retryAt) {
		this.state = state;
		this.on.state(state, retryAt);
	}
}
