// What all tabs share: one stream of what they show, and a list of everything else, read slowly. It runs in a
// shared worker, or in the page if the browser has none. A browser has only six connections for one host.

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 10_000;
/** An open stream sends an event every 15 seconds, unless the limit is another. */
const SILENCE_MS = 20_000;
const PROBE_MS = 5000;
/** How often the list is read. */
const LIST_MS = 10_000;
const LIST_TIMEOUT_MS = 15_000;
/** The most symbols in an address, and how many names may stay that no tab shows any more. */
const MOST_NAMES = 400,
	SPARE = 150;

const NAMES = ["quote", "candle", "status", "gone", "alive", "bye"];

/** An address of marketd. Symbols keep their `/`, `:` and `,`. */
const at = (path) => new URL(`../${path}`, import.meta.url).href;
/** Gets a text of marketd, or null. */
const ask = (path, ms) =>
	fetch(at(path), { signal: AbortSignal.timeout(ms) }).then(
		(response) => (response.ok ? response.text() : null),
		() => null,
	);
const isChart = (name) => name.includes(":");

/** An `EventSource` that is opened again after it was closed for good, or when it hangs. */
class Stream {
	/** `on` has `event(name, text)` and `state(state, retryAt)`. */
	constructor(path, on) {
		this.url = at(path);
		this.on = on;
		this.pause = FIRST_PAUSE_MS;
		this.open();
	}

	open() {
		this.close();
		const source = (this.source = new EventSource(this.url));
		this.wait();
		source.onopen = () => {
			this.pause = FIRST_PAUSE_MS;
			this.on.state("live");
			this.wait();
		};
		source.onerror = () => this.failed();
		for (const name of NAMES) {
			source.addEventListener(name, (event) => {
				this.wait();
				if (name === "bye") this.on.state("lost");
				else this.on.event(name, event.data);
			});
		}
	}

	/** The browser retries by itself, except after a response that is not a stream. */
	failed() {
		if (this.source.readyState !== EventSource.CLOSED) return this.on.state("lost");
		const wait = this.pause * (0.75 + Math.random() / 2);
		this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
		this.timer = setTimeout(() => this.open(), wait);
		this.on.state("lost", Date.now() + wait);
	}

	wait() {
		clearTimeout(this.silence);
		this.silence = setTimeout(() => this.silent(), SILENCE_MS);
	}

	/** No event has come for too long: the stream is dead, and perhaps marketd, too. */
	async silent() {
		const { source } = this;
		const lives = await ask("health/live", PROBE_MS);
		if (source !== this.source) return;
		if (!lives) this.on.state("lost");
		this.open();
	}

	close() {
		clearTimeout(this.timer);
		clearTimeout(this.silence);
		this.source?.close();
		this.source = null;
	}
}

export class Hub {
	constructor() {
		/** The port of each tab, and the names that it shows: symbols, and a chart like "BTC/USDT:1h". */
		this.tabs = new Map();
		/** When marketd last said anything; null if never. It outlasts the tabs. */
		this.heard = null;
		/** The most symbols and charts of one stream; null until marketd was asked. */
		this.limits = null;
		this.reset();
	}

	reset() {
		this.stream?.close();
		this.next?.close();
		/** The stream, and its replacement, which takes over as soon as it is open. */
		this.stream = this.next = null;
		this.state = "connecting";
		/** The names in the newest stream; "*" alone stands for all symbols. */
		this.followed = new Set();
		/** For tabs that join later: the newest list, and each name's newest event. */
		this.list = null;
		this.held = new Map();
		this.health = null;
		clearTimeout(this.reading);
		// An answer that still comes is for nobody.
		this.reading = null;
	}

	/** Listens to a tab. It sends `{ join: true }`, `{ names }`, `{ retry: true }` and `{ leave: true }`. */
	listen(port) {
		port.onmessage = ({ data }) => {
			if (data.join) this.join(port);
			else if (data.leave) this.leave(port);
			else if (data.retry) this.retry();
			else this.show(port, data.names);
		};
	}

	join(port) {
		const isFirst = !this.tabs.size;
		this.tabs.set(port, []);
		if (isFirst) this.read();
		this.send(port, { list: this.list });
		if (this.health) this.send(port, { events: [["status", this.health]] });
		this.send(port, { state: this.state });
	}

	leave(port) {
		this.tabs.delete(port);
		if (!this.tabs.size) this.reset();
	}

	retry() {
		(this.next ?? this.stream)?.open();
		this.read();
	}

