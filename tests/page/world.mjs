// What the checks run against: the made-up exchange, a real marketd that polls it, and the page's
// server before it. Each can be stopped and started again at its address.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Exchange } from "./exchange.mjs";
import { serve } from "./server.mjs";

export const STALE_MS = 3000;
/** What is older than this many minutes is never asked of the exchange. */
export const KEEP = 1800;
export const BACKFILL = 1200;
export const BASE = "/deep/base";

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export class World {
  constructor(program, markets) {
    this.program = program;
    this.markets = markets;
    this.home = mkdtempSync(join(tmpdir(), "marketd-world-"));
    /** Every request that reached the page's server. */
    this.requests = [];
    this.options = {};
    /** Limits of marketd that a check has set. */
    this.limits = {};
  }

  async start() {
    this.exchange = await new Exchange(this.markets).start();
    this.port = await freePort();
    await this.startDaemon();
    await this.startServer(0);
    await this.ready();
    return this;
  }

  configuration() {
    const history = { keep: 50_000, backfill: 1200 };
    return {
      listen: `127.0.0.1:${this.port}`,
      data: ":memory:",
      sources: [
        {
          id: "main",
          dialect: "binance",
          url: this.exchange.url,
          symbols: ["BTC/USDT", "GAP/USDT", "TINY/USDT", "HUGE/USDT"],
          quoteAssets: ["*"],
          pollMs: 1000,
          staleAfterMs: STALE_MS,
          timeoutMs: 1000,
        },
      ],
      history: { "1m": { keep: KEEP, backfill: BACKFILL }, "1h": history, "1d": history },
      limits: { backoffMaxMs: 1500, ...this.limits },
      categories: [
        { id: "oddities", name: "Oddities", description: null, symbols: ["TINY/USDT", "HUGE/USDT"] },
      ],
    };
  }

  async startDaemon() {
    const file = join(this.home, "marketd.json");
    writeFileSync(file, JSON.stringify(this.configuration()));
    this.daemon = spawn(this.program, ["--config", file, "--log", "warn"], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.log = "";
    this.daemon.stderr.setEncoding("utf8").on("data", (part) => {
      this.log += part;
    });
  }

  /** Kills marketd as a crash would. */
  async killDaemon() {
    const gone = new Promise((done) => this.daemon.on("exit", done));
    this.daemon.kill("SIGKILL");
    await gone;
  }

  async startServer(port) {
    this.server = await serve(`http://127.0.0.1:${this.port}`, port, BASE, this.requests, this.options);
    this.page = `http://127.0.0.1:${this.server.address().port}${BASE}/`;
  }

  async stopServer() {
    const { port } = this.server.address();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
    return port;
  }

  /** Waits until quotes are there and no more candles come. */
  async ready() {
    const end = Date.now() + 30_000;
    let stored = 0;
    while (Date.now() < end) {
      try {
        const { upstreams, candlesStored } = await this.json("/api/v1/metrics");
        if (upstreams[0].state === "up" && candlesStored >= BACKFILL && candlesStored === stored) return;
        stored = candlesStored;
      } catch {
        /* Not yet. */
      }
      await sleep(400);
    }
    throw new Error(`marketd did not become ready:\n${this.log}`);
  }

  async text(target) {
    const response = await fetch(`http://127.0.0.1:${this.port}${target}`);
    return response.text();
  }

  async json(target) {
    return JSON.parse(await this.text(target));
  }

  async stop() {
    if (this.daemon?.exitCode === null && this.daemon.signalCode === null) await this.killDaemon();
    if (this.server?.listening) await this.stopServer();
    if (this.exchange?.server.listening) await this.exchange.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}

async function freePort() {
  const exchange = await new Exchange().start();
  const { port } = exchange;
  await exchange.stop();
  return port;
}
