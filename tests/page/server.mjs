// Stands in front of a running marketd, for the tests of the page:
//
//     node tests/page/server.mjs http://127.0.0.1:8080 [PORT] [BASE_PATH]
//
// Everything comes from marketd. Where that has no stream of its own, this server makes it from polls.

import { createServer, request } from "node:http";
import { fileURLToPath } from "node:url";

const POLL_MS = 1000;

/** Gets an address of marketd: `{ status, headers, text }`. */
function ask(upstream, target, headers = {}) {
  return new Promise((resolve, reject) => {
    const asked = request(new URL(target, upstream), { timeout: 5000, headers }, (response) => {
      let text = "";
      response
        .setEncoding("utf8")
        .on("data", (part) => {
          text += part;
        })
        .on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }))
        .on("error", reject);
    });
    asked.on("error", reject).on("timeout", () => asked.destroy(new Error("timeout")));
    asked.end();
  });
}

/** `options.change(name, text)` may give another text or policy of a file, for checks of the checks. */
async function changed(upstream, target, incoming, outgoing, change) {
  const { accept = "*/*" } = incoming.headers;
  try {
    const { status, headers, text } = await ask(upstream, target, { accept });
    const name = target.startsWith("/page/") ? target.slice(6) : "index.html";
    const policy = headers["content-security-policy"] ?? "";
    outgoing.writeHead(status, {
      "Content-Type": headers["content-type"],
      "Content-Security-Policy": change("policy", policy),
      "Cache-Control": "no-cache",
    });
    outgoing.end(change(name, text));
  } catch {
    refuse(outgoing, 502);
  }
}

function refuse(
  response,
  status,
  text = `{"status":${status},"code":"unavailable","message":"marketd does not respond.","param":null}`,
) {
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  response.end(text);
}

/** Passes a request on, and the response back as it comes. `otherwise` takes a response that is not 200. */
function pass(upstream, target, incoming, outgoing, otherwise) {
  const headers = { ...incoming.headers };
  delete headers.host;
  const asked = request(new URL(target, upstream), { headers }, (response) => {
    if (otherwise && response.statusCode !== 200) {
      response.resume();
      return otherwise();
    }
    outgoing.writeHead(response.statusCode, response.headers);
    response.on("error", () => outgoing.destroy()).pipe(outgoing);
  });
  asked.on("error", () => (outgoing.headersSent ? outgoing.destroy() : refuse(outgoing, 502)));
  outgoing.on("close", () => asked.destroy());
  asked.end();
}

/** A stream made of polls: what changed since the last one, with the digits that marketd sent. */
class Stream {
  constructor(upstream, query, outgoing) {
    this.upstream = upstream;
    this.symbols = query.get("symbols");
    this.charts = (query.get("charts") ?? "")
      .split(",")
      .filter(Boolean)
      .map((pair) => pair.split(":"));
    this.outgoing = outgoing;
    this.sent = new Map();
    this.version = 0;
    this.quietSince = Date.now();
    outgoing.on("close", () => clearTimeout(this.timer));
    this.turn();
  }

  send(event, data) {
    this.quietSince = Date.now();
    this.outgoing.write(`event: ${event}\nid: ${++this.version}\ndata: ${data}\n\n`);
  }

  /** Sends what differs from what was sent last under this key. */
  changed(key, event, data) {
    if (this.sent.get(key) === data) return;
    this.sent.set(key, data);
    this.send(event, data);
  }

  async turn() {
    try {
      await this.poll();
    } catch {
      if (this.outgoing.headersSent) this.outgoing.end();
      else refuse(this.outgoing, 502);
      return;
    }
    if (Date.now() - this.quietSince > 15_000) {
      this.outgoing.write(":\n\n");
      this.quietSince = Date.now();
    }
    if (!this.outgoing.destroyed) this.timer = setTimeout(() => this.turn(), POLL_MS);
  }

  begin() {
    if (this.outgoing.headersSent) return;
    this.outgoing.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    this.outgoing.write("retry: 1000\n\n");
  }

  async poll() {
    const health = await ask(this.upstream, "/health");
    this.begin();
    if (this.symbols) {
      // With `decimals=string` a decimal is a text for this program too, so that no digit is lost.
      const { text } = await ask(this.upstream, `/api/v1/quotes?symbols=${this.symbols}&decimals=string`);
      for (const quote of JSON.parse(text).quotes ?? []) {
        // As in marketd's own stream, a poll that changes nothing sends nothing.
        const key = `quote ${quote.symbol}`,
          { receivedAt, timestamp, ...rest } = quote;
        const same = JSON.stringify(rest);
        if (this.sent.get(key) === same) continue;
        this.sent.set(key, same);
        this.send("quote", JSON.stringify(quote));
      }
      const { status, reasons, upstreams } = JSON.parse(health.text);
      const key = JSON.stringify([status, reasons.map((reason) => reason.code), upstreams]);
      if (this.sent.get("status") !== key) {
        this.sent.set("status", key);
        this.send("status", health.text);
      }
    }
    for (const [symbol, interval] of this.charts) await this.chart(symbol, interval);
  }

  async chart(symbol, interval) {
    const { status, headers, text } = await ask(
      this.upstream,
      `/api/ecosystem/chart?symbol=${symbol}&interval=${interval}&limit=3&decimals=string`,
    );
    if (status !== 200) return;
    const closed = Number(headers["chart-last-closed"] ?? 0);
    const rows = JSON.parse(text);
    for (const candle of rows) {
      const first = !this.sent.has(`started ${symbol}:${interval}`);
      if (first && candle !== rows[rows.length - 1]) continue;
      const data = JSON.stringify({
        symbol,
        interval,
        source: headers["chart-source"],
        candle,
        closed: candle[0] <= closed,
      });
      this.changed(`candle ${symbol}:${interval} ${candle[0]}`, "candle", data);
    }
    this.sent.set(`started ${symbol}:${interval}`, "");
  }
}

/** Starts the server; `requests` gets each target. */
export function serve(upstream, port = 0, base = "", requests = [], options = {}) {
  const server = createServer((incoming, outgoing) => {
    requests.push(incoming.url);
    if (incoming.method !== "GET" || !incoming.url.startsWith(`${base}/`)) return refuse(outgoing, 404);
    const target = incoming.url.slice(base.length);
    const { pathname, searchParams } = new URL(target, "http://page");
    if (options.change && (pathname === "/" || pathname.startsWith("/page/")))
      return changed(upstream, target, incoming, outgoing, options.change);
    if (pathname === "/api/v1/stream") {
      return pass(upstream, target, incoming, outgoing, () => new Stream(upstream, searchParams, outgoing));
    }
    pass(upstream, target, incoming, outgoing);
  });
  return new Promise((resolve, reject) =>
    server.on("error", reject).listen(port, "127.0.0.1", () => resolve(server)),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [upstream, port = "0", base = ""] = process.argv.slice(2);
  if (!upstream) {
    console.error("usage: node tests/page/server.mjs MARKETD_ADDRESS [PORT] [BASE_PATH]");
    process.exit(2);
  }
  const server = await serve(upstream, Number(port), base);
  console.log(`http://127.0.0.1:${server.address().port}${base}/`);
}