	/** Notes that a tab shows something else. */
	show(port, names) {
		this.tabs.set(port, names);
		const events = names.map((name) => this.held.get(name)).filter(Boolean);
		if (events.length) this.send(port, { events });
		this.follow();
	}

	/** Reads the list of all quotes, and again after a while. Charts above the limit are loaded with it. */
	async read() {
		this.learn();
		clearTimeout(this.reading);
		const reading = (this.reading = setTimeout(() => this.read(), LIST_TIMEOUT_MS + LIST_MS));
		const text = await ask("api/v1/quotes?symbols=*&decimals=string", LIST_TIMEOUT_MS);
		if (reading !== this.reading) return;
		clearTimeout(reading);
		if (text) {
			this.heard = Date.now();
			this.list = text;
			const isLeftOut = (name) => isChart(name) && !this.followed.has(name);
			for (const [port, names] of this.tabs)
				this.send(port, { list: text, resumed: names.some(isLeftOut) });
		}
		this.follow();
		this.reading = setTimeout(() => this.read(), LIST_MS);
	}

	/** Reads marketd's limits. If they have changed, it takes another stream. */
	async learn() {
		const text = await ask("page/config.json", LIST_TIMEOUT_MS);
		const found = text?.match(/streamSymbols\D+(\d+)\D+streamCharts\D+(\d+)/);
		const limits = found?.slice(1) ?? this.limits ?? [MOST_NAMES, 16];
		if (`${limits}` !== `${this.limits}`) this.followed.clear();
		this.limits = limits;
		this.follow();
	}

	/**
	 * Opens a stream of what the tabs show, if the one that is there lacks something. The old one goes on
	 * until the new one is open.
	 */
	follow() {
		if (!this.limits) return;
		const [mostSymbols, mostCharts] = this.limits;
		const names = [...new Set([...this.tabs.values()].flat())];
		const charts = names.filter(isChart).slice(-mostCharts);
		const symbols = names.filter((name) => !isChart(name)).slice(-Math.min(MOST_NAMES, mostSymbols));
		if (!names.length) {
			// The tabs will soon say which markets of the list they show. Without a list, all are needed.
			const isListed = !this.stream && this.list?.includes('"symbol":');
			if (isListed || this.followed.size || !this.tabs.size) return;
			symbols.push("*");
		}
		const wanted = new Set([...symbols, ...charts]);
		const has = [...wanted].every((name) => this.followed.has(name));
		if (has && this.followed.size <= wanted.size + SPARE) return;
		this.followed = wanted;
		for (const name of this.held.keys()) if (!wanted.has(name)) this.held.delete(name);
		const query = `decimals=string&symbols=${symbols}${charts.length ? `&charts=${charts}` : ""}`;
		this.next?.close();
		const stream = (this.next = new Stream(`api/v1/stream?${query}`, {
			event: (name, text) => this.event(name, text),
			state: (state, retryAt) => {
				if (retryAt) this.learn();
				if (stream === this.next) {
					const old = this.stream;
					old?.close();
					this.stream = stream;
					this.next = null;
					// marketd may grant one stream only: there is room now.
					if (old && retryAt) return;
				}
				this.set(state, retryAt);
			},
		}));
	}

	/** After the stream was lost, everything may have changed. Until one is live, a candle may close. */
	set(state, retryAt) {
		if (state === "live" && this.state === "lost") this.read();
		this.state = state;
		this.tell({ state, retryAt, resumed: state === "live" });
	}

	event(name, text) {
		this.heard = Date.now();
		if (name === "status") this.health = text;
		const events = [[name, text]];
		if (!["quote", "candle", "gone"].includes(name)) return this.tell({ events });
		const key = nameOf(text);
		this.held.set(key, events[0]);
		for (const [port, names] of this.tabs)
			if (names.includes(key) || (!names.length && !isChart(key))) this.send(port, { events });
	}

	tell(message) {
		for (const port of this.tabs.keys()) this.send(port, message);
	}

	send(port, message) {
		port.postMessage({ ...message, heard: this.heard });
	}
}

/** The subject of an event: a symbol, or a chart. */
const nameOf = (text) =>
	["symbol", "interval"]
		.map((key) => text.match(`"${key}":"([^"]+)"`)?.[1])
		.filter(Boolean)
		.join(":");

if (typeof SharedWorkerGlobalScope === "function" && globalThis instanceof SharedWorkerGlobalScope) {
	const hub = new Hub();
	globalThis.onconnect = (event) => hub.listen(event.ports[0]);
}
