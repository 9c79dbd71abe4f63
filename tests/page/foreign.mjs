// Runs a chart library that others use against marketd: node tests/page/foreign.mjs MARKETD CHROMIUM LIBRARY
//
// LIBRARY is lightweight-charts' standalone script. A page of another origin loads candles from
// `/api/ecosystem/chart` as that library's users do: those of now, older ones as the chart is moved back, and
// the newest again and again. What it holds and what it draws must be what the API says.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { Browser } from "./browser.mjs";
import { sleep, World } from "./world.mjs";

const [program, chromium, library] = process.argv.slice(2);
const UP = [0, 128, 0];
const DOWN = [192, 0, 0];

const PAGE = `<!doctype html><meta charset="utf-8"><title>chart</title>
<body style="margin:0"><div id="chart" style="width:1000px;height:500px"></div>
<script src="library.js"></script><script type="module" src="client.js"></script>`;

/** What a user of the library writes. */
const client = (base) => `
const base = ${JSON.stringify(base)};
const bar = ([time, open, high, low, close]) => ({ time: time / 1000, open, high, low, close });
const load = async (rest) => {
  const response = await fetch(base + "/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&" + rest);
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()).map(bar);
};
const chart = LightweightCharts.createChart(document.getElementById("chart"), {
  timeScale: { timeVisible: true, barSpacing: 12 }, crosshair: { mode: 2 },
});
const [up, down] = ["rgb(${UP})", "rgb(${DOWN})"];
const series = chart.addSeries(LightweightCharts.CandlestickSeries,
  { upColor: up, wickUpColor: up, downColor: down, wickDownColor: down, borderVisible: false });
let all = await load("limit=120");
series.setData(all);
let loading = false;
chart.timeScale().subscribeVisibleLogicalRangeChange(async (range) => {
  if (loading || !range || range.from > 10) return;
  loading = true;
  const older = await load("limit=200&to=" + (all[0].time * 1000 - 1));
  all = [...older, ...all];
  series.setData(all);
  loading = older.length === 0;
});
setInterval(async () => {
  for (const newest of await load("limit=2")) {
    if (newest.time < all.at(-1).time) continue;
    all = [...all.filter((it) => it.time < newest.time), newest];
    series.update(newest);
  }
}, 500);
window.client = { chart, series };
`;

function expect(holds, what) {
  if (!holds) throw new Error(what);
}

const world = new World(program);
const browser = new Browser(chromium);
process.on("exit", () => {
  world.daemon?.kill("SIGKILL");
  browser.child.kill("SIGKILL");
});
await world.start();
const sources = {
  "/": ["text/html", PAGE],
  "/library.js": ["text/javascript", readFileSync(library, "utf8")],
  "/client.js": ["text/javascript", client(`http://127.0.0.1:${world.port}`)],
};
const server = createServer((asked, response) => {
  const [type, text] = sources[asked.url] ?? ["text/plain", ""];
  response.writeHead(text ? 200 : 204, { "Content-Type": type }).end(text);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const page = await browser.page(`http://127.0.0.1:${server.address().port}/`);

async function run(expression) {
  const { result, exceptionDetails } = await page.send("Runtime.evaluate", {
    expression: `(async () => (${expression}))()`,
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value;
}

async function until(expression, what) {
  for (const end = Date.now() + 15_000; Date.now() < end; await sleep(60)) {
    const value = await run(expression).catch(() => undefined);
    if (value) return value;
  }
  throw new Error(`not within 15 s: ${what}; ${page.faults.join("; ")}`);
}

const HELD = "client.series.data().map((b) => [b.time * 1000, b.open, b.high, b.low, b.close])";
const api = async (rest) => {
  const rows = await world.json(`/api/ecosystem/chart?symbol=BTC/USDT&interval=1h&${rest}`);
  return rows.map((row) => row.slice(0, 5));
};

/** The candles that the chart holds are those of the API, but for the newest, which moves. */
async function compare() {
  const held = await run(HELD);
  const rows = await api(`limit=5000&from=${held[0][0]}&to=${held.at(-2)[0]}`);
  expect(JSON.stringify(held.slice(0, -1)) === JSON.stringify(rows), "the chart holds other candles than the API");
  return held.length;
}

const checks = {
  "it draws the candles of the API, in their colours": async () => {
    await until("window.client && client.series.data().length >= 120", "the first candles");
    const count = await compare();
    // The middle of each candle's body, on the chart's own picture, which is drawn after the candles have come.
    const drawn = `(() => {
      const { chart, series } = client, canvas = chart.takeScreenshot(), context = canvas.getContext("2d");
      const scale = canvas.width / 1000;
      let seen = 0;
      for (const b of series.data().slice(-60, -1)) {
        const x = chart.timeScale().timeToCoordinate(b.time);
        const [top, bottom] = [series.priceToCoordinate(Math.max(b.open, b.close)), series.priceToCoordinate(Math.min(b.open, b.close))];
        if (x === null || bottom - top < 3) continue;
        const color = [...context.getImageData(Math.round(x * scale), Math.round((top + bottom) / 2 * scale), 1, 1).data].slice(0, 3).join();
        seen++;
        if (color !== (b.close >= b.open ? "${UP}" : "${DOWN}")) return false;
      }
      return seen >= 10;
    })()`;
    await until(drawn, "ten candles or more that are large enough, and each in its colour");
    return `${count} candles`;
  },
  "moved back, it loads older candles without a hole or a repetition": async () => {
    await run("client.chart.timeScale().scrollToPosition(-115, false)");
    await until("client.series.data().length >= 320", "older candles");
    const times = (await run(HELD)).map(([time]) => time);
    const steps = times.slice(1).map((time, at) => time - times[at]);
    expect(steps.every((step) => step === 3_600_000), "there is a hole or a repetition");
    return `${await compare()} candles`;
  },
  "its newest candle follows the market": async () => {
    const before = (await run(HELD)).at(-1);
    const moved = `JSON.stringify(${HELD}.at(-1)) !== ${JSON.stringify(JSON.stringify(before))}`;
    await until(moved, "a change of the newest candle");
  },
  "no error in its console": async () => expect(page.faults.length === 0, page.faults.join("; ")),
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    const said = await check();
    console.log(`ok   lightweight-charts: ${name}${said ? ` (${said})` : ""}`);
  } catch (error) {
    failed++;
    console.log(`FAIL lightweight-charts: ${name} (${error.message})`);
  }
}
await browser.close();
server.closeAllConnections();
server.close();
await world.stop();
process.exit(failed ? 1 : 0);
