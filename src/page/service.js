// The page about marketd itself: health, sources side by side, backfill, and figures.

import { get } from "./api.js";
import { make } from "./dom.js";
import { bytes, count, span } from "./text.js";
import { clock, date, zoneName } from "./time.js";

const REFRESH_MS = 2000;
/** If nobody uses the page for this time, the figures stand still, and the page says so. */
const REST_MS = 60_000;

/** Figures by group: the path of each in the metrics, and its form. */
const FIGURES = {
	Quotes: {
		Held: ["cachedEntries"],
		Stale: ["quotes.stale"],
		Collected: ["quotes.collected"],
		Rate: ["quotes.collected", "rate"],
		Rejected: ["quotes.rejected"],
		Failovers: ["quotes.failovers"],
	},
	Candles: {
		Stored: ["candlesStored"],
		"Series stored": ["chartsStored"],
		"In memory": ["charts.candles"],
		Memory: ["charts.bytes", bytes],
		"Slots without trade": ["charts.gaps"],
		"Failed writes": ["charts.persistErrors"],
		"History file": ["history", (it) => (it.enabled ? (it.usable ? bytes(it.bytes) : "unusable") : "none")],
	},
	Requests: {
		Answered: ["http.requests"],
		Rate: ["http.requests", "rate"],
		"2xx": ["http.status.2xx"],
		"Not modified": ["http.notModified"],
		"4xx": ["http.status.4xx"],
		"5xx": ["http.status.5xx"],
		Rejected: ["http.rejected"],
		Connections: ["http.connectionsOpen"],
		Sent: ["http.bytesOut", bytes],
	},
	Streams: {
		Open: ["streams.open"],
		Opened: ["streams.opened"],
		Refused: ["streams.refused"],
		"Events sent": ["streams.events"],
		"Left out for newer": ["streams.conflated"],
	},
	Process: {
		Version: ["version", String],
		"Up for": ["uptimeMs", span],
		Memory: ["process.rssBytes", bytes],
		"Open files": ["process.openFds"],
		"Longest stall": ["process.loopMaxStallMs", (ms) => (ms === null ? "–" : `${ms} ms`)],
	},
};

/** The value at a path like "http.requests". */
const pick = (from, path) => path.split(".").reduce((it, key) => it?.[key], from);

export class Service {
	open = false;
	metrics = null;
	before = null;
	touchedAt = 0;

	/** `answers()` counts the symbols that each source serves. */
	constructor(elements, answers) {
		Object.assign(this, { elements, answers });
		for (const name of ["pointermove", "pointerdown", "keydown", "wheel", "focus"])
			addEventListener(name, () => this.touch(), { passive: true });
		document.addEventListener("visibilitychange", () => this.touch());
	}

	show(open) {
		this.open = open;
		this.before = null;
		this.touchedAt = performance.now();
		this.renderHealth();
		this.load();
	}

	touch() {
		this.touchedAt = performance.now();
		if (this.open && !this.timer && !this.busy && !document.hidden) this.load();
	}

	/** Reads the metrics, and again soon while somebody uses the page. */
	async load() {
		clearTimeout(this.timer);
		this.timer = null;
		if (!this.open) return;
		this.busy = true;
		try {
			const [{ body, headers }, health] = await Promise.all([get("api/v1/metrics"), get("health")]);
			this.state = health.body;
			this.before = this.metrics?.startedAt === body.startedAt ? this.metrics : null;
			this.metrics = body;
			// By marketd's clock, as the times in the figures.
			this.at = Date.parse(headers.get("Date"));
			if (this.open) this.render();
		} catch (error) {
			this.elements.asof.textContent = `No new figures: ${error.message.replace(/\.$/, "")}.`;
		}
		this.busy = false;
		if (!this.open || document.hidden) return;
		if (performance.now() - this.touchedAt < REST_MS) this.timer = setTimeout(() => this.load(), REFRESH_MS);
		else
			this.elements.asof.textContent +=
				" The figures rest while nobody moves; any key or movement wakes them.";
	}

	/** Takes the stream's state. After a loss, the last answer of `/health` is outdated. */
	connection(state, lostAt) {
		this.lostAt = state === "lost" ? lostAt : null;
		this.renderHealth();
	}

	health(health) {
		this.state = health;
		this.renderHealth();
	}

	renderHealth() {
		const { open, state, lostAt, elements } = this;
		elements.health.parentElement.classList.toggle("unknown", !!lostAt);
		if (!open || (!lostAt && !state)) return;
		const verdict = lostAt ? "not known" : state.status;
		const words = lostAt
			? `marketd does not respond since ${clock(lostAt)} ${zoneName()}.${this.metrics ? " Everything below is from before." : ""}`
			: `${state.upstreams.up} of ${state.upstreams.total} sources up, ${count(state.quotes.fresh)} quotes fresh, ${count(state.quotes.stale)} stale`;
		const about = { class: `verdict ${lostAt ? "unknown" : verdict}` };
		const line = make("p", about, make("i", { class: "dot" }), make("b", {}, verdict), ` ${words}`);
		const reasons = (lostAt ? [] : state.reasons).map(({ source, message }) =>
			make("li", {}, ...(source ? [make("b", {}, source), " "] : []), message),
		);
		elements.health.replaceChildren(line, ...(reasons.length ? [make("ul", {}, ...reasons)] : []));
	}

	render() {
		const { sources, backfill, cluster, figures, asof } = this.elements;
		const { upstreams } = this.metrics;
		this.renderHealth();
		sources.replaceChildren(this.sources(upstreams));
		backfill.replaceChildren(...upstreams.map((source) => this.fill(source)));
		cluster.replaceChildren(...this.cluster(this.metrics.cluster));
		figures.replaceChildren(
			...Object.entries(FIGURES).map(([title, group]) =>
				make("section", { class: "group" }, make("h3", {}, title), this.list(group)),
			),
		);
		asof.textContent = `As of ${clock(this.at)} ${zoneName()}.`;
	}

	/** Makes a column for each source, with one figure per line. */
	sources(upstreams) {
		const answers = this.answers();
		const age = (at) => (at === null ? "never" : `${span(this.at - at)} ago`);
		const until = (at) => (at ? `in ${span(Math.max(0, at - this.at))}` : "–");
		// After a reload, a source may have another place in the list.
		const minute =
			(path) =>
			({ id }) =>
				this.rate(path, 60_000, (it) => it.upstreams.find((source) => source.id === id));
		const failing = ({ failing }) =>
			Object.entries(failing)
				.filter(([, times]) => times)
				.map(([kind, times]) => `${kind} ${count(times)} times`)
				.join(", ") || "nothing";
		const lines = [
			["Last answer", (s) => age(s.lastSuccessAt)],
			["Latency", (s) => span(s.lastLatencyMs)],
			["One round of quotes", (s) => span(s.roundMs)],
			["Next poll", (s) => until(s.nextPollAt)],
			["Tries again", (s) => until(s.backoffUntil)],
			["Answers for", (s) => `${count(answers.get(s.id) ?? 0)} markets`],
			["Stale quotes", (s) => count(s.stale)],
			["Polls a minute", minute("polls")],
			["Units a minute", minute("budgetSpent")],
			["Received a minute", minute("bytesReceived")],
			["Sent a minute", minute("bytesSent")],
			["Tickers a request", (s) => s.plan || "none"],
			["Budget left", (s) => count(s.budgetLeft)],
			["Budget spent", (s) => count(s.budgetSpent)],
			["Spent by others", (s) => count(s.spentByOthers)],
			["Failed polls", (s) => `${count(s.errors)} of ${count(s.ok + s.errors)}`],
			["Timeouts, rate limits", (s) => `${count(s.timeouts)}, ${count(s.rateLimited)}`],
			["Failing now", failing],
			["Failed over, returned", (s) => `${count(s.failovers)}, ${count(s.returns)}`],
			["Clock", (s) => (s.clockInDoubt ? "in doubt" : "trusted")],
			["Last error", (s) => (s.lastError ? `${date(s.lastErrorAt, true)}: ${s.lastError}` : "none")],
		];
		const states = upstreams.map((s) => (s.frozen ? "frozen" : s.state));
		const heads = upstreams.map(({ id }, i) =>
			make(
				"th",
				{ scope: "col", "data-state": states[i] },
				make("i", { class: "dot" }),
				`${id} `,
				make("span", {}, states[i]),
			),
		);
		const rows = lines.map(([name, write]) => {
			const about = name === "Last error" ? { class: "error" } : {};
			const cells = upstreams.map((source) => make("td", about, write(source)));
			return make("tr", {}, make("th", { scope: "row" }, name), ...cells);
		});
		const head = make("thead", {}, make("tr", {}, make("td"), ...heads));
		return make("table", {}, head, make("tbody", {}, ...rows));
	}

	fill(source) {
		const { wanted, done, perMinute } = source.backfill;
		const about = { max: Math.max(1, wanted), value: done, "aria-label": `Backfill of ${source.id}` };
		const share = wanted ? `${Math.floor((done / wanted) * 100)} %` : "–";
		const words = !wanted
			? "nothing is wanted yet"
			: done >= wanted
				? `${count(done)} candles, done`
				: `${count(done)} of ${count(wanted)} candles, ${count(perMinute)} a minute, ${this.estimate(source)}`;
		const parts = [make("b", {}, source.id), make("progress", about), make("span", {}, share)];
		return make("div", { class: "fill" }, ...parts, make("span", { class: "words" }, words));
	}

	/** Estimates when the backfill ends. A source that does not answer has no end. */
	estimate({ state, frozen, backfill: { perMinute, endsAt } }) {
		if (state !== "up" && !frozen)
			return `waits for the source, which is ${state === "backoff" ? "backing off" : state}`;
		if (!perMinute || !endsAt || endsAt <= this.at) return "no estimate yet";
		return `done in about ${span(endsAt - this.at)}`;
	}

	/** In a cluster, says which node collects each source. */
	cluster(cluster) {
		if (!cluster) return [];
		const said = cluster.sources.map(({ id, role, epoch, lagMs }) => [
			id,
			[`${role}, epoch ${epoch ?? "–"}${lagMs === null ? "" : `, ${span(lagMs)} behind`}`],
		]);
		const pairs = [["This node", [cluster.node]], ["Engine", [cluster.engine]], ...said];
		return [make("h2", {}, "Cluster"), make("div", { class: "group" }, this.pairs(pairs))];
	}

	/** A rate over time, from the last two readings. */
	rate(path, ms = 1000, of = (it) => it) {
		const { before, metrics } = this;
		if (!before) return "–";
		const more = pick(of(metrics), path) - pick(of(before), path);
		const a = (more * ms) / (metrics.uptimeMs - before.uptimeMs);
		if (!(a >= 0 && a < Infinity)) return "–";
		if (path.includes("bytes")) return bytes(Math.round(a));
		return a < 10 ? a.toFixed(1) : count(Math.round(a));
	}

	list(group) {
		return this.pairs(
			Object.entries(group).map(([name, [path, write = count]]) => [
				name,
				write === "rate" ? `${this.rate(path)} /s` : write(pick(this.metrics, path)),
			]),
		);
	}

	pairs(pairs) {
		return make(
			"dl",
			{},
			...pairs.map(([dt, dd]) => make("div", {}, make("dt", {}, dt), make("dd", {}, dd))),
		);
	}
}
